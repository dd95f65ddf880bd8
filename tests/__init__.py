"""Tests start hundreds of processes: each finds the code compiled, also where the environment says not to keep that."""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import sys
from pathlib import Path

from tests.golden.parser import Parser

parser = Parser()
errors = [f"{name}:{error}" for name in sys.argv[1:] for error in parser.errors(Path(name).read_text(encoding="utf-8"))]
sys.stdout.writelines(f"{error}\n" for error in errors)
sys.exit(1 if errors else 0)

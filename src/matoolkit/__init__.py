"""Runs tenant-to-tenant migrations from runbooks: who moves, when, and every step on the way."""

from importlib.metadata import version

__version__ = version("matoolkit")

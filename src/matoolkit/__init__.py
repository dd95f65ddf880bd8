"""Runs tenant-to-tenant migrations from runbooks: who moves, when, and every step on the way."""

# The package is built with this version: pyproject.toml reads it here.
__version__ = "0.1.0"

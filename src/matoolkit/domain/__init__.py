"""The rules: state and event in, decision out. Pure Python, no input or output."""

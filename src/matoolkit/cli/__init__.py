"""The command line, `matoolkit`."""

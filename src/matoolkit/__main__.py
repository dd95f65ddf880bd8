"""Lets `python -m matoolkit` be the command `matoolkit`."""

from matoolkit.cli.main import main

if __name__ == "__main__":
    main()

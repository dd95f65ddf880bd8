"""The processes in which the parts of the system run."""

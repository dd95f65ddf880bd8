"""The kernel: statements that are built once, and how they are run."""

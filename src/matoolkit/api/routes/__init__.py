"""One module for each topic."""

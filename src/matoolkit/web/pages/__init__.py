"""One module a page: what it shows, how it is watched, and what can be done on it."""

"""The admin API: everything people may ask, over HTTP."""

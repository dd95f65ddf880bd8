"""The history of the tables, one for all databases; `matoolkit.store.upgrade` runs it."""

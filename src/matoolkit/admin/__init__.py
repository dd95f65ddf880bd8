"""What people can do with the system; each change is recorded."""

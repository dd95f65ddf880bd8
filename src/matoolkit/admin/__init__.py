"""What people may ask of the system, and what is recorded of it."""

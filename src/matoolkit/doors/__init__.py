"""What the two doors for people, the admin API and the pages, have in common."""

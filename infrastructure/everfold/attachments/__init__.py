"""Content-addressed storage of what messages refer to."""

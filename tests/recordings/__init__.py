"""Recordings: making them, playing them again, and what a recording holds."""

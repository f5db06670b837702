"""Import and export of session files."""

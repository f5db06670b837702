"""Reports from the field, one file a group: what is not proved beside the code that it concerns."""

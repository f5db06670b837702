"""Talking to models from the command line: opening a profile, asking, telling what happens."""

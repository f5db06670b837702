"""Measures everfold against the raw drivers: the same rows, the same sync settings, in one run."""

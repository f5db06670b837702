"""Tests of the store: its contract on each database, its hazards, and reports from the field."""

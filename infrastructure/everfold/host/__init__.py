"""Hosts sessions: load, decide, commit, observe."""

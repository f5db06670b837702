"""Summaries that take the place of the older part of a conversation."""

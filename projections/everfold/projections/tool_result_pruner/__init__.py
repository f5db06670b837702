"""Shortening of long tool results, durably."""

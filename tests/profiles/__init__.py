"""Profiles: reading them, and the hosts that run as they say."""

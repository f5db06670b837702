"""Recordings of sessions: requests as sent, streams as received, and playing them again."""

"""The agent loop, with scripted models and real stores."""

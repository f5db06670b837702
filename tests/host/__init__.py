"""Sessions hosted on real stores."""

"""Routes: the adapters to model providers."""

"""The shipped plugins: pure interpreters of their own event types."""

"""The agent loop: turns, steps, tools, and the recoveries from failed requests."""

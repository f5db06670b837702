"""The demonstration: an agent with images, a kill, a restore, forks and an audit."""

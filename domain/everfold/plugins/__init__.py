"""What a plugin is, the waterfalls it can join, and the scope that undoes what it registered."""

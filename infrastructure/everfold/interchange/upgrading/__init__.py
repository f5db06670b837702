"""Session files of format versions 0 to 2, brought to version 3 a step at a time."""

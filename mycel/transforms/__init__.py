"""Functions from graphs to graphs."""

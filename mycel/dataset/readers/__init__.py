"""Files of other formats as rows, and what is said of those that cannot be read."""

"""Readers of files: rows of other formats, and errors for files that cannot be read."""

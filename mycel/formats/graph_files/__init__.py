"""Mycel's own graph files: their format, its writer and reader, and the checks of what is read."""

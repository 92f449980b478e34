"""Mycel's own graph files: format, writer, reader, and validation of what is read."""

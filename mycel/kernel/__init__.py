"""Loop nests, the form of generated code."""

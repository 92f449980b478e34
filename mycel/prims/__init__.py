"""The primitives, one record each, and their registry."""

"""Engines turn graphs into programs."""

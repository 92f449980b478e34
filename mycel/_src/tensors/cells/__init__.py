"""Cells: the building blocks of networks."""

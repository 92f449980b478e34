"""Reads and writes at positions that are data: gather, scatter, dynamic slices."""

"""Recurrences, losses of sequences whose alignment is unknown, and words."""

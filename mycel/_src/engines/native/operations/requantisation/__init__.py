"""Requantisation: int32 sums rescaled to the integers of another scale."""

"""Requantisation: int32 sums taken to the steps of another scale."""

"""Primitives of networks: attention, recurrence, normalisation, CTC, quantised arithmetic."""

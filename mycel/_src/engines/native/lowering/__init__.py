"""Lowering of graphs to steps: fusion, and the places of values in memory."""

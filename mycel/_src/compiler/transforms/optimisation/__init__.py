"""Optimisation of a graph: the passes in their order, and the rules of simplification."""

"""Graphs: their types, primitives and loop programs, and functions from graphs to graphs."""

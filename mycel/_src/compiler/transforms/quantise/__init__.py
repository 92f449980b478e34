"""Quantisation passes: from graphs of floats to graphs of integers, each from graph to graph."""

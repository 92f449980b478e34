"""Graphs of floats become graphs of few bits, in steps that are each graph → graph."""

"""Staging of control flow: branches, loops and recursion, unrolled or made nodes of the graph."""

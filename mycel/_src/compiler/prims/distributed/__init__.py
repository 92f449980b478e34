"""Primitives of many ranks: collectives, messages between stages, marks of how values are
divided.
"""

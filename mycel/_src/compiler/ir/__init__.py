"""MindIR: types, symbolic dimensions and the immutable graph."""

"""Ahead-of-time compilation: object code without a runtime for other machines, and its C header."""

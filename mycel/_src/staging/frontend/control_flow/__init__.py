"""Branches, loops and recursions, unrolled by Python or made nodes where a tensor decides."""

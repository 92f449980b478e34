"""Products, decompositions, systems and functions of matrices."""

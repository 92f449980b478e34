"""Decompositions, determinants, inverses and spectra of matrices."""

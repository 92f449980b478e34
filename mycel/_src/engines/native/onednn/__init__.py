"""The dense library: products of matrices and convolutions."""

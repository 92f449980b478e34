"""oneDNN, the dense library: matrix products and convolutions."""

"""Matrix-product kernels beside oneDNN's: register tiles, packed panels, AMX."""

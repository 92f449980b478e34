"""FFT: the factors of a size, codelets of factors, and kernels made of them."""

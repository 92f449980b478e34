"""Kernels: loop nests, the schedules of their loops, and the code generated from them."""

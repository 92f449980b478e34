"""Convolution kernels beside oneDNN's: Winograd, pointwise, depthwise, and NHWC direct."""

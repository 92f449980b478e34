"""Convolutions by code of our own: Winograd, pointwise, depthwise, and direct with channels
last.
"""

"""Loops over the pixels of images, as routines: what transforms compute in machine code."""

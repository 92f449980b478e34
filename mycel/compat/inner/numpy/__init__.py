"""Modules of `mindspore.numpy`."""

"""Modules of `mindspore.nn.wrap`."""

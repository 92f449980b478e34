"""Modules of `mindspore.nn.layer`."""

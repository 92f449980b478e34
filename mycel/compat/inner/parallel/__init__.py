"""Modules of `mindspore.parallel`."""

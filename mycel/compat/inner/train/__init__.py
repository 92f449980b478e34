"""Modules of `mindspore.train`."""

"""Modules of `mindspore.parallel.cluster`."""

"""Modules of `mindspore.profiler`."""

"""Modules of `mindspore.communication`."""

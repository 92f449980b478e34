"""Modules of `mindspore.common`."""

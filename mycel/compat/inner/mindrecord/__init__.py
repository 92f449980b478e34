"""Modules of `mindspore.mindrecord`."""

"""Interfaces to the Python interpreter: collection, finalizers, frames, syntax trees."""

"""Transports: how ranks exchange arrays, by one interface with several implementations."""

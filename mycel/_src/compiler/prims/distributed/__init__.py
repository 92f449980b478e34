"""Distributed primitives: collectives, point-to-point messages, sharding constraints."""

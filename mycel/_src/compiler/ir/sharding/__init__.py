"""Sharding annotations: meshes, layouts and strategies, by which programs ask for a division."""

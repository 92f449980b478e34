"""Caches of rows that pipelines and processes share: the server, its clients and commands."""

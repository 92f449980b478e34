"""Iterators over pipelines: epochs, seeds, resumption, autotuning and device queues."""

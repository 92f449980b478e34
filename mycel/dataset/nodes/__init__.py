"""The graph of a pipeline: the protocol of nodes, and one module for each kind of operation."""

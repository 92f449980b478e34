"""From Python functions to graphs: compiled functions and gradients, on one device and on many."""

"""Attention and its derivative, each as one kernel over blocks of queries and keys."""

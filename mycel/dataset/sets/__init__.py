"""Well-known datasets, read from the files that they are published as."""

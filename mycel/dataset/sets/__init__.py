"""The well-known sets, in the files that they are published as."""

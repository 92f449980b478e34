"""Work on many devices: what it costs, how it is best divided, and how it would run."""

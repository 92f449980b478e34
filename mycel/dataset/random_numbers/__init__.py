"""Random numbers that depend on the place of a row alone, also in users' functions."""

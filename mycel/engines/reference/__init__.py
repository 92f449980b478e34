"""The NumPy engine: one primitive at a time, the oracle of the tests."""

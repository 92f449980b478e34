"""Sources that users give rows to: arrays, generators and objects, and their base classes."""

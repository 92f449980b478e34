"""Demonstrations on a fresh machine: `mycel train lenet5` runs the program in this package."""

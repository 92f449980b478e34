"""Programs that show the framework at work on a fresh machine: `mycel train lenet5` runs the one in
this package.
"""

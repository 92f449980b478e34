"""Cases that nobody would write, run in processes that may die: `harness` runs them, `drivers` make
them.
"""

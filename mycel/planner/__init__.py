"""How work is divided among devices: the search of strategies and what it reckons with.

The modules depend on each other in one direction only.
"""

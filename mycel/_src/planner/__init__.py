"""How work is divided among devices: what it takes, and the search of the best division.

`topology` describes devices and links; `model`, `reduction`, `integer`, `repeats` and `search` find
the cheapest of many choices that depend on each other. Nothing here runs anything.
"""

"""Planning of parallel programs: cost models, and the search of the best division among devices.

`topology` describes devices and links; `optimisation_problem`, `problem_reduction`,
`integer_program`, `repeated_blocks` and `plan_search` find the cheapest of many choices that depend
on each other. Nothing here runs anything.
"""

"""Loop programs: operators written element by element, as data.

A program computes output arrays from input arrays by nested loops over statements that write one
element each. It is closed: its sizes are symbols of its inputs' axes, so that one program serves
every shape. `formulas` has scalar expressions, `programs` arrays, statements and programs,
`access_analysis` what they read and write, `adjoint` their derivatives, which are programs again,
and `scatter_to_gather` turns statements that scatter into ones that gather.
"""

"""The machinery below the public packages, in wings, each of which imports from those before it.

`foundation` < `compiler` < `engines` < `tensors` < `staging`; `devices` and `data` stand apart.
Programs use the public packages: paths in here may change.
"""

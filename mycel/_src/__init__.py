"""The private implementation, in packages each of which imports only from those before it.

`foundation` < `compiler` < `engines` < `tensors` < `staging`; `devices` and `data` stand apart.
Programs use the public packages: paths in here may change.
"""

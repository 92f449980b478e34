"""The rules of the XLA engine: for each terminal primitive, what jax computes it.

`RULES` maps names of primitives to functions from jax's arrays and the primitive's parameters to an
array, or to a tuple of them. `SCOPED` has those that take the `Scope` and the node first: control
flow, and what may stop a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.engines.xla.rules import collectives, control, elementwise, indices, linear, reductions, shapes, windows

__all__ = ["RULES", "SCOPED"]

RULES: Mapping[str, Callable[..., Any]] = {
    **elementwise.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **linear.RULES,
    **windows.RULES,
}
SCOPED: Mapping[str, Callable[..., Any]] = {**indices.RULES, **control.RULES, **collectives.RULES}

"""Jacobians, by columns (`jacfwd`, forward mode) and by rows (`jacrev`, reverse mode).

One applied to the other computes Hessians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.types import tensor_type
from mycel._src.foundation import arguments
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.staging.derivatives.transformed_function import (
    Marked,
    Transformed,
    mark_arguments,
    need_position,
    positions_of,
    recording,
    split_aux,
)
from mycel._src.tensors.core.autograd.gradient_hooks import zeros_of
from mycel._src.tensors.core.execution_context import Differentiating
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["jacfwd", "jacrev"]

Positions = int | tuple[int, ...]


class _Jacobian(Transformed):
    """The function that computes the Jacobian of `fn` by the arguments at `positions`.

    `name` is "jacfwd" or "jacrev"; with `has_aux` only the first output is differentiated.
    """

    def __init__(self, name: str, fn: Any, positions: Positions, has_aux: bool) -> None:
        arguments.function(name, "fn", fn)
        given = positions_of(name, positions)
        if not given:
            raise TypeError(f"{name}: grad_position must be an int or a tuple of them, not {positions!r}")
        arguments.flag(name, "has_aux", has_aux)
        super().__init__(fn)
        self.name, self.positions, self.has_aux = name, given, has_aux

    def _derive(self, constants: tuple[Any, ...], /, *args: Any, **kwargs: Any) -> Any:
        arguments: dict[Any, Any] = dict(enumerate(args))
        for p in self.positions:
            need_position(self.name, p, len(args))
            for leaf in flatten(args[p])[0]:
                if not isinstance(leaf, Tensor) or not leaf.dtype.is_inexact:
                    kind = leaf.dtype.name if isinstance(leaf, Tensor) else type(leaf).__name__
                    raise TypeError(f"{self.name}: argument {p} must be of a floating or complex type, not {kind}")
        with recording() as derivatives:
            inputs = mark_arguments(derivatives, self.name, arguments, [(p, p) for p in self.positions])
            out = derivatives.context.invoke(self.fn, tuple([arguments[i] for i in range(len(args))]), kwargs)
            value, aux = split_aux(self.name, out, self.has_aux)
            leaves, structure = flatten(value)
            outputs = [v for v in leaves if isinstance(v, Tensor)]
            if len(outputs) != len(leaves):
                other = next(v for v in leaves if not isinstance(v, Tensor))
                raise TypeError(f"{self.name}: the function must return tensors, not {type(other).__name__}")
            found = self._table(derivatives, outputs, inputs)
        by_output = []
        for row in found:
            start, parts = 0, []
            for marked in inputs:
                parts.append(unflatten(marked.structure, row[start : start + len(marked.tensors)]))
                start += len(marked.tensors)
            by_output.append(parts[0] if len(parts) == 1 else tuple(parts))
        result = unflatten(structure, by_output)
        return (result, aux[0] if len(aux) == 1 else aux) if self.has_aux else result

    def _table(
        self, derivatives: Differentiating, outputs: Sequence[Tensor], inputs: Sequence[Marked]
    ) -> list[list[Tensor]]:
        """Return the Jacobian of each output by each tensor of the inputs."""
        nodes = [n for m in inputs for n in m.nodes]
        tensors = [t for m in inputs for t in m.tensors]
        table: list[list[Tensor | None]]
        if self.name == "jacrev":
            smooth = [o.dtype.is_differentiable for o in outputs]
            table = [derivatives.rows(o, nodes) if s else [None] * len(nodes) for o, s in zip(outputs, smooth)]
        else:
            by_input = [derivatives.columns(outputs, n) for n in nodes]
            table = [list(row) for row in zip(*by_input)]
        return [
            [zeros_of(tensor_type((*o.shape, *t.shape), o.dtype)) if j is None else j for j, t in zip(row, tensors)]
            for o, row in zip(outputs, table)
        ]


def jacfwd(fn: Callable[..., Any], grad_position: Positions = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `fn` by forward mode, column by column at
    once: for few inputs and many outputs.

    For an output of shape s and an input of shape t its shape is s + t. For several positions there
    is a tuple of Jacobians for each output, and for several outputs their structure with Jacobians
    in it. With `has_aux` only the first output is differentiated, and the others are returned
    beside the Jacobian. Raises TypeError for arguments that are not of a floating type, and
    ValueError for positions that are out of range.

    >>> import mycel as ms
    >>> ms.jacfwd(lambda x: x * x)(ms.Tensor([1.0, 2.0]))
    Tensor(shape=[2, 2], dtype=Float32, value=
    [[ 2.00000000e+00,  0.00000000e+00],
     [ 0.00000000e+00,  4.00000000e+00]])
    """
    return _Jacobian("jacfwd", fn, grad_position, has_aux)


def jacrev(fn: Callable[..., Any], grad_position: Positions = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the Jacobian of `fn` by reverse mode, row by row at once:
    for many inputs and few outputs.

    Arguments, results and errors are those of `jacfwd`. ``jacfwd(jacrev(fn))`` is the Hessian of a
    scalar function.

    >>> import mycel as ms
    >>> ms.jacfwd(ms.jacrev(lambda x: (x * x * x).sum()))(ms.Tensor([1.0, 2.0]))
    Tensor(shape=[2, 2], dtype=Float32, value=
    [[ 6.00000000e+00,  0.00000000e+00],
     [ 0.00000000e+00,  1.20000000e+01]])
    """
    return _Jacobian("jacrev", fn, grad_position, has_aux)

"""Operations that return their input unchanged and change, stop or show its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation import arguments
from mycel._src.staging.derivatives import stop_gradient
from mycel._src.tensors.core.autograd.gradient_hooks import attach, call_user, replaced_gradients
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["HookBackward", "InsertGradientOf", "stop_gradient_"]


def stop_gradient_(input: Tensor) -> Tensor:
    """Make `input` itself a constant for differentiation from here on, and return it.

    >>> import mycel as ms
    >>> def f(x):
    ...     y = x * x
    ...     ms.ops.stop_gradient_(y)
    ...     return x * y
    >>> float(ms.grad(f)(ms.Tensor(3.0)))
    9.0
    """
    arguments.instance("stop_gradient_", "the input", input, Tensor)
    return input._replace(stop_gradient(input))


class InsertGradientOf:
    """The identity, whose gradient is passed through the function `f`.

    `f` must keep the shape and type of the gradient.

    >>> import mycel as ms
    >>> clip = ms.ops.InsertGradientOf(lambda g: ms.ops.clamp(g, -1.0, 1.0))
    >>> float(ms.grad(lambda x: clip(x * x) * 5)(ms.Tensor(3.0)))
    6.0
    """

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        arguments.function("InsertGradientOf", "f", f)
        self.f = f

    def __call__(self, x: Tensor) -> Tensor:
        def rule(values: Sequence[Tensor], cts: Sequence[Tensor]) -> Sequence[Tensor]:
            return replaced_gradients("InsertGradientOf", self.f, call_user(self.f, cts[0]), tuple(cts))

        return attach(x, [x], Rule(rule, is_hook=True))


class HookBackward:
    """The identity of one or several tensors, which calls ``hook_fn(gradients)`` with the tuple of
    their gradients.

    Where `hook_fn` returns a tensor, or as many as there are gradients, they replace the gradients;
    where it returns None, the gradients stay.

    >>> import mycel as ms
    >>> double = ms.ops.HookBackward(lambda gradients: (gradients[0] * 2,))
    >>> float(ms.grad(lambda x: double(x * x))(ms.Tensor(3.0)))
    12.0
    """

    def __init__(self, hook_fn: Callable[[Any], Any], cell_id: str = "") -> None:
        arguments.function("HookBackward", "hook_fn", hook_fn)
        self.hook_fn, self.cell_id = hook_fn, cell_id

    def __call__(self, *inputs: Tensor) -> Any:
        smooth = [x for x in inputs if isinstance(x, Tensor) and x.dtype.is_differentiable]

        def rule(values: Sequence[Tensor], cts: Sequence[Tensor]) -> Sequence[Tensor | None]:
            return replaced_gradients("HookBackward", self.hook_fn, call_user(self.hook_fn, tuple(cts)), tuple(cts))

        made = dict(zip(map(id, smooth), attach(smooth, smooth, Rule(rule, is_hook=True))))
        result = tuple([made.get(id(x), x) for x in inputs])
        return result[0] if len(result) == 1 else result

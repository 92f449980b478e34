"""A function of the user's as an operation, expanded where it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.core.autograd.gradient_hooks import attach_bprop, call_user
from mycel.ops.operations.primitive import Primitive

__all__ = ["Morph"]


class Morph(Primitive):
    """An operation that calls ``fn(*inputs)`` on tensors.

    Unlike the function of `Custom`, `fn` is compiled. It works in every mode, where MindSpore has
    it in graph mode alone.

    Args:
        fn (Callable[..., Any]): The function.
        infer_shape (Callable[..., Any] | None): Kept as an attribute; shapes and types are those of
            the result of `fn`.
        infer_dtype (Callable[..., Any] | None): Kept as an attribute; shapes and types are those of
            the result of `fn`.
        bprop_fn (Callable[..., Any] | None): Called as ``bprop_fn(*inputs, output, gradient)``,
            returns the gradients; None to differentiate `fn`. Default: None.

    Raises:
        TypeError: For arguments that are not functions.

    Examples:
        >>> import mycel as ms
        >>> twice = ms.ops.Morph(lambda x: x * 2, lambda shape: shape, lambda kind: kind)
        >>> ms.grad(lambda x: (twice(x) ** 2).sum())(ms.Tensor([1.0, 3.0])).tolist()
        [8.0, 24.0]
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        infer_shape: Callable[..., Any],
        infer_dtype: Callable[..., Any],
        bprop_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__("Morph")
        for what, given in (("fn", fn), ("infer_shape", infer_shape), ("infer_dtype", infer_dtype)):
            arguments.function("Morph", what, given)
        if bprop_fn is not None:
            arguments.function("Morph", "bprop_fn", bprop_fn, "a function or None")
        self.fn, self.infer_shape, self.infer_dtype, self.bprop_fn = fn, infer_shape, infer_dtype, bprop_fn

    def get_parameters(self) -> list[Any]:
        """Return the parameters that a gradient of `bprop_fn` may name; there are none."""
        return []

    def __call__(self, *inputs: Any) -> Any:
        found = call_user(self.fn, *inputs)
        return found if self.bprop_fn is None else attach_bprop(self, self.bprop_fn, inputs, found)

"""Derivatives that MindSpore registers for primitives.

`work_of` answers every ``get_bprop_NAME(primitive)`` of `ops._grad_experimental` by rule: the
derivative is that of the primitive itself. What a program registers for a class of primitives with
``bprop_getters.register`` is the derivative of that class from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mycel import ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.private_primitives.custom_derivative import with_gradient

__all__ = ["BpropRegistry", "NAMES", "Registry", "work_of"]

Work = Callable[..., Any]


def bprop_of(primitive: Any) -> Work:
    """Return the derivative of a primitive, as a function of its inputs, result and cotangent."""

    def bprop(*given: Any) -> Any:
        *inputs, _, cotangent = given
        places = [i for i, v in enumerate(inputs) if isinstance(v, Tensor) and v.is_floating_point()]

        def forward(*values: Any) -> Any:
            full = list(inputs)
            for place, value in zip(places, values):
                full[place] = value
            return primitive(*full)

        found = dict(zip(places, vjp(forward, *(inputs[i] for i in places))[1](cotangent)))
        return tuple(found.get(i, ops.zeros_like(v) if isinstance(v, Tensor) else 0) for i, v in enumerate(inputs))

    return bprop


def work_of(name: str) -> Work | None:
    """Return the work of a function that makes the derivative of a primitive; None for others."""
    return bprop_of if name.startswith(("get_bprop_", "get_bprpo_")) else None


class Registry:
    """Functions by the objects or names that they are registered for."""

    def __init__(self, name: str = "registry") -> None:
        self.name = name
        self.found: dict[Any, Any] = {}

    def register(self, prim: Any) -> Work:
        """Return a decorator that keeps a function for a primitive, a class or a name."""

        def keep(function: Work) -> Work:
            self.found[self.key(prim)] = function
            return function

        return keep

    def key(self, prim: Any) -> Any:
        """Return what stands for a primitive: its name."""
        return prim if isinstance(prim, str) else getattr(prim, "__name__", None) or getattr(prim, "name", prim)

    def get(self, prim: Any, default: Any = None) -> Any:
        """Return what is registered for a primitive, or `default`."""
        return self.found.get(self.key(prim), default)


class BpropRegistry(Registry):
    """Functions that make the derivative of a primitive; registering one puts it to use."""

    def register(self, prim: Any) -> Work:
        """Return a decorator for a function of the primitive that returns its derivative, which is
        called as ``bprop(*inputs, result, cotangent)``.

        Raises Unsupported for what is not a class of primitives.
        """
        if not isinstance(prim, type):
            raise Unsupported(
                f"bprop_getters.register: {self.key(prim)!r} is not a class of primitives; give a class, or define "
                "bprop of a Cell"
            )
        keep = super().register(prim)

        def put_to_use(getter: Work) -> Work:
            called = prim.__call__

            @wraps(called)
            def call(self: Any, *inputs: Any, **named: Any) -> Any:
                return with_gradient(getter(self), inputs, called(self, *inputs, **named))

            setattr(prim, "__call__", call)  # noqa: B010
            return keep(getter)

        return put_to_use


class CustomPyFuncRegistry:
    """Python functions by numbers."""

    def __init__(self) -> None:
        self._found: dict[int, Work] = {}

    @classmethod
    def instance(cls) -> CustomPyFuncRegistry:
        """Return the only registry."""
        return _functions

    def register(self, fn_id: int, fn: Work) -> None:
        """Keep a function under a number."""
        self._found[fn_id] = fn

    def get(self, fn_id: int) -> Work | None:
        """Return the function under a number, or None."""
        return self._found.get(fn_id)


_functions = CustomPyFuncRegistry()


def _summed(x: Any, axes: Any, keep_dims: bool) -> Any:
    return x.sum(tuple(axes), keepdims=keep_dims) if axes else x


def _to_shape(value: Any, like: Any) -> Any:
    """Sum a cotangent to the shape of an operand that was broadcast."""
    extra = value.ndim - like.ndim
    axes = (*range(extra), *(extra + i for i, n in enumerate(like.shape) if n == 1 and value.shape[extra + i] != 1))
    return ops.reshape(value.sum(axes) if axes else value, like.shape)


def _binary(x: Any, y: Any, dx: Any, dy: Any) -> Any:
    return _to_shape(dx, x), _to_shape(dy, y)


def _outs(out: Any, dout: Any) -> Any:
    """Return results and cotangents as one tuple."""
    return (out if isinstance(out, tuple) else (out,)) + (dout if isinstance(dout, tuple) else (dout,))


def _by_operation(count: int) -> Work:
    """Return the function that makes a derivative of `count` inputs out of an operation of the
    inputs, results and cotangents.
    """
    return lambda op: lambda *given: op(*given[:count], *_outs(given[count], given[count + 1]))


_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_getters, _taylor = BpropRegistry("bprop_getters"), Registry("taylor_fprop_getters")
_counted = {count: _by_operation(count) for count in range(1, len(_COUNTS) + 1)}
NAMES: dict[str, Any] = {
    "BpropRegistry": BpropRegistry,
    "PyFuncRegistry": Registry,
    "Registry": Registry,
    "TaylorFpropRegistry": Registry,
    "VmImplRegistry": Registry,
    "binop_grad_common": _binary,
    "bprop_getters": _getters,
    "bprops": Registry("bprops"),
    "convert_to_tensor": lambda data: Tensor(data),
    "create_tensor_by_element": lambda values, dtype: Tensor(list(values)).astype(dtype),
    "dyn_fill": lambda dtype, shape, value: ops.fill(dtype, tuple(shape), value),
    "dyn_ones": lambda shape, dtype: ops.ones(tuple(shape), dtype),
    "dyn_binop_grad_common": _binary,
    "get_bprop_fn": lambda prim, closure: _getters.get(prim) or bprop_of(prim),
    "get_outs": _outs,
    "sum_grad_reduce_axis": _summed,
    "taylor_fprop_getters": _taylor,
    "taylor_fprops": Registry("taylor_fprops"),
    "vm_impl_getters": Registry("vm_impl_getters"),
    "vm_impl_registry": Registry("vm_impl_registry"),
    "CustomPyFuncRegistry": CustomPyFuncRegistry,
    "add_pyfunc": lambda fn_id, fn: CustomPyFuncRegistry.instance().register(fn_id, fn),
    "get_pyfunc": lambda fn_id: CustomPyFuncRegistry.instance().get(fn_id),
    "autodiff_bprop": _counted.get,
    **{f"bprop_{name}": _counted[count] for count, name in enumerate(_COUNTS, 1)},
}

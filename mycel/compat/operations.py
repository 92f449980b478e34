"""`mindspore.ops.operations`: operations as objects, made from their settings first and called on tensors after.

A class is its settings with their defaults and the function of `mycel.ops` that it calls; `_CLASSES` lists them. Instances hold nothing that
changes, so that compiled code treats them as constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import dtype as D
from mycel import ops

__all__ = ["Primitive"]


class Primitive:
    """An operation with its settings fixed; calling it computes. Raises TypeError for settings that it does not have.

    >>> from mycel import Tensor
    >>> MatMul(transpose_b=True)(Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0]])).tolist()
    [[11.0]]
    """

    _known: dict[str, Any] = {}
    _compute: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name, known = type(self).__name__, self._known
        if len(args) > len(known):
            raise TypeError(f"{name}: {len(args)} settings given, but it has {', '.join(known) or 'none'}; tensors go to the call")
        self.name = name
        self.settings = {**known, **dict(zip(known, args))}
        for key, value in kwargs.items():
            if key not in known:
                raise TypeError(f"{name}: there is no setting {key!r}; the settings are {', '.join(known) or 'none'}")
            self.settings[key] = value

    def __call__(self, *operands: Any) -> Any:
        return type(self)._compute(*operands, **self.settings)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.settings.items())})"


def _matmul(x: Any, y: Any, transpose_a: bool, transpose_b: bool) -> Any:
    return ops.matmul(ops.swapaxes(x, -1, -2) if transpose_a else x, ops.swapaxes(y, -1, -2) if transpose_b else y)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(x: Any, axis: Any = (), *, keep_dims: bool) -> Any:
        return function(x, None if axis == () else axis, keep_dims)

    return reduce


def _sum(x: Any, axis: Any = (), *, keep_dims: bool, skip_mode: bool) -> Any:
    if skip_mode and axis == ():
        return x
    return ops.sum(x, None if axis == () else axis, keep_dims)


def _argmax(x: Any, *, axis: int, output_type: Any) -> Any:
    return ops.cast(ops.argmax(x, axis), output_type)


def _squeeze(x: Any, *, axis: Any) -> Any:
    return ops.squeeze(x, None if axis == () else axis)


def _split(x: Any, *, axis: int, output_num: int) -> Any:
    size = x.shape[axis]
    if size % output_num:
        raise ValueError(f"Split: {size} elements along axis {axis} do not divide into {output_num} equal parts")
    return ops.split(x, size // output_num, axis)


_PLAIN: dict[str, Any] = {}
_CLASSES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Abs": (ops.abs, _PLAIN),
    "Add": (ops.add, _PLAIN),
    "Argmax": (_argmax, {"axis": -1, "output_type": D.int32}),
    "BatchMatMul": (_matmul, {"transpose_a": False, "transpose_b": False}),
    "Cast": (ops.cast, _PLAIN),
    "Ceil": (ops.ceil, _PLAIN),
    "Concat": (ops.cat, {"axis": 0}),
    "Cos": (ops.cos, _PLAIN),
    "Div": (ops.div, _PLAIN),
    "Equal": (ops.equal, _PLAIN),
    "Erf": (ops.erf, _PLAIN),
    "Exp": (ops.exp, _PLAIN),
    "ExpandDims": (ops.expand_dims, _PLAIN),
    "Floor": (ops.floor, _PLAIN),
    "Gather": (ops.gather, {"batch_dims": 0}),
    "Greater": (ops.greater, _PLAIN),
    "GreaterEqual": (ops.greater_equal, _PLAIN),
    "Less": (ops.less, _PLAIN),
    "LessEqual": (ops.less_equal, _PLAIN),
    "Log": (ops.log, _PLAIN),
    "LogSoftmax": (ops.log_softmax, {"axis": -1}),
    "LogicalAnd": (ops.logical_and, _PLAIN),
    "LogicalNot": (ops.logical_not, _PLAIN),
    "LogicalOr": (ops.logical_or, _PLAIN),
    "MatMul": (_matmul, {"transpose_a": False, "transpose_b": False}),
    "Maximum": (ops.maximum, _PLAIN),
    "Minimum": (ops.minimum, _PLAIN),
    "Mul": (ops.mul, _PLAIN),
    "Neg": (ops.neg, _PLAIN),
    "NotEqual": (ops.not_equal, _PLAIN),
    "OneHot": (ops.one_hot, {"axis": -1}),
    "OnesLike": (ops.ones_like, _PLAIN),
    "Pow": (ops.pow, _PLAIN),
    "ReLU": (ops.relu, _PLAIN),
    "RealDiv": (ops.div, _PLAIN),
    "ReduceMax": (_reduction(ops.amax), {"keep_dims": False}),
    "ReduceMean": (_reduction(ops.mean), {"keep_dims": False}),
    "ReduceMin": (_reduction(ops.amin), {"keep_dims": False}),
    "ReduceProd": (_reduction(ops.prod), {"keep_dims": False}),
    "ReduceSum": (_sum, {"keep_dims": False, "skip_mode": False}),
    "Reshape": (ops.reshape, _PLAIN),
    "Rsqrt": (ops.rsqrt, _PLAIN),
    "Select": (ops.select, _PLAIN),
    "Shape": (ops.shape, _PLAIN),
    "Sigmoid": (ops.sigmoid, _PLAIN),
    "Sign": (ops.sign, _PLAIN),
    "Sin": (ops.sin, _PLAIN),
    "Softmax": (ops.softmax, {"axis": -1}),
    "Split": (_split, {"axis": 0, "output_num": 1}),
    "Sqrt": (ops.sqrt, _PLAIN),
    "Square": (ops.square, _PLAIN),
    "Squeeze": (_squeeze, {"axis": ()}),
    "Stack": (ops.stack, {"axis": 0}),
    "Sub": (ops.sub, _PLAIN),
    "Tanh": (ops.tanh, _PLAIN),
    "TensorAdd": (ops.add, _PLAIN),
    "Tile": (ops.tile, _PLAIN),
    "Transpose": (ops.permute, _PLAIN),
    "ZerosLike": (ops.zeros_like, _PLAIN),
}

for _name, (_function, _settings) in _CLASSES.items():
    globals()[_name] = type(
        _name,
        (Primitive,),
        {
            "__doc__": f"`{_name}` as an object: its settings first, tensors in the call.",
            "__module__": __name__,
            "_known": _settings,
            "_compute": staticmethod(_function),
        },
    )
__all__ += list(_CLASSES)

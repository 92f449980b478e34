"""Operations of the user's own: Python functions over NumPy arrays, and functions of a shared
library.

`Custom` and `PyFunc` give the function the values of tensors and make tensors of its results, of
the declared shapes and types. So a compiled function runs in segments around them, and `vmap` does
not pass through. `bprop` defines the derivative; without it a gradient that gets there is an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import os
from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np

from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.file_ownership import check_code
from mycel._src.foundation.pytree import flatten
from mycel._src.tensors.core.autograd.gradient_hooks import attach, attach_bprop
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.operations.custom_sources import library_of
from mycel.ops.operations.primitive import Primitive
from mycel.ops.operations.registration import parsed

__all__ = ["Custom", "PyFunc", "kernel", "ms_kernel"]

_KINDS = ("pyfunc", "hybrid", "aot")
# Kinds of functions that MindSpore has for other devices.
_FOREIGN = ("akg", "tbe", "aicpu")
_SOURCES = (".cc", ".cpp", ".cxx", ".c")


def _array(name: str, value: Any) -> Any:
    """Return a copy of a tensor's values, which the function may write to.

    Values that are not tensors stay as they are.
    """
    if isinstance(value, Tensor):
        return np.array(value.asnumpy())
    if isinstance(value, (bool, int, float, complex, str, type(None), np.ndarray, np.generic)):
        return value
    raise TypeError(f"{name}: takes tensors and plain values, not a {type(value).__name__}")


def _plain_array(name: str, value: Any) -> Any:
    """Return an input of a library function as an array; `name` is the operation's for errors."""
    if isinstance(value, (tuple, list)):
        kinds = {type(v) for v in value}
        if kinds and kinds <= {bool, int, float}:
            return np.array(value, np.float32 if float in kinds else np.int64 if int in kinds else np.bool_)
    elif type(value) in (bool, int, float):
        return np.array(value, {bool: np.bool_, int: np.int64, float: np.float32}[type(value)])
    elif isinstance(value, (Tensor, np.ndarray, np.generic)):
        return np.asarray(_array(name, value))
    raise TypeError(
        f"{name}: with func_type 'aot' inputs are tensors, numbers and tuples of numbers, not {value!r:.100}"
    )


def _per_output(
    name: str, what: str, declared: Any, inputs: list[Any], is_one: Callable[[Any], bool]
) -> tuple[list[Any], bool]:
    """Return the declared shapes or types, one for each result, and whether there is one alone."""
    if callable(declared) and not isinstance(declared, D.DType):
        declared = declared(*inputs)
    if is_one(declared):
        return [declared], True
    if isinstance(declared, (tuple, list)) and declared and all(is_one(d) for d in declared):
        return list(declared), False
    raise TypeError(
        f"{name}: {what} must be one for each result, or a function of those of the inputs, not {declared!r}"
    )


def _is_shape(value: Any) -> bool:
    """Return whether a value is a shape."""
    return isinstance(value, (tuple, list)) and all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in value
    )


def _is_dtype(value: Any) -> bool:
    """Return whether a value is an element type."""
    return isinstance(value, D.DType)


def _made(name: str, found: Any, shapes: list[Any], dtypes: list[Any]) -> list[Tensor]:
    """Return the results of the function as tensors of the declared shapes and types."""
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(results) != len(shapes) or len(shapes) != len(dtypes):
        raise ValueError(
            f"{name}: there are {len(results)} results, {len(shapes)} shapes and {len(dtypes)} types; give one of each "
            "for each result"
        )
    tensors = []
    for i, (result, shape, dtype) in enumerate(zip(results, shapes, dtypes)):
        array = np.asarray(result)
        if array.shape != tuple(shape):
            raise ValueError(f"{name}: result {i} has shape {array.shape}, and {tuple(shape)} was declared")
        tensors.append(Tensor(array.astype(dtype.numpy)))
    return tensors


def _without_gradient(name: str, mend: str, inputs: Sequence[Any], results: Any) -> Any:
    """Return `results`, whose gradient is an error."""

    def rule(values: Sequence[Tensor], cts: Sequence[Tensor]) -> Sequence[Tensor | None]:
        raise Unsupported(f"{name}: a gradient came here, and no derivative is known; {mend}")

    smooth = [v for v in flatten(list(inputs))[0] if isinstance(v, Tensor) and v.dtype.is_differentiable]
    return attach(results, smooth, Rule(rule)) if smooth else results


class Custom(Primitive):
    """An operation of the user's own: ``Custom(func, out_shape, out_dtype, func_type,
    bprop)(*inputs)``.

    With "hybrid" the function is one over elements under `kernel`, which is compiled as
    `mycel.te.operator` does; shape and type need not be declared, and it has a derivative without
    `bprop`. With "pyfunc" it takes the inputs as NumPy arrays and returns an array or several. With
    "aot" it is a string ``path:name`` of a function in a shared library, or in a source of C or
    C++, which is compiled where there is a compiler: ``int name(int nparam, void **params, int
    *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra)``, which fills the
    outputs that follow the inputs in `params` and returns 0. Inputs that are Python numbers, or
    tuples of them, are float32, int64 or bool; `stream` and `extra` are null.

    Args:
        func (Callable[..., Any] | str): The function, or "path:name" of one in a library or source.
        out_shape (tuple[int, ...] | Callable[..., Any] | None): The shape of the result, a tuple of
            them, or a function of the inputs' shapes. Default: None.
        out_dtype (DType | Callable[..., Any] | None): The element type of the result, a tuple of
            them, or a function of the inputs' types. Default: None.
        func_type (str): "hybrid", "pyfunc" or "aot". Default: "pyfunc".
        bprop (Callable[..., Any] | None): Gets the inputs, the result and its gradient, and returns
            a gradient, or None, for each input. Default: None.
        reg_info (CustomRegOp | dict | str | None): Limits the element types of the inputs; from
            `CustomRegOp`. Default: None.

    Raises:
        TypeError, ValueError: For arguments and results that do not fit.
        RuntimeError: If a library function does not return 0.
        Unsupported: For other kinds of functions, and where a gradient comes without a `bprop`.

    Examples:
        >>> import mycel as ms
        >>> same = (lambda s: s, lambda d: d)
        >>> twice = ms.ops.Custom(lambda x: x * 2, *same, bprop=lambda x, out, dout: (dout * 2,))
        >>> x = ms.Tensor([1.0, 2.0])
        >>> twice(x).tolist(), ms.grad(lambda x: twice(x).sum())(x).tolist()
        ([2.0, 4.0], [2.0, 2.0])
    """

    def __init__(
        self,
        func: Any,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "pyfunc",
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
    ) -> None:
        super().__init__("Custom")
        arguments.choice("Custom", "func_type", func_type, (*_KINDS, *_FOREIGN))
        if func_type in _FOREIGN:
            raise Unsupported(f"Custom: func_type {func_type!r} is not supported; use one of {', '.join(_KINDS)}")
        if func_type == "aot":
            self._library = _library_function(func)
        else:
            arguments.function("Custom", "func", func)
        if bprop is not None:
            arguments.function("Custom", "bprop", bprop, "a function or None")
        if func_type != "hybrid":
            for what, declared in (("out_shape", out_shape), ("out_dtype", out_dtype)):
                if declared is None:
                    raise TypeError(f"Custom: {what} is needed with func_type {func_type!r}")
        self.func, self.out_shape, self.out_dtype, self.func_type, self.bprop = (
            func,
            out_shape,
            out_dtype,
            func_type,
            bprop,
        )
        if func_type == "hybrid":
            # Loaded when first asked for, as most programs have no operators of their own.
            from mycel.te.operators import Operator

            self._operator = Operator(getattr(func, "__wrapped__", func))
        info = reg_info if reg_info is not None else getattr(func, "reg_info", None)
        self.reg_info = _infos(info)

    def get_parameters(self) -> list[Any]:
        """Return the parameters that a gradient of `bprop` may name; there are none."""
        return []

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) and self.func_type == "aot":
            inputs = tuple(inputs[0])
        self._check_types(inputs)
        if self.func_type == "hybrid":
            results = self._operator(*inputs)
            return results if self.bprop is None else attach_bprop(self, self.bprop, inputs, results)
        convert = _plain_array if self.func_type == "aot" else _array
        arrays = [convert("Custom", v) for v in inputs]
        results = self._results(arrays)
        if self.bprop is None:
            return _without_gradient(
                "Custom", "give one as bprop, or put stop_gradient around the result", inputs, results
            )
        return attach_bprop(self, self.bprop, inputs, results)

    def _results(self, arrays: list[Any]) -> Any:
        given = [np.asarray(a) for a in arrays]
        shapes, single = _per_output("Custom", "out_shape", self.out_shape, [a.shape for a in given], _is_shape)
        types = [D.from_any(a.dtype) if a.dtype.kind != "O" else None for a in given]
        dtypes, _ = _per_output("Custom", "out_dtype", self.out_dtype, types, _is_dtype)
        if self.func_type == "aot":
            found = _call_library(
                self.func, self._library, given, [np.empty(s, d.numpy) for s, d in zip(shapes, dtypes)]
            )
        else:
            found = self.func(*arrays)
        tensors = _made("Custom", found, shapes, dtypes)
        return tensors[0] if single else tuple(tensors)

    def _check_types(self, inputs: Sequence[Any]) -> None:
        rows = [row[: len(inputs)] for info in self.reg_info for row in info["dtype_format"]]
        own = [v.dtype.name if isinstance(v, Tensor) else None for v in inputs]
        if rows and not any(all(o is None or name in ("", o) for o, (name, *_) in zip(own, row)) for row in rows):
            raise TypeError(
                f"Custom: inputs of types {own} are not among those registered: "
                f"{[[name for name, *_ in row] for row in rows]}"
            )


def _infos(info: Any) -> list[Any]:
    """Return descriptions, given as one, several or none."""
    if info is None:
        return []
    return [parsed("Custom", i) for i in (info if isinstance(info, (tuple, list)) else [info])]


# Shared libraries.


def _library_function(func: Any) -> Any:
    """Return the function of a shared library that a string "path:name" means."""
    path, _, name = func.rpartition(":") if isinstance(func, str) else ("", "", "")
    if not path or not name:
        raise TypeError(f"Custom: with func_type 'aot' func must be a string 'path:function', not {func!r}")
    if path.endswith(_SOURCES):
        # What starts compilers is loaded when one is needed.
        path = library_of("Custom", [path])
    try:
        check_code(path)
        library = ctypes.CDLL(os.path.abspath(path))
        found = getattr(library, name)
    except OSError as error:
        raise ValueError(f"Custom: {path} cannot be loaded: {error}") from None
    except AttributeError:
        raise ValueError(f"Custom: {path} has no function {name}") from None
    if hasattr(library, f"{name}Init"):
        raise Unsupported(
            f"Custom: {name} has a function {name}Init, which wants attributes by MindSpore's AotExtra; Mycel has no "
            "such objects: pass attributes as inputs"
        )
    found.restype = ctypes.c_int
    return found


def _call_library(title: str, function: Any, inputs: list[Any], outputs: list[Any]) -> list[Any]:
    """Return the outputs after a library function filled them."""
    arrays = [*[np.asarray(a, order="C") for a in inputs], *outputs]
    count = len(arrays)
    shapes = [(ctypes.c_int64 * max(a.ndim, 1))(*a.shape) for a in arrays]
    status = function(
        ctypes.c_int(count),
        (ctypes.c_void_p * count)(*[a.ctypes.data for a in arrays]),
        (ctypes.c_int * count)(*[a.ndim for a in arrays]),
        (ctypes.POINTER(ctypes.c_int64) * count)(*[ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)) for s in shapes]),
        (ctypes.c_char_p * count)(*[a.dtype.name.encode() for a in arrays]),
        None,
        None,
    )
    if status != 0:
        raise RuntimeError(f"Custom: {title} returned {status}; 0 says that all went well")
    return outputs


class PyFunc(Primitive):
    """A Python function of NumPy arrays (Python numbers where the shape is empty) as an operation.

    `Custom` takes a derivative.

    Args:
        fn (Callable[..., Any]): The function.
        in_types (Sequence[DType]): The element types of the inputs.
        in_shapes (Sequence[tuple[int, ...]]): The shapes of the inputs.
        out_types (Sequence[DType]): The element types of the results.
        out_shapes (Sequence[tuple[int, ...]]): The shapes of the results.
        stateful (bool): Has no effect: the function is called each time, in the order of the
            program. Default: True.

    Raises:
        TypeError, ValueError: If inputs or results are not as declared.
        Unsupported: If a gradient gets there.

    Examples:
        >>> import mycel as ms
        >>> kinds, shapes = [ms.float32] * 2, [(2,)] * 2
        >>> total = ms.ops.PyFunc(lambda x, y: (x + y,), kinds, shapes, [ms.float32], [(2,)])
        >>> total(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]))[0].tolist()
        [4.0, 6.0]
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        in_types: Any,
        in_shapes: Any,
        out_types: Any,
        out_shapes: Any,
        stateful: bool = True,
    ) -> None:
        super().__init__("PyFunc")
        arguments.function("PyFunc", "fn", fn)
        for what, types, shapes in (("in", in_types, in_shapes), ("out", out_types, out_shapes)):
            if len(types) != len(shapes) or not all(map(_is_dtype, types)) or not all(map(_is_shape, shapes)):
                raise TypeError(
                    f"PyFunc: {what}_types and {what}_shapes must be as many element types as shapes, not {types!r} "
                    f"and {shapes!r}"
                )
        self.fn, self.stateful = fn, stateful
        self.in_types, self.in_shapes, self.out_types, self.out_shapes = in_types, in_shapes, out_types, out_shapes

    def __call__(self, *inputs: Any) -> tuple[Tensor, ...]:
        if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
            inputs = tuple(inputs[0])
        if len(inputs) != len(self.in_types):
            raise ValueError(f"PyFunc: takes {len(self.in_types)} inputs, not {len(inputs)}")
        for i, (v, dtype, shape) in enumerate(zip(inputs, self.in_types, self.in_shapes)):
            if not isinstance(v, Tensor) or v.dtype is not dtype or tuple(v.shape) != tuple(shape):
                own = v._type if isinstance(v, Tensor) else type(v).__name__
                raise TypeError(f"PyFunc: input {i} is {own}, and {dtype.name}{list(shape)} was declared")
        arrays = [a if s else a.item() for a, s in zip([_array("PyFunc", v) for v in inputs], self.in_shapes)]
        results = tuple(_made("PyFunc", self.fn(*arrays), list(self.out_shapes), list(self.out_types)))
        return _without_gradient(
            "PyFunc", "use Custom with a bprop, or put stop_gradient around the result", inputs, results
        )


# Kernels written as loops over elements.


def _grid(extents: Sequence[int]) -> Any:
    return itertools.product(*[range(int(n)) for n in extents])


def _allocate(shape: Any, dtype: Any = "float32", scope: str = "global") -> Any:
    return np.zeros(tuple(shape), D.to_numpy(dtype))


# What such functions may use without importing it.
_WITHIN: dict[str, Any] = {
    "block_realize": contextlib.nullcontext,
    "output_tensor": _allocate,
    "allocate": _allocate,
    "grid": _grid,
    "serial": range,
    "parallel": range,
    "vectorize": range,
    "reduce": range,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "power": np.power,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "isnan": np.isnan,
    "isinf": np.isinf,
    **{
        name: getattr(np, name)
        for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
    },
}


def kernel(fn: Callable[..., Any] | None = None, reg_info: Any = None, compile_attrs: Any = None) -> Any:
    """Mark a function over arrays, written as loops over their elements, for `Custom`.

    Without `fn` it is a decorator. `Custom` compiles the function, as `mycel.te.operator` does.
    Called by itself it runs as a Python function of NumPy arrays, in which
    `output_tensor` and `allocate` (an array of a shape and type), `grid` (the indices of several
    ranges), `serial`, `parallel`, `vectorize` and `reduce` (ranges), element-wise functions (exp,
    log, sqrt, rsqrt, tanh, erf, power, ceil, floor, trunc, isnan, isinf) and casts by the name of a
    type need no import. `reg_info` is kept for `Custom`; `compile_attrs` has no effect.

    Raises TypeError where `fn` is no Python function.

    >>> import mycel as ms, numpy as np
    >>> @ms.ops.kernel
    ... def total(a, b):
    ...     c = output_tensor(a.shape, a.dtype)
    ...     for i in grid(a.shape):
    ...         c[i] = a[i] + b[i]
    ...     return c
    >>> total(np.ones(2), np.ones(2)).tolist()
    [2.0, 2.0]
    """
    if fn is None:
        return lambda function: kernel(function, reg_info, compile_attrs)
    arguments.instance("kernel", "fn", fn, FunctionType, "a Python function")
    function = fn

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        space = {**_WITHIN, **function.__globals__}
        inner = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
        inner.__kwdefaults__ = function.__kwdefaults__
        return inner(*args, **kwargs)

    run.__dict__["reg_info"] = reg_info
    return run


ms_kernel = kernel

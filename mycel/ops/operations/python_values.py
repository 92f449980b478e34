"""Operations as objects on values of the program itself: numbers, types, and the classes from which
a program makes operations of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments, object_types
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype_codes import MINDSPORE
from mycel._src.tensors.core.tensor import Tensor, as_tensor
from mycel.ops import elementwise, logic, properties, reduction
from mycel.ops import introspection as functions
from mycel.ops._operands import operand, reshaped
from mycel.ops.operations.attributes import anything
from mycel.ops.operations.primitive import Primitive, operations_of
from mycel.ops.python_values import followed

__all__: list[str] = ["PrimitiveWithCheck", "PrimitiveWithInfer", "prim_arg_register", "prim_attr_register"]


# Numbers and tensors.


def _bool(x: Any) -> Any:
    return bool(x)


def _int(x: Any) -> Any:
    return int(x)


def _float(x: Any) -> Any:
    return float(x)


_CASTS: dict[D.DType, Callable[[Any], Any]] = {D.bool_: _bool, D.int64: _int, D.float64: _float, D.float32: _float}


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """Return the result of the operation `ScalarCast`."""
    cast = _CASTS.get(input_y)
    if cast is None:
        raise ValueError(f"ScalarCast: makes numbers of types {', '.join(d.name for d in _CASTS)}, not of {input_y!r}")
    return followed(cast, input_x)


def scalar_to_tensor(input_x: Any, dtype: D.DType = D.float32) -> Tensor:
    """Return the result of the operation `ScalarToTensor`."""
    return as_tensor(input_x, dtype)


def tuple_to_array(input_x: Any) -> Tensor:
    """Return the result of the operation `TupleToArray`."""
    if not input_x:
        raise ValueError("TupleToArray: the tuple has no members")
    kinds = {type(v) for v in input_x}
    if kinds not in ({int}, {float}):
        raise TypeError(f"TupleToArray: the members must all be ints, or all floats, not {input_x!r}")
    return Tensor(list(input_x), D.int32 if kinds == {int} else D.float32)


def float_status(x: Any) -> Tensor:
    """Return the result of the operation `FloatStatus`."""
    x = operand("FloatStatus", x)
    if not x.dtype.is_floating:
        raise TypeError(f"FloatStatus: takes floating tensors, not {x.dtype.name}")
    finite = reduction.all(elementwise.isfinite(x))
    return reshaped(properties.cast(logic.logical_not(finite), D.float32), (1,))


class ScalarCast(Primitive, compute=scalar_cast, inputs=((bool, int, float, Tensor), object)):
    """A conversion of numbers: ``ScalarCast()(input_x, input_y)`` is a number as a Python number of
    an element type: bool, int64, float32 or float64; floats are truncated.

    Raises ValueError for other types, TypeError for arguments that are no numbers.

    >>> import mycel as ms
    >>> ms.ops.ScalarCast()(-2.5, ms.int64)
    -2
    """


class ScalarToTensor(Primitive, compute=scalar_to_tensor, inputs=((bool, int, float), D.DType)):
    """A conversion of numbers: ``ScalarToTensor()(input_x, dtype)`` is a Python number as a tensor
    without dimensions, by default float32.

    Raises TypeError for arguments that are no numbers.

    >>> import mycel as ms
    >>> ms.ops.ScalarToTensor()(2)
    Tensor(shape=[], dtype=Float32, value= 2)
    """


class ScalarToArray(Primitive, compute=functions.scalar_to_array, inputs=((bool, int, float, complex),)): ...


class TupleToArray(Primitive, compute=tuple_to_array, inputs=(tuple,)):
    """A conversion of tuples: ``TupleToArray()(input_x)`` is a tuple of ints as an int32 tensor,
    one of floats as a float32 tensor.

    Raises TypeError for other arguments, ValueError for an empty tuple.

    >>> import mycel as ms
    >>> ms.ops.TupleToArray()((1, 2, 3))
    Tensor(shape=[3], dtype=Int32, value= [1, 2, 3])
    """


class FloatStatus(Primitive, compute=float_status):
    """A test for infinities and NaN: ``FloatStatus()(x)`` is float32 [1.0] where an element of a
    floating tensor is infinite or NaN, else [0.0].

    Raises TypeError for other tensors.

    >>> import mycel as ms
    >>> ms.ops.FloatStatus()(ms.Tensor([1.0, float("inf")])).tolist()
    [1.0]
    """


class DynamicShape(Primitive, compute=lambda p, x: properties.dyn_shape(x), dtype=anything(9)):
    """The shape as a tensor: ``DynamicShape()(x)`` is the shape of `x` as an int64 tensor; `dtype`
    has no effect.
    """


class UpdateState(Primitive, compute=lambda state, *values: state, inputs=(object, object)):
    """The state after values are there: ``UpdateState()(state, *values)`` is `state`.

    Operations run in the order of the program, so the values are computed by then.
    """


class Reusing(Primitive, compute=lambda x: x, inputs=(object,)):
    """The identity: ``Reusing()(x)`` is `x`, a value or a function.

    The compiler decides which computations share code.
    """


def py_execute(script: Any, names: Any, values: Any) -> Any:
    """Return the result of the operation `PyExecute`."""
    if not isinstance(script, str) or len(names) != len(values):
        raise TypeError(
            f"PyExecute: takes an expression, names, and as many values, not {script!r}, {names!r} and {len(values)} "
            "values"
        )
    return eval(compile(script, "<PyExecute>", "eval"), {}, dict(zip(names, values)))


class PyExecute(Primitive, compute=py_execute, inputs=(object, object, object)):
    """The value of a Python expression: ``PyExecute()(script, names, values)`` computes `script`
    with names for values.

    Raises TypeError for other arguments.

    >>> import mycel as ms
    >>> ms.ops.PyExecute()("a + b", ("a", "b"), (1, 2))
    3
    """


def dtype_to_enum(op_name: str, arg_name: str, dtype: Any) -> int:
    """Return the result of the operation `DtypeToEnum`."""
    if dtype == object_types.string:
        return 12
    arguments.instance(op_name, arg_name, dtype, D.DType, "an element type")
    return MINDSPORE[dtype.name]


class DtypeToEnum(Primitive, compute=dtype_to_enum, inputs=(object, object, object)):
    """The number of an element type in MindSpore's formats: ``DtypeToEnum()(op_name, arg_name,
    dtype)``.

    Raises TypeError, in the name of the operation, for arguments that are no type.

    >>> import mycel as ms
    >>> ms.ops.DtypeToEnum()("cast", "dtype", ms.float16)
    42
    """


# Operations of the program's own.


def prim_attr_register(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator for the `__init__` of a `Primitive`.

    Before `__init__` runs, it names the operation as its class, and makes the arguments attributes,
    listed in `attrs`.

    >>> import mycel as ms
    >>> class Scale(ms.ops.Primitive):
    ...     @ms.ops.prim_attr_register
    ...     def __init__(self, factor, shift=0.0):
    ...         pass
    ...     def __call__(self, x):
    ...         return x * self.factor + self.shift
    >>> Scale(3.0).attrs, float(Scale(3.0)(ms.Tensor(2.0)))
    ({'factor': 3.0, 'shift': 0.0}, 6.0)
    """
    signature = inspect.signature(arguments.function("prim_attr_register", "fn", fn))

    @functools.wraps(fn)
    def start(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self, type(self).__name__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
        self.__dict__["init_attrs"] = dict(self.attrs)
        fn(self, *args, **kwargs)

    return start


def prim_arg_register(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same as `prim_attr_register`.

    >>> import mycel as ms
    >>> class Add(ms.ops.Primitive):
    ...     @ms.ops.prim_arg_register
    ...     def __init__(self, number):
    ...         pass
    >>> Add(2).number
    2
    """
    return prim_attr_register(fn)


def _shape_of(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if isinstance(value, Tensor) else ()


class PrimitiveWithCheck(Primitive):
    """A base of operations of the program's own that check their inputs.

    Subclasses define `check_shape` and `check_dtype`, or `__check__`, and `infer_value`. A call
    passes the shapes to `check_shape` and the types to `check_dtype`, or all to `__check__` as
    dictionaries of "shape", "dtype" and "value". It then returns ``infer_value(*inputs)``. Raises
    NotImplementedError where that is not defined, or returns None.

    >>> import mycel as ms
    >>> class Twice(ms.ops.PrimitiveWithCheck):
    ...     def __init__(self):
    ...         super().__init__("Twice")
    ...     def check_shape(self, x):
    ...         if x != (2,):
    ...             raise ValueError(f"Twice: takes two numbers, not {x}")
    ...     def infer_value(self, x):
    ...         return x * 2
    >>> Twice()(ms.Tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    def check_shape(self, *shapes: Any) -> None:
        """Raise an error where shapes do not fit; to be defined by subclasses."""

    def check_dtype(self, *dtypes: Any) -> None:
        """Raise an error where types do not fit; to be defined by subclasses."""

    def __check__(self, *inputs: Any) -> None:
        self.check_shape(*[i["shape"] for i in inputs])
        self.check_dtype(*[i["dtype"] for i in inputs])

    def infer_value(self, *inputs: Any) -> Any:
        """Return the value of the operation; to be defined by subclasses."""
        return None

    def __call__(self, *inputs: Any) -> Any:
        self.__check__(*_described(inputs))
        return _value(self, inputs)


class PrimitiveWithInfer(Primitive):
    """A base of operations of the program's own that declare shape and type of their result.

    Subclasses define `infer_shape` and `infer_dtype`, or `__infer__`, and `infer_value`. A call
    returns ``infer_value(*inputs)``, which must be of the declared shape and type. `__infer__`
    takes dictionaries of "shape", "dtype" and "value", and returns one. Raises NotImplementedError
    where something is not defined, ValueError and TypeError where the value does not fit.

    >>> import mycel as ms
    >>> class Total(ms.ops.PrimitiveWithInfer):
    ...     def __init__(self):
    ...         super().__init__("Total")
    ...     def infer_shape(self, x):
    ...         return ()
    ...     def infer_dtype(self, x):
    ...         return x
    ...     def infer_value(self, x):
    ...         return x.sum()
    >>> float(Total()(ms.Tensor([1.0, 2.0])))
    3.0
    """

    def infer_shape(self, *shapes: Any) -> Any:
        """Return the shape of the result; to be defined by subclasses."""
        raise NotImplementedError(f"{self.name}: define infer_shape(*shapes), or __infer__(*inputs)")

    def infer_dtype(self, *dtypes: Any) -> Any:
        """Return the type of the result; to be defined by subclasses."""
        raise NotImplementedError(f"{self.name}: define infer_dtype(*dtypes), or __infer__(*inputs)")

    def infer_value(self, *inputs: Any) -> Any:
        """Return the value of the operation; to be defined by subclasses."""
        return None

    def __infer__(self, *inputs: Any) -> dict[str, Any]:
        return {
            "shape": self.infer_shape(*[i["shape"] for i in inputs]),
            "dtype": self.infer_dtype(*[i["dtype"] for i in inputs]),
            "value": None,
        }

    def __call__(self, *inputs: Any) -> Any:
        said = self.__infer__(*_described(inputs))
        result = _value(self, inputs)
        if isinstance(result, Tensor):
            dtype = said["dtype"]
            if tuple(said["shape"]) != tuple(result.shape):
                raise ValueError(
                    f"{self.name}: the result has shape {tuple(result.shape)}, and infer_shape says "
                    f"{tuple(said['shape'])}"
                )
            if (dtype.element_type() if isinstance(dtype, object_types.TensorType) else dtype) is not result.dtype:
                raise TypeError(f"{self.name}: the result has type {result.dtype.name}, and infer_dtype says {dtype!r}")
        return result


def _described(inputs: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [
        {
            "shape": _shape_of(v),
            "dtype": v.dtype if isinstance(v, Tensor) else functions.typeof(v),
            "value": None if isinstance(v, Tensor) else v,
        }
        for v in inputs
    ]


def _value(operation: Any, inputs: tuple[Any, ...]) -> Any:
    result = operation.infer_value(*inputs)
    if result is None:
        raise NotImplementedError(
            f"{operation.name}: define infer_value(*inputs), which computes the result, or __call__"
        )
    return result


__all__.extend(operations_of(globals()))

"""Tensors: a type, a buffer, and, while a context records or stages, the node that computes them.

A tensor with a buffer has a value. A tensor in a function that is being staged has only a node;
asking for its value raises `NeedsValue`, which the front end turns into a fallback or an error. The
methods that compute are attached by `mycel.ops`, and the operators of two operands by
`core.binary_operators`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.source_locations import asked_by_program
from mycel._src.compiler.ir.symbols import declared_shape
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.complex import complex_abs
from mycel._src.compiler.prims.shape import SIZE
from mycel._src.engines import buffers
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import NeedsValue, NotAnIndex
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.array_conversion import array_of, shape_of, unset_text, value_text, with_arrays

__all__ = ["Tensor", "as_tensor", "is_tensor", "tensor"]


if TYPE_CHECKING:
    from mycel._src.tensors.core.tensor_methods import TensorMethods
else:
    TensorMethods = object


class Tensor(TensorMethods):
    """An n-dimensional array of one element type.

    Args:
        input_data (Tensor | numpy.ndarray | numbers.Number | Sequence | None): A number, a nested
            sequence, a NumPy array or a tensor, whose values are copied. Default: None.
        dtype (DType | None): The element type; None for float32 of floats in sequences and Python
            floats, int64 of integers and complex128 of complex numbers, and for that of an array.
            Default: None.
        shape (tuple[int, ...] | None): The shape of a tensor without data. Default: None.
        init (Initializer | None): Draws the values when they are first needed (`init_data`).
            Default: None.
        const_arg (bool): Has no effect. Default: False.
        device (str | None): None or "CPU", in any case of letters. Default: None.

    Raises:
        TypeError: For data that is not numeric.
        ValueError: For ragged sequences.
        OverflowError: For integers beyond 64 bits.

    Examples:
        >>> import mycel as ms
        >>> ms.Tensor([[1.0, 2.0], [3.0, 4.0]]).sum()
        Tensor(shape=[], dtype=Float32, value= 10)
    """

    __slots__ = ("_type", "_buf", "_node", "__weakref__", "__dict__")

    _type: TensorType
    _buf: Any
    _node: Node | None
    # how a view is made from its root, and the views of a root: see mycel._src.tensors.core.views
    _view: Any = None
    _views: Any = None
    __hash__ = object.__hash__

    def __init__(
        self,
        input_data: Any = None,
        dtype: Any = None,
        shape: Any = None,
        init: Any = None,
        const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        if device is not None and not str(device).upper().startswith("CPU"):
            raise ValueError(f"Tensor: device {device!r} is not available in this build; use 'CPU' or leave it out")
        self._node = None
        if input_data is None:
            self._declare(dtype, shape, init)
            return
        if init is not None:
            raise ValueError("Tensor: give either input_data or init, not both")
        wanted = None if dtype is None else D.from_any(dtype)
        staging = eager.local.staging if eager.active else None
        if isinstance(input_data, Tensor):
            source = input_data if wanted is None else input_data.astype(wanted)
            source._settle()
            self._type, self._node = source._type, source._node
            if staging is not None:
                self._buf, self._node = None, staging.node_of(source)
                if staging.is_live:
                    staging.track(self)
                return
            self._buf = None if source._buf is None else buffers.copy(source._buf, source._type)
            return
        array = to_numpy_array(input_data, wanted)
        if shape is not None and tuple(array.shape) != tuple(shape_of(shape)):
            raise ValueError(f"Tensor: input_data has shape {array.shape}, not the given {tuple(shape_of(shape))}")
        self._type = tensor_type(tuple(map(int, array.shape)), D.from_any(array.dtype))
        self._buf = buffers.from_array(array)
        if staging is not None:
            staging.created(self)

    def _declare(self, dtype: Any, shape: Any, init: Any) -> None:
        if shape is None and init is None and dtype is None:
            raise TypeError("Tensor: there is no data; give numbers, sequences, arrays or tensors, or shape and dtype")
        if shape is None and init is None:
            # Of any number of dimensions: for `enable_dynamic`.
            self.__dict__["_declared_shape"] = None
            self._type, self._buf = tensor_type((), D.from_any(dtype)), None
            return
        if shape is None or (init is None and dtype is None):
            raise ValueError("Tensor: without input_data both shape and dtype are needed (and init for values)")
        if init is not None and not callable(init):
            raise TypeError(
                f"Tensor: init must be an initializer, not {init!r}; call mindspore.common.initializer.initializer(...)"
                " to make a tensor by an initializer's name"
            )
        wanted = D.from_any(dtype if dtype is not None else D.float32)
        sizes = shape_of(shape)
        self.__dict__["init"] = init
        if init is None:
            free = declared_shape(sizes)
            self.__dict__["_declared_shape"] = sizes
            self._type = tensor_type(tuple(free), wanted)
            self._buf = None if not self._type.is_static else buffers.zeros(self._type)
            return
        self._type = tensor_type(tuple(sizes), wanted)
        self._buf = None

    # The value.

    def _need_value(self, what: str) -> None:
        if self._view is not None and self._node is None:
            self._view.refresh(self)
            return
        if self._node is not None:
            raise NeedsValue(
                f"{what} needs the value of a tensor ({self._type}) that is being compiled and has none yet"
            )
        if self.__dict__.get("init") is not None:
            self.init_data()
            return
        raise NeedsValue(f"{what}: this tensor ({self._type}) only declares a shape and has no value")

    def _settle(self) -> None:
        """Compute the value of a view, if a write to its family has dropped it."""
        if self._buf is None and self._node is None and self._view is not None:
            self._need_value("")

    def _value(self, what: str) -> np.ndarray[Any, Any]:
        staging = eager.local.staging if eager.active else None
        if staging is not None:
            return staging.need_value(self, what)
        if self._buf is None:
            self._need_value(what)
        return buffers.to_array(self._buf, self._type)

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array that shares the tensor's memory.

        What is written into the array changes the tensor. A view of the tensor, or the tensor of
        which it is a view, changes with it for certain only where the view is a reshape. Later
        writes to the tensor may or may not change the array; copy it to keep the values.

        >>> import mycel as ms
        >>> ms.Tensor([1, 2]).asnumpy()
        array([1, 2])
        """
        return self._value("asnumpy()")

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the same as `asnumpy`."""
        return self._value("numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self._value("conversion to a NumPy array")
        other = dtype is not None and array.dtype != dtype
        return array.astype(dtype) if other else array.copy() if copy else array

    __array_function__ = with_arrays

    @property
    def __array_priority__(self) -> float:
        """The rank of tensors in operators of NumPy, which take tensors for arrays and give arrays;
        in a compiled function the result is a tensor.
        """
        return 100.0 if eager.active and eager.local.staging is not None else -1e6

    def __dlpack__(self, **options: Any) -> Any:
        if self._type.dtype.numpy.isbuiltin != 1:
            raise BufferError(f"DLPack export: NumPy does not hand {self._type.dtype.name} over; cast the tensor first")
        return self._value("DLPack export").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def item(self, index: Any = None) -> Any:
        """Return the Python number in a tensor of one element (or at a flat or tuple `index`)."""
        if index is not None:
            places = index if isinstance(index, tuple) else (index,)
            if not all(isinstance(i, (int, np.integer)) for i in places):
                raise TypeError(f"item: the index must be an int or a tuple of them, not {index!r:.80}")
            sizes = self.shape if isinstance(index, tuple) else (self.size,)
            if len(places) != len(sizes) or not all(-d <= i < d for i, d in zip(places, sizes)):
                raise IndexError(f"item: the index {index} is outside of a tensor of shape {self.shape}")
            return self._value("item()").item(index)
        return self._number("item()", "item(): a tensor of shape {shape} has {size} elements; give an index")

    def tolist(self) -> Any:
        """Return the values as nested lists of Python numbers."""
        return self._value("tolist()").tolist()

    def __bool__(self) -> bool:
        refusal = (
            "the truth of a tensor of shape {shape} is ambiguous: it does not have only one element; use .any() "
            "or .all()"
        )
        return bool(self._number("the truth of a tensor", refusal))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __int__(self) -> int:
        number = self._scalar("int()")
        try:
            return int(number)
        except (OverflowError, ValueError):
            raise (ValueError if number != number else OverflowError)(
                f"int() takes a tensor of a finite number, not of {number}"
            ) from None

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        if self._type.dtype.kind not in "iub":
            raise NotAnIndex(
                f"only integer tensors can be used as an index, not {self._type.dtype.name}; convert with .int()"
            )
        return int(self._scalar("use as an index"))

    def _scalar(self, what: str) -> Any:
        return self._number(what, "{what} takes a tensor of one element, not of shape {shape}")

    def _number(self, what: str, refusal: str) -> Any:
        """Return the one element as a Python number.

        Raises ValueError with the text `refusal` for tensors of more or fewer elements.
        """
        staging = eager.local.staging if eager.active else None
        if staging is not None:
            array = staging.need_value(self, what)
            if array.size != 1:
                raise ValueError(refusal.format(what=what, shape=self.shape, size=array.size))
            return array.reshape(()).item()
        if self._buf is None:
            self._need_value(what)
        if self._type.shape and self._type.size != 1:
            raise ValueError(refusal.format(what=what, shape=self.shape, size=self._type.size))
        return buffers.number(self._buf, self._type)

    def __len__(self) -> int:
        if not self._type.shape:
            raise TypeError("len(): a tensor of no dimensions has no length; .size is its number of elements")
        return self._type.shape[0]  # type: ignore[return-value]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._type.shape:
            raise TypeError("iteration: a tensor of no dimensions has no elements to go over; .item() gives its value")
        for i in range(len(self)):
            yield self[i]

    def __contains__(self, value: Any) -> bool:
        found = self == (value.item() if isinstance(value, np.generic) else value)
        return bool(found if isinstance(found, bool) else found.any())

    def __repr__(self) -> str:
        array = self._shown()
        if array is None:
            return unset_text(self._type.shape, self._type.dtype, self._node is not None)
        head = f"Tensor(shape={list(self._type.shape)}, dtype={self._type.dtype}, value="
        return f"{head}{value_text(array, self._type.dtype)})"

    def __str__(self) -> str:
        array = self._shown()
        return repr(self) if array is None else str(array)

    def _shown(self) -> np.ndarray[Any, Any] | None:
        """Return the values to show, or None where there are none."""
        staging = eager.local.staging if eager.active else None
        if staging is not None:
            if staging.may_decide and (self._node is not None or self._buf is not None) or asked_by_program():
                return staging.need_value(self, "showing a tensor")
        self._settle()
        return None if self._buf is None else buffers.to_array(self._buf, self._type)

    def __format__(self, spec: str) -> str:
        if spec and self.size != 1:
            raise TypeError(f"the format {spec!r} takes a tensor of one element, not of shape {self.shape}")
        return format(self._scalar("formatting"), spec) if spec else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (np.array(self._value("pickling")),))

    def __deepcopy__(self, memo: Any) -> Tensor:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        self._settle()
        made._type, made._node = self._type, None
        made._buf = None if self._buf is None else buffers.copy(self._buf, self._type)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("_view", "_views")})
        return made

    # The type.

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the dimensions."""
        return self._type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._type.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._type.rank

    @property
    def size(self) -> Any:
        """The number of elements."""
        return self._type.size

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Bytes in all."""
        return self._type.nbytes

    @property
    def strides(self) -> tuple[Any, ...]:
        """Bytes from one element to the next along each dimension."""
        step: Any = self._type.dtype.itemsize
        result = []
        for d in reversed(self._type.shape):
            result.append(step)
            step = step * d
        return tuple(reversed(result))

    @property
    def has_init(self) -> bool:
        """Whether the values are still to be drawn by an initializer."""
        return self._buf is None and self.__dict__.get("init") is not None

    def init_data(self, slice_index: Any = None, shape: Any = None, opt_shard_group: Any = None) -> Tensor:
        """Draw the values of a tensor declared with an initializer, and return the tensor.

        `slice_index`, `shape` and `opt_shard_group` have no effect, as one device has all values.
        """
        init = self.__dict__.get("init")
        if init is None:
            if self._buf is None:
                raise ValueError("init_data: this tensor was not declared with an initializer")
            return self
        made = buffers.empty(int(self._type.nbytes))
        array = buffers.to_array(made, self._type)
        if not type(init).__dict__.get("fills"):
            array[...] = 0
        reserved = self.__dict__.get("reserved")
        (init if reserved is None else reserved.fill)(array)
        self._buf = made
        self.__dict__.pop("init", None)
        self.__dict__.pop("reserved", None)
        return self

    @staticmethod
    def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
        """Return a tensor that shares the memory of a contiguous NumPy array."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"from_numpy takes a NumPy array, not {type(array).__name__}")
        made = make(tensor_type(tuple(array.shape), D.from_any(array.dtype)), buffers.share(array))
        # What a program writes into it is no state: each call of the program makes another.
        return made if not eager.active or eager.local.staging is None else eager.local.staging.created(made)

    # Operators; those of two operands are installed by `core.binary_operators`, and the methods
    # that compute by `mycel.ops`.

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rlshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __rrshift__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]

    def __neg__(self) -> Tensor:
        return eager.apply(E.neg, self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return (
            self
            if self._type.dtype is D.bool_
            else eager.apply(complex_abs if self._type.dtype.is_complex else E.abs_, self)
        )

    def __round__(self, ndigits: int | None = None) -> Tensor:
        if self._type.dtype.kind in "iub" and (ndigits is None or ndigits >= 0):
            return self
        if not ndigits:
            return eager.apply(E.rint, self)
        scale = 10.0**ndigits
        return eager.apply(E.rint, self * scale) / scale

    def __invert__(self) -> Tensor:
        if self._type.dtype is not D.bool_:
            staging = eager.local.staging if eager.active else None
            if staging is not None and staging.is_number(self):
                return eager.apply(E.bitwise_not, self)
            return self == 0
        return eager.apply(E.logical_not, self)

    def _replace(self, new: Tensor) -> Tensor:
        """Take over the value of `new`, which has the same type; every write in place ends here."""
        if new._type is not self._type:
            raise TypeError(f"a tensor of type {self._type} cannot take a value of type {new._type} in place")
        context = eager.local.context if eager.active else None
        shared = self._view or self._views
        if shared is not None and (context is None or not context.is_staging):
            shared.write(self, new)
        elif context is not None:
            context.write(self, new)
        else:
            self._buf = new._buf
        return self


def to_numpy_array(data: Any, wanted: DType | None = None) -> np.ndarray[Any, Any]:
    """Return data in any accepted form as a new C-contiguous array in native byte order.

    Its element type is `wanted`, or if that is None one that tensors can hold.
    """
    return array_of(data, wanted, _without_tensors)


def _without_tensors(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_without_tensors(v) for v in data]
    return data.asnumpy() if isinstance(data, Tensor) else data


def _rebuild(array: np.ndarray[Any, Any]) -> Tensor:
    return Tensor.from_numpy(array)


_new = object.__new__


def make(type: TensorType, buffer: Any) -> Tensor:
    """Return a tensor around a buffer."""
    made = _new(Tensor)
    made._type = type
    made._buf = buffer
    made._node = None
    return made


def make_staged(node: Node) -> Tensor:
    """Return a tensor without a value: the result of a node in a graph being built."""
    made = _new(Tensor)
    made._type = node.type
    made._buf = None
    made._node = node
    if eager.active:
        staging = eager.local.staging
        if staging is not None and staging.is_live:
            staging.track(made)
    return made


eager._make_tensor = make


def tensor(
    input_data: Any = None,
    dtype: Any = None,
    shape: Any = None,
    init: Any = None,
    const_arg: bool = False,
    device: str | None = None,
) -> Tensor:
    """Return a new tensor.

    Args:
        input_data (Tensor | numpy.ndarray | numbers.Number | Sequence | None): As in `Tensor`.
            Default: None.
        dtype (DType | None): As in `Tensor`. Default: None.
        shape (tuple[int, ...] | None): As in `Tensor`. Default: None.
        init (Initializer | None): As in `Tensor`. Default: None.
        const_arg (bool): As in `Tensor`. Default: False.
        device (str | None): Has no effect but for a check. Default: None.

    Returns:
        Tensor: The tensor.

    Examples:
        >>> import mycel as ms
        >>> ms.tensor([1, 2, 3]).shape
        (3,)
    """
    arguments.flag("tensor", "const_arg", const_arg)
    return Tensor(input_data, dtype, shape, init, const_arg, device)


def is_tensor(obj: Any) -> bool:
    """Return whether `obj` is a tensor.

    >>> import mycel as ms
    >>> ms.is_tensor(1.0)
    False
    """
    return isinstance(obj, Tensor)


_numbers = Remembered[Any, Tensor]("tensors of numbers", MANY)
SCALARS = _numbers.recent


def scalar(value: Any, dtype: DType) -> Tensor:
    """Return a tensor of no dimensions with the value of a Python number.

    The same number gives the same object.
    """
    staging = eager.local.staging if eager.active else None
    if staging is not None:
        _check_fits(value, dtype)
        return staging.literal(value, dtype)
    key = (value, dtype, type(value))
    found = SCALARS.get(key)
    if found is None and (found := _numbers.get(key)) is None:
        _check_fits(value, dtype)
        found = Tensor(value, dtype)
        if not (isinstance(value, float) and value == 0.0):
            found = _numbers.enter(key, found)
    return found


def _check_fits(value: Any, dtype: DType) -> None:
    if isinstance(value, int) and dtype.kind in "iu":
        limits = np.iinfo(dtype.numpy)
        if not limits.min <= value <= limits.max:
            raise OverflowError(
                f"{value} does not fit {dtype.name}, the type of the tensor that it meets; cast the tensor to a wider "
                "type first"
            )


def as_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return `value` as a tensor; a tensor that has the type already is returned as it is."""
    if isinstance(value, Tensor):
        return value if dtype is None or value._type.dtype is D.from_any(dtype) else cast(value, D.from_any(dtype))
    if isinstance(value, Dim):
        return eager.apply(SIZE, dim=value, dtype=D.from_any(dtype or D.int64))
    return Tensor(value, dtype)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """Return `x` converted to an element type; `x` itself where it has that type."""
    return x if x._type.dtype is dtype else eager.apply(E.cast, x, dtype=dtype)

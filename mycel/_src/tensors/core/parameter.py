"""Parameters: named tensors that belong to a Cell and that training changes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.engines import buffers
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.settings.ignored_settings import asked_for_host
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.tensors.core import eager, views
from mycel._src.tensors.core.absent_values import value_later
from mycel._src.tensors.core.parameter_parallelism import Mark, fusion, is_flag, sizes, whole_number
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "Declared",
    "Parameter",
    "ParameterTuple",
    "Reserved",
    "declared",
    "no_init_parameters",
    "put_aside",
    "reserve",
    "types_only",
]

_counter = itertools.count()
_local = threading.local()
_MARKS = (
    "name requires_grad layerwise_parallel parallel_optimizer parallel_optimizer_comm_recompute comm_fusion "
    "cache_enable cache_shape storage_format key"
).split()
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


class Reserved(Protocol):
    """The values of a declared tensor, which are the same whenever they are drawn."""

    def fill(self, array: np.ndarray[Any, Any]) -> None:
        """Draw all values."""

    def fill_part(
        self, part: np.ndarray[Any, Any], shape: Sequence[int], places: Sequence[np.ndarray[Any, Any] | None]
    ) -> None:
        """Draw the values of a part of a tensor of `shape`: those at `places`, the numbers along
        each axis in ascending order, or None for all.
        """

    def as_type(self, old: Any, new: Any) -> Reserved | None:
        """Return what draws the values for a tensor of the type `old` as they are after a
        conversion to `new`; None where they have to be drawn before it.
        """


class _Initializers:
    """What `mycel.common.initializer` puts here: how a tensor is declared by an initializer's name
    or object, and how values to draw later are reserved, where the initializer can do it.
    """

    make: Callable[..., Tensor]
    reserve: Callable[[Any], Reserved | None]


initializers = _Initializers()


class Parameter(Tensor):
    """A named tensor that a Cell owns and an optimizer updates.

    `default_input` is a tensor (also one declared by an initializer), an array, a number or a
    sequence; plain integers become int32 and floats float32. `requires_grad` says whether gradients
    by `trainable_params` include it. Without `name` it is called ``Parameter#`` and a number until
    a cell that it is assigned to names it. `layerwise_parallel`, `parallel_optimizer` and
    `storage_format` are kept as attributes and have no effect on one device; `device` is None or
    "CPU". Raises TypeError for other data.

    >>> import mycel as ms
    >>> ms.Parameter(ms.Tensor([1.0, 2.0]), name="w").name
    'w'
    """

    __slots__ = ()

    def __new__(cls, default_input: Any = None, *args: Any, **kwargs: Any) -> Parameter:
        return object.__new__(cls)

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if isinstance(default_input, Tensor):
            default_input._settle()
            self._type, self._node = default_input._type, None
            self._buf = None if default_input._buf is None else buffers.copy(default_input._buf, default_input._type)
            init = default_input.__dict__.get("init")
            if init is not None:
                self._take_initializer(init, default_input.__dict__.get("reserved"))
            elif self._buf is None:
                raise ValueError("Parameter: the tensor given has no value and no initializer")
        else:
            if isinstance(default_input, bool):
                dtype: Any = D.bool_
            elif isinstance(default_input, int):
                dtype = D.int32
            else:
                dtype = None
            arguments.instance(
                "Parameter",
                "the value",
                default_input,
                (int, float, np.ndarray, np.generic, list, tuple),
                "a tensor, an array or a number",
            )
            super().__init__(default_input, dtype)
        if name is not None and not isinstance(name, str):
            raise arguments.wrong_type("Parameter", "the name", "a string or None", name, ValueError)
        arguments.instance("Parameter", "storage_format", storage_format, str)
        if device is not None and device not in ("CPU", "Remote"):
            raise arguments.wrong_value("Parameter", "device", "None, 'CPU' or 'Remote'", device)
        if device is not None:
            asked_for_host(f"Parameter(device={device!r})")
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        attributes = self.__dict__
        number = next(_counter)
        attributes["name"] = name or f"Parameter#{number}"
        attributes["has_name"] = bool(name)
        attributes["storage_format"] = storage_format
        attributes["is_init"] = True
        attributes["sliced"] = False
        attributes["unique"] = False

    def _take_initializer(self, init: Any, reserved: Reserved | None) -> None:
        """Take an initializer, which draws the values now, or where parameters are only declared,
        when they are needed.
        """
        self.__dict__["init"] = init
        only_declared = getattr(_local, "declares_only", False)
        if only_declared or current().dividing is not None:
            reserved = reserved or initializers.reserve(init)
        if reserved is not None:
            self.__dict__["reserved"] = reserved
        if only_declared or reserved is not None:
            self.__class__ = Declared
        else:
            self.init_data()

    name: str = ""
    has_name: bool
    requires_grad = Mark(is_flag, True)
    # Marks for several devices, which have no effect on one.
    layerwise_parallel = Mark(is_flag, False)
    parallel_optimizer = Mark(is_flag, True)
    parallel_optimizer_comm_recompute = Mark(is_flag, False)
    comm_fusion = Mark(fusion, 1)
    cache_enable = Mark(is_flag, False)
    cache_shape: Mark[list[int]] = Mark(sizes, [])
    requires_aggr = Mark(is_flag, True)
    sliced: bool = False
    key = Mark(whole_number, -1)
    init_mode: Any = None

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self._type.shape))
        return (
            f"Parameter (name={self.name}, shape=({shape}{',' if len(self._type.shape) == 1 else ''}), "
            f"dtype={self._type.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (np.array(self._value("pickling")), self.name, self.requires_grad))

    @property
    def data(self) -> Parameter:
        """The parameter itself."""
        return self

    @property
    def is_in_parallel(self) -> bool:
        """Whether ranks have the values in parts."""
        return "_held" in self.__dict__

    @property
    def inited_param(self) -> None:
        """The new parameter that the drawing of values gave; None, as values are drawn in place."""
        return None

    @property
    def param_info(self) -> Parameter:
        """The parameter itself, which has the notes of it; others' name and marks are taken over.

        >>> import mycel as ms
        >>> w, state = ms.Parameter([1.0], name="w", requires_grad=False), ms.Parameter([0.0])
        >>> state.param_info = w.param_info.clone()
        >>> state.name, state.requires_grad
        ('w', False)
        """
        return self

    @param_info.setter
    def param_info(self, info: Any) -> None:
        for mark in _MARKS:
            setattr(self, mark, getattr(info, mark))
        self.__dict__["has_name"] = getattr(info, "has_name", True)

    def add_pipeline_stage(self, stage: int) -> None:
        """Note a stage of a pipeline that uses the parameter, which has no effect on one device.

        Raises TypeError for a stage that is not a whole number of at least 0.
        """
        if not isinstance(stage, int) or stage < 0:
            raise TypeError(f"Parameter.add_pipeline_stage: stage must be an int of at least 0, not {stage!r}")
        self.__dict__.setdefault("_pipeline_stage_list", []).append(stage)

    def clone(self, init: Any = "same") -> Parameter:
        """Return a new parameter of the same type and attributes.

        Its values are copied, or drawn by `init`, an initializer or its name.
        """
        if isinstance(init, str) and init == "same":
            value: Any = self._same_value()
        else:
            value = initializers.make(init, self.shape, self.dtype)
        made = Parameter(value, self.name, self.requires_grad, self.layerwise_parallel, self.parallel_optimizer)
        made.__dict__["has_name"] = self.__dict__["has_name"]
        return made

    def _same_value(self) -> Tensor:
        return Tensor(self)

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Take a copy of new values, converted to the parameter's type.

        Raises ValueError for another shape unless `slice_shape`, and TypeError for values of a kind
        that the type does not hold (floats in an integer parameter, complex numbers in a real one).
        """
        if isinstance(data, (bool, int, float)):
            data = Tensor(data)
        elif isinstance(data, (list, tuple, np.ndarray, np.generic)):
            data = Tensor(data)
        elif not isinstance(data, Tensor):
            raise TypeError(
                f"set_data: parameter {self.name!r} takes a tensor, an array or a number, not {type(data).__name__} "
                f"({data!r})"
            )
        if data.has_init:
            data.init_data()
        if data.shape != self.shape and not slice_shape:
            raise ValueError(
                f"set_data: parameter {self.name!r} has shape {self.shape}, the new value {data.shape}; reshape it, or "
                "pass slice_shape=True"
            )
        if data.dtype is not self.dtype:
            if _RANK[data.dtype.kind] > _RANK[self.dtype.kind]:
                raise TypeError(
                    f"set_data: parameter {self.name!r} has type {self.dtype.name}, which does not hold values of type "
                    f"{data.dtype.name}; "
                    f"cast them with .astype({self.dtype!r}), or change the parameter with set_dtype"
                )
            data = data.astype(self.dtype)
        if data.shape != self.shape:
            views.release(self)
            self._type = tensor_type(data.shape, self.dtype)
        self._replace(eager.apply(identity, data))
        return self

    def init_data(self, layout: Any = None, set_sliced: bool = False) -> Tensor:  # type: ignore[override]
        """Draw the values if they have not been drawn, and return the parameter.

        A `layout` says which part of a divided parameter a device has; the one device has all of
        it. Raises TypeError for a layout that is no tuple, ValueError for one of less than six
        entries.
        """
        if layout is not None:
            arguments.instance("init_data", "layout", layout, tuple)
            if len(layout) < 6:
                raise ValueError(f"init_data: layout must have six entries, not {len(layout)}")
        super().init_data()
        if set_sliced:
            self.__dict__["sliced"] = True
        return self

    def register_hook(self, hook_fn: Callable[[Tensor], Tensor | None]) -> Any:
        """Register a hook on the gradient by this parameter, as `Tensor.register_hook` does."""
        return super().register_hook(hook_fn)

    def set_dtype(self, dtype: Any) -> Parameter:
        """Convert the values to another element type in place, and return the parameter."""
        new = Tensor(self.asnumpy(), D.from_any(dtype))
        views.release(self)
        self._type, self._buf = new._type, new._buf
        return self


def _rebuild(array: np.ndarray[Any, Any], name: str, requires_grad: bool) -> Parameter:
    return Parameter(Tensor.from_numpy(array), name, requires_grad)


_BUFFER: Any = Tensor.__dict__["_buf"]


class _NoValues:
    """Stands for the buffer of a parameter of which only the type is used."""

    __slots__ = ()


_NO_VALUES = _NoValues()


class Declared(Parameter):
    """A parameter whose values its initializer draws when they are first read.

    Once it has values, drawn or assigned, its class is `Parameter`. What is `reserved` draws the
    same values at any time, and a part of them by itself.
    """

    __slots__ = ()

    @property
    def _buf(self) -> Any:
        if getattr(_local, "types_only", False):
            return _NO_VALUES
        later = value_later(self, drawn=False)
        if later is not None:
            return later
        self.init_data()
        return self._buf

    @_buf.setter
    def _buf(self, buffer: Any) -> None:
        self.__dict__.pop("init", None)
        self.__dict__.pop("reserved", None)
        self.__class__ = Parameter  # type: ignore[assignment]
        _BUFFER.__set__(self, buffer)

    @property
    def reserved(self) -> Reserved | None:
        """What draws the values, wherever and whenever it does; None where only `init` does."""
        found: Reserved | None = self.__dict__.get("reserved")
        return found

    @property
    def has_init(self) -> bool:
        """Whether the values are still to be drawn, which is always so."""
        return True

    def init_data(self, layout: Any = None, set_sliced: bool = False) -> Tensor:  # type: ignore[override]
        """Draw the values and return the parameter."""
        self.__class__ = Parameter  # type: ignore[assignment]
        return self.init_data(layout, set_sliced)

    def _same_value(self) -> Tensor:
        if self.reserved is None:
            return Tensor(self)
        made = Tensor(shape=self.shape, dtype=self.dtype, init=self.__dict__["init"])
        made.__dict__["reserved"] = self.reserved
        return made

    def set_dtype(self, dtype: Any) -> Parameter:
        """Take another element type, and return the parameter."""
        new = D.from_any(dtype)
        reserved = None if self.reserved is None else self.reserved.as_type(self.dtype, new)
        if reserved is None:
            return super().set_dtype(dtype)
        self.__dict__["reserved"], self._type = reserved, tensor_type(self._type.shape, new)
        return self


def put_aside(parameter: Parameter) -> None:
    """Let ``init`` fill a parameter that has no buffer when its values are first read."""
    parameter.__class__ = Declared


def reserve(parameter: Parameter, values: Any) -> None:
    """Let a parameter without values have those that are reserved, once they are asked for;
    `values` are also an initializer, which fills an array when it is called.
    """
    parameter.__dict__["init"] = parameter.__dict__["reserved"] = values
    parameter.__class__ = Declared


def declared(name: str, type: TensorType, values: Any) -> Parameter:
    """Return a parameter of the values that are reserved (see `reserve`)."""
    made = Tensor(shape=type.shape, dtype=type.dtype, init=values)
    made.__dict__["reserved"] = values
    return Parameter(made, name)


@contextmanager
def no_init_parameters() -> Iterator[None]:
    """Return a context manager within which this thread's new parameters are only declared.

    Their initializers draw values when those are first needed, unless a checkpoint gave others
    before; `Cell.init_parameters_data` draws all that are left. Parameters made of tensors and
    arrays have their values at once.

    >>> import mycel as ms
    >>> with ms.nn.no_init_parameters():
    ...     net = ms.nn.Dense(2, 3)
    >>> net.weight.has_init, net(ms.ops.ones((1, 2))).shape, net.weight.has_init
    (True, (1, 3), False)
    """
    before = getattr(_local, "declares_only", False)
    _local.declares_only = True
    try:
        yield
    finally:
        _local.declares_only = before


@contextmanager
def types_only() -> Iterator[None]:
    """Return a context manager within which this thread stages functions of parameters that are
    only declared, without drawing their values.

    What is staged so may be looked at and counted; to run it, leave the block.
    """
    before = getattr(_local, "types_only", False)
    _local.types_only = True
    try:
        yield
    finally:
        _local.types_only = before


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of parameters with distinct names.

    Raises TypeError for members that are not parameters and ValueError for two of one name.

    >>> import mycel as ms
    >>> w = ms.ParameterTuple([ms.Parameter(ms.Tensor([1.0]), name="w")])
    >>> w.clone("m")[0].name
    'm.w'
    """

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        if isinstance(iterable, Tensor):
            raise TypeError(f"ParameterTuple: give a list or tuple of parameters, not one {type(iterable).__name__}")
        if not isinstance(iterable, Iterable):
            raise TypeError(f"ParameterTuple: give a list or tuple of parameters, not {type(iterable).__name__}")
        members = tuple(iterable)
        seen: dict[str, Parameter] = {}
        for p in members:
            arguments.instance("ParameterTuple", "every member", p, Parameter)
            if seen.setdefault(p.name, p) is not p:
                raise ValueError(f"ParameterTuple: two parameters are named {p.name!r}; give each its own name")
        return super().__new__(cls, members)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Return new parameters named ``prefix.name``, with the same values or those of an
        initializer.
        """
        arguments.text("ParameterTuple.clone", "the prefix", prefix, empty=False, error=ValueError)
        made = []
        for p in self:
            q = p.clone(init)
            q.name = f"{prefix}.{p.name}"
            q.__dict__["has_name"] = True
            made.append(q)
        return ParameterTuple(made)

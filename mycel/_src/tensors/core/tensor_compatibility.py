"""MindSpore's other methods of tensors: memory layout, offloading to files, and settings.

A tensor that was offloaded to a file, like one whose initializer has not run, has no buffer. It has
a function that fills one (``init``), which is called when its value is first needed. `set_` makes a
tensor a view of another (`core.views`), so that writes to either change both.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.symbols import Symbol
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.compiler.prims.shape import RESHAPE, SLICE, TRANSPOSE
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.migration_hints import OF_TENSORS, attach, present
from mycel._src.foundation.notebook_html import page
from mycel._src.tensors.core import eager, views
from mycel._src.tensors.core.autograd.gradient_hooks import remove_hook
from mycel._src.tensors.core.parameter import Parameter, put_aside
from mycel._src.tensors.core.storage import UntypedStorage
from mycel._src.tensors.core.tensor import Tensor

__all__: list[str] = []


def _outside(name: str) -> None:
    if eager.active and eager.local.context is not None:
        raise Unsupported(
            f"Tensor.{name}: cannot be part of a compiled or differentiated function; call it before or after"
        )


# Where elements lie.


def _set(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Make the tensor share the elements of another one, or of a storage, and return it.

    Writes to either change both.

    Args:
        source (Tensor | UntypedStorage | None): What the elements are shared with; without it the
            tensor has no elements. Default: None.
        storage_offset (int): The first element, counted in the storage of `source`; given with
            `size`. Default: 0.
        size (Sequence[int] | None): The shape; None for that of `source`. Default: None.
        stride (Sequence[int] | None): The step along each axis, in elements, given with `size`. It
            must be that of the shape in row-major order, which it is for None, or of a
            transposition of it. Default: None.

    Returns:
        Tensor: The tensor itself.

    Raises:
        TypeError: For other sources.
        RuntimeError: For another element type, and for elements outside of the source.
        Unsupported: For other strides, and inside compiled or differentiated functions.

    Examples:
        >>> import mycel as ms
        >>> x, y = ms.ops.zeros((2, 2)), ms.Tensor([1.0])
        >>> y.set_(x, 1, (2,)).fill_(5).tolist(), x.tolist()
        ([5.0, 5.0], [[0.0, 5.0], [5.0, 0.0]])
    """
    _outside("set_")
    if source is None:
        if size is not None or stride is not None or storage_offset:
            raise TypeError("set_: storage_offset, size and stride need a source")
        return _become(self, Tensor(np.zeros(0, self.dtype.numpy)))
    if isinstance(source, UntypedStorage):
        source = views.root_of(source._tensor)
    arguments.instance("set_", "the source", source, Tensor, "a tensor or a storage")
    if source.dtype is not self.dtype:
        raise RuntimeError(f"set_: the tensor has type {self.dtype.name}, the source {source.dtype.name}; convert one")
    if views.root_of(source) is views.root_of(self):
        raise RuntimeError("set_: the source shares the tensor's elements already; make a copy of one")
    if size is None:
        if storage_offset or stride is not None:
            raise TypeError("set_: storage_offset and stride need a size")
        return _become(self, views.through(source, (identity, {}, ())))
    whole = views.root_of(source)
    shape = _whole("size", size)
    order = _order_of(shape, None if stride is None else _whole("stride", stride))
    (storage_offset,) = _whole("storage_offset", (storage_offset,))
    count = math.prod(shape)
    if storage_offset < 0 or any(d < 0 for d in shape) or storage_offset + count > whole.size:
        raise RuntimeError(
            f"set_: {count} elements of shape {shape} from element {storage_offset} on do not lie in {whole.size}"
        )
    steps: list[Any] = [(RESHAPE, {"shape": (whole.size,)}, ())]
    bounds = {"starts": (storage_offset,), "stops": (storage_offset + count,), "steps": (1,)}
    steps.append((SLICE, bounds, ()))
    steps.append((RESHAPE, {"shape": tuple([shape[a] for a in order])}, ()))
    if order != tuple(range(len(shape))):
        steps.append((TRANSPOSE, {"permutation": tuple(int(a) for a in np.argsort(order))}, ()))
    return _become(self, views.through(whole, *steps))


def _whole(word: str, values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(isinstance(v, (int, np.integer)) for v in values):
        raise TypeError(f"set_: {word} must be whole numbers, not {values!r:.80}")
    return tuple(map(int, values))


def _order_of(shape: tuple[int, ...], stride: Sequence[int] | None) -> tuple[int, ...]:
    """Return the axes in order, from the one whose elements lie farthest apart to the nearest.

    Raises Unsupported for strides that leave elements out or repeat them.
    """
    if stride is None:
        return tuple(range(len(shape)))
    steps = tuple(map(int, stride))
    if len(steps) != len(shape) or any(s < 0 for s in steps):
        raise RuntimeError(f"set_: size {shape} and stride {steps} must have one length, and strides be at least 0")
    order = tuple(sorted(range(len(shape)), key=lambda a: (-steps[a], -shape[a])))
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1 and steps[axis] != expected:
            raise Unsupported(
                f"set_: stride {steps} of size {shape} leaves elements out or repeats them, which is not supported; "
                "index or broadcast the result instead"
            )
        expected *= shape[axis]
    return order


def _become(self: Tensor, made: Tensor) -> Tensor:
    """Give a tensor the type and value of another, and its place in a family of views."""
    views.release(self)
    self.__dict__.pop("init", None)
    self._type, self._buf, self._node = made._type, made._buf, None
    view = made._view
    self._view = view
    if view is not None:
        views.family_of(view.root).add(self)
    return self


def _assign_value_cpp(self: Tensor, value: Tensor) -> Tensor:
    """Take over a copy of another tensor's value, shape and type, and return the tensor.

    Raises TypeError for a `value` that is no tensor.

    >>> import mycel as ms
    >>> ms.Tensor([1.0, 2.0]).assign_value_cpp(ms.Tensor(3)).shape
    ()
    """
    arguments.instance("assign_value_cpp", "value", value, Tensor)
    if value._type is self._type:
        return self._replace(eager.apply(identity, value))
    _outside("assign_value_cpp")
    return _become(self, Tensor(value))


def _set_dtype(self: Tensor, dtype: Any) -> Any:
    """Convert the values to another element type in place, and return the type.

    Views of the tensor become tensors of their own.

    >>> import mycel as ms
    >>> ms.Tensor([1.5]).set_dtype(ms.int32)
    mindspore.int32
    """
    _outside("set_dtype")
    _become(self, self.astype(D.from_any(dtype), copy=True))
    return self.dtype


def _to(self: Tensor, device: str | None = None, non_blocking: bool = False) -> Tensor:
    """Return the tensor itself, which is on the CPU. Raises ValueError for other devices."""
    if not isinstance(device, str) or device.upper().split(":")[0] != "CPU":
        raise ValueError(f"to_: device {device!r} is not available in this build; use 'CPU'")
    return self


# Files and memory.


class _FromFile:
    """A function that fills an array with the bytes of the file to which it was offloaded."""

    fills = True

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, array: np.ndarray[Any, Any]) -> None:
        found = np.fromfile(self.path, np.uint8)
        if found.size != array.nbytes:
            raise RuntimeError(
                f"offload: {self.path} has {found.size} bytes where a tensor of {array.nbytes} was put aside"
            )
        array.reshape(-1).view(np.uint8)[...] = found


def _offload(self: Tensor, file_path: str) -> bool:
    """Write the values to a file, as plain bytes, free their memory, and return True.

    The values are read again when they are next needed. A view, or a tensor that has views, shares
    its memory: it stays as it is, and the result is False. Raises TypeError for a path that is no
    string.

    >>> import mycel as ms, tempfile, os
    >>> x = ms.Tensor([1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     x.offload(os.path.join(folder, "x.bin")), x.tolist()
    (True, [1.0, 2.0])
    """
    arguments.path("offload", "file_path", file_path, "the path of a file")
    _outside("offload")
    if self._view is not None or (self._views is not None and self._views.alive()):
        return False
    path = os.path.abspath(file_path)
    self._value("offload").tofile(path)
    _without_memory(self)
    self.__dict__["init"] = _FromFile(path)
    if isinstance(self, Parameter):
        put_aside(self)
    return True


def _delete(self: Tensor, non_blocking: bool = False) -> Tensor:
    """Free the memory of the values, which cannot be used any more, and return the tensor.

    The tensor keeps its shape and type, and other values can be assigned to it. Its views become
    tensors of their own. Raises RuntimeError for a view.

    >>> import mycel as ms
    >>> ms.Tensor([1.0, 2.0]).delete_().shape
    (2,)
    """
    _outside("delete_")
    if self._view is not None:
        raise RuntimeError("delete_: the tensor is a view, whose memory is another's; delete that one")
    views.release(self)
    _without_memory(self)
    return self


def _without_memory(self: Tensor) -> None:
    self._node = self._buf = None


# Marks and other attributes.


def _init(self: Tensor) -> Any:
    """Return the initializer that is still to draw the values, if any."""
    return self.__dict__.get("init")


def _set_init(self: Tensor, value: Any) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"init: must be an initializer or None, not {value!r}")
    self.__dict__["init"] = value


def _init_flag(self: Tensor) -> bool:
    """Return a mark that programs set on tensors whose values were drawn; nothing depends on it."""
    return bool(self.__dict__.get("_init_flag", False))


def _set_init_flag(self: Tensor, flag: bool) -> None:
    """Set `init_flag`. Raises TypeError for values other than True and False."""
    arguments.flag("set_init_flag", "flag", flag)
    self.__dict__["_init_flag"] = flag


def _virtual_flag(self: Tensor) -> bool:
    """Return a mark that programs set on tensors that stand for others; nothing depends on it."""
    return bool(self.__dict__.get("_virtual_flag", False))


def _set_virtual_flag(self: Tensor, flag: bool) -> None:
    arguments.flag("virtual_flag", "flag", flag)
    self.__dict__["_virtual_flag"] = flag


def _parent(self: Tensor) -> Tensor | None:
    """Return the tensor whose elements a view shares, which is no view itself.

    None for a tensor with elements of its own.
    """
    root = views.root_of(self)
    return None if root is self else root


def _symbolic_shape(self: Tensor) -> Any:
    """Return the shape that a tensor was declared with, if it has a `Symbol`; else None.

    Each `Symbol` is a dictionary of its attributes that differ from their defaults.

    >>> import mycel as ms
    >>> ms.Tensor(shape=[ms.Symbol(max=4, divisor=2), 3], dtype=ms.float32).symbolic_shape
    [{'max': 4, 'divisor': 2}, 3]
    """
    declared = self.__dict__.get("_declared_shape") or ()
    return [_said(d) for d in declared] if any(isinstance(d, Symbol) for d in declared) else None


_DEFAULTS = {"max": 0, "min": 1, "divisor": 1, "remainder": 0, "unique": False}


def _said(size: Any) -> Any:
    if not isinstance(size, Symbol):
        return size
    return {name: getattr(size, name) for name, usual in _DEFAULTS.items() if getattr(size, name) != usual}


def _wait_pipeline(self: Tensor) -> None:
    """Return at once: there is nothing to wait for, as operations are complete when they return."""


def _attach() -> None:
    methods = {
        "set_": _set,
        "assign_value_cpp": _assign_value_cpp,
        "to_": _to,
        "offload": _offload,
        "delete_": _delete,
        "set_init_flag": _set_init_flag,
        "wait_pipeline": _wait_pipeline,
    }
    for name, method in methods.items():
        method.__name__, method.__qualname__ = name, f"Tensor.{name}"
        setattr(Tensor, name, method)
    _set_dtype.__name__, _set_dtype.__qualname__ = "set_dtype", "Tensor.set_dtype"
    values: dict[str, Any] = {
        "set_dtype": _set_dtype,
        "remove_hook": staticmethod(remove_hook),
        "init": property(_init, _set_init),
        "init_flag": property(_init_flag, _set_init_flag),
        "virtual_flag": property(_virtual_flag, _set_virtual_flag),
        "parent_tensor_": property(_parent),
        "symbolic_shape": property(_symbolic_shape),
        "delta_seed": 0,
        "param_info": property(
            lambda self: None, doc="The attributes of a parameter; None for a tensor that is no parameter."
        ),
    }
    for name, value in values.items():
        setattr(Tensor, name, value)
    for name, method in (("__dir__", _dir), ("_repr_html_", _repr_html_)):
        setattr(Tensor, name, method)
    attach(Tensor, OF_TENSORS)


def _dir(self: Tensor) -> list[str]:
    return present(list(object.__dir__(self)), type(self))


def _repr_html_(self: Tensor) -> str:
    """Return type, shape and the first and last values, as a notebook shows them."""
    sizes = ", ".join(map(str, self.shape))
    return page(type(self).__name__, f"{self.dtype}, shape ({sizes})", str(self))


_attach()

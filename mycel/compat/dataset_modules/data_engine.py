"""MindSpore's inner data engine, as packages with transforms of their own reach into it.

In MindSpore a transform of text or images is a class with a method `parse`, which makes the
operation of the engine: ``XOperation(...)``, with the arguments of the public transform X in their
order. Here the operation is that transform, and a class derived from `TensorOperation` applies what
its `parse` makes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mycel._src.foundation.object_types import string
from mycel._src.tensors.core.tensor import Tensor
from mycel.dataset import audio, text, transforms, vision
from mycel.dataset.text import NormalizeForm
from mycel.dataset.text.base import TextTransform
from mycel.dataset.transforms.base import Transform
from mycel.dataset.vision.base import ImageTransform

__all__ = [
    "DE_C_INTER_NORMALIZE_FORM",
    "AudioTensorOperation",
    "ImageTensorOperation",
    "PyTensorOperation",
    "TensorOperation",
    "TextTensorOperation",
    "VideoTensorOperation",
    "Vocab",
    "mstype_to_detype",
    "mstypelist_to_detypelist",
    "nptype_to_detype",
]

_ENDING = "Operation"
_ROOMS = (text, vision, transforms, audio)
DE_C_INTER_NORMALIZE_FORM = {form: form for form in NormalizeForm}


class TensorOperation(ABC):  # noqa: B024
    """The base class of transforms that are made of an operation of the engine.

    A subclass defines `parse`, which returns that operation. One that says with `implementation`
    that Python does the work, or that has no `parse`, defines `execute_py` or `_execute_py`.
    """

    def __init__(self) -> None:
        self.implementation: Any = None
        self.callable_op_: Any = None

    def parse(self) -> Any:
        """Return the operation of the engine; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} must define parse")

    def __call__(self, *inputs: Any) -> Any:
        """Apply the operation to arrays, or to text in any accepted form."""
        in_python = getattr(self.implementation, "name", "") == "PY" or type(self).parse is TensorOperation.parse
        execute = _executing(self) if in_python else None
        if execute is not None:
            return execute(*inputs)
        if self.callable_op_ is None:
            self.callable_op_ = self.parse()
        given = [x.asnumpy() if isinstance(x, Tensor) else x for x in inputs]
        return self.callable_op_(*given)


class PyTensorOperation(ABC):  # noqa: B024
    """The base class of transforms in Python: a subclass defines `execute_py`, or `_execute_py`."""

    def __init__(self) -> None:
        self.transforms: list[Any] = []
        self.output_type: Any = None

    def __call__(self, img: Any) -> Any:
        """Apply the transform to an image or another value."""
        execute = _executing(self)
        if execute is None:
            raise NotImplementedError(f"{type(self).__name__} must define execute_py")
        return execute(img)


def _executing(transform: object) -> Callable[..., Any] | None:
    """Return the method that applies a transform in Python; None where it has none."""
    found: Callable[..., Any] | None = getattr(transform, "_execute_py", None)
    return found or getattr(transform, "execute_py", None)


class TextTensorOperation(TensorOperation):
    """The base class of transforms of text."""


class ImageTensorOperation(TensorOperation):
    """The base class of transforms of images."""


class AudioTensorOperation(TensorOperation):
    """The base class of transforms of sound."""


class VideoTensorOperation(TensorOperation):
    """The base class of transforms of video."""


# Public transforms are of these classes, too.
TensorOperation.register(Transform)
PyTensorOperation.register(Transform)
ImageTensorOperation.register(ImageTransform)
TextTensorOperation.register(TextTransform)


class Vocab(text.Vocab):
    """A vocabulary as the engine's, which is Mycel's own."""


def mstype_to_detype(type_: Any) -> str | None:
    """Return the engine's name of an element type: "int32" for `mycel.int32`; None for None."""
    return None if type_ is None else "string" if type_ is string else type_.name


def mstypelist_to_detypelist(type_list: Iterable[Any]) -> list[str | None]:
    """Return the engine's names of element types."""
    return [mstype_to_detype(kind) for kind in type_list]


def nptype_to_detype(type_: Any) -> str:
    """Return the engine's name of a NumPy type."""
    kind = np.dtype(type_)
    return "string" if kind.kind in "US" else kind.name


def __getattr__(name: str) -> Any:
    """Return the transform that is the engine's operation `name`."""
    if name.endswith(_ENDING):
        public = name[: -len(_ENDING)]
        for room in _ROOMS:
            if public in room.__all__:
                return getattr(room, public)
    raise AttributeError(name)

"""Operations that show, check or write values once they are computed: `Print`, `Assert`,
`TensorDump`, and the summaries of a training run.

In a compiled function they run after each call, in their order, with the values of that call. Where
a tensor decides whether they run, the function runs in segments.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.files import atomic_files as whole
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.gradient_hooks import attach
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import summaries
from mycel.ops.operations.attributes import one_of
from mycel.ops.operations.primitive import Primitive, operations_of

__all__ = ["tensordump"]


def deferred(function: Callable[..., None], *args: Any) -> None:
    """Call a function of values: at once, or after each call of the compiled function that is being
    made.
    """
    staging = eager.local.staging if eager.active else None
    if staging is None:
        function(*args)
    else:
        staging.following.defer(function, args, {})


# On the screen.


def _show(*values: Any) -> None:
    for v in values:
        print(repr(v) if isinstance(v, Tensor) else v)


def print_values(*input_x: Any) -> None:
    """Show values, as the operation `Print`."""
    if not input_x:
        raise ValueError("Print: there is nothing to show; give values or strings")
    deferred(_show, *input_x)


class Print(Primitive, compute=print_values, inputs=(object,)):
    """Output of values: ``Print()(*values)`` shows tensors and other values on standard output, a
    line each.

    Raises ValueError without values.

    >>> import mycel as ms
    >>> ms.jit(lambda x: (ms.ops.Print()("twice", x * 2), x)[1])(ms.Tensor(1.0)).item()
    twice
    Tensor(shape=[], dtype=Float32, value= 2)
    1.0
    """


def _refuse(condition: Any, data: Sequence[Any], count: int) -> None:
    """Raise RuntimeError with the data, unless the condition holds."""
    if bool(condition.asnumpy().all() if isinstance(condition, Tensor) else condition):
        return
    lines = []
    for v in data:
        items = np.asarray(v.asnumpy() if isinstance(v, Tensor) else v).reshape(-1)
        shown = items if count < 0 else items[:count]
        lines.append("[" + " ".join(map(str, shown.tolist())) + (" ...]" if shown.size < items.size else "]"))
    raise RuntimeError("\n".join(["Assert: the condition is false; the data are", *lines]))


def _assert(p: Any, condition: Any, input_data: Any) -> None:
    if isinstance(condition, Tensor) and condition.dtype is not D.bool_:
        raise TypeError(f"Assert: the condition must be a bool or a tensor of bools, not {condition!r}")
    deferred(_refuse, condition, tuple(input_data), p.summarize)


class Assert(Primitive, compute=_assert, summarize=3, inputs=((bool, Tensor), (tuple, list))):
    """A check of a condition: ``Assert(summarize)(condition, input_data)`` raises RuntimeError
    unless the condition holds.

    The error has the first `summarize` elements of the data, or all where that is negative. The
    condition is a bool or a tensor of bools, all of which must be true. A compiled function raises
    once its results are computed. Raises TypeError for other arguments.

    >>> import mycel as ms
    >>> ms.ops.Assert()(ms.Tensor(True), [ms.Tensor([1.0])])
    """


# Into files.

_numbers = itertools.count()


def _save(file: str, mode: str, x: Tensor) -> None:
    folder = os.path.dirname(os.path.abspath(file))
    os.makedirs(folder, exist_ok=True)
    array = (x.astype(D.float32) if x.dtype is D.bfloat16 or x.dtype.kind == "s" else x).asnumpy()
    path = f"{file.removesuffix('.npy')}_{x.dtype.name}_{next(_numbers)}.npy"
    with whole.replacing(path, durable=False) as draft, open(draft, "wb") as handle:
        np.save(handle, array)


def _dump(p: Any, file: Any, input_x: Any) -> None:
    tensordump(file, input_x, p.input_output)


def tensordump(file_name: str, tensor: Any, mode: str = "out") -> None:
    """Write a tensor, or each of a list or tuple of tensors, into a file
    ``<file_name>_<dtype>_<number>.npy``; numbers count the files of the process.

    The folder is made where it is missing. bfloat16 and 8-bit floats are written as float32. `mode`
    is "in" or "out", which are the same on one device.

    Raises TypeError and ValueError for other arguments.

    >>> import mycel as ms, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ms.ops.tensordump(f"{folder}/x", ms.Tensor([1.0]))
    ...     os.listdir(folder)[0].startswith("x_float32_")
    True
    """
    arguments.text("tensordump", "file_name", file_name, empty=False)
    arguments.one_of("tensordump", "mode", mode, ("in", "out"))
    tensors = tensor if isinstance(tensor, (list, tuple)) else [tensor]
    for x in tensors:
        arguments.instance("tensordump", "tensor", x, Tensor, "a Tensor or several")
    for x in tensors:
        deferred(_save, file_name, mode, x)


class TensorDump(Primitive, compute=_dump, input_output=one_of("out", "in"), inputs=(object, object)):
    """`mycel.ops.tensordump` as an object: ``TensorDump(input_output)(file, input_x)``."""


def dump_gradient(path: str, x: Tensor, input_output: str) -> Tensor:
    """Return the result of the operation `DumpGradient`."""
    arguments.text("DumpGradient", "path", path, empty=False, error=ValueError)
    arguments.instance("DumpGradient", "x", x, Tensor)
    arguments.one_of("DumpGradient", "input_output", input_output, ("in", "out"))

    def rule(values: Sequence[Tensor], cts: Sequence[Tensor]) -> Sequence[Tensor | None]:
        tensordump(path, cts[0], input_output)
        return cts

    return attach(x, [x], Rule(rule, is_hook=True))


class DumpGradient(Primitive, compute=dump_gradient, inputs=(object, object, object)):
    """The identity, whose gradient is written into a file: ``DumpGradient()(path, x,
    input_output)`` is `x`, and `mycel.ops.tensordump` writes its gradient when it comes.

    `input_output` is "in" or "out", which are the same on one device. Raises ValueError and
    TypeError for other arguments.
    """


# Summaries.


def _summary(plugin: str) -> Callable[..., None]:
    def note(name: str, value: Any) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{plugin.capitalize()}Summary: the name must be a string that is not empty, not {name!r}")
        deferred(summaries.note, plugin, name, value)

    return note


_WHAT = {
    "scalar": "a tensor of one number",
    "image": "images [N, C, H, W]",
    "histogram": "numbers",
    "tensor": "a tensor",
}


class ScalarSummary(Primitive, compute=_summary("scalar"), inputs=(object, object)):
    """A summary of a number: ``ScalarSummary()(name, value)`` keeps a tensor of one number of this
    step for the next ``record`` of each open `mycel.SummaryRecord`.

    Of values with the same name within a step the last one counts. Nothing is kept while no record
    is open. Raises ValueError for an empty name, and from ``record`` for a value that does not fit.
    """


class ImageSummary(Primitive, compute=_summary("image"), inputs=(object, object)):
    """A summary of images: ``ImageSummary()(name, value)`` keeps images [N, C, H, W] of this step
    for the next ``record`` of each open `mycel.SummaryRecord`.

    Of values with the same name within a step the last one counts. Nothing is kept while no record
    is open. Raises ValueError for an empty name, and from ``record`` for a value that does not fit.
    """


class HistogramSummary(Primitive, compute=_summary("histogram"), inputs=(object, object)):
    """A summary of numbers: ``HistogramSummary()(name, value)`` keeps numbers of this step for the
    next ``record`` of each open `mycel.SummaryRecord`.

    Of values with the same name within a step the last one counts. Nothing is kept while no record
    is open. Raises ValueError for an empty name, and from ``record`` for a value that does not fit.
    """


class TensorSummary(Primitive, compute=_summary("tensor"), inputs=(object, object)):
    """A summary of a tensor: ``TensorSummary()(name, value)`` keeps a tensor of this step for the
    next ``record`` of each open `mycel.SummaryRecord`.

    Of values with the same name within a step the last one counts. Nothing is kept while no record
    is open. Raises ValueError for an empty name, and from ``record`` for a value that does not fit.
    """


__all__.extend(operations_of(globals()))

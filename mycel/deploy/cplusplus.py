"""`cpp`: the headers by which programs of C++ call a library as a model of MindSpore Lite."""

from __future__ import annotations

import os
from pathlib import Path

from mycel.base.atomic_files import write_folder
from mycel.base.errors import Unsupported
from mycel.base.type_numbers import MINDSPORE
from mycel.engines.aot.header import Argument
from mycel.engines.aot.library import Library
from mycel.engines.aot.plan import ALIGN

__all__ = ["cpp"]

_HEADER = Path(__file__).resolve().parent.parent / "data" / "mycel_model.hpp"


_TEXT = """/* {name} as a model: `{name}_program()` is what mindspore::Model::Build takes. */
#ifndef {guard}_HPP
#define {guard}_HPP

#include "{name}.h"
#include "mycel_model.hpp"

static inline int {name}_call(void *const *tensors, void *arena) {{
  return {name}({arguments}, arena);
}}

static inline const mycel::Program &{name}_program() {{
{shapes}
  static const mycel::Argument arguments[] = {{
{table}
  }};
  static const mycel::Program program = {{
      mycel::kProgramVersion, "{name}", {inputs}, {outputs}, arguments, {guard}_ARENA_BYTES, {align}, {name}_call}};
  return program;
}}

#endif
"""


def cpp(library: Library, folder: str | os.PathLike[str]) -> None:
    """Write a library to a folder, with headers of C++ that call it as MindSpore Lite's models.

    Beside the object and its header of C there are `NAME.hpp`, which describes the program, and
    `mycel_model.hpp` with `mindspore::Model`, `MSTensor`, `Context` and `Status`: `Build` takes
    `NAME_program()`, or the path of a shared library with `MYCEL_EXPORT_PROGRAM(NAME)` in one of
    its files; `GetInputs`, `Predict`, `MutableData` and `SetData`, which copies nothing, are
    MindSpore Lite's. C++11 is enough. Raises Unsupported where the caller keeps the state.

    >>> import os, tempfile
    >>> import mycel as ms
    >>> from mycel.deploy import build, cpp
    >>> made = build(ms.nn.Dense(4, 2), ms.ops.ones((1, 4)), target="aarch64", name="dense")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cpp(made, folder)
    ...     print(sorted(os.listdir(folder)))
    ['dense.h', 'dense.hpp', 'dense.o', 'mycel_model.hpp']
    """
    if library.lends:
        raise Unsupported(f"cpp: the caller keeps the state of {library.name}; build it with state='library'")
    if library.divides:
        raise Unsupported(f"cpp: the caller divides the work of {library.name}; build it with parallel=False")
    if library.sizes:
        raise Unsupported(f"cpp: {library.name} takes {library.sizes[0].text}; build it for known sizes")
    library.write(folder)
    every = (*library.inputs, *library.outputs)
    text = _TEXT.format(
        name=library.name,
        guard=library.name.upper(),
        arguments=", ".join(_passed(a, k, k < len(library.inputs)) for k, a in enumerate(every)),
        shapes="\n".join(f"  static const int64_t shape{k}[] = {{{_sizes(a)}}};" for k, a in enumerate(every)),
        table="\n".join(f"      {_row(a, k)}," for k, a in enumerate(every)),
        inputs=len(library.inputs),
        outputs=len(library.outputs),
        align=ALIGN,
    )
    write_folder(folder, {f"{library.name}.hpp": text.encode(), _HEADER.name: _HEADER.read_bytes()})


def _passed(argument: Argument, number: int, is_read: bool) -> str:
    kind = f"{'const ' if is_read else ''}{argument.c_type} *"
    return f"static_cast<{kind}>(tensors[{number}])"


def _sizes(argument: Argument) -> str:
    """Return the sizes of a shape; an array of C has one at least."""
    return ", ".join(map(str, argument.type.shape)) or "1"


def _row(argument: Argument, number: int) -> str:
    kind = argument.type.dtype
    rank = len(argument.type.shape)
    return f'{{"{argument.name}", {MINDSPORE[kind.name]}, {kind.itemsize}, {rank}, shape{number}}}'

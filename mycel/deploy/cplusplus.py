"""`cpp`: C++ headers that give a library the model interface of MindSpore Lite."""

from __future__ import annotations

import os
from pathlib import Path

from mycel._src.compiler.ir.dims import same, symbol
from mycel._src.engines.aot.c_header import Argument
from mycel._src.engines.aot.library import Library
from mycel._src.engines.aot.size_arguments import formula
from mycel._src.engines.aot.target_plan import ALIGN
from mycel._src.foundation.dtype_codes import MINDSPORE
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.atomic_files import write_folder

__all__ = ["cpp"]

_HEADER = Path(__file__).resolve().parent.parent / "include" / "mycel_model.hpp"


_TEXT = """/* {name} as a model: `{name}_program()` is what mindspore::Model::Build takes. */
#ifndef {guard}_HPP
#define {guard}_HPP

#include "{name}.h"
#include "mycel_model.hpp"

static inline int {name}_call(const int64_t *{sizes}, void *const *tensors, void *arena) {{
  return {name}({arguments}, arena);
}}
{function}
static inline const mycel::Program &{name}_program() {{
{shapes}
  static const mycel::Argument arguments[] = {{
{table}
  }};
{bounds}  static const mycel::Program program = {{
      mycel::kProgramVersion, "{name}", {inputs}, {outputs}, arguments, {count}, {table_of_sizes}, {shapes_of},
      {guard}_ARENA_BYTES, {align}, {name}_call}};
  return program;
}}

#endif
"""


def cpp(library: Library, folder: str | os.PathLike[str]) -> None:
    """Write a library to a folder, with headers of C++ that call it as MindSpore Lite's models.

    Beside the object and its header of C there are `NAME.hpp`, which describes the program, and
    `mycel_model.hpp` with `mindspore::Model`, `MSTensor`, `Context` and `Status`: `Build` takes
    `NAME_program()`, or the path of a shared library with `MYCEL_EXPORT_PROGRAM(NAME)` in one of
    its files; `GetInputs`, `Predict`, `MutableData`, `SetData`, which copies nothing, and `Resize`
    within the bounds of sizes are MindSpore Lite's. C++11 is enough. Raises Unsupported where the
    caller keeps the state.

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
    library.write(folder)
    every = (*library.inputs, *library.outputs)
    text = _TEXT.format(
        name=library.name,
        guard=library.name.upper(),
        arguments=", ".join([*_numbers(library), *_tensors(library)]),
        sizes="sizes" if library.sizes else "",
        function=_function(library),
        bounds=_bounds(library),
        count=len(library.sizes),
        table_of_sizes="sizes" if library.sizes else "nullptr",
        shapes_of=f"{library.name}_shapes" if library.sizes else "nullptr",
        shapes="\n".join(f"  static const int64_t shape{k}[] = {{{_sizes(a)}}};" for k, a in enumerate(every)),
        table="\n".join(f"      {_row(a, k)}," for k, a in enumerate(every)),
        inputs=len(library.inputs),
        outputs=len(library.outputs),
        align=ALIGN,
    )
    write_folder(folder, {f"{library.name}.hpp": text.encode(), _HEADER.name: _HEADER.read_bytes()})


def _numbers(library: Library) -> list[str]:
    """Return the sizes that are passed to the function."""
    return [f"static_cast<int32_t>(sizes[{k}])" for k in range(len(library.sizes))]


def _tensors(library: Library) -> list[str]:
    """Return the tensors that are passed to the function."""
    every = (*library.inputs, *library.outputs)
    return [_passed(a, k, k < len(library.inputs)) for k, a in enumerate(every)]


def _function(library: Library) -> str:
    """Return the function that writes the shapes for some sizes; nothing without such sizes."""
    if not library.sizes:
        return ""
    names, lines, at = {s.symbol: f"n{k}" for k, s in enumerate(library.sizes)}, [], 0
    for k, s in enumerate(library.sizes):
        value = f"(sizes[{k}] - {s.remainder}) / {s.divisor}" if s.divisor > 1 else f"sizes[{k}]"
        lines.append(f"  const int64_t n{k} = {value};")
    for argument in (*library.inputs, *library.outputs):
        for d in argument.type.shape:
            value = formula(d, names, "mycel::larger", "mycel::quotient", "mycel::rest")
            lines.append(f"  axes[{at}] = {value};")
            at += 1
    head = f"static inline void {library.name}_shapes(const int64_t *sizes, int64_t *axes) {{"
    return "\n".join(["", head, *lines, "}", ""])


def _bounds(library: Library) -> str:
    """Return the table of sizes: their bounds, and the axis of an input that has each."""
    rows = []
    for s in library.sizes:
        own = symbol(s.symbol, s.low, s.high) * s.divisor + s.remainder
        places = [(k, a) for k, one in enumerate(library.inputs) for a, d in enumerate(one.type.shape) if same(d, own)]
        argument, axis = places[0]
        rows.append(f'      {{"{s.name}", {s.least}, {s.most}, {s.divisor}, {argument}, {axis}}},\n')
    return "  static const mycel::Size sizes[] = {\n" + "".join(rows) + "  };\n" if rows else ""


def _passed(argument: Argument, number: int, is_read: bool) -> str:
    kind = f"{'const ' if is_read else ''}{argument.c_type} *"
    return f"static_cast<{kind}>(tensors[{number}])"


def _sizes(argument: Argument) -> str:
    """Return the largest sizes of a shape; an array of C has one at least."""
    return ", ".join(map(str, argument.largest)) or "1"


def _row(argument: Argument, number: int) -> str:
    kind = argument.type.dtype
    rank = len(argument.type.shape)
    return f'{{"{argument.name}", {MINDSPORE[kind.name]}, {kind.itemsize}, {rank}, shape{number}}}'

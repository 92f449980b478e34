"""Writes the C header of a library: its function, the memory it takes, the shapes of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines.aot.size_arguments import Size, renamed
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import Unsupported

__all__ = ["Argument", "check_name", "header"]

_C_TYPES: dict[DType, str] = {
    D.float32: "float",
    D.float64: "double",
    D.float16: "uint16_t",
    D.bfloat16: "uint16_t",
    D.bool_: "uint8_t",
    **{getattr(D, f"{u}int{n}"): f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}
_KEYWORDS = frozenset(
    "alignas alignof auto bool break case char const continue default do double else enum extern false float for goto "
    "if inline int long nullptr register restrict return short signed sizeof static struct switch true typedef typeof "
    "union unsigned void volatile while arena main".split()
)


class Argument(NamedTuple):
    """A tensor that the function of a library reads or writes.

    `sizes` are those that its shape may have.
    """

    name: str
    type: TensorType
    sizes: tuple[Size, ...] = ()

    @property
    def shape(self) -> tuple[DimLike, ...]:
        """The shape, by the names of sizes."""
        return tuple([renamed(d, self.sizes) for d in self.type.shape])

    @property
    def largest(self) -> tuple[int, ...]:
        """The shape where sizes are the largest."""
        return tuple([evaluate(d, {s.symbol: s.high for s in self.sizes}) for d in self.type.shape])

    @property
    def nbytes(self) -> int:
        """The bytes that it takes, at most."""
        count = self.type.nbytes
        return int(count.bounds()[1]) if isinstance(count, Dim) else int(count)

    @property
    def c_type(self) -> str:
        """The type of its elements in C. Raises Unsupported where C has none."""
        if self.type.dtype not in _C_TYPES:
            raise Unsupported(f"build: {self.name} has elements of {self.type.dtype}, which C has no type for")
        return _C_TYPES[self.type.dtype]

    @property
    def text(self) -> str:
        sizes = "".join(f"[{d}]" for d in self.shape)
        plain = "" if self.c_type.startswith(("float", "double")) else f", elements of {self.type.dtype}"
        return f"{self.name}{sizes}{plain}"


def check_name(name: str) -> None:
    """Raise ValueError unless C takes a name for a function."""
    if not name.isidentifier() or not name.isascii() or name in _KEYWORDS or name.startswith("_"):
        raise ValueError(f"build: {name!r} is no name of a function in C; use letters, digits and _")


_STORE = """
/* The state between calls can be saved in a store: two slots of {guard}_SLOT_BYTES bytes or more, which begin
   `stride` bytes apart. Its functions return 0 when they are done. A save writes the slot that is not the newest
   whole one, in ascending order, so that a whole state is there whenever power is lost. Both return 0 when they are
   done, 1 where no whole state can be read, 2 where the store fails on the way, 3 where `stride` is too small. */
#define {guard}_SLOT_BYTES {slot}
#ifndef MYCEL_STORE
#define MYCEL_STORE
struct mycel_store {{
  void *context;
  int (*read)(void *context, uint32_t offset, void *data, uint32_t size);
  int (*write)(void *context, uint32_t offset, const void *data, uint32_t size);
  uint32_t stride;
}};
#endif
int {name}_save(const struct mycel_store *store);
int {name}_load(const struct mycel_store *store);
"""


_STATE = """
/* What the program keeps from call to call lies in memory of the caller's, {guard}_STATE_BYTES bytes at a multiple of
   {guard}_ARENA_ALIGN, which {name}_begin fills with the values to begin with. Its bytes may be saved and copied. */
#define {guard}_STATE_BYTES {state}
void {name}_begin(void *state);
"""


_PARALLEL = """
/* What divides the work of large steps: run(pool, count, part, given) calls part(given, begin, end) for ranges that
   together are 0 to count, each number once, on any threads at once, and returns when all have returned. */
#ifndef MYCEL_PARALLEL
#define MYCEL_PARALLEL
struct mycel_parallel {
  void *pool;
  void (*run)(void *pool, int64_t count, void (*part)(void *given, int64_t begin, int64_t end), void *given);
};
#endif
"""


def header(
    name: str,
    target: str,
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    arena: int,
    align: int,
    slot: int = 0,
    state: int = 0,
    parallel: bool = False,
    sizes: Sequence[Size] = (),
) -> str:
    """Return the text of the header of a library.

    `name` is that of its function, `target` that of the machine, which the text says. The function
    takes `inputs`, `outputs`, and `arena` bytes at a multiple of `align`; its state takes `slot`
    bytes of a store (0: it has none), and `state` bytes of memory that the caller gives (0: none).
    With `parallel` it takes what divides the work, and `sizes` before all else.
    """
    guard = name.upper()
    parameters = [f"int32_t {s.name}" for s in sizes]
    parameters += [f"const {a.c_type} *{a.name}" for a in inputs]
    parameters += [f"{a.c_type} *{a.name}" for a in outputs] + ["void *arena"]
    parameters += ["void *state"] if state else []
    parameters += ["const struct mycel_parallel *parallel"] if parallel else []
    lines = [f"/* {name} for {target}. */", f"#ifndef {guard}_H", f"#define {guard}_H", "", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [f"#define {guard}_ARENA_BYTES {arena}", f"#define {guard}_ARENA_ALIGN {align}", ""]
    for s in sizes:
        lines += [f"#define {guard}_{s.name.upper()}_MIN {s.least}", f"#define {guard}_{s.name.upper()}_MAX {s.most}"]
    lines += ["/* The arena is enough for all sizes within these bounds. */", ""] if sizes else []
    lines += [*_PARALLEL.strip().splitlines(), ""] if parallel else []
    lines += ["/* Reads " + (", ".join(a.text for a in inputs) or "nothing") + ";"]
    lines += ["   writes " + (", ".join(a.text for a in outputs) or "nothing") + ", in row-major order."]
    lines += ["   No two of them may overlap. The arena holds nothing between calls.", "   Returns 0, or 1 where an "]
    lines[-1] += "index was out of range, and results are not to be used."
    if sizes:
        steps = [f"{s.name} has steps of {s.divisor} from its least" for s in sizes if s.divisor > 1]
        lines += ["   Returns 2, and writes nothing, where a size is out of its bounds" + "; ".join(["", *steps]) + "."]
    lines[-1] += " With no `parallel` (0), all runs in the calling thread. */" if parallel else " */"
    lines.append(f"int {name}({', '.join(parameters)});")
    if slot:
        lines.append(_STORE.format(name=name, guard=guard, slot=slot).rstrip())
    if state:
        lines.append(_STATE.format(name=name, guard=guard, state=state).rstrip())
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)

"""oneDNN plans: sequences of its primitives over named buffers, with all that they need to run.

An `Assembly` collects the primitives of one plan. It owns every oneDNN handle made on the way, and
the plan then owns the assembly's handles, so that a plan's addresses are valid exactly as long as
the plan lives. Where a primitive needs another layout or element type than a buffer has, a reorder
is put before it (`supply`) or after it, over a temporary.

A memory handle carries the address that it was last given. One plan therefore serves one execution
at a time; `Plan.copy` shares the primitives, which are immutable, and has memory handles of its
own.

A `Product` is not a primitive but a call of the library's matrix product by its BLAS interface,
which takes transposed factors without a reorder.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np

from mycel._src.engines.native.onednn import c_interface as dnnl
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.spans import span
from mycel._src.foundation.system import locks

ALIGNMENT = 64
# The interface counts in 64 bits, kernels behind it in 32.
MOST_SIZE = (1 << 31) - 1

PostOperation = tuple[Any, ...]


class Unsupported(NotImplementedError):
    """The error for work that oneDNN cannot do.

    The message names the operation, what was refused, and the status that oneDNN gave.
    """


@dataclass(frozen=True)
class Operand:
    """A strided buffer: its logical shape, its strides in elements, and its element type's name.

    >>> Operand.dense((2, 3), "float32")
    Operand(shape=(2, 3), strides=(3, 1), dtype='float32')
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @classmethod
    def dense(cls, shape: Sequence[int], dtype: str, order: Sequence[int] | None = None) -> Operand:
        """Return a buffer without gaps.

        `order` lists the dimensions from the outermost to the innermost in memory.
        """
        return cls(tuple(shape), dense_strides(shape, order), dtype)

    @property
    def span(self) -> int:
        """The bytes from the first element to the end of the last one."""
        reach = 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))
        return reach * dnnl.ITEM_SIZE[self.dtype]


def dense_strides(shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return strides, in elements, of a buffer without gaps."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order if order is not None else range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


@dataclass(frozen=True)
class Call:
    """One execution of a primitive.

    The caller gives each `memories[i]` the address of the buffer `buffers[i]` with
    dnnl_memory_set_data_handle, then calls dnnl_primitive_execute(primitive, stream, len(memories),
    exec_args).
    """

    primitive: int
    memories: tuple[int, ...]
    buffers: tuple[str, ...]
    exec_args: int
    description: str


@dataclass(frozen=True)
class Product:
    """`count` products of float32 matrices: `out` (m, n) = `a` (m, k) @ `b` (k, n).

    Buffers are row-major, and `a` and `b` may be transposed. `rows` are the numbers of elements
    from one row to the next in `a`, `b` and `out`, `steps` those from one matrix to the next; where
    the latter is 0 for `out`, the products are added.
    """

    buffers: tuple[str, str, str]
    transposed: tuple[bool, bool]
    sizes: tuple[int, int, int]
    rows: tuple[int, int, int]
    count: int = 1
    steps: tuple[int, int, int] = (0, 0, 0)
    description: str = "product"

    def words(self) -> list[int]:
        """Return the words for the runtime, before those with addresses."""
        flags = [ord("T" if flag else "N") for flag in self.transposed]
        return [*flags, *self.sizes, *self.rows, self.count, *(4 * step for step in self.steps)]

    def run(self, addresses: Sequence[int]) -> int:
        """Compute the products; return the library's status."""
        a, b, out = addresses
        flags = [b"T" if flag else b"N" for flag in self.transposed]
        for index in range(self.count):
            at = [base + 4 * index * step for base, step in zip((a, b, out), self.steps)]
            kept = 1.0 if index and not self.steps[2] else 0.0
            status: int = dnnl.library().c.dnnl_sgemm(
                *flags, *self.sizes, 1.0, at[0], self.rows[0], at[1], self.rows[1], kept, at[2], self.rows[2]
            )
            if status:
                return status
        return 0


@dataclass(frozen=True)
class Step:
    """A primitive before it has memory handles.

    Its arguments are tuples (argument, descriptor, buffer name).
    """

    primitive: int
    arguments: tuple[tuple[int, int, str], ...]
    description: str


class Handles:
    """A set of oneDNN handles that are destroyed with this object, last first."""

    def create(self, destroy: str, function: str, *arguments: Any) -> int:
        """Call a oneDNN constructor and return the handle.

        Raises Unsupported, with the status, where it fails.
        """
        handle, status = construct(function, *arguments)
        if status:
            raise Unsupported(f"oneDNN: {function} refused its arguments: {status}")
        return self.hold(destroy, handle)

    def hold(self, destroy: str, handle: int) -> int:
        """Let this object destroy `handle`, by the function `destroy`."""
        address = ctypes.cast(getattr(dnnl.library().c, destroy), ctypes.c_void_p).value or 0
        # A function of C; at exit the operating system takes what is left.
        finalization.at_end(self, functools.partial(_DESTROYS(address), handle))
        return handle


# With the reference that `finalization.at_end` gives, of which oneDNN knows nothing.
_DESTROYS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object)


def construct(function: str, *arguments: Any) -> tuple[int, str | None]:
    """Call a oneDNN constructor; return the handle and None, or 0 and the name of the status."""
    handle = ctypes.c_void_p()
    status = getattr(dnnl.library().c, function)(ctypes.byref(handle), *arguments)
    if status or not handle.value:
        return 0, dnnl.STATUS.get(status, f"status {status}")
    return handle.value, None


def dims(values: Sequence[int]) -> Any:
    """Return numbers as a dnnl_dims_t."""
    return dnnl.Dims(*values)


@dataclass(frozen=True, eq=False)
class Plan:
    """Primitives to execute in order, and the temporaries that they share.

    `operands` describes the buffers that the caller provides; `temporaries` names the others, with
    their bytes, each to be aligned to 64. A plan serves one execution at a time; `copy` makes
    another.
    """

    calls: tuple[Call | Product, ...]
    temporaries: dict[str, int]
    flops: int
    operands: dict[str, Operand]
    threads: int
    _steps: tuple[Step | Product, ...] = field(repr=False)
    _keep: tuple[Any, ...] = field(repr=False)
    _lock: Any = field(default_factory=locks.lock, repr=False)

    def copy(self) -> Plan:
        """Return a plan of the same primitives that may run at the same time as this one."""
        return bind(self._steps, self.temporaries, self.flops, self.operands, self.threads, self._keep[0])

    def renamed(self, names: dict[str, str], operands: dict[str, Operand]) -> Plan:
        """Return a plan of the same primitives for buffers of other names.

        `names` has the new names by the old ones; `operands` describes the buffers.
        """
        steps = [
            replace(step, buffers=cast(tuple[str, str, str], tuple(names.get(b, b) for b in step.buffers)))
            if isinstance(step, Product)
            else replace(step, arguments=tuple((arg, md, names.get(name, name)) for arg, md, name in step.arguments))
            for step in self._steps
        ]
        return bind(tuple(steps), self.temporaries, self.flops, operands, self.threads, self._keep[0])

    def __call__(self, **arrays: np.ndarray) -> None:
        """Execute on NumPy arrays, one for each of `operands`; slow, for tests and measurements.

        Raises TypeError if the names differ, ValueError if an array's shape, strides or element
        size do.
        """
        if arrays.keys() != self.operands.keys():
            raise TypeError(f"Plan: expected the arrays {sorted(self.operands)}, got {sorted(arrays)}")
        addresses = {name: _address(name, array, self.operands[name]) for name, array in arrays.items()}
        storage = {name: np.empty(size + ALIGNMENT, np.uint8) for name, size in self.temporaries.items()}
        for name, memory in storage.items():
            addresses[name] = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
        library = dnnl.library()
        dnnl.adopt_threads()
        with self._lock:
            for call in self.calls:
                if isinstance(call, Product):
                    status = call.run([addresses[name] for name in call.buffers])
                else:
                    for handle, name in zip(call.memories, call.buffers):
                        library.c.dnnl_memory_set_data_handle(handle, addresses[name])
                    status = library.c.dnnl_primitive_execute(
                        call.primitive, library.stream, len(call.memories), call.exec_args
                    )
                if status:
                    raise RuntimeError(f"oneDNN: {call.description} failed: {dnnl.STATUS.get(status, status)}")
            library.c.dnnl_stream_wait(library.stream)


def _address(name: str, array: np.ndarray, operand: Operand) -> int:
    size = dnnl.ITEM_SIZE[operand.dtype]
    strides = tuple(stride // array.itemsize for stride in array.strides)
    differ = any(n > 1 and have != want for n, have, want in zip(array.shape, strides, operand.strides))
    if array.shape != operand.shape or differ or array.itemsize != size:
        raise ValueError(f"Plan: {name} must be {operand}, not {array.dtype} of shape {array.shape}, strides {strides}")
    return int(array.ctypes.data)


def bind(
    steps: tuple[Step | Product, ...],
    temporaries: dict[str, int],
    flops: int,
    operands: dict[str, Operand],
    threads: int,
    shared: Handles,
) -> Plan:
    """Return a plan of the steps, with memory handles and argument arrays of its own.

    `temporaries` have the bytes of each by name, `flops` is the number of operations, `operands`
    are the caller's buffers by name, `threads` is the number for which the steps were made, and
    `shared` are the handles that the steps need.
    """
    library, handles, arrays = dnnl.library(), Handles(), []
    calls: list[Call | Product] = []
    for step in steps:
        if isinstance(step, Product):
            calls.append(step)
            continue
        array = (dnnl.ExecutionArgument * len(step.arguments))()
        memories = []
        for slot, (argument, descriptor, _) in zip(array, step.arguments):
            memory = handles.create(
                "dnnl_memory_destroy", "dnnl_memory_create", descriptor, library.engine, ctypes.c_void_p(None)
            )
            slot.arg, slot.memory = argument, memory
            memories.append(memory)
        names = tuple(name for _, _, name in step.arguments)
        calls.append(Call(step.primitive, tuple(memories), names, ctypes.addressof(array), step.description))
        arrays.append(array)
    return Plan(tuple(calls), dict(temporaries), flops, operands, threads, steps, (shared, handles, arrays))


class Assembly:
    """The primitives of one plan while it is being built."""

    def __init__(self, operands: dict[str, Operand]) -> None:
        self.operands = operands
        self.handles = Handles()
        self._steps: list[Step | Product] = []
        self._temporaries: dict[str, int] = {}

    def describe(self, operand: Operand) -> int:
        """Return a memory descriptor of exactly this layout."""
        handle, status = construct(
            "dnnl_memory_desc_create_with_strides",
            len(operand.shape),
            dims(operand.shape),
            dnnl.DATA_TYPE[operand.dtype],
            dims(operand.strides),
        )
        if status:
            raise Unsupported(f"oneDNN: no memory descriptor for {operand}: {status}")
        return self.handles.hold("dnnl_memory_desc_destroy", handle)

    def describe_any(self, operand: Operand) -> int:
        """Return a memory descriptor whose layout the primitive chooses."""
        return self.handles.create(
            "dnnl_memory_desc_destroy",
            "dnnl_memory_desc_create_with_tag",
            len(operand.shape),
            dims(operand.shape),
            dnnl.DATA_TYPE[operand.dtype],
            dnnl.FORMAT_ANY,
        )

    def attributes(self, post: Sequence[PostOperation], binary: dict[int, int]) -> int:
        """Return attributes with a scratchpad by the caller and post-operations.

        `binary` has the second operands' descriptors.
        """
        c = dnnl.library().c
        attributes = self.handles.create("dnnl_primitive_attr_destroy", "dnnl_primitive_attr_create")
        c.dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl.SCRATCHPAD_USER)
        if not post:
            return attributes
        chain = self.handles.create("dnnl_post_ops_destroy", "dnnl_post_ops_create")
        for index, (kind, *values) in enumerate(post):
            if kind == "sum":
                status = c.dnnl_post_ops_append_sum(chain, values[0] if values else 1.0, 0, 0)
            elif kind in dnnl.ELTWISE:
                status = c.dnnl_post_ops_append_eltwise(
                    chain, dnnl.ELTWISE[kind], values[0] if values and kind == "relu" else 0.0, 0.0
                )
            else:
                status = c.dnnl_post_ops_append_binary(chain, dnnl.BINARY[kind], binary[index])
            if status:
                raise Unsupported(f"oneDNN: post-operation {post[index]} refused: {dnnl.STATUS.get(status, status)}")
        c.dnnl_primitive_attr_set_post_ops(attributes, chain)
        return attributes

    def add(self, operation: str, primitive_descriptor: int, arguments: Sequence[tuple[int, int, str]]) -> None:
        """Append the primitive.

        Its scratchpad, if it has one, is added to the arguments as the buffer `scratch`.
        """
        c = dnnl.library().c
        scratch = c.dnnl_primitive_desc_query_md(primitive_descriptor, dnnl.QUERY_SCRATCHPAD, 0)
        size = c.dnnl_memory_desc_get_size(scratch)
        if size:
            self._temporaries["scratch"] = max(size, self._temporaries.get("scratch", 0))
            arguments = [*arguments, (dnnl.ARG_SCRATCHPAD, scratch, "scratch")]
        primitive = self.handles.create("dnnl_primitive_destroy", "dnnl_primitive_create", primitive_descriptor)
        self._steps.append(Step(primitive, tuple(arguments), f"{operation} {implementation(primitive_descriptor)}"))

    def _reorder(self, source: tuple[int, str], target: tuple[int, str]) -> None:
        engine = dnnl.library().engine
        descriptor = self.handles.create(
            "dnnl_primitive_desc_destroy",
            "dnnl_reorder_primitive_desc_create",
            source[0],
            engine,
            target[0],
            engine,
            self.attributes((), {}),
        )
        self.add("reorder", descriptor, [(dnnl.ARG_SRC, *source), (dnnl.ARG_DST, *target)])

    def _temporary(self, descriptor: int) -> str:
        count = sum(name.startswith("tmp") for name in self._temporaries)
        name = f"tmp{count}"
        self._temporaries[name] = dnnl.library().c.dnnl_memory_desc_get_size(descriptor)
        return name

    def supply(self, name: str, given: int, wanted: int) -> str:
        """Return the name of a buffer in the layout `wanted` with the content of the buffer `name`.

        `given` is the layout of that buffer.
        """
        if dnnl.library().c.dnnl_memory_desc_equal(given, wanted):
            return name
        temporary = self._temporary(wanted)
        self._reorder((given, name), (wanted, temporary))
        return temporary

    def add_between(
        self, operation: str, primitive_descriptor: int, attempt: Attempt, outputs: Sequence[str], accumulate: bool
    ) -> None:
        """Append the primitive of `attempt` with the reorders that it needs before and after.

        `operation` names the work in errors, `primitive_descriptor` is the primitive's, and
        `outputs` are the buffers that it writes. With `accumulate` it also reads their content.
        """
        c, given, roles = dnnl.library().c, attempt.given, attempt.roles
        wanted = {
            name: c.dnnl_primitive_desc_query_md(primitive_descriptor, dnnl.QUERY_ARGUMENT, role)
            for name, role in roles.items()
        }
        used = {}
        for name in roles:
            if accumulate or name not in outputs:
                used[name] = self.supply(name, given[name], wanted[name])
            else:
                same = c.dnnl_memory_desc_equal(given[name], wanted[name])
                used[name] = name if same else self._temporary(wanted[name])
        self.add(operation, primitive_descriptor, [(roles[name], wanted[name], used[name]) for name in roles])
        for name in outputs:
            if used.get(name, name) != name:
                self._reorder((wanted[name], used[name]), (given[name], name))

    def add_product(self, product: Product) -> None:
        """Append a product of matrices."""
        self._steps.append(product)

    def finish(self, flops: int) -> Plan:
        """Return the plan of everything that was added."""
        return bind(tuple(self._steps), self._temporaries, flops, self.operands, dnnl.max_threads(), self.handles)


def implementation(primitive_descriptor: int) -> str:
    """Return oneDNN's name of the implementation it chose, such as 'brgconv:avx512_core'."""
    name = ctypes.c_char_p()
    dnnl.library().c.dnnl_primitive_desc_query(primitive_descriptor, dnnl.QUERY_IMPLEMENTATION, 0, ctypes.byref(name))
    return (name.value or b"").decode()


def is_slow(implementation_name: str) -> bool:
    """Return whether an implementation is one of oneDNN's plain loops, which are not optimised."""
    return "ref" in implementation_name.replace(":", "_").split("_")


def never(implementation_name: str) -> bool:
    """Return False, as the predicate that no implementation fulfils."""
    return False


@dataclass(frozen=True)
class Attempt:
    """A way to construct a primitive descriptor.

    By buffer name, `given` has the descriptors of the caller's layouts, and `roles` the execution
    arguments that the buffers become. Where the primitive takes other layouts, reorders are added.
    """

    given: dict[str, int]
    roles: dict[str, int]
    function: str
    arguments: tuple[Any, ...]


def choose(
    operation: str,
    operands: dict[str, Operand],
    assembly: Assembly,
    attempts: Iterable[Attempt],
    extended: bool,
    second_choice: Callable[[str], bool] = never,
    inexact: Callable[[str], bool] = never,
) -> tuple[Attempt, int]:
    """Return the first attempt with a fast implementation, and its primitive descriptor.

    `operation` and `operands` name the work in errors, and `assembly` holds the descriptors. If no
    one of `attempts` is fast, the first whose implementation's name is a `second_choice` is taken,
    and else the first plain loop. Work `extended` by operations on its result is refused as a plain
    loop, because these are faster separately. Implementations whose name is `inexact` are skipped.
    Raises Unsupported with oneDNN's statuses.
    """
    best: tuple[int, Attempt, int] | None = None
    reasons: set[str] = set()
    worst = 1 if extended else 2
    destroy = dnnl.library().c.dnnl_primitive_desc_destroy
    for attempt in attempts:
        descriptor, status = construct(attempt.function, *attempt.arguments)
        if status:
            reasons.add(status)
            continue
        while inexact(name := implementation(descriptor)):
            reasons.add(f"inexact as {name}")
            if dnnl.library().c.dnnl_primitive_desc_next_impl(descriptor):
                break
        grade = 2 if is_slow(name) else int(second_choice(name))
        if grade > worst or (best and grade >= best[0]) or inexact(name):
            if not inexact(name):
                reasons.add(f"only as {name}")
            destroy(descriptor)
            continue
        if best:
            destroy(best[2])
        best = grade, attempt, descriptor
        if grade == 0:
            break
    if best:
        return best[1], assembly.handles.hold("dnnl_primitive_desc_destroy", best[2])
    shown = ", ".join(f"{name} {operand}" for name, operand in operands.items())
    mend = "; the post-operations, or a bias that is not a row, may have to be computed apart" if extended else ""
    raise Unsupported(f"{operation}: oneDNN {dnnl.version()} refused ({', '.join(sorted(reasons))}): {shown}{mend}")


def post_operands(operation: str, post: Sequence[PostOperation]) -> dict[str, Operand]:
    """Return the second operands of the binary post-operations, by buffer name.

    Raises ValueError for an unknown operation.
    """
    found = {}
    for index, entry in enumerate(post):
        kind = entry[0]
        if kind in dnnl.BINARY:
            found[f"post{index}"] = entry[1]
        elif kind != "sum" and kind not in dnnl.ELTWISE:
            known = ", ".join(["sum", *dnnl.ELTWISE, *dnnl.BINARY])
            raise ValueError(f"{operation}: unknown post-operation {entry!r}; known are {known}")
    return found


def check_operands(operation: str, operands: dict[str, Operand]) -> None:
    """Check the operands of an operation.

    Raises ValueError for ranks that differ, Unsupported where oneDNN has no descriptor for an
    operand.
    """
    for name, operand in operands.items():
        if len(operand.shape) != len(operand.strides):
            raise ValueError(f"{operation}: {name} has {len(operand.shape)} sizes and {len(operand.strides)} strides")
        if 0 in operand.shape:
            raise Unsupported(f"{operation}: {name} is empty, of shape {operand.shape}; there is nothing to compute")
        if operand.dtype not in dnnl.DATA_TYPE:
            raise Unsupported(f"{operation}: {name} is {operand.dtype}; oneDNN has {', '.join(dnnl.DATA_TYPE)}")
        if max(operand.shape, default=0) > MOST_SIZE:
            raise Unsupported(
                f"{operation}: {name} of shape {operand.shape} has a size that oneDNN's kernels cannot count in 32 bits"
            )
        if min(operand.strides, default=0) < 0:
            raise Unsupported(f"{operation}: {name} has negative strides {operand.strides}; copy it first")


Build = TypeVar("Build", bound=Callable[..., Plan])


def cached(build: Build) -> Build:
    """Cache the plans that `build` makes, by its arguments and the number of threads.

    Only one thread builds at a time.
    """

    @functools.wraps(build)
    def wrapper(*arguments: Any) -> Plan:
        with _building:
            return _built(build, dnnl.max_threads(), *arguments)

    return cast(Build, wrapper)


@Remembered("plans of the dense library", SOME).calls
def _built(build: Build, threads: int, *arguments: Any) -> Plan:
    with span("oneDNN", build.__name__):
        return build(*arguments)


_building = locks.reentrant()
locks.quiet(lambda: _building)

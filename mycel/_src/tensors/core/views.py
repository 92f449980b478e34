"""Views: tensors that share their elements with another, their root.

A view is a recipe: a root that is no view itself, and steps (slices, reversals, orders of axes,
shapes, repetitions, diagonals, blocks at a position in a tensor) that lead from it to the view. A
view has a value like any tensor, computed when it is made. A root and its views are a family. A
write in place to any member becomes a new value of the root: each step, from the last to the first,
puts the written value into the value that it had read from. Then the values of the other views that
are still in use are dropped, and computed again when they are next asked for. So reading costs
nothing, and plain operations are recorded or staged, which any gradient goes through.

A root knows its views by weak references. A view that only reshapes its root shares its memory. A
reshape is a view where the elements of a strided array would not have to move, by NumPy's rule, and
else a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeGuard
from weakref import ref

from mycel._src.compiler.ir.dims import Dim, DimLike, InconclusiveDimension, is_one, product, same
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import dynamic_slicing
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.system import locks
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, as_tensor, make, scalar

__all__ = [
    "DIAGONAL",
    "SHARING",
    "Family",
    "Step",
    "View",
    "attach",
    "derived",
    "diagonal_steps",
    "family_of",
    "is_plain",
    "outdate",
    "put_block",
    "release",
    "root_of",
    "through",
    "whole",
]

Step = tuple[
    Any, dict[str, Any], tuple[Tensor, ...]
]  # what is applied, its parameters, and tensors that it takes beside the base
DIAGONAL = "diagonal"  # of the last two axes, which are of one size
_lock = locks.lock()


class View:
    """The root of a view, and the steps that lead from it to the view.

    `key`, where there is one, stands for the steps (`core.view_cache`).
    """

    __slots__ = ("root", "steps", "key")

    def __init__(self, root: Tensor, steps: tuple[Step, ...], key: Any = None) -> None:
        self.root, self.steps, self.key = root, steps, key

    def refresh(self, t: Tensor) -> None:
        """Compute the value of the view `t`, which was dropped, from its root."""
        if eager.active and eager.local.staging is not None:
            with eager.use_context(None):
                value = derived(self.root, self.steps)
        else:
            value = derived(self.root, self.steps)
        t._node, t._buf = value._node, value._buf

    def write(self, t: Tensor, new: Tensor) -> None:
        """Make `new` the value of the view `t` and of the part of its root that it shares."""
        _write_root(self.root, put(self.root, self.steps, new))
        # A view by steps that share takes the root's memory when it is next read.
        if not all(s[0] in SHARING for s in self.steps):
            _take(t, new)


class Family(list[ref[Tensor]]):
    """Weak references to the views of a root; dead ones are removed when the list has doubled.

    Members are added without the lock: each change is one operation on the list, and trimming
    replaces only the entries that were there when it began.
    """

    __slots__ = ("limit",)

    def __init__(self) -> None:
        self.limit = 32

    def add(self, t: Tensor) -> None:
        self.append(ref(t))
        if len(self) > self.limit:
            self.trim()

    def trim(self) -> None:
        with _lock:
            count = len(self)
            kept = [r for r in self[:count] if r() is not None]
            self[:count] = kept
            self.limit = max(32, 2 * len(kept))

    def write(self, root: Tensor, new: Tensor) -> None:
        """Make `new` the value of the root."""
        _take(root, new)

    def alive(self) -> list[Tensor]:
        return [t for t in [r() for r in self[:]] if t is not None]


def attach(made: Tensor, base: Tensor, steps: tuple[Step, ...], key: Any = None) -> Tensor:
    """Return `made`, which `steps` (for which `key` stands) computed from `base`, as a
    view of it.
    """
    view = base._view
    if type(view) is View:
        key = None if key is None or view.key is None else (view.key, key)
        root, view = view.root, View(view.root, view.steps + steps, key)
    else:
        root, view = base, View(base, steps, key)
    made._view = view
    family_of(root).add(made)
    if eager.active:
        staging = eager.local.staging
        if staging is not None:
            staging.viewed(made)
    return made


def family_of(root: Tensor) -> Family:
    """Return the views of a root."""
    family: Family | None = root._views
    if family is None:
        with _lock:
            family = root._views
            if family is None:
                family = root._views = Family()
    return family


def through(base: Tensor, *steps: Step) -> Tensor:
    """Return the view of `base` that steps lead to."""
    return attach(derived(base, steps), base, steps)


def whole(base: Tensor) -> Tensor:
    """Return a view of a whole tensor.

    It is used where the values of a parameter are meant and not the parameter itself.
    """
    return through(base, (E.identity, {}, ()))


def root_of(t: Tensor) -> Tensor:
    """Return the tensor whose elements `t` shows: itself where it is no view."""
    while type(t._view) is View:
        t = t._view.root
    return t


def is_plain(value: Any) -> TypeGuard[Tensor]:
    """Return whether a value is a tensor of no class of its own.

    The class of one whose value is elsewhere for now says which it has with its value (`_settled`).
    """
    kind = type(value)
    return kind is Tensor or getattr(kind, "_settled", None) is Tensor


def derived(base: Tensor, steps: Sequence[Step]) -> Tensor:
    """Return the value to which steps lead, in the context in force."""
    for kind, params, operands in steps:
        base = _diagonal(base) if kind is DIAGONAL else _applied(kind, params, operands, base)
    return base


_shapes = Remembered[Any, TensorType]("types of reshaped views", MANY)


def _reshaped_type(kind: TensorType, params: dict[str, Any]) -> TensorType:
    key = kind, params["shape"]
    found = _shapes.recent.get(key)
    return _shapes.recall(key, partial(S.RESHAPE.type_of, kind, **params)) if found is None else found


def _applied(kind: Any, params: dict[str, Any], operands: tuple[Tensor, ...], base: Tensor) -> Tensor:
    recording = None
    if kind in SHARING and (
        not eager.active or (recording := eager.local.recording) is not None or eager.local.context is None
    ):
        if base._buf is None:
            base._need_value("reshape")
        made = make(base._type if kind is E.identity else _reshaped_type(base._type, params), base._buf)
        if recording is not None:
            recording.enter(kind, (base,), params, made)
        return made
    return eager.apply(kind, base, *operands, **params)


def diagonal_steps(kind: TensorType) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the reshape and the slice that give the diagonal of the last two
    axes.
    """
    outer, n = kind.shape[:-2], kind.shape[-1]
    rank = len(outer)
    shape = (*outer, n * n)
    return {"shape": shape}, {"starts": (0,) * (rank + 1), "stops": shape, "steps": (*(1,) * rank, n + 1)}


def _diagonal(x: Tensor) -> Tensor:
    line, part = diagonal_steps(x._type)
    return eager.apply(S.SLICE, eager.apply(S.RESHAPE, x, **line), **part)


# Writing.


def _write_root(root: Tensor, new: Tensor) -> None:
    if root._view is None:
        _take(root, new)
    else:
        root._view.write(root, new)


def _take(t: Tensor, new: Tensor) -> None:
    """Give a tensor another value, in the context in force, and drop the values of its views."""
    context = eager.local.context if eager.active else None
    if context is not None:
        context.write(t, new)
    else:
        t._buf = new._buf
    outdate(t)


def outdate(t: Tensor) -> None:
    """Drop the values of the views of a tensor that has been given another one."""
    if t._views is not None:
        for v in t._views.alive():
            if type(v._view) is View and v._view.root is t and v._buf is not None:
                v._buf = v._node = None
            outdate(v)


def release(root: Tensor) -> None:
    """Make the views of a tensor independent of it, because its type is about to change."""
    if root._views is not None:
        for v in root._views.alive():
            if v._buf is None and v._node is None:
                v._view.refresh(v)
            v._view = None
        root._views = None


def put(base: Tensor, steps: Sequence[Step], value: Tensor) -> Tensor:
    """Return a new value of `base` in which `value` replaces the elements that steps lead to."""
    if not steps:
        return value
    before = [base]
    moves = [i for i, s in enumerate(steps) if s[0] in _READING]
    for step in steps[: moves[-1] if moves else 0]:
        before.append(derived(before[-1], (step,)))
    types = _types(base, steps)
    for i in range(len(steps) - 1, -1, -1):
        kind, params, operands = steps[i]
        value = _PUT[kind](before[i] if i < len(before) else None, types[i], value, operands, **params)
    return value


def _types(base: Tensor, steps: Sequence[Step]) -> list[tuple[DimLike, ...]]:
    """Return the shape of the tensor that each step is applied to."""
    shapes = [base.shape]
    kind = base._type
    for primitive, params, operands in steps[:-1]:
        if primitive is DIAGONAL:
            kind = kind.with_shape(kind.shape[:-1])
        else:
            kind = primitive.type_of(kind, *[o._type for o in operands], **params)
        shapes.append(kind.shape)
    return shapes


Put = Callable[..., Tensor]


def _reshape(x: Tensor, shape: Any) -> Tensor:
    return x if x.shape == tuple(shape) else eager.apply(S.RESHAPE, x, shape=tuple(shape))


def _put_transpose(base: Any, shape: Any, value: Tensor, operands: Any, *, permutation: tuple[int, ...]) -> Tensor:
    inverse = tuple(sorted(range(len(permutation)), key=permutation.__getitem__))
    return eager.apply(S.TRANSPOSE, value, permutation=inverse)


def _put_slice(
    base: Tensor, shape: Any, value: Tensor, operands: Any, *, starts: Any, stops: Any, steps: Any
) -> Tensor:
    return put_block(base, starts, steps, value)


def _put_broadcast(base: Any, before: Any, value: Tensor, operands: Any, *, shape: Any) -> Tensor:
    if product(before) != product(shape):
        raise ValueError(
            f"a write into a view that repeats elements, of shape {tuple(shape)} over {tuple(before)}, would give an "
            "element several values; "
            "write into a copy() of it, or into the tensor behind it"
        )
    return _reshape(value, before)


def _put_diagonal(base: Tensor, shape: Any, value: Tensor, operands: Any) -> Tensor:
    n = shape[-1]
    rank = len(shape) - 1
    line = put_block(_reshape(base, (*shape[:-2], n * n)), (0,) * rank, (*(1,) * (rank - 1), n + 1), value)
    return _reshape(line, shape)


def _put_dynamic(base: Tensor, shape: Any, value: Tensor, operands: Any, *, sizes: Any) -> Tensor:
    return eager.apply(dynamic_slicing.dynamic_update_slice, base, value, *operands)


_PUT: dict[Any, Put] = {
    E.identity: lambda base, shape, value, operands: value,
    S.RESHAPE: lambda base, before, value, operands, *, shape: _reshape(value, before),
    S.TRANSPOSE: _put_transpose,
    S.reverse: lambda base, shape, value, operands, *, axes: eager.apply(S.reverse, value, axes=axes),
    S.SLICE: _put_slice,
    S.BROADCAST_TO: _put_broadcast,
    dynamic_slicing.dynamic_slice: _put_dynamic,
    DIAGONAL: _put_diagonal,
}
SHARING = frozenset((S.RESHAPE, E.identity))  # steps whose result is the very memory that they take
_READING = frozenset((S.SLICE, dynamic_slicing.dynamic_slice, DIAGONAL))  # steps that leave elements out


def put_block(x: Tensor, firsts: Sequence[DimLike], strides: Sequence[int], value: Tensor) -> Tensor:
    """Return `x` with `value` at the positions ``first, first + stride, ...`` of each axis, where
    `firsts` and `strides` have one entry for each axis.
    """
    whole = value.shape
    if any(isinstance(d, int) and d == 0 for d in whole):
        return eager.apply(E.identity, x)
    if tuple(whole) == x.shape:
        return eager.apply(E.identity, value)
    if set(strides) <= {1}:
        starts = [as_tensor(a, D.int64) if isinstance(a, Dim) else scalar(a, D.int64) for a in firsts]
        return eager.apply(dynamic_slicing.dynamic_update_slice, x, value, *starts)
    # The block spread out by its strides, and where it lies.
    high = tuple(d - (a + (n - 1) * s + 1) for d, a, n, s in zip(x.shape, firsts, whole, strides))
    layout = {"low": tuple(firsts), "high": high, "interior": tuple(s - 1 for s in strides)}
    spread = eager.apply(S.PAD, value, scalar(0, x.dtype), **layout)
    ones = eager.apply(S.BROADCAST_TO, scalar(True, D.bool_), shape=tuple(whole))
    here = eager.apply(S.PAD, ones, scalar(False, D.bool_), **layout)
    return eager.apply(E.SELECT, here, spread, x)


# Movements that give views.


def reshaped(x: Tensor, shape: tuple[DimLike, ...]) -> Tensor:
    """Return `x` with another shape, as a view, or as a copy where the elements of a strided array
    would have to move.
    """
    if same(x.shape, shape):
        return x
    step: Step = (S.RESHAPE, {"shape": shape}, ())
    if type(x._view) is View and not _keeps_places(x._view, shape):
        return derived(x, (step,))
    return through(x, step)


def permuted(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """Return a view of `x` whose axis i is axis ``order[i]`` of `x`."""
    if order == tuple(range(x.ndim)):
        return x
    return attach(eager.apply(S.TRANSPOSE, x, permutation=order), x, ((S.TRANSPOSE, {"permutation": order}, ()),))


def broadcast(x: Tensor, shape: tuple[DimLike, ...]) -> Tensor:
    """Return a view of `x` broadcast to `shape`."""
    return x if same(x.shape, shape) else through(x, (S.BROADCAST_TO, {"shape": shape}, ()))


def slice_step(shape: tuple[DimLike, ...], axis: int, start: DimLike, stop: DimLike, step: int = 1) -> Step | None:
    """Return the step to ``[start:stop:step]`` along `axis` of a tensor of shape `shape`.

    Returns None where that is the whole axis.
    """
    if step == 1 and isinstance(start, int) and start == 0 and stop == shape[axis]:
        return None
    starts: list[DimLike] = [0] * len(shape)
    stops, steps = list(shape), [1] * len(shape)
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return S.SLICE, {"starts": tuple(starts), "stops": tuple(stops), "steps": tuple(steps)}, ()


def take_slice(x: Tensor, axis: int, start: DimLike, stop: DimLike) -> Tensor:
    """Return ``x[start:stop]`` along one axis."""
    step = slice_step(x.shape, axis, start, stop)
    return x if step is None else through(x, step)


def _keeps_places(view: View, shape: tuple[DimLike, ...]) -> bool:
    """Return whether a strided array laid out as a view could be reshaped without moving elements.

    Returns False where that depends on sizes that are not known.
    """
    if all(s[0] in SHARING for s in view.steps):
        return True
    try:
        sizes: tuple[DimLike, ...] = view.root.shape
        strides = _row_major(sizes)
        for kind, params, _ in view.steps:
            sizes, strides = _layout(kind, params, sizes, strides)
        return _regrouped(sizes, strides, shape) is not None
    except InconclusiveDimension:
        return False


def _row_major(shape: tuple[DimLike, ...]) -> tuple[DimLike, ...]:
    return tuple(product(shape[i + 1 :]) for i in range(len(shape)))


def _layout(kind: Any, params: Any, sizes: Any, strides: Any) -> tuple[Any, Any]:
    """Return the sizes and strides of a strided array after a step."""
    if kind is S.RESHAPE:
        found = _regrouped(sizes, strides, params["shape"])
        assert found is not None, "a reshape that moves elements is not part of a view"
        return params["shape"], found
    if kind is S.TRANSPOSE:
        order = params["permutation"]
        return tuple(sizes[p] for p in order), tuple(strides[p] for p in order)
    if kind is S.SLICE:
        counts = [(b - a + (s - 1)) // s for a, b, s in zip(params["starts"], params["stops"], params["steps"])]
        return tuple(counts), tuple(t * s for t, s in zip(strides, params["steps"]))
    if kind is S.reverse:
        return sizes, tuple(-t if i in params["axes"] else t for i, t in enumerate(strides))
    if kind is S.BROADCAST_TO:
        shape = params["shape"]
        new = len(shape) - len(sizes)
        own = tuple(0 if isinstance(d, int) and d == 1 else t for d, t in zip(sizes, strides))
        return shape, (0,) * new + own
    if kind is dynamic_slicing.dynamic_slice:
        return params["sizes"], strides
    if kind is DIAGONAL:
        return sizes[:-1], (*strides[:-2], strides[-2] + strides[-1])
    return sizes, strides


def _regrouped(sizes: Any, strides: Any, shape: Any) -> tuple[DimLike, ...] | None:
    """Return the strides of a strided array with another shape; None where elements would have to
    move.

    Axes are joined where the elements of one continue those of the next.
    """
    if any(d == 0 for d in sizes):
        return _row_major(shape)
    old = [(d, t) for d, t in zip(sizes, strides) if not is_one(d)]
    result: list[DimLike] = []
    at = 0
    i = 0
    while i < len(shape):
        if is_one(shape[i]):
            result.append(0)
            i += 1
            continue
        if at >= len(old):
            return None
        have, want = old[at][0], shape[i]
        first_old, first_new = at, i
        while not same(have, want):
            # Shapes of another number of elements come to the end of one of them; the operation
            # itself says so.
            if have < want:
                at += 1
                if at == len(old):
                    return None
                have = have * old[at][0]
            else:
                i += 1
                if i == len(shape):
                    return None
                want = want * shape[i]
        for k in range(first_old, at):
            if not same(old[k][1], old[k + 1][1] * old[k + 1][0]):
                return None
        step = old[at][1]
        part: list[DimLike] = []
        for d in reversed(shape[first_new : i + 1]):
            part.append(step)
            step = step * d
        result += reversed(part)
        at += 1
        i += 1
    return tuple(result)

"""Idiom recognition: loop programs that equal other primitives, such as matrix products.

A nest without conditions, over whole results, whose elements are read at one index an axis, is
arithmetic on broadcast arrays, and a reduction where it combines. A sum of products of two arrays
is a product of matrices. So operators fuse with what is around them, and have the dense library's
speed where it has what they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, is_zero, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.loops.access_analysis import step_of
from mycel._src.compiler.loops.formulas import Formula, reads_of
from mycel._src.compiler.loops.legality import Element, is_inside
from mycel._src.compiler.loops.loop_distribution import distributed
from mycel._src.compiler.loops.programs import COMBINES, NEUTRAL, Array, For, Program, index_of
from mycel._src.compiler.loops.scatter_to_gather import Perfect, perfect
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import REGISTRY, constant
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.foundation import dtype as D

__all__ = ["opened"]

_REDUCES = {"add": R.reduce_sum, "mul": R.reduce_prod, "max": R.reduce_max, "min": R.reduce_min}


def opened(program: Program, inputs: Sequence[Node]) -> tuple[Node, ...] | None:
    """Return the outputs of a program as other primitives; None where it has another form.

    Its sizes are those of `inputs`.
    """
    program = distributed(program)
    opener = _Opener(program, inputs)
    try:
        for s in program.body:
            nest = perfect(s)
            if nest is None or nest.conditions:
                return None
            opener.add(nest)
    except _Other:
        return None
    return tuple([opener.values.get(a.name) or opener.filled(a) for a in program.outputs])


class _Other(Exception):
    """A statement has another form."""


class _Window(NamedTuple):
    """An axis at ``first + stride * at + dilation * tap``, of two loops by their numbers."""

    at: int
    tap: int
    stride: int
    dilation: int
    first: DimLike


class _Opener:
    def __init__(self, program: Program, inputs: Sequence[Node]) -> None:
        self.arrays = program.arrays
        self.values: dict[str, Node] = {a.name: i for a, i in zip(program.inputs, inputs)}
        self.nest: Perfect
        self.loops: list[For] = []
        self.known: dict[Formula, Node] = {}

    def filled(self, a: Array) -> Node:
        return S.full(a.shape, 0 if a.fill is None else a.fill, a.dtype)

    def add(self, nest: Perfect) -> None:
        """Compute the array that a nest writes."""
        write, array = nest.write, self.arrays[nest.write.array]
        rows = self.rows(nest, array)
        inner = [loop for loop in nest.loops if loop not in rows]
        if inner and write.mode == "set":
            raise _Other
        self.nest, self.loops, self.known = nest, [*rows, *inner], {}
        result = self.multiplied(write.value, rows, inner) if write.mode == "add" else None
        if result is None:
            value = self.value(write.value)
            if not same(value.type.shape, self.domain):
                value = S.broadcast_to(value, self.domain)
            axes = tuple(range(len(rows), len(self.loops)))
            result = _REDUCES[write.mode](value, axes=axes, keepdims=False) if inner else value
        before = self.values.get(array.name)
        if write.mode != "set":
            if before is not None:
                result = REGISTRY[COMBINES[write.mode]](before, result)
            elif array.fill is None:
                raise _Other
            elif array.fill != NEUTRAL[write.mode]:
                result = REGISTRY[COMBINES[write.mode]](result, constant(array.fill, array.dtype))
        self.values[array.name] = result

    @property
    def domain(self) -> tuple[DimLike, ...]:
        return tuple([loop.stop for loop in self.loops])

    def rows(self, nest: Perfect, array: Array) -> list[For]:
        """Return the loops of the written element's axes, which go over the whole array."""
        rows: list[For] = []
        for t, size in zip(nest.write.place, array.shape):
            loop = next((x for x in nest.loops if same(t, index_of(x.index))), None)
            if loop is None or loop in rows or not same(loop.stop, size):
                raise _Other
            rows.append(loop)
        names = {loop.index for loop in nest.loops}
        for loop in nest.loops:
            if not is_zero(loop.start) or names & set(symbols_in(loop.stop)):
                raise _Other
            if (loop.stop.bounds()[0] if isinstance(loop.stop, Dim) else loop.stop) < 0:
                raise _Other
        return rows

    # Values.

    def value(self, f: Formula) -> Node:
        """Return a formula as arithmetic on arrays with the loops' axes, some of size 1."""
        found = self.known.get(f)
        if found is None:
            found = self.known[f] = self.computed(f)
        return found

    def computed(self, f: Formula) -> Node:
        if f.kind == "const":
            return constant(f.data, f.dtype)
        if f.kind == "index":
            return self.number(f.data)
        if f.kind == "read":
            x, places = self.element(f)
            order = sorted(range(len(places)), key=lambda k: places[k])
            if order != list(range(len(places))):
                x = S.transpose(x, tuple(order))
            shape = tuple([self.domain[k] if k in places else 1 for k in range(len(self.loops))])
            return S.reshape(x, shape)
        args = [self.value(a) for a in f.args]
        return E.cast(args[0], dtype=f.dtype) if f.data == "cast" else REGISTRY[f.data](*args)

    def element(self, f: Formula) -> tuple[Node, list[int]]:
        """Return the part of an array that a read goes over, and the loop of each of its axes."""
        array = self.arrays[f.data]
        x = self.values.get(f.data)
        if x is None:
            if array.fill is None:
                raise _Other
            x = self.filled(array)
        if not all(is_inside(Element(f.data, f.place, tuple(self.nest.loops), (), None), array)):
            raise _Other
        names = [loop.index for loop in self.loops]
        places: list[int] = []
        gone: list[int] = []
        for axis, (t, size) in enumerate(zip(f.place, array.shape)):
            if isinstance(t, Formula):
                raise _Other
            mine = [n for n in names if isinstance(t, Dim) and n in symbols_in(t)]
            if len(mine) > 1:
                raise _Other
            if not mine:
                x = S.slice_axis(x, axis, t, t + 1)
                gone.append(axis)
                continue
            (name,) = mine
            loop = self.loops[names.index(name)]
            step = step_of(t, name)
            if type(step) is not int or step < 1 or names.index(name) in places:
                raise _Other
            first = substitute(t, {name: 0})
            if step != 1 or not is_zero(first) or not same(loop.stop, size):
                x = S.slice_axis(x, axis, first, first + (loop.stop - 1) * step + 1, step)
            places.append(names.index(name))
        if gone:
            x = S.reshape(x, tuple([d for k, d in enumerate(x.type.shape) if k not in gone]))
        return x, places

    def number(self, position: DimLike) -> Node:
        """Return a position, linear in the loops' indices, as numbers."""
        names = [loop.index for loop in self.loops]
        rest = substitute(position, dict.fromkeys(names, 0))
        total = S.size_node(rest, D.int64) if isinstance(rest, Dim) else constant(rest, D.int64)
        for k, name in enumerate(names):
            step = step_of(position, name)
            if step is None or isinstance(step, Dim):
                raise _Other
            if step:
                shape = tuple([self.domain[k] if j == k else 1 for j in range(len(names))])
                total = E.add(total, E.mul(S.iota(shape=shape, axis=k, dtype=D.int64), constant(step, D.int64)))
        return total

    # Products.

    def multiplied(self, f: Formula, rows: list[For], inner: list[For]) -> Node | None:
        """Return a sum of products of two arrays as a product of matrices or a convolution.

        `rows` are the loops of the result's axes, `inner` those of the sum.
        """
        if not inner or f.data != "mul" or f.kind != "op" or not all(a.kind == "read" for a in f.args):
            return None
        if f.dtype.kind != "f" or len(reads_of(f)) != 2:
            return None
        for x, w in (f.args, f.args[::-1]):
            found = self.convolution(x, w, len(rows))
            if found is not None:
                return found
        return self.contraction(f, rows)

    def convolution(self, image: Formula, window: Formula, rank: int) -> Node | None:
        """Return a sum of products along windows of `image`; None where there are no windows."""
        axes = self.windows(image, rank)
        if not any(isinstance(a, _Window) for a in axes) or len(axes) != len(self.arrays[image.data].shape):
            return None
        spatial = [a for a in axes if isinstance(a, _Window)]
        plain = [a for a in axes if not isinstance(a, _Window)]
        w, places = self.element(window)
        kernel, out = {a.tap for a in spatial}, set(range(rank))
        if not kernel <= set(places) or {a.at for a in spatial} & set(places) or len(spatial) > 3:
            return None
        shared = [k for k in plain if k in places]
        batch, groups = [k for k in plain if k not in places], [k for k in shared if k in out]
        channels, made = [k for k in shared if k not in out], [k for k in places if k not in plain and k in out]
        everything = {*batch, *groups, *channels, *made, *kernel, *[a.at for a in spatial]}
        if not set(batch) <= out or everything != set(range(len(self.loops))):
            return None
        x = self.values.get(image.data)
        if x is None:
            return None
        order = [*[axes.index(k) for k in (*batch, *groups, *channels)], *[axes.index(a) for a in spatial]]
        for axis, a in enumerate(axes):
            if isinstance(a, _Window):
                span = (self.domain[a.at] - 1) * a.stride + (self.domain[a.tap] - 1) * a.dilation + 1
                if not is_zero(a.first) or not same(span, x.type.shape[axis]):
                    x = S.slice_axis(x, axis, a.first, a.first + span)
        x = S.transpose(x, tuple(order))
        sizes = self.domain
        count = {name: product([sizes[k] for k in g]) for name, g in (("n", batch), ("g", groups), ("c", channels))}
        x = S.reshape(x, (count["n"], count["g"] * count["c"], *x.type.shape[len(plain) :]))
        arranged = [*groups, *made, *channels, *[a.tap for a in spatial]]
        w = S.transpose(w, tuple([places.index(k) for k in arranged]))
        outputs = count["g"] * product([sizes[k] for k in made])
        w = S.reshape(w, (outputs, count["c"], *[sizes[a.tap] for a in spatial]))
        if type(count["g"]) is not int:
            return None
        found = conv(
            x,
            w,
            strides=tuple([a.stride for a in spatial]),
            padding=((0, 0),) * len(spatial),
            dilation=tuple([a.dilation for a in spatial]),
            groups=count["g"],
        )
        order = [*batch, *groups, *made, *[a.at for a in spatial]]
        found = S.reshape(found, tuple([sizes[k] for k in order]))
        return S.transpose(found, tuple([order.index(k) for k in range(rank)]))

    def windows(self, image: Formula, rank: int) -> list[int | _Window]:
        """Return the loop along each axis of a read, or its window; else nothing."""
        names = [loop.index for loop in self.loops]
        array = self.arrays[image.data]
        if not all(is_inside(Element(image.data, image.place, tuple(self.nest.loops), (), None), array)):
            return []
        found: list[int | _Window] = []
        for t, size in zip(image.place, array.shape):
            mine = [names.index(n) for n in names if isinstance(t, Dim) and n in symbols_in(t)]
            if isinstance(t, Formula) or not mine:
                return []
            if len(mine) == 1 and same(t, index_of(names[mine[0]])) and same(self.domain[mine[0]], size):
                found.append(mine[0])
                continue
            at, tap = [k for k in mine if k < rank], [k for k in mine if k >= rank]
            steps = [step_of(t, names[k]) for k in (*at, *tap)]
            if len(at) != 1 or len(tap) != 1 or not all(type(c) is int and c > 0 for c in steps):
                return []
            first = substitute(t, dict.fromkeys(names, 0))
            found.append(_Window(at[0], tap[0], steps[0], steps[1], first))  # type: ignore[arg-type]
        return found

    def contraction(self, f: Formula, rows: list[For]) -> Node | None:
        """Return a sum of products of elements of two arrays as a product of matrices."""
        (x, left), (y, right) = (self.element(a) for a in f.args)
        out = set(range(len(rows)))
        both = sorted(set(left) & set(right) & out)
        mine, theirs = sorted(out - set(right)), sorted(out - set(left))
        summed = sorted(set(range(len(rows), len(self.loops))))
        if set(left) != {*both, *mine, *summed} or set(right) != {*both, *theirs, *summed}:
            return None
        a = self.arranged(x, left, (both, mine, summed))
        b = self.arranged(y, right, (both, summed, theirs))
        found = matmul(a, b)
        order = [*both, *mine, *theirs]
        found = S.reshape(found, tuple([self.domain[k] for k in order]))
        permutation = tuple([order.index(k) for k in range(len(rows))])
        return found if permutation == tuple(range(len(rows))) else S.transpose(found, permutation)

    def arranged(self, x: Node, places: list[int], groups: tuple[list[int], list[int], list[int]]) -> Node:
        """Return an operand with its axes in groups, the last two of which are one axis each."""
        order = [k for g in groups for k in g]
        permutation = tuple([places.index(k) for k in order])
        if permutation != tuple(range(len(places))):
            x = S.transpose(x, permutation)
        sizes = self.domain
        batch = tuple([sizes[k] for k in groups[0]])
        return S.reshape(x, (*batch, *[product([sizes[k] for k in g]) for g in groups[1:]]))

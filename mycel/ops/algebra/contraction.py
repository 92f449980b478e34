"""Einstein summation as a chain of matrix products.

Each operand first loses its repeated labels (by a diagonal) and the labels that nothing else needs
(by a sum). Two operands are then joined: labels of both that stay are batch axes, labels of both
that go are contracted, and the rest are rows and columns of one `matmul`. The ellipsis becomes
labels of its own, aligned from the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.binary_operators import pair
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import broadcast, iota, operand, permuted, reshaped, run, select

Term = tuple[Tensor, list[str]]


def contract(equation: str, tensors: Sequence[Any]) -> Tensor:
    """Return the Einstein summation of `tensors` by an `equation` such as "ij,jk->ik"."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors) or not tensors:
        raise ValueError(f"einsum: {equation!r} names {len(inputs)} operands, {len(tensors)} were given")
    terms = [_term(equation, labels, operand("einsum", t)) for labels, t in zip(inputs, tensors)]
    hidden = max((sum(len(v) > 1 for v in labels) for _, labels in terms), default=0)
    ellipsis = [f"...{i}" for i in range(hidden, 0, -1)]
    if arrow:
        output = _labels(equation, right, ellipsis)
    else:
        counted = [v for _, labels in terms for v in labels if len(v) == 1]
        output = ellipsis + sorted(v for v in set(counted) if counted.count(v) == 1)
    known = {v for _, labels in terms for v in labels}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ValueError(f"einsum: the output of {equation!r} repeats a label or names one that no operand has")
    _check_sizes(equation, terms)
    result = _reduce(_diagonal(terms[0]), output, terms[1:])
    for i, term in enumerate(terms[1:], start=1):
        rest = terms[i + 1 :]
        result = _join(result, _reduce(_diagonal(term), output + result[1], rest), output, rest)
    value, labels = _reduce(result, output, [])
    return permuted(value, tuple(labels.index(v) for v in output))


def _labels(equation: str, text: str, ellipsis: list[str]) -> list[str]:
    """Return the labels of an operand or of the output; the ellipsis stands for several."""
    head, dots, tail = text.partition("...")
    for v in head + tail:
        if not v.isalpha():
            raise ValueError(f"einsum: {v!r} in {equation!r} is not a label; labels are letters")
    return [*head, *(ellipsis if dots else []), *tail]


def _term(equation: str, text: str, x: Tensor) -> Term:
    """Return an operand with a label for each of its axes."""
    named = len(text.replace("...", ""))
    hidden = x.ndim - named
    if hidden < 0 or (hidden > 0 and "..." not in text):
        raise ShapeError(f"einsum: {text!r} in {equation!r} has {named} labels for an operand of {x.ndim} dimensions")
    return x, _labels(equation, text, [f"...{i}" for i in range(hidden, 0, -1)])


def _check_sizes(equation: str, terms: Sequence[Term]) -> None:
    """Raise ShapeError where a label has two sizes, neither of which is 1."""
    sizes: dict[str, Any] = {}
    for x, labels in terms:
        for v, d in zip(labels, x.shape):
            if d != 1 and sizes.setdefault(v, d) != d:
                raise ShapeError(f"einsum: label {v!r} of {equation!r} has sizes {sizes[v]} and {d}")


def _diagonal(term: Term) -> Term:
    """Return the operand with repeated labels reduced to diagonals: each label occurs once."""
    x, labels = term
    for v in set(labels):
        while labels.count(v) > 1:
            i = labels.index(v)
            j = labels.index(v, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(f"einsum: the repeated label {v!r} has sizes {x.shape[i]} and {x.shape[j]}")
            here = run(E.eq, iota(x.shape, i, D.int32), iota(x.shape, j, D.int32))
            x = run(R.reduce_sum, select(here, x, 0), axes=(j,), keepdims=False)
            labels = labels[:j] + labels[j + 1 :]
    return x, labels


def _reduce(term: Term, needed: Sequence[str], rest: Sequence[Term]) -> Term:
    """Return the operand summed over the labels that neither `needed` nor `rest` have."""
    x, labels = term
    wanted = set(needed).union(*[other for _, other in rest])
    gone = tuple(i for i, v in enumerate(labels) if v not in wanted)
    if not gone:
        return term
    return run(R.reduce_sum, x, axes=gone, keepdims=False), [v for v in labels if v in wanted]


def _join(a: Term, b: Term, output: Sequence[str], rest: Sequence[Term]) -> Term:
    """Return the product of two operands, summed over the labels that nothing else needs."""
    (x, left), (y, right) = a, b
    found = pair(x, y)
    assert found is not None
    x, y = found
    wanted = set(output).union(*[labels for _, labels in rest])
    shared = [v for v in left if v in right]
    # A size of 1 on one side broadcasts, so that label cannot be contracted by the product itself.
    even = [v for v in shared if x.shape[left.index(v)] == y.shape[right.index(v)]]
    inner = [v for v in even if v not in wanted]
    batch = [v for v in shared if v not in inner]
    rows = [v for v in left if v not in shared]
    columns = [v for v in right if v not in shared]
    x = permuted(x, tuple(left.index(v) for v in batch + rows + inner))
    y = permuted(y, tuple(right.index(v) for v in batch + inner + columns))
    n = len(batch)
    sizes = tuple(p if q == 1 else q for p, q in zip(x.shape[:n], y.shape[:n]))
    x, y = broadcast(x, (*sizes, *x.shape[n:])), broadcast(y, (*sizes, *y.shape[n:]))
    row_sizes, inside = x.shape[n : n + len(rows)], x.shape[n + len(rows) :]
    column_sizes = y.shape[n + len(inner) :]
    if inner:
        matrix = reshaped(x, (*sizes, product(row_sizes), product(inside)))
        out = run(matrix_product.matmul, matrix, reshaped(y, (*sizes, product(inside), product(column_sizes))))
        out = reshaped(out, (*sizes, *row_sizes, *column_sizes))
    else:
        out = run(
            E.mul,
            reshaped(x, (*sizes, *row_sizes, *(1,) * len(columns))),
            reshaped(y, (*sizes, *(1,) * len(rows), *column_sizes)),
        )
    return out, batch + rows + columns


def equation_of(given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the equation and the tensors of arguments that are tensors, each followed by a list of
    labels.

    A list of labels at the end is that of the result.
    """
    arrow = "->" + _letters(given[-1]) if len(given) % 2 else ""
    tensors = tuple(given[0 : len(given) // 2 * 2 : 2])
    return ",".join(_letters(labels) for labels in given[1::2]) + arrow, tensors


def _letters(labels: Any) -> str:
    """Return labels that are numbers as letters of an equation."""
    text = ""
    for label in labels:
        if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < 52):
            raise ValueError(f"einsum: labels must be ... or whole numbers in [0, 52), not {label!r}")
        # As in an equation, capitals come first in the order of labels.
        text += "..." if label is Ellipsis else chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)
    return text

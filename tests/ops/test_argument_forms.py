"""The forms in which functions take sizes, shifts, types and numbers, each with the result that
MindSpore 2.10 gives for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from mycel import numpy as mnp

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
I, H, D = ms.int32, ms.float16, ms.float64


def show(value: Any) -> Any:
    """Types and values of a result."""
    if isinstance(value, (tuple, list)):
        return [show(v) for v in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, Tensor) else value


# One form of sizes for each name: what comes after the name, and the shape of the result.
SIZES = [
    (("ops.zeros", "ops.ones", "mint.zeros", "mint.ones", "numpy.zeros", "numpy.ones"), form, shape)
    for form, shape in (("((),)", ()), ("(2,)", (2,)), ("((2, 3),)", (2, 3)), ("([2, 3],)", (2, 3)))
]
SIZES += [
    (("Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_empty"), form, shape)
    for form, shape in (("(2, 3)", (2, 3)), ("((),)", ()), ("([2],)", (2,)))
]
SIZES += [(("ops.zeros", "ops.ones", "mint.zeros", "mint.ones"), "(Tensor([2, 3]),)", (2, 3))]
SIZES += [
    (("Tensor.new_zeros", "Tensor.new_ones"), form, shape)
    for form, shape in (
        ("dict(size=2)", (2,)),
        ("dict(size=(2, 3))", (2, 3)),
        ("(2,)", (2,)),
        ("((2, 3),)", (2, 3)),
        ("(Tensor([2, 3]),)", (2, 3)),
    )
]
SIZES += [(("ops.rand", "ops.randn"), form, shape) for form, shape in (("()", (1,)), ("(2, 3)", (2, 3)), ("((),)", ()))]


@pytest.mark.parametrize(("names", "form", "shape"), SIZES, ids=lambda v: v if isinstance(v, str) else "")
def test_forms_of_sizes(names: tuple[str, ...], form: str, shape: tuple[int, ...]) -> None:
    given = eval(form)
    for name in names:
        owner, _, short = name.partition(".")
        function = getattr(X if owner == "Tensor" else getattr(ms, owner), short)
        found = function(**given) if isinstance(given, dict) else function(*given)
        assert found.shape == shape and found.dtype is ms.float32, name
        if short.startswith(("new_z", "new_o", "zeros", "ones")):
            assert (found == (0 if "zeros" in short else 1)).all()


def test_a_type_beside_sizes() -> None:
    assert show([X.new_zeros(2, I), X.new_ones((2,), I), X.new_ones(size=1, dtype=ms.int8)]) == [
        ("Int32", [0, 0]),
        ("Int32", [1, 1]),
        ("Int8", [1]),
    ]
    with pytest.raises(TypeError, match="new_zeros: a shape must be an int or a sequence of ints, not str"):
        X.new_zeros("a")
    with pytest.raises(TypeError, match=r"new_zeros: the size is given twice, as 2 and as \(3,\)"):
        X.new_zeros(3, size=2)


ROLLED = [
    ((1, 2), 0, [[3, 4, 5], [0, 1, 2]]),
    ((1, 2), None, [[3, 4, 5], [0, 1, 2]]),
    ((1, 2), (0,), [[3, 4, 5], [0, 1, 2]]),
    ((1, 2), (0, 1), [[4, 5, 3], [1, 2, 0]]),
    ((1,), (0, 1), [[5, 3, 4], [2, 0, 1]]),
    (1, (0, 1), [[5, 3, 4], [2, 0, 1]]),
    ((1, 2), (0, 0), [[3, 4, 5], [0, 1, 2]]),
    ([1, 2], [0, 1], [[4, 5, 3], [1, 2, 0]]),
    ((5,), None, [[1, 2, 3], [4, 5, 0]]),
]


@pytest.mark.parametrize(("shift", "axis", "expected"), ROLLED)
def test_shifts(shift: Any, axis: Any, expected: Any) -> None:
    assert mnp.roll(X, shift, axis).tolist() == expected
    np.testing.assert_array_equal(np.roll(X.asnumpy(), shift, axis), expected)


# The results of MindSpore 2.10.
FORMS: dict[str, tuple[Any, Any]] = {
    "step": (lambda: mnp.linspace(0, 5, 3, retstep=True)[1], ("Float32", 2.5)),
    "step without the end": (lambda: mnp.linspace(0, 5, 5, False, True)[1], ("Float32", 1.0)),
    "step of integers": (lambda: mnp.linspace(0, 4, 3, dtype=I, retstep=True), [("Int32", [0, 2, 4]), ("Float32", 2)]),
    "steps": (lambda: mnp.linspace([0, 1], [4, 5], 5, retstep=True)[1], ("Float32", [1.0, 1.0])),
    "triu_indices(2.5)": (
        lambda: mnp.triu_indices(2.5),
        [("Int32", [0, 0, 0, 1, 1, 2]), ("Int32", [0, 1, 2, 1, 2, 2])],
    ),
    "triu_indices(3, 1.5)": (lambda: mnp.triu_indices(3, 1.5), [("Int32", [0]), ("Int32", [2])]),
    "triu_indices(1, 0, 1.5)": (lambda: mnp.triu_indices(1, 0, 1.5), [("Int32", [0, 0]), ("Int32", [0, 1])]),
    "triu_indices(True)": (lambda: mnp.triu_indices(True), [("Int32", [0]), ("Int32", [0])]),
    "tril_indices(3.5, -1.2, 4.5)": (
        lambda: mnp.tril_indices(3.5, -1.2, 4.5),
        [("Int32", [2, 3, 3]), ("Int32", [0, 0, 1])],
    ),
    "tril_indices(-1)": (lambda: mnp.tril_indices(-1), [("Int32", []), ("Int32", [])]),
    "tril_indices_from": (lambda: mnp.tril_indices_from(X, 0.5), [("Int32", [0, 1, 1]), ("Int32", [0, 0, 1])]),
    "triu_indices_from": (lambda: mnp.triu_indices_from(X, 1.5), [("Int32", [0]), ("Int32", [2])]),
    "gcd": (lambda: mnp.gcd(Tensor([4.5, 6.0]), 3), ("Float32", [1.5, 3.0])),
    "gcd of numbers": (lambda: mnp.gcd(12.0, 18.0), ("Float32", 6.0)),
    "gcd of zeros": (lambda: mnp.gcd(Tensor([0.0, 6.0, 0.0]), Tensor([6.0, 0.0, 0.0])), ("Float32", [6.0, 6.0, 0.0])),
    "gcd of half": (lambda: mnp.gcd(Tensor([4.0, -6.0], H), Tensor([6.0, 9.0], H)), ("Float16", [2.0, 3.0])),
    "gcd of double": (lambda: mnp.gcd(Tensor([4.0], D), Tensor([6.0, 10.0], D)), ("Float64", [2.0, 2.0])),
    "gcd of two types": (lambda: mnp.gcd(Tensor([4], I), Tensor([6.0])), ("Float32", [2.0])),
    "lcm": (lambda: mnp.lcm(Tensor([4.5, 6.0]), Tensor([6.0, -9.0])), ("Float32", [18.0, 18.0])),
    "lcm of zeros": (lambda: mnp.lcm(Tensor([0.0, 6.0]), Tensor([6.0, 0.0])), ("Float32", [0.0, 0.0])),
    "compiled gcd": (lambda: ms.jit(mnp.gcd)(Tensor([4.5]), Tensor([3.0])), ("Float32", [1.5])),
    "ones of int": (lambda: mnp.ones(2, int), ("Int32", [1, 1])),
    "full of int": (lambda: mnp.full(2, 3, "int"), ("Int32", [3, 3])),
    "eye of int": (lambda: mnp.eye(1, dtype=int), ("Int32", [[1]])),
    "array of int": (lambda: mnp.array([1.5], int), ("Int32", [1])),
    "zeros_like of int": (lambda: mnp.zeros_like(X, int)[0], ("Int32", [0, 0, 0])),
    "arange of int": (lambda: mnp.arange(2, dtype=int), ("Int64", [0, 1])),
    "nansum of integers": (lambda: ms.ops.nansum(Tensor([1, 2], I)), ("Int32", 3)),
    "nansum of bytes": (lambda: mnp.nansum(Tensor([1, 2], ms.uint8)), ("UInt8", 3)),
    "nansum of booleans": (lambda: ms.ops.nansum(Tensor([True, True])), ("Int64", 2)),
    "argmin": (lambda: mnp.argmin(X), ("Int32", 0)),
    "argmax": (lambda: mnp.argmax(X), ("Int64", 5)),
    "power of booleans": (lambda: Tensor([True]) ** Tensor([2], I), ("Int32", [1])),
    "remainder": (lambda: ms.ops.remainder(Tensor([5.0], D), Tensor([3.0])), ("Float64", [2.0])),
    "mean in float32": (lambda: mnp.mean(Tensor([1, 2], I), dtype=ms.float32), ("Float32", 1.5)),
    "array of float": (lambda: mnp.array([1], float), ("Float32", [1.0])),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_forms(name: str) -> None:
    call, expected = FORMS[name]
    assert show(call()) == expected


SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
WIDER = {"uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "float64"}


def common(a: str, b: str) -> str:
    """The common type by the rule: of one kind the wider, else that of the later kind; a signed
    type that holds both for a signed and an unsigned one, and float64 beside uint64.
    """
    kinds = (("bool_",), UNSIGNED, SIGNED, FLOATS)
    (i, x), (j, y) = sorted((k, n) for n in (a, b) for k, names in enumerate(kinds) if n in names)
    if i == j:
        return max(x, y, key=kinds[i].index)
    if (i, j) == (1, 2):
        held = WIDER[x]
        return held if held == "float64" else max(held, y, key=SIGNED.index)
    return y


def test_common_types_of_all_pairs() -> None:
    names = ("bool_", *SIGNED, *UNSIGNED, *FLOATS)
    for a in names:
        for b in names:
            expected = getattr(ms, common(a, b))
            assert mnp.promote_types(getattr(ms, a), getattr(ms, b)) is expected, (a, b)
            assert mnp.result_type(getattr(ms, a), Tensor(1, getattr(ms, b))) is expected, (a, b)
        assert mnp.promote_types(getattr(ms, a), int) is getattr(ms, common(a, "int32"))

"""Tensors: how they are made, what they convert to, which types operators give, and how they print.

Expectations were taken from MindSpore 2.10.
"""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import re
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from mycel.common.initializer import One, initializer

NUMPY_TYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)


def described(t: Tensor) -> tuple[str, tuple[int, ...], Any]:
    return t.dtype.name, t.shape, t.asnumpy().tolist()


# Making.


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1, "int64", ()),
        (1.5, "float32", ()),
        (True, "bool", ()),
        (1 + 2j, "complex128", ()),
        (2**63, "uint64", ()),
        ([1, 2], "int64", (2,)),
        ([1.0, 2], "float32", (2,)),
        ([True, False], "bool", (2,)),
        ([True, 1], "int64", (2,)),
        ([True, 1.5], "float32", (2,)),
        ([1 + 2j, 1], "complex128", (2,)),
        ([[1, 2], (3, 4)], "int64", (2, 2)),
        ((1, 2), "int64", (2,)),
        ([], "float32", (0,)),
        ((), "float32", (0,)),
        ([[]], "float32", (1, 0)),
        (np.float64(2), "float64", ()),
        (np.int16(2), "int16", ()),
        (np.bool_(True), "bool", ()),
        ([np.float64(2), 1.0], "float32", (2,)),
        ([np.float16(1)], "float16", (1,)),
        ([np.int32(2), 1], "int64", (2,)),
        ([np.array([1.0, 2.0]), [3.0, 4.0]], "float32", (2, 2)),
        (np.array([]), "float64", (0,)),
        (np.zeros((0, 3), np.int8), "int8", (0, 3)),
        (np.array(3.0), "float64", ()),
        (np.arange(6).reshape(2, 3).T, "int64", (3, 2)),
        (np.arange(6)[::-2], "int64", (3,)),
        (np.array([1, 2], ">i4"), "int32", (2,)),
        (np.array([1.5, 2], ">f8"), "float64", (2,)),
        (np.broadcast_to(np.float32(2), (2, 3)), "float32", (2, 3)),
        (np.ma.array([1, 2]), "int64", (2,)),
    ],
    ids=repr,
)
def test_types_and_values_of_what_is_given(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    t = Tensor(data)
    assert (t.dtype.name, t.shape, t.ndim, t.size) == (dtype, shape, len(shape), int(np.prod(shape)))
    assert t.asnumpy().tolist() == np.array(data).tolist()


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_arrays_keep_their_type(name: str) -> None:
    array = np.array([[0, 1], [2, 3]]).astype(name)
    t = Tensor(array)
    assert t.dtype.name == name and t.asnumpy().dtype == array.dtype
    np.testing.assert_array_equal(t.asnumpy(), array)
    assert (t.itemsize, t.nbytes, t.strides) == (array.itemsize, array.nbytes, array.strides)


def test_bfloat16_arrays() -> None:
    array = np.array([1.0, 2.5], ml_dtypes.bfloat16)
    t = Tensor(array)
    assert t.dtype is ms.bfloat16 and t.asnumpy().dtype == array.dtype and t.tolist() == [1.0, 2.5]
    assert (Tensor([1.0]).astype(ms.bfloat16) + array[:1]).dtype is ms.bfloat16


@pytest.mark.parametrize(
    "data, dtype, want",
    [
        ([1.7, -1.7], ms.int32, [1, -1]),
        (1.7, ms.int32, 1),
        ([300, -1], ms.uint8, [44, 255]),
        (300, ms.uint8, 44),
        (-1, ms.uint8, 255),
        ([1, 0], ms.bool_, [True, False]),
        ([0.5, 0], ms.bool_, [True, False]),
        ([1, 2], ms.float16, [1.0, 2.0]),
        (True, ms.float32, 1.0),
        ([1 + 1j], ms.complex64, [1 + 1j]),
        ([], ms.int32, []),
        (1, "float64", 1.0),
        (1, np.float32, 1.0),
        (2.0, float, 2.0),
        (1, complex, 1 + 0j),
    ],
    ids=repr,
)
def test_conversion_on_making(data: Any, dtype: Any, want: Any) -> None:
    t = Tensor(data, dtype)
    assert t.tolist() == want and t.dtype is ms.dtype.from_any(dtype)


def test_from_tensors() -> None:
    t = Tensor([1, 2])
    copied = Tensor(t)
    t[0] = 9
    assert copied.tolist() == [1, 2] and Tensor(t, ms.float32).dtype is ms.float32
    assert described(Tensor([Tensor([1, 2]), Tensor([3, 4])])) == ("int64", (2, 2), [[1, 2], [3, 4]])
    assert described(Tensor((Tensor(1.0), 2))) == ("float32", (2,), [1.0, 2.0])
    assert (
        Tensor(ms.Parameter(Tensor([1.0]), name="p")).tolist() == [1.0] and ms.tensor([1, 2], ms.int8).dtype is ms.int8
    )
    assert ms.is_tensor(t) and ms.is_tensor(ms.Parameter(1.0)) and not ms.is_tensor(np.ones(2))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: Tensor("abc"), TypeError, "data must be numbers, sequences, arrays or tensors, not str ('abc')"),
        (lambda: Tensor(["a", "b"]), TypeError, "is not numeric: ['a', 'b']"),
        (lambda: Tensor(np.array(["a"])), TypeError, "data of NumPy type <U1 is not numeric"),
        (lambda: Tensor([None]), TypeError, "data of NumPy type object is not numeric: [None]"),
        (lambda: Tensor({1: 2}), TypeError, "not dict ({1: 2})"),
        (lambda: Tensor(range(3)), TypeError, "not range"),
        (lambda: Tensor(b"abc"), TypeError, "not bytes"),
        (lambda: Tensor(np.array([1], "M8[s]")), TypeError, "datetime64[s] is not numeric"),
        (
            lambda: Tensor([[1, 2], [3]]),
            ValueError,
            "ragged, its parts differ in length or depth: [[1, 2], [3]]; pad them",
        ),
        (lambda: Tensor([[1, 2], 3]), ValueError, "ragged"),
        (lambda: Tensor(10**30), OverflowError, "holds integers beyond 64 bits; give floats"),
        (lambda: Tensor([1, 10**30]), OverflowError, "beyond 64 bits"),
        (lambda: Tensor(), TypeError, "there is no data"),
        (lambda: Tensor(None), TypeError, "there is no data"),
        (lambda: Tensor(dtype=ms.float32).asnumpy(), TypeError, "only declares a shape"),
        (lambda: Tensor(shape=(2,)), ValueError, "both shape and dtype are needed"),
        (
            lambda: Tensor(shape=(2,), dtype=ms.float32, init="ones"),
            TypeError,
            "init must be an initializer, not 'ones'",
        ),
        (lambda: Tensor([1], init=One()), ValueError, "give either input_data or init"),
        (lambda: Tensor([1, 2], shape=(3,)), ValueError, "input_data has shape (2,), not the given (3,)"),
        (lambda: Tensor([1, 2], "abc"), TypeError, "'abc' is not a data type"),
        (lambda: Tensor(12288, 128), TypeError, "128 is not a data type"),
        (lambda: Tensor([1], device="GPU"), ValueError, "device 'GPU' is not available in this build; use 'CPU'"),
        (lambda: ms.from_numpy([1, 2]), TypeError, "from_numpy takes a NumPy array, not list"),
    ],
)
def test_data_that_is_none_is_named(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        make()


# Declared tensors.


def test_declared_with_an_initializer() -> None:
    t = Tensor(shape=(2, 3), dtype=ms.float32, init=One())
    assert t.has_init and "not initialized" in repr(t) and t.shape == (2, 3)
    assert t.init_data() is t and not t.has_init and t.tolist() == [[1.0] * 3] * 2 and t.init_data() is t
    assert (initializer("ones", (2,), ms.float16) + 1).tolist() == [2.0, 2.0]
    drawn = initializer("normal", (3,), ms.float32)
    assert drawn.asnumpy().tolist() == drawn.asnumpy().tolist()


def test_declared_without_values() -> None:
    assert Tensor(shape=(2,), dtype=ms.int32).tolist() == [0, 0] and Tensor(shape=2, dtype=ms.int8).shape == (2,)
    open_ = Tensor(shape=(None, 2), dtype=ms.float32)
    other = Tensor(shape=(-1, 2), dtype=ms.float32)
    assert (
        open_.ndim == 2 and open_.shape[1] == 2 and not isinstance(open_.shape[0], int) and open_.shape != other.shape
    )
    for use in (open_.asnumpy, open_.init_data, lambda: float(open_)):
        with pytest.raises((TypeError, ValueError), match="only declares a shape|not declared with an initializer"):
            use()
    assert repr(open_) == "Tensor(shape=[-1, 2], dtype=Float32, value=\n)"


# Memory.


def test_asnumpy_and_from_numpy_share_memory() -> None:
    t = Tensor([1.0, 2.0])
    array = t.asnumpy()
    array[0] = 7
    assert t.tolist() == [7, 2] and array.flags.writeable and np.shares_memory(t.asnumpy(), array)
    source = np.array([1.0, 2.0])
    shared, copied = ms.from_numpy(source), Tensor(source)
    source[0] = 7
    assert shared.tolist() == [7, 2] and copied.tolist() == [1, 2] and shared.dtype is ms.float64
    assert ms.from_numpy(np.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert not np.shares_memory(ms.from_numpy(frozen).asnumpy(), frozen)
    assert ms.from_numpy(np.zeros((0, 2))).shape == (0, 2)


def test_arrays_outlive_tensors() -> None:
    arrays = [Tensor(np.full(1000, i, np.int32)).asnumpy() for i in range(20)]
    gc.collect()
    keep = [Tensor(np.full(1000, -1, np.int32)) for _ in range(20)]
    assert all((a == i).all() for i, a in enumerate(arrays)) and len(keep) == 20
    shared = ms.from_numpy(np.full(1000, 5.0))
    gc.collect()
    assert (shared.asnumpy() == 5).all()


def test_array_protocols() -> None:
    t = Tensor([1.0, 2.0])
    assert np.shares_memory(np.asarray(t), t.asnumpy()) and not np.shares_memory(np.array(t), t.asnumpy())
    assert np.asarray(t, dtype=np.float64).dtype == np.float64 and np.array(t, dtype=np.int8).tolist() == [1, 2]
    assert np.add(t.asnumpy(), t).tolist() == [2, 4] and float(np.sin(t)[0]) == pytest.approx(np.sin(1.0))
    exported = np.from_dlpack(t)
    assert np.shares_memory(exported, t.asnumpy()) and t.__dlpack_device__() == (1, 0)
    imported = Tensor(_OnlyDlpack(np.arange(3.0, dtype=np.float32)))
    assert described(imported) == ("float32", (3,), [0, 1, 2])


class _OnlyDlpack:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    "t", [Tensor([[1, 2]], ms.int8), Tensor(2.5, ms.bfloat16), Tensor(np.zeros((0, 2))), Tensor([True])]
)
def test_copies_and_pickles(t: Tensor) -> None:
    for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t), t.copy()):
        assert other is not t and described(other) == described(t)
    memo = copy.deepcopy([t, t])
    assert memo[0] is memo[1] and memo[0] is not t


def test_deep_copies_are_independent() -> None:
    t = Tensor([1.0, 2.0])
    other = copy.deepcopy(t)
    t[0] = 5
    assert other.tolist() == [1, 2]
    declared = copy.deepcopy(Tensor(shape=(2,), dtype=ms.float32, init=One()))
    assert declared.has_init and declared.tolist() == [1, 1]


# Conversion to Python.


def test_numbers() -> None:
    assert (float(Tensor([2.5])), int(Tensor(2.7)), complex(Tensor(2.0)), bool(Tensor([[0.0]]))) == (
        2.5,
        2,
        2 + 0j,
        False,
    )
    assert [10, 20, 30][Tensor(1)] == 20 and [10, 20][Tensor([True])] == 20 and list(range(Tensor(2))) == [0, 1]
    assert Tensor([3]).item() == 3 and type(Tensor(3.0).item()) is float and Tensor([[1, 2], [3, 4]]).item((1, 0)) == 3
    assert Tensor([1, 2]).item(1) == 2 and Tensor([[1.5]]).tolist() == [[1.5]]
    assert (
        len(Tensor([[1], [2]])) == 2
        and [float(v) for v in Tensor([1.0, 2.0])] == [1, 2]
        and len(Tensor(np.zeros((0, 3)))) == 0
    )
    assert 1.5 in Tensor([1.5, 2]) and 3 not in Tensor([1, 2])


PAIR, NUMBER = Tensor([1.0, 2.0]), Tensor(2.0)


@pytest.mark.parametrize(
    "use, error, text",
    [
        (lambda: bool(PAIR), ValueError, "the truth of a tensor of shape (2,) is ambiguous"),
        (lambda: bool(Tensor([])), ValueError, "use .any() or .all()"),
        (lambda: PAIR in (NUMBER, PAIR), ValueError, "ambiguous"),
        (lambda: float(PAIR), ValueError, "float() takes a tensor of one element, not of shape (2,)"),
        (lambda: int(PAIR), ValueError, "int() takes a tensor of one element"),
        (lambda: PAIR.item(), ValueError, "item(): a tensor of shape (2,) has 2 elements; give an index"),
        (lambda: PAIR.item(5), IndexError, "5"),
        (lambda: len(NUMBER), TypeError, "a tensor of no dimensions has no length"),
        (lambda: list(NUMBER), TypeError, "a tensor of no dimensions has no elements to go over"),
        (
            lambda: [1][Tensor(1.0)],
            TypeError,
            "only integer tensors can be used as an index, not float32; convert with .int()",
        ),
        (lambda: [1][Tensor([0, 1])], ValueError, "use as an index takes a tensor of one element"),
        (lambda: f"{PAIR:.2f}", TypeError, "takes a tensor of one element, not of shape (2,)"),
        (lambda: PAIR + None, TypeError, "unsupported operand"),
        (lambda: PAIR + "a", TypeError, "unsupported operand"),
        (lambda: PAIR < None, TypeError, "not supported between"),
        (lambda: PAIR + Tensor([1.0, 2.0, 3.0]), ValueError, "add: shapes (2,) and (3,) do not broadcast"),
        (lambda: PAIR.nothing, AttributeError, "nothing"),
        (
            lambda: Tensor([1], ms.int8) + 300,
            OverflowError,
            "300 does not fit int8, the type of the tensor that it meets; cast the tensor",
        ),
        (lambda: -1 * Tensor([1], ms.uint8), OverflowError, "-1 does not fit uint8"),
    ],
)
def test_what_cannot_be_says_so(use: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        use()


def test_hashing_is_by_identity() -> None:
    a, b = Tensor([1.0]), Tensor([1.0])
    assert len({a, a, b}) == 2 and {a: 1}[a] == 1


def test_equality_with_other_things() -> None:
    for other in (None, "a", object()):
        assert (other == PAIR) is False and (PAIR != other) is True
    for other in ([1.0, 3.0], (1.0, 3.0), np.array([1.0, 3.0]), np.float32(1)):
        assert (PAIR == other) is False and (PAIR != other) is True
    assert (PAIR == 1).tolist() == [True, False] and (PAIR == np.float64(1)).tolist() == [True, False]
    for found in (np.float64(1) == PAIR, np.array([1.0, 3.0]) == PAIR):
        assert type(found) is np.ndarray and found.tolist() == [True, False]


@pytest.mark.parametrize(
    "t, text",
    [
        (Tensor([1.5, 2.5]), "Tensor(shape=[2], dtype=Float32, value= [ 1.50000000e+00,  2.50000000e+00])"),
        (Tensor(2.0), "Tensor(shape=[], dtype=Float32, value= 2)"),
        (Tensor([1, 2]), "Tensor(shape=[2], dtype=Int64, value= [1, 2])"),
        (Tensor([True, False]), "Tensor(shape=[2], dtype=Bool, value= [ True, False])"),
        (Tensor(True), "Tensor(shape=[], dtype=Bool, value= True)"),
        (
            Tensor([[1.0], [2.0]]),
            "Tensor(shape=[2, 1], dtype=Float32, value=\n[[ 1.00000000e+00],\n [ 2.00000000e+00]])",
        ),
        (Tensor([1.0, 2.0], ms.float16), "Tensor(shape=[2], dtype=Float16, value= [ 1.0000e+00,  2.0000e+00])"),
        (
            Tensor(np.arange(8).reshape(2, 2, 2)),
            "Tensor(shape=[2, 2, 2], dtype=Int64, value=\n[[[0, 1],\n  [2, 3]],\n [[4, 5],\n  [6, 7]]])",
        ),
        (Tensor(np.arange(2000)), "Tensor(shape=[2000], dtype=Int64, value= [   0,    1,    2 ... 1997, 1998, 1999])"),
        (Tensor([1e300], ms.float64), "Tensor(shape=[1], dtype=Float64, value= [ 1.00000000e+300])"),
        (
            Tensor([1.0, float("nan"), float("inf"), -float("inf")]),
            "Tensor(shape=[4], dtype=Float32, value= [ 1.00000000e+00,             nan,             inf,            "
            "-inf])",
        ),
        (Tensor(0.1), "Tensor(shape=[], dtype=Float32, value= 0.1)"),
        (Tensor(123456.789), "Tensor(shape=[], dtype=Float32, value= 123457)"),
        (Tensor(np.zeros((0, 3), np.float32)), "Tensor(shape=[0, 3], dtype=Float32, value=\n)"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_how_tensors_print(t: Tensor, text: str) -> None:
    assert repr(t) == text


def test_a_large_matrix_prints_its_edges() -> None:
    lines = repr(Tensor(np.arange(1200).reshape(30, 40))).split("\n")
    assert lines[1] == "[[   0,    1,    2 ...   37,   38,   39]," and lines[4] == " ..." and len(lines) == 8


def test_strings_and_formats() -> None:
    assert (str(PAIR), str(Tensor(1)), str(Tensor([True]))) == ("[1. 2.]", "1", "[ True]")
    assert (f"{NUMBER}", f"{NUMBER:.3f}", f"{Tensor(3):04d}", f"{PAIR}", format(NUMBER, ".1f")) == (
        "2.0",
        "2.000",
        "0003",
        "[1. 2.]",
        "2.0",
    )


# Operators.

WORDS = {"bool": True, "int": 2, "float": 2.5}


@pytest.mark.parametrize(
    "op, dtype, with_bool, with_int, with_float",
    [
        (op, dtype, *found.split())
        for op, rows in {
            operator.add: "bool bool int64 float32|int8 int8 int8 float32|int32 int32 int32 float32|uint8 uint8 uint8 "
            "float32|"
            "int64 int64 int64 float32|float16 float16 float16 float16|bfloat16 bfloat16 bfloat16 bfloat16|float64 "
            "float64 float64 float64",
            operator.mul: (
                "bool bool int64 float32|int8 int8 int8 float32|float16 float16 float16 float16|float32 "
                "float32 float32 float32"
            ),
            operator.truediv: "bool float32 float32 float32|int8 float32 float32 float32|float16 float16 float16 "
            "float16|"
            "float64 float64 float64 float64",
            operator.pow: "int8 int8 int8 float32|int64 int64 int64 float32|float16 float16 float16 float16",
            operator.floordiv: "int32 int32 int32 float32|float16 float16 float16 float16",
            operator.lt: "bool bool bool bool|int8 bool bool bool|bfloat16 bool bool bool",
        }.items()
        for dtype, found in (row.split(" ", 1) for row in rows.split("|"))
    ],
    ids=lambda v: getattr(v, "__name__", v),
)
def test_numbers_take_the_tensors_type(op: Any, dtype: str, with_bool: str, with_int: str, with_float: str) -> None:
    x = Tensor(np.array([1, 1]), ms.dtype.from_any(dtype))
    for word, want in (("bool", with_bool), ("int", with_int), ("float", with_float)):
        value = WORDS[word]
        numpy_value: Any = {"bool": np.bool_, "int": np.int64, "float": np.float64}[word](value)
        for y in (value, numpy_value):
            assert op(x, y).dtype.name == want, (dtype, y)
        if op is not operator.lt:
            assert op(value, x).dtype.name == want


def test_numbers_of_numpy_and_lists_do_not_widen() -> None:
    h = Tensor([1.0, 2.0], ms.float16)
    assert (h * np.sqrt(np.float64(4))).dtype is ms.float16
    assert (
        (h + [1.0, 2.0]).dtype is ms.float16
        and ((1, 2) + h).dtype is ms.float16
        and ms.ops.add(h, np.float64(2)).dtype is ms.float16
    )
    assert (Tensor([1, 2]) + [1.5, 2]).dtype is ms.float32 and (Tensor([1, 2], ms.int8) + np.int64(2)).dtype is ms.int8
    assert (Tensor([1.0]) + np.array([1.0])).dtype is ms.float64
    assert (h + [Tensor(1.0), 2.0]).dtype is ms.float32 and (
        h + np.array([1, 2], ml_dtypes.bfloat16)
    ).dtype is ms.float32
    with pytest.raises(TypeError):
        h + ["a", "b"]


def test_a_tensor_of_no_dimensions_yields_in_products_and_quotients() -> None:
    h, i = Tensor([1.0, 2.0], ms.float16), Tensor([1, 2], ms.int32)
    scale = Tensor(2.0)
    for result in (
        h * scale,
        scale * h,
        h / scale,
        ms.ops.mul(h, scale),
        ms.ops.div(h, scale),
        h * ms.Parameter(2.0, name="p"),
    ):
        assert result.dtype is ms.float16
    assert (i * Tensor(2)).dtype is ms.int32 and (Tensor([1], ms.uint8) * Tensor(2)).dtype is ms.uint8
    assert (
        (h + scale).dtype is ms.float32 and (i * scale).dtype is ms.float32 and (h * Tensor([2.0])).dtype is ms.float32
    )
    assert (Tensor(1.0, ms.float16) * scale).dtype is ms.float32
    jitted = ms.jit(lambda a, b: (a * b, a / b, a + b))
    assert [t.dtype.name for t in jitted(h, scale)] == ["float16", "float16", "float32"]
    gradients = ms.grad(lambda a, b: (a * b).sum(), (0, 1))(h, scale)
    assert [(g.dtype.name, g.tolist()) for g in gradients] == [("float16", [2.0, 2.0]), ("float32", 3.0)]


def test_integers_that_a_type_does_not_hold_compare_and_divide_exactly() -> None:
    i, u = Tensor([1, 127], ms.int8), Tensor([1, 255], ms.uint8)
    assert (
        (i < 300).tolist() == [True, True]
        and (i == 383).tolist() == [False, False]
        and (u > -1).tolist() == [True, True]
    )
    assert (
        (u == -1).tolist() == [False, False]
        and (300 > i).tolist() == [True, True]
        and (u != 2**40).tolist() == [True, True]
    )
    np.testing.assert_allclose((u / 300).asnumpy(), np.array([1, 255]) / 300, rtol=1e-6)
    np.testing.assert_allclose((300 / u).asnumpy(), 300 / np.array([1, 255]), rtol=1e-6)
    with pytest.raises(OverflowError):
        ms.jit(lambda a: a + 300)(i)


def test_arithmetic_follows_python() -> None:
    i, f = Tensor([-7, 7]), Tensor([-7.0, 7.0])
    assert (
        (i // 2).tolist() == [-4, 3]
        and (i % 3).tolist() == [2, 1]
        and (i % -3).tolist() == [-1, -2]
        and (f // 2).tolist() == [-4, 3]
    )
    assert (f % 3).tolist() == [2, 1] and (i / 2).tolist() == [-3.5, 3.5]
    assert (2 ** Tensor([1, 2])).tolist() == [2, 4] and (Tensor([1.0, 2.0]) @ Tensor([1.0, 2.0])).item() == 5
    assert (
        (-i).tolist() == [7, -7] and (+i) is i and abs(i).tolist() == [7, 7] and abs(Tensor([True])).tolist() == [True]
    )
    assert (~Tensor([True, False])).tolist() == [False, True] and (~Tensor([0, 2])).tolist() == [True, False]
    assert (i & 1).tolist() == [1, 1] and (Tensor([1]) | 4).tolist() == [5] and (Tensor([1]) ^ 3).tolist() == [2]
    assert (
        (Tensor([1, 2]) << 1).tolist() == [2, 4]
        and (Tensor([4]) >> 1).tolist() == [2]
        and (1 << Tensor([3])).tolist() == [8]
    )
    assert round(Tensor([1.5, 2.5, -0.4])).tolist() == [2, 2, 0] and round(
        Tensor([1.256]), 2
    ).tolist() == pytest.approx([1.26])
    assert round(Tensor([3])).tolist() == [3] and (Tensor([1], ms.uint8) - 2).tolist() == [255]
    b = Tensor([True, False])
    assert [(b + b).tolist(), (b * b).tolist(), (b & True).tolist(), (b ^ b).tolist()] == [[True, False]] * 3 + [
        [False, False]
    ]


@pytest.mark.parametrize("name", "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor imatmul".split())
def test_augmented_assignment_makes_a_new_tensor(name: str) -> None:
    bits = name in ("iand", "ior", "ixor")
    x = before = Tensor([5, 6]) if bits else Tensor([5.0, 6.0])
    x = getattr(operator, name)(x, Tensor([2, 3]) if bits else Tensor([2.0, 3.0]))
    assert x is not before and before.tolist() == [5, 6] and x.tolist() != [5, 6]


def test_augmented_assignment_converts_and_broadcasts_as_the_operator() -> None:
    i = Tensor([1, 2])
    i += 0.5
    assert described(i) == ("float32", (2,), [1.5, 2.5])
    total = Tensor(0.0)
    total += Tensor([1.0, 2.0])
    assert total.tolist() == [1, 2]
    row = alias = Tensor([[1.0, 2.0], [3.0, 4.0]])
    row[0] += 1
    assert alias.tolist() == [[2, 3], [3, 4]]


def test_astype_and_to() -> None:
    x = Tensor([1.5, -2.5])
    assert (
        x.astype(ms.int32).tolist() == [1, -2]
        and x.to(ms.float16).dtype is ms.float16
        and x.astype("float64").dtype is ms.float64
    )
    assert x.int().dtype is ms.int32 and x.bool().tolist() == [True, True] and x.float() is x
    assert x.astype(float).dtype is x.astype("float").dtype is ms.float64 and x.astype(int).dtype is ms.int64
    with pytest.raises(TypeError, match="'abc' is not a data type"):
        x.astype("abc")


# Threads.


def test_four_threads_compute_at_once() -> None:
    results: dict[int, Any] = {}
    start = threading.Barrier(4)

    def work(n: int) -> None:
        start.wait()
        x = Tensor(np.full((8, 8), n, np.float32))
        w = ms.Parameter(Tensor(np.eye(8, dtype=np.float32)), name="w")
        for i in range(50):
            y = ((x * 2 + i) @ w - i)[: 4 + i % 3] / 2
            results[n] = (float(y.mean()), float(ms.grad(lambda a: (a * a).sum())(Tensor(float(n)))))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: (float(n), 2.0 * n) for n in range(4)}


def test_bytes_are_seen_as_numbers_of_another_type() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for dtype, kind in ((ms.int32, np.int32), (ms.int8, np.int8), (ms.uint16, np.uint16)):
        assert Tensor(x).view(dtype).tolist() == x.view(kind).tolist()
    assert Tensor([1, 2], ms.int64).view(ms.int32).tolist() == [1, 0, 2, 0]
    for wrong in (Tensor(x), Tensor(1.0)):
        with pytest.raises(ValueError, match="view: "):
            wrong.view(ms.float64)


def test_complex_numbers_are_shown_with_six_digits() -> None:
    shown = repr(Tensor(np.array([[1 + 2j, 3.25 - 1e-9j]])))
    assert shown == "Tensor(shape=[1, 2], dtype=Complex128, value=\n[[1+2j, 3.25-1e-09j]])"
    assert repr(Tensor(np.array([complex("nan+infj"), 1e10]))).endswith("value= [nan+infj, 1e+10+0j])")

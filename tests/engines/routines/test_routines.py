"""Routines give what the same functions give as Python."""

import numpy as np
import pytest

from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.routines import are_on, routine
from mycel._src.engines.routines.routine_language import (
    Bytes,
    Const,
    Double,
    Doubles,
    Elements,
    Floats,
    Int,
    Ints,
    Longs,
    Shorts,
    f32,
    f64,
    floor,
    fused,
    i16,
    i32,
    i64,
    least,
    looked_up,
    looked_up_at_once,
    most,
    neighbours,
    placed,
    rint,
    sqrt,
    taken,
    upper_half,
    within,
)
from mycel._src.engines.routines.translate import definition

SHIFT = 3


def _both(a: Int, b: Int) -> tuple[Int, Int]:
    low, high = least(a, b), most(a, b)
    return low, high


@routine
def integers(source: Longs, other: Longs, count: Int, result: Longs) -> None:
    for i in range(count):
        a, b = source[i], other[i]
        low, high = _both(a, b)
        total = a + b * 2 - (a & 255) + (b | 1) + (a ^ b)
        if a > b and not (a == 3):
            total += low // 7 + high % 5
        elif a < -10 or b < -10:
            total -= a >> SHIFT
        else:
            total = -total << 1
        k = 0
        while k < 3:
            total += abs(k - a)
            k += 1
        result[i] = total if total != 7 else 8


@routine
def floats(source: Doubles, count: Int, scale: Double, kind: Const, result: Floats) -> None:
    for i in range(count - 1, -1, -1):
        x = source[i] * scale
        if kind == "rounded":
            x = rint(x)
        elif kind == "down":
            x = floor(x)
        else:
            x = sqrt(abs(x)) / 3.0
        result[i] = f32(x) + f32(i32(i64(x) & 3))


@routine
def weighted(source: Elements, height: Int, width: Int, channels: Const, result: Bytes, parts: Ints) -> None:
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                at = (y * width + x) * channels + c
                parts[at] = i32(f64(source[at]) * 1.5)
                result[at] = within(parts[at], 0, 255)


def test_integers_are_those_of_python():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-100, 100, (2, 300))
    code, python = np.zeros((2, 300), np.int64)
    integers(a, b, 300, code)
    integers.function(a, b, 300, python)
    assert code.tolist() == python.tolist()


@pytest.mark.parametrize("kind", ["rounded", "down", "root"])
def test_floats_are_those_of_python(kind):
    a = np.random.default_rng(1).normal(size=101) * 10
    code, python = np.zeros((2, 101), np.float32)
    floats(a, 101, 1.25, kind, code)
    floats.function(a, 101, 1.25, kind, python)
    assert code.tolist() == python.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3, 6])
def test_elements_of_all_types(dtype, channels):
    a = np.random.default_rng(2).integers(0, 127, (5, 7, channels)).astype(dtype)
    result, parts = np.zeros(a.shape, np.uint8), np.zeros(a.shape, np.int32)
    weighted(a, 5, 7, channels, result, parts)
    assert (result == np.clip((a.astype(np.float64) * 1.5).astype(np.int32), 0, 255)).all()


@routine
def halves(source: Shorts, other: Shorts, count: Int, result: Shorts, longer: Longs) -> None:
    for i in range(count):
        high = upper_half(source[i], other[i]) + i16(3)
        result[i] = high
        longer[i] = i64(i16(i32(source[i]) * 3)) + high


_CROSSED, _EVEN, _PAIRS = (0, 4, 1, 5, 2, 6, 3, 7), (0, 2, 4, 6), (0, 1) * 4


@routine
def vectors(source: Elements, weights: Shorts, count: Int, sums: Ints, parts: Elements) -> None:
    for i in range(count):
        found = taken(source, i, 8, _CROSSED)
        total = neighbours(found, taken(weights, 2 * i, 2, _PAIRS)) + 7
        placed(sums, 4 * i, total >> 1)
        placed(parts, 4 * i, taken(source, i + 1, 8, _EVEN) + taken(source, i, 4, (0, 1, 2, 3)))


@routine
def moved(source: Elements, count: Int, result: Elements) -> None:
    for i in range(count):
        placed(result, 4 * i, taken(source, i, 3, (2, 1, 0, 0)))


@routine
def left(source: Doubles, other: Doubles, count: Int, result: Doubles) -> None:
    for i in range(count):
        result[i] = fused(source[i], other[i], -(source[i] * other[i])) + fused(source[i], -1.0, other[i])


def test_a_product_and_a_sum_are_rounded_once():
    a, b = np.random.default_rng(6).normal(size=(2, 50))
    code, python = np.zeros((2, 50))
    left(a, b, 50, code)
    left.function(a, b, 50, python)
    assert code.tolist() == python.tolist() and (code != b - a).any()


@routine
def recoded(source: Bytes, count: Int, table: Bytes, result: Bytes) -> None:
    at_once = i64(0)
    if looked_up_at_once() != 0:
        at_once = count // 64
        for n in range(at_once):
            looked_up(source, 64 * n, table, 3, 2, result, 64 * n)
    for i in range(64 * at_once, count):
        result[i] = table[(i % 64 + 2) % 3 * 256 + i64(source[i])]


def test_bytes_are_looked_up_in_tables_of_channels():
    rng = np.random.default_rng(7)
    source, table = (rng.integers(0, 256, count).astype(np.uint8) for count in (300, 768))
    code, python, words = np.zeros((3, 300), np.uint8)
    recoded(source, 300, table, code)
    recoded.function(source, 300, table, python)
    for n in range(4):
        looked_up(source, 64 * n, table, 3, 2, words, 64 * n)
    assert code.tolist() == python.tolist() and words[:256].tolist() == python[:256].tolist()


def test_numbers_of_16_bits_are_those_of_python():
    rng = np.random.default_rng(4)
    a, b = rng.integers(-32768, 32768, (2, 200)).astype(np.int16)
    code, python = [(np.zeros(200, np.int16), np.zeros(200, np.int64)) for _ in range(2)]
    halves(a, b, 200, *code)
    halves.function(a, b, 200, *python)
    assert code[0].tolist() == python[0].tolist() and code[1].tolist() == python[1].tolist()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_vectors_are_those_of_python(dtype):
    rng = np.random.default_rng(5)
    low, high = (-32768, 32767) if dtype == "int16" else (0, 127) if dtype == "int8" else (0, 255)
    a = rng.integers(low // 2, high // 2, 40, endpoint=True).astype(dtype)
    weights = rng.integers(-2048, 2048, 40).astype(np.int16)
    code, python = [(np.zeros(80, np.int32), np.zeros(80, dtype)) for _ in range(2)]
    vectors(a, weights, 20, *code)
    vectors.function(a, weights, 20, *python)
    assert code[0].tolist() == python[0].tolist() and code[1].tolist() == python[1].tolist()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64", "float32", "float64"])
def test_vectors_of_elements_in_another_order(dtype):
    a = np.arange(200, 212).astype(dtype)
    result = np.zeros(40, dtype)
    moved(a, 10, result)
    assert result.reshape(10, 4).tolist() == [[v + 2, v + 1, v, v] for v in range(200, 210)]


def test_arrays_of_other_types_and_orders_are_refused():
    a, result, parts = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.uint8), np.zeros((4, 4), np.int32)
    with pytest.raises(TypeError, match="weighted: source must be Elements in C order"):
        weighted(a.T[:, :2], 4, 2, 1, result, parts)
    with pytest.raises(TypeError, match="weighted: parts must be Ints"):
        weighted(a, 4, 4, 1, result, a)
    with pytest.raises(TypeError, match="source must be Elements in C order, not >f4"):
        weighted(a.astype(">f4"), 4, 4, 1, result, parts)
    with pytest.raises(TypeError, match="takes 6 arguments, got 1"):
        weighted(a)


@routine
def mixed(source: Floats, count: Int) -> None:
    source[0] = source[0] + count


@routine
def listed(source: Floats) -> None:
    source[0] = [1.0][0]


def test_what_is_not_translated_is_named_with_its_line():
    with pytest.raises(TypeError, match="routine mixed: line 3: i64 where float is; convert it"):
        mixed(np.zeros(1, np.float32), 1)
    with pytest.raises(TypeError, match="routine listed: line 3: List is not translated"):
        listed(np.zeros(1, np.float32))


def test_text_and_definition():
    assert "define void @mycel_floats_" in floats.text("float64", "down", "float32")
    assert definition(floats.function).name == "floats"


def test_vectors_have_all_bits_where_floats_are_computed():
    bits = 8 * host().vector_bytes
    assert f'"prefer-vector-width"="{bits}"' in scaled.text("uint8", (1, 0), "float64")
    assert f'"prefer-vector-width"="{min(bits, 256)}"' in copied.text("uint8", "uint8")


def test_routines_are_off_where_numpy_is_the_engine():
    from mycel._src.engines import base

    assert are_on() is (base.current().name != "reference")


@routine
def scaled(source: Elements, count: Int, scale: Double, order: Const, result: Doubles) -> None:
    for i in range(count):
        result[i] = f64(source[i]) * scale + f64(i32(order[0]))


class _Own(np.ndarray):
    pass


def test_calls_that_differ_from_the_ones_before_are_told_apart():
    result = np.zeros(3)
    values = np.arange(1, 4)
    calls = [(values.astype(kind), order) for kind in ("uint8", "int16", "float32", "int64") for order in (1, 2)]
    calls += [(values.astype(np.int64).view(_Own), 2), (values.astype(np.float64)[::1], 7)]
    for _ in range(3):
        for source, order in calls:
            scaled(source, 3, 0.5, (order, 0), result)
            assert result.tolist() == [0.5 + order, 1.0 + order, 1.5 + order]


def test_arguments_that_do_not_fit_are_refused_again_and_again():
    source, result = np.arange(3.0), np.zeros(3)
    scaled(source, 3, 1, (0,), result)
    for _ in range(2):
        with pytest.raises(TypeError, match="takes 5 arguments, got 2"):
            scaled(source, 3)
        with pytest.raises(TypeError, match="result must be Doubles in C order, not float32"):
            scaled(source, 3, 1.0, (0,), np.zeros(3, np.float32))
        with pytest.raises(TypeError, match="source must be Elements in C order"):
            scaled(np.zeros((3, 2))[:, 0], 3, 1.0, (0,), result)
    assert result.tolist() == [0, 1, 2]


def test_bytes_are_read_as_an_array_of_them():
    result = np.zeros((2, 3), np.uint8)
    weighted(np.frombuffer(b"abc", np.uint8), 1, 3, 1, result[0], np.zeros(3, np.int32))
    for _ in range(2):
        copied(b"abc", 3, result[1])
        assert bytes(result[1]) == b"abc"


@routine
def copied(source: Bytes, count: Int, result: Bytes) -> None:
    for i in range(count):
        result[i] = source[i]


def test_threads_call_one_routine_with_different_types():
    from concurrent.futures import ThreadPoolExecutor

    def call(number):
        kind = ("uint8", "float32", "int64")[number % 3]
        result = np.zeros(100)
        scaled(np.full(100, number % 50).astype(kind), 100, 2.0, (number % 5,), result)
        return result.tolist() == [2.0 * (number % 50) + number % 5] * 100

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(400)))

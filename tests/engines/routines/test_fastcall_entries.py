"""Functions that call code of routines without asking again which code it is."""

import pickle
import threading

import numpy as np
import pytest

from mycel._src.engines.routines import fastcall_entries as doors
from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Bytes, Const, Double, Doubles, Elements, Int, Longs, f64, i64


@routine
def noted(source: Elements, count: Int, scale: Double, shift: Const, result: Doubles) -> None:
    for i in range(count):
        result[i] = f64(source[i]) * scale + f64(shift)


@routine
def summed(source: Bytes, count: Int, result: Longs) -> None:
    total = i64(0)
    for i in range(count):
        total += source[i]
    result[0] = total


def _noted(source, scale, shift):
    result = np.full(source.size, -7.0)
    noted(source, source.size, scale, shift, result)
    return result.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64", "bool"])
def test_calls_after_the_first_one_give_the_same(dtype):
    source = np.arange(5).astype(dtype)
    for scale in (1.0, -1.0, 2.5, np.float64(3.0), 2, -1):
        for shift in (0, 1, -1):
            assert _noted(source, scale, shift) == (source.astype(float) * scale + shift).tolist()
            assert _noted(source + source, scale, shift) == ((source + source).astype(float) * scale + shift).tolist()


def test_what_was_made_for_other_arguments_is_not_called():
    source = np.arange(6, dtype=np.uint8)
    assert _noted(source, 1.0, 3) == (source + 3.0).tolist()
    assert len(noted._doors) <= 16
    for wrong in (source[::2], source.reshape(2, 3).T, source.astype(">u2"), source.astype(np.complex64)):
        with pytest.raises(TypeError, match="source must be Elements in C order"):
            _noted(wrong, 1.0, 3)
    result = np.zeros(6)
    with pytest.raises(TypeError, match="takes 5 arguments, got 4"):
        noted(source, 6, 1.0, 3)
    for arguments in ((source, 6.0, 1.0, 3, result), (source, 6, "1", 3, result)):
        with pytest.raises(Exception, match="argument"):
            noted(*arguments)
    assert _noted(source, 1.0, 3) == (source + 3.0).tolist()


def test_numbers_that_look_like_failures():
    source = np.arange(3, dtype=np.uint8)
    for _ in range(2):
        assert _noted(source, -1.0, 0) == [0.0, -1.0, -2.0]
        result = np.full(3, 5.0)
        noted(source, -1, 1.0, 0, result)
        assert result.tolist() == [5.0, 5.0, 5.0]


def test_copies_of_types_bytes_and_subclasses():
    class Own(np.ndarray):
        pass

    plain = np.arange(4, dtype=np.uint16)
    before = noted._doors
    assert _noted(plain, 1.0, 0) == [0.0, 1.0, 2.0, 3.0]
    for source in (pickle.loads(pickle.dumps(plain)), plain.astype(plain.dtype.newbyteorder("=")), plain.view(Own)):
        assert _noted(source, 1.0, 0) == [0.0, 1.0, 2.0, 3.0]
    assert len(noted._doors) <= len(before) + 1
    result = np.zeros(1, np.int64)
    for content in (b"\x01\x02\x03", np.array([1, 2, 3], np.uint8), b"\x04\x05\x06"):
        summed(content, 3, result)
        assert result[0] == sum(content)


def test_many_constants_and_threads():
    source, failed = np.arange(100, dtype=np.float32), []

    def ask(first):
        for shift in [*range(first, first + 20), *range(first, first + 20)]:
            if _noted(source, 0.5, shift) != (source * 0.5 + shift).tolist():
                failed.append(shift)

    threads = [threading.Thread(target=ask, args=(n,)) for n in (0, 5, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(noted._doors) == 16


def test_the_layout_of_objects_is_looked_at():
    assert doors.door() is doors.door() is not None
    assert doors.element_of(np.dtype("<u2")) == doors.element_of(np.dtype(np.uint16))
    elements = {doors.element_of(np.dtype(name)) for name in ("u1", "i1", "?", "u2", ">u2", "i2", "f4", ">f4", "f8")}
    assert len(elements) == 9

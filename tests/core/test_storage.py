"""Storages, DLPack, buffers, swapped tensors, and what tensors say of themselves, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import mycel as ms

CHECKED = dict.fromkeys(
    (
        "UntypedStorage from_dlpack frombuffer swap_tensors to_dlpack Tensor.const_arg Tensor.convert_bytes_to_tensor "
        "Tensor.data_ptr "
        "Tensor.data_sync Tensor.flush_from_cache Tensor.from_dlpack Tensor.get_bytes Tensor.init_finished "
        "Tensor.is_init Tensor.is_meta "
        "Tensor.is_pinned Tensor.is_shared Tensor.move_to Tensor.offload_file_path Tensor.pin_memory "
        "Tensor.requires_grad_ "
        "Tensor.set_const_arg Tensor.storage Tensor.storage_offset Tensor.to_dlpack Tensor.untyped_storage"
    ).split(),
    "NumPy",
)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16, np.complex64])
@pytest.mark.parametrize("shape", [(2, 3), (5,), (), (0, 2)])
def test_bytes(dtype, shape) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    t = ms.Tensor(array)
    assert t.get_bytes() == array.tobytes()
    again = ms.Tensor.convert_bytes_to_tensor(t.get_bytes(), shape, t.dtype)
    np.testing.assert_array_equal(again.asnumpy(), array, strict=True)
    held = t.untyped_storage()
    assert held.nbytes() == held.size() == len(held) == array.nbytes and held.tolist() == list(array.tobytes())
    assert held.data_ptr() == t.data_ptr() and t.storage_offset() == 0 and held.device == "CPU"
    other = ms.Tensor(np.zeros_like(array))
    other.storage().copy_(held)
    np.testing.assert_array_equal(other.asnumpy(), array, strict=True)
    with pytest.raises(ValueError, match="bytes do not fit"):
        held.copy_(ms.Tensor(np.zeros(array.nbytes + 1, np.uint8)).storage())


def test_dlpack_shares_memory() -> None:
    array = np.arange(6.0).reshape(2, 3)
    for t in (ms.from_dlpack(array), ms.Tensor.from_dlpack(ms.from_dlpack(array).to_dlpack())):
        array[1, 1] += 10
        np.testing.assert_array_equal(t.asnumpy(), array, strict=True)
    np.testing.assert_array_equal(np.from_dlpack(ms.Tensor([1, 2])), [1, 2])
    np.testing.assert_array_equal(ms.from_dlpack(array.T).asnumpy(), array.T)
    with pytest.raises(TypeError, match="from_dlpack: takes"):
        ms.from_dlpack(3)
    with pytest.raises(TypeError, match="bfloat16"):
        ms.to_dlpack(ms.Tensor([1.0], ms.bfloat16))


@pytest.mark.parametrize(("count", "offset"), [(-1, 0), (2, 2), (0, 8), (-1, 8), (1, 4)])
def test_frombuffer(count: int, offset: int) -> None:
    data = b"abcdefgh"
    wanted = np.frombuffer(data[offset:], np.int16)[: count if count >= 0 else None]
    np.testing.assert_array_equal(ms.frombuffer(data, dtype=ms.int16, count=count, offset=offset).asnumpy(), wanted)


def test_frombuffer_shares_what_can_be_written() -> None:
    data = bytearray(4)
    t = ms.frombuffer(data, dtype=ms.uint8)
    data[2] = 7
    assert t.asnumpy().tolist() == [0, 0, 7, 0]
    for options in ({"offset": 9}, {"offset": -1}, {"count": 3, "offset": 3}):
        with pytest.raises(ValueError, match="do not lie"):
            ms.frombuffer(b"abcde", dtype=ms.int8, **options)
    with pytest.raises(ValueError, match="whole number"):
        ms.frombuffer(b"abcde", dtype=ms.int16)


def test_swap_tensors() -> None:
    a, b = ms.Parameter(ms.Tensor([1.0]), name="a"), ms.Parameter(ms.Tensor([[2, 3]]), name="b", requires_grad=False)
    ms.swap_tensors(a, b)
    assert (a.name, a.requires_grad, a.asnumpy().tolist()) == ("b", False, [[2, 3]])
    assert (b.name, b.requires_grad, b.asnumpy().tolist()) == ("a", True, [1.0])
    with pytest.raises(TypeError, match="one class"):
        ms.swap_tensors(a, ms.Tensor(1))
    x = ms.Tensor([1.0, 2.0])
    view = x[:1]
    with pytest.raises(RuntimeError, match="view"):
        ms.swap_tensors(x, ms.Tensor(1.0))
    assert view.asnumpy().tolist() == [1.0]


def test_marks() -> None:
    t, p = ms.Tensor([1.0]), ms.Parameter(ms.Tensor([1.0]), name="p")
    assert p.requires_grad_(False) is p and p.requires_grad is False and t.requires_grad_() is t
    assert not t.const_arg and t.set_const_arg() is t and t.const_arg
    assert t.init_finished and not t.is_init() and not t.is_meta and not t.is_pinned() and not t.is_shared()
    declared = ms.Tensor(shape=(2,), dtype=ms.float32, init=ms.common.initializer.One())
    assert not declared.init_finished and declared.init_data().init_finished
    moved = t.move_to("CPU")
    assert moved is not t and moved.asnumpy().tolist() == [1.0] and t.offload_file_path() == ""
    assert t.data_sync() is None and t.flush_from_cache() is None
    with pytest.raises(ValueError, match="Ascend"):
        t.move_to("Ascend")
    with pytest.raises(RuntimeError, match="no device beside"):
        t.pin_memory()
    with pytest.raises(TypeError, match="requires_grad_"):
        p.requires_grad_(1)


@pytest.mark.parametrize("kind", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "complex64", ">i4", "bool"])
def test_arrays_of_any_numbers_are_taken_shared_and_read_only(kind: str) -> None:
    array = np.array([[1, 0, 1]] * 2).astype(getattr(ml_dtypes, kind, kind))
    for found in (array, array.T, array[:, ::2], array[:1], array.reshape(2, 3, 1)):
        assert np.array_equal(ms.Tensor(found).asnumpy(), found)
        if kind != ">i4":
            assert np.array_equal(ms.from_numpy(found).asnumpy(), found)
        frozen = found.copy()
        frozen.flags.writeable = False
        assert np.array_equal(ms.Tensor(frozen).asnumpy(), frozen)

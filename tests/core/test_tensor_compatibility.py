"""What tensors and parameters say of themselves and are asked to do besides computing.

The values are MindSpore 2.10's on a CPU.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor
from mycel._src.devices import runtime
from mycel._src.foundation.errors import NeedsValue, Unsupported
from mycel.common.initializer import Normal, initializer
from tests.meaning import A, Checks

CHECKED = dict.fromkeys(
    [
        f"Tensor.{name}"
        for name in (
            "set_ assign_value_cpp to_ offload delete_ set_init_flag wait_pipeline set_dtype remove_hook init "
            "init_flag virtual_flag parent_tensor_ symbolic_shape "
            "delta_seed param_info"
        ).split()
    ],
    "MindSpore",
)

checks = Checks("NumPy")
for _k, _dim, _keep in ((2, -1, False), (1, 0, True), (3, 1, False)):

    def _kth(x: Any, k: int, dim: int, keepdim: bool) -> Any:
        order = np.argsort(x, dim, kind="stable").take([k - 1], dim)
        values = np.take_along_axis(x, order, dim)
        return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))

    checks.add(
        "Tensor.kthvalue",
        _kth,
        (A(4, 3),),
        (A(5, 4),),
        (A(3, 3, 2),) if _k < 3 else (A(3, 7),),
        kwargs={"k": _k, "dim": _dim, "keepdim": _keep},
    )
test_values, test_gradients = checks.tests()

F = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_kthvalue_refuses() -> None:
    x = Tensor(F)
    with pytest.raises(TypeError, match="k must be an int"):
        x.kthvalue(1.0)
    with pytest.raises(TypeError, match="keepdim"):
        x.kthvalue(1, 0, 1)
    with pytest.raises(ValueError, match=r"\[1, 3\]"):
        x.kthvalue(4)


def test_set_shares_the_elements_of_another_tensor() -> None:
    x, y = Tensor(F), Tensor(np.ones(3, np.float32))
    assert x.set_(y) is x and x.tolist() == [1, 1, 1] and x.parent_tensor_ is y
    y[0] = 5
    x[1] = 7
    assert x.tolist() == y.tolist() == [5, 7, 1]
    assert ms.jit(lambda: x * 2)().tolist() == [10, 14, 2]
    assert x.set_().shape == (0,)
    y[0] = 6
    assert x.tolist() == []


def test_set_with_sizes_and_strides_shows_what_as_strided_shows() -> None:
    base = Tensor(np.arange(12, dtype=np.float32))
    for offset, size, stride in (
        (0, (3, 4), None),
        (2, (2, 5), (5, 1)),
        (1, (4, 2), (1, 4)),
        (0, (2, 3, 2), (2, 4, 1)),
        (5, (), None),
        (3, (0, 4), None),
    ):
        want = (
            np.lib.stride_tricks.as_strided(
                np.arange(12, dtype=np.float32)[offset:], size, [4 * s for s in stride] if stride else None
            )
            if np.prod(size)
            else np.zeros(size)
        )
        if stride is None and np.prod(size):
            want = np.arange(12, dtype=np.float32)[offset : offset + int(np.prod(size))].reshape(size)
        x = Tensor([0.0]).set_(base, offset, size, stride)
        np.testing.assert_array_equal(x.asnumpy(), want)
    x = Tensor([0.0]).set_(base.untyped_storage(), 1, (4, 2), (1, 4))
    x[1, 1] = -1
    assert base[6].item() == -1


def test_set_refuses() -> None:
    base = Tensor(np.arange(12, dtype=np.float32))
    x = Tensor([0.0])
    for args, error, text in (
        ((3,), TypeError, "tensor or a storage, not int"),
        ((Tensor([1]),), RuntimeError, "float32, the source int64"),
        ((base, 8, (5,)), RuntimeError, "do not lie in 12"),
        ((base, -1, (5,)), RuntimeError, "do not lie in 12"),
        ((base, 0, (2, 2), (1,)), RuntimeError, "one length"),
        ((base, 0, (2, 2), (1, 1)), Unsupported, "leaves elements out or repeats"),
        ((base, 2), TypeError, "need a size"),
    ):
        with pytest.raises(error, match=text):
            x.set_(*args)
    with pytest.raises(Unsupported, match="differentiated function"):
        ms.grad(lambda v: (v * Tensor([1.0]).set_(base, 0, (1,))).sum())(x)
    with pytest.raises(RuntimeError, match="already"):
        base.set_(base[2:])


def test_values_put_aside_in_a_file_come_back_when_asked_for(tmp_path: Path) -> None:
    size = 1 << 16
    x = Tensor(np.arange(size, dtype=np.float32))
    before = runtime.memory_allocated()
    assert x.offload(str(tmp_path / "x.bin")) is True
    assert before - runtime.memory_allocated() >= 4 * size and (tmp_path / "x.bin").stat().st_size == 4 * size
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x.bin", np.float32), np.arange(size))
    assert x.shape == (size,) and (x + 1)[3].item() == 4
    p = Parameter(Tensor(F), name="p")
    assert p.offload(tmp_path / "p.bin") and type(p) is not Parameter
    twin = copy.deepcopy(p)
    for q in (p, twin):
        assert ms.jit(lambda v, q=q: v * q)(Tensor(2.0)).tolist() == (2 * F).tolist()
    assert p.offload(tmp_path / "p.bin")
    p.set_data(Tensor(-F))
    assert p.tolist() == (-F).tolist() and type(p) is Parameter
    view = p[0]
    assert p.offload(tmp_path / "p.bin") is False and view.offload(tmp_path / "v.bin") is False
    y = Tensor(F)
    y.offload(tmp_path / "y.bin")
    (tmp_path / "y.bin").write_bytes(b"123")
    with pytest.raises(RuntimeError, match="has 3 bytes where a tensor of 24"):
        y.asnumpy()
    with pytest.raises(TypeError, match="path"):
        y.offload(3)


def test_deleted_values_cannot_be_asked_for_and_others_take_their_place() -> None:
    x = Tensor(F)
    view = x[1]
    assert x.delete_() is x and x.shape == (2, 3) and view.tolist() == F[1].tolist()
    with pytest.raises(NeedsValue):
        x + 1
    x[:] = Tensor(F * 2)
    assert x.tolist() == (F * 2).tolist()
    with pytest.raises(RuntimeError, match="is a view"):
        x[0].delete_()


def test_types_and_values_change_in_place() -> None:
    x = Tensor(F + 0.7)
    assert x.set_dtype(ms.int32) is ms.int32 and x.tolist() == F.tolist()
    y = Tensor(F)
    assert y.assign_value_cpp(Tensor([1, 2])) is y and y.dtype is ms.int64 and y.tolist() == [1, 2]
    other = Tensor([3, 4])
    y.assign_value_cpp(other)
    other[0] = 9
    assert y.tolist() == [3, 4]
    with pytest.raises(TypeError, match="value must be a Tensor"):
        y.assign_value_cpp([1])
    assert y.to_("CPU") is y and y.wait_pipeline() is None
    with pytest.raises(ValueError, match="'Ascend' is not available"):
        y.to_("Ascend")


def test_what_tensors_say_of_themselves() -> None:
    x = Tensor(F)
    drawn = initializer(Normal(0.1), (2, 3), ms.float32)
    assert x.init is None and isinstance(drawn.init, Normal)
    assert (x.init_flag, x.delta_seed, x.param_info, x.parent_tensor_, x.symbolic_shape, x.virtual_flag) == (
        False,
        0,
        None,
        None,
        None,
        False,
    )
    x.set_init_flag(True)
    x.virtual_flag = True
    assert x.init_flag and x.virtual_flag
    x.init_flag = False
    assert not x.init_flag
    assert x[0].parent_tensor_ is x and x[0][1].parent_tensor_ is x
    assert Tensor(shape=[ms.Symbol(max=4, divisor=2), 3], dtype=ms.float32).symbolic_shape == [
        {"max": 4, "divisor": 2},
        3,
    ]
    assert Tensor(shape=[None, 3], dtype=ms.float32).symbolic_shape is None
    p = Parameter(x, name="p")
    assert p.param_info is p
    state = ms.Parameter(ms.Tensor([0.0]))
    p.comm_fusion, p.requires_grad = 3, False
    state.param_info = p.param_info.clone()
    assert (state.name, state.requires_grad, float(state[0])) == (p.name, False, 0.0)
    with pytest.raises(AttributeError):
        state.param_info = 3
    for stage in (0, 3, True):
        assert p.add_pipeline_stage(stage) is None
    for wrong in (-1, "a", 1.5):
        with pytest.raises(TypeError, match="stage"):
            p.add_pipeline_stage(wrong)
    for setting in (lambda: x.set_init_flag(1), lambda: setattr(x, "virtual_flag", 1), lambda: setattr(x, "init", 3)):
        with pytest.raises(TypeError):
            setting()


def test_hooks_are_removed_by_number() -> None:
    x = Tensor(2.0)
    first = x.register_hook(lambda g: g * 10)
    second = x.register_hook(lambda g: g + 1)
    square = lambda x: x * x
    assert float(ms.grad(square)(x)) == 41
    assert first.id != second.id and x.remove_hook(first.id) is None
    assert float(ms.grad(square)(x)) == 5 and float(ms.grad(ms.jit(square))(x)) == 5
    Tensor.remove_hook(second.id)
    Tensor.remove_hook(second.id)
    second.remove()
    assert float(ms.grad(square)(x)) == 4
    with pytest.raises(TypeError, match="id must be an int"):
        x.remove_hook("a")


def test_parameters_are_drawn_whatever_their_layout() -> None:
    with ms.nn.no_init_parameters():
        p = Parameter(initializer("ones", (2, 3), ms.float32), name="p")
    assert (
        p.init_data(layout=([2], [0], [1], 1, True, ""), set_sliced=True) is p
        and p.tolist() == np.ones((2, 3)).tolist()
        and p.sliced
    )
    with pytest.raises(TypeError, match="tuple"):
        p.init_data([1])
    with pytest.raises(ValueError, match="six"):
        p.init_data((1,))
    handle = p.register_hook(hook_fn=lambda g: g * 2)
    assert ms.grad(lambda: (p * 3).sum(), None, ms.ParameterTuple([p]))()[0].tolist() == np.full((2, 3), 6.0).tolist()
    handle.remove()

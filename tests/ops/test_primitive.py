"""What operations as objects have in common: names, attributes, and what MindSpore's say of
devices, stages and memory.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops


def test_attributes_and_how_operations_show() -> None:
    add = ops.Add()
    assert repr(add) == "Prim[Add]" and repr(add.set_stage(0)) == "Prim[Add]<stage=0>" and add.stage == 0
    assert add.set_device("GPU") is add and add.primitive_target == "GPU" and add(Tensor([1.0]), 2.0).tolist() == [3.0]
    add.del_prim_attr("stage").del_prim_attr("absent")
    assert repr(add) == "Prim[Add]<primitive_target=GPU>" and not hasattr(add, "stage")
    add.init_prim_io_names(["x", "y"], ["sum"])
    assert add.input_names == ["x", "y"] and add.output_names == ["sum"] and add.check_elim(1, 2) == (False, None)
    assert repr(ops.ReduceSum(True)) == "Prim[ReduceSum]<keep_dims=True, skip_mode=False>"
    assert ops.MatMul().shard(((1, 1), (1, 1)))(ops.ones((2, 3)), ops.ones((3, 2))).tolist() == [[3.0, 3.0]] * 2
    ops.MatMul().place("MS_WORKER", 0)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of 'CPU', 'GPU', 'Ascend'"):
        ops.Add().set_device("TPU")
    with pytest.raises(ValueError, match=r"no \('MS_SERVER', 1\)"):
        ops.Add().place("MS_SERVER", 1)
    with pytest.raises(TypeError, match="the mode of recompute must be a bool"):
        ops.Add().recompute(1)
    with pytest.raises(TypeError, match="in_strategy must be a tuple"):
        ops.Add().shard([1])


def test_recomputed_operations_have_the_same_derivatives() -> None:
    x = Tensor(np.array([-1.0, 1.0, 2.0]))
    plain, anew = ops.Tanh(), ops.Tanh().recompute()
    assert anew.attrs == {"recompute": True}
    for wrap in (lambda f: f, ms.jit):
        gradients = [wrap(ms.grad(lambda x, op=op: (op(x) ** 2).sum()))(x).asnumpy() for op in (plain, anew)]
        np.testing.assert_array_equal(*gradients)
    assert anew.recompute(False).attrs == {"recompute": False} and anew(x).tolist() == plain(x).tolist()


def test_parameters_of_operations_count():
    x = ops.ones((2, 3))
    # Checked against MindSpore 2.10.
    assert ops.ReduceSum(False, True)(x, ()).shape == (2, 3) and ops.ReduceSum(False, True)(x, 0).shape == (3,)
    assert ops.ReduceSum()(x, ()).item() == 6.0
    assert ops.LpNorm(0, 2, False, 5.0)(x).tolist() == [5.0] * 3
    np.testing.assert_allclose(ops.LpNorm(0)(x).asnumpy(), np.full(3, np.sqrt(2.0)), rtol=1e-6)
    with pytest.raises(ValueError, match="num_split must be 2"):
        ops.SplitV([1, 2], 1, 3)(x)
    with pytest.raises(ValueError, match="data_format must be 'NCDHW'"):
        ops.Conv3DTranspose(1, 1, 1, data_format="NDHWC")(ops.ones((1, 1, 1, 1, 1)), ops.ones((1, 1, 1, 1, 1)))

"""What operations as objects have in common: names, attributes, and what MindSpore's say of
devices, stages and memory.
"""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ops.Sort(descending=1), TypeError, "Sort: descending must be a bool, not int"),
        (lambda: ops.Sort(axis=True), TypeError, "Sort: axis must be an int, not bool"),
        (lambda: ops.LRN(bias=1), TypeError, "LRN: bias must be a float, not int"),
        (lambda: ops.LRN(-1), ValueError, "LRN: depth_radius must be at least 0, not -1"),
        (lambda: ops.LRN(norm_region=3), TypeError, "LRN: norm_region must be a string, not int"),
        (lambda: ops.LRN(norm_region="ALL"), ValueError, "LRN: norm_region must be 'ACROSS_CHANNELS', not 'ALL'"),
        (lambda: ops.MirrorPad(mode=1), ValueError, "MirrorPad: mode must be one of"),
        (lambda: ops.Renorm(1, 0), TypeError, "missing a required argument: 'maxnorm'"),
        (lambda: ops.Conv2D(3, [3, 3]), TypeError, "kernel_size must be an int or a tuple of ints, not list"),
        (lambda: ops.MaxPool((2, 2, 2)), ValueError, r"of ints \(2 or 4\), not \(2, 2, 2\)"),
        (lambda: ops.MaxPool((2, 2.5)), TypeError, "each of kernel_size must be an int, not float"),
        (lambda: ops.TruncatedNormal("float32"), TypeError, "dtype must be an element type, not str"),
        (lambda: ops.LowerBound(ms.float32), TypeError, "out_type must be int32 or int64, not float32"),
        (lambda: ops.BoundingBoxEncode((0.0,) * 3), ValueError, "means must be 4 floats"),
        (lambda: ops.SpaceToBatchND([2, 2], [[0], [0]]), ValueError, "paddings must be pairs of ints"),
        (lambda: ops.Unstack(num="a"), TypeError, "num must be an int, not str"),
    ],
)
def test_parameters_are_checked_when_an_object_is_made(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_parameters_that_have_other_types() -> None:
    assert ops.Sort(np.int64(0)).axis == 0 and ops.LRN(bias=np.float32(0.5)).bias == 0.5
    assert ops.Unstack().num is None and ops.HShrink(1).lambd == 1 and ops.Squeeze([0]).axis == [0]
    assert ops.NanToNum(0).nan == 0 and ops.MatMul(np.True_).transpose_a is True


X = Tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ops.ReLU()([1.0]), "ReLU: input must be a Tensor, not list"),
        (lambda: ops.ReLU()(), r"ReLU: takes 2 inputs \(input, inplace\), not 0"),
        (lambda: ops.InTopK(1)(X, X, X), r"InTopK: takes 2 inputs \(x, y\), not 3"),
        (lambda: ops.Add()(X, "a"), "Add: other must be a Tensor, a bool, an int or a float, not str"),
        (lambda: ops.LogicalAnd()(X, 1), "LogicalAnd: other must be a Tensor or a bool, not int"),
        (lambda: ops.Gather()(X, X, True), "Gather: axis must be an int or a Tensor, not bool"),
        (lambda: ops.Softsign()(x=None), "Softsign: x must be a Tensor, not NoneType"),
        (lambda: ops.Softsign()(y=X), "got an unexpected keyword argument 'y'|missing a required argument"),
    ],
)
def test_inputs_are_checked_at_the_call(call: Any, text: str) -> None:
    """The error is the one that MindSpore's operation raises, whichever that is."""
    for error in (TypeError, ValueError, RuntimeError):
        with pytest.raises(error, match=text):
            call()


def test_inputs_that_are_not_tensors() -> None:
    assert ops.Add()(X, np.float32(1)).tolist() == [2.0, 3.0] and ops.Add()(X, np.int64(1)).tolist() == [2.0, 3.0]
    assert ops.Gather()(X, Tensor([1]), np.int64(0)).tolist() == ops.Gather()(X, Tensor([1]), Tensor(0)).tolist()
    assert ops.BCEWithLogitsLoss()(X, X, None).shape == () and ops.ReduceSum()(X, [0]).item() == 3.0
    assert ms.jit(lambda x: ops.Tile()(x, (x.shape[0],)))(X).tolist() == [1.0, 2.0] * 2

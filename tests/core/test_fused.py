"""Composed functions as one program, views by their routes, and writes of blocks: the same values,
views, gradients and errors as step by step.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.foundation.errors import NonFiniteError, ShapeError
from mycel._src.tensors.core import fused as fused_module
from mycel._src.tensors.core.fused import fused


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.fixture
def traces(monkeypatch):
    """What was compiled by `fused` since the test began."""
    made = []
    own = fused_module.compile_small
    monkeypatch.setattr(fused_module, "compile_small", lambda graph: made.append(graph) or own(graph))
    return made


def test_a_call_is_compiled_once_for_its_types_and_arguments(traces):
    @fused
    def scaled(x, factor=2.0, *, shift=0):
        return x * factor + shift

    x = array(3, 4)
    for _ in range(3):
        np.testing.assert_allclose(scaled(ms.Tensor(x)).asnumpy(), 2 * x)
        np.testing.assert_allclose(scaled(ms.Tensor(x), 3.0, shift=1).asnumpy(), 3 * x + 1)
    assert len(traces) == 2
    scaled(ms.Tensor(x[:2]))
    assert len(traces) == 3


def test_arguments_that_are_equal_and_differ_are_kept_apart():
    @fused
    def kind(x, value):
        return x + {bool: 1.0, int: 2.0, float: 3.0}[type(value)]

    @fused
    def signed(x, value):
        return x + np.copysign(1.0, value).item()

    x = ms.Tensor([0.0])
    assert [kind(x, v).item() for v in (True, 1, 1.0, True, 1, 1.0)] == [1, 2, 3, 1, 2, 3]
    assert [signed(x, v).item() for v in (0.0, -0.0, 0.0, -0.0)] == [1, -1, 1, -1]


def test_numbers_that_change_from_call_to_call_are_not_compiled_again_and_again(traces):
    @fused
    def scaled(x, factor):
        return x * factor

    x = ms.Tensor([2.0])
    assert [scaled(x, 0.5 * k).item() for k in range(1, 60)] == [float(k) for k in range(1, 60)]
    assert len(traces) == fused_module.VARIETY


def test_what_is_not_one_graph_of_the_arguments_runs_as_it_is(traces):
    outside = ms.Tensor([5.0])
    seen = []

    @fused
    def same(x):
        return x

    @fused
    def reads(x):
        seen.append(float(x.sum()))
        return x * 2

    @fused
    def captures(x):
        return x + outside

    @fused
    def writes(x):
        return ops.relu(x, inplace=True)

    @fused
    def views(x):
        return x[1:]

    x = ms.Tensor([1.0, 2.0])
    assert same(x) is x
    for _ in range(2):
        reads(x)
        assert captures(x).tolist() == [6.0, 7.0]
    assert seen == [3.0, 3.0]
    outside[0] = 6.0
    assert captures(x).tolist() == [7.0, 8.0]
    for _ in range(2):
        part = views(x)
        part[0] = 9.0
        assert x.tolist() == [1.0, 9.0]
        x[1] = 2.0
    negative = ms.Tensor([-1.0])
    for _ in range(2):
        assert writes(negative) is negative and negative.tolist() == [0.0]
        negative[0] = -1.0
    assert not {g.name for g in traces} & {"same", "reads", "captures", "writes", "views"}


def test_errors_are_those_of_the_function():
    x = ms.Tensor(array(2, 3))
    for _ in range(2):
        with pytest.raises(ShapeError, match="layer_norm: the last axes"):
            ops.layer_norm(x, (4,))
        with pytest.raises(ValueError, match="reduction"):
            ops.cross_entropy(x, ms.Tensor([0, 1]), reduction="most")


CALLS = {
    "relu": lambda x: ops.relu(x),
    "gelu": lambda x: ops.gelu(x, approximate="none"),
    "softmax": lambda x: ops.softmax(x, -1),
    "layer_norm": lambda x: ops.layer_norm(x, (4,), x[0] * 0 + 2.0, None),
    "tanh": lambda x: ops.tanh(x),
    "var": lambda x: x.var(1),
    "concat": lambda x: ops.concat((x, x * x), 1),
    "several": lambda x: sum(t.sum() for t in ops.var_mean(x, 1)),
    "views": lambda x: x.T[1:].reshape(-1) * x.reshape(4, 3)[:, 1:].sum(),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_derivatives_agree_with_compiled_ones(name):
    call = CALLS[name]
    x, w = ms.Tensor(array(3, 4)), ms.Tensor(array(3, 4, seed=1))

    def loss(x):
        out = call(x)
        return (out * ops.cos(out)).sum()

    for _ in range(2):
        np.testing.assert_allclose(call(x).asnumpy(), ms.jit(call)(x).asnumpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ms.grad(loss)(x).asnumpy(), ms.jit(ms.grad(loss))(x).asnumpy(), rtol=1e-4, atol=1e-5)

    def along(x):
        return (ms.grad(loss)(x) * w).sum()

    np.testing.assert_allclose(ms.grad(along)(x).asnumpy(), ms.jit(ms.grad(along))(x).asnumpy(), rtol=1e-3, atol=1e-4)


def test_a_kept_result_is_given_back_once(traces):
    ms.grad(lambda x: ops.tanh(x).sum())(ms.Tensor(array(5, 7)))
    kept = [g for g in traces if g.name == "tanh"]
    assert kept and all(len(g.outputs) == len(set(g.outputs)) for g in kept)


def test_checks_of_values_name_the_operation_inside():
    x = ms.Tensor([-1.0, 1.0])
    ops.logit(ms.Tensor([0.5, 0.5]))
    ms.set_context(check_nan=True)
    try:
        with pytest.raises(NonFiniteError, match="log"):
            ops.logit(x)
    finally:
        ms.set_context(check_nan=False)
    assert np.isnan(ops.logit(x).asnumpy()[0])


INDICES = (
    1,
    -1,
    slice(1, 3),
    (slice(None), 2),
    (0, 0),
    (Ellipsis, None),
    (slice(None, None, 2), slice(-3, None)),
    (slice(0, 0),),
    slice(None),
)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_views_and_writes_by_basic_indices_are_those_of_numpy(index):
    mine, theirs = ms.Tensor(array(4, 5)), array(4, 5)
    for k in range(3):
        view, wanted = mine[index], theirs[index]
        np.testing.assert_array_equal(view.asnumpy(), wanted)
        assert view.shape == wanted.shape
        mine[index] = k
        theirs[index] = k
        np.testing.assert_array_equal(mine.asnumpy(), theirs)
        np.testing.assert_array_equal(view.asnumpy(), theirs[index])
        mine[index] = ms.Tensor(np.float32(k + 0.5))
        theirs[index] = k + 0.5
        np.testing.assert_array_equal(mine.asnumpy(), theirs)
    with pytest.raises(ValueError, match="does not fit"):
        mine[index] = ms.Tensor(array(7, 7))


def test_a_number_is_converted_as_a_tensor_is():
    x = ms.Tensor([1, 2, 3])
    x[1] = 2.9
    assert x.tolist() == [1, 2, 3] and x.dtype == ms.int64


def test_views_of_views_are_made_again_with_their_root():
    for k in range(3):
        x = ms.Tensor(array(4, 6, seed=k))
        a = x.asnumpy().copy()
        lines = x.T.reshape(2, 3, 4)[1]
        np.testing.assert_array_equal(lines.asnumpy(), a.T.reshape(2, 3, 4)[1])
        lines[0] = 1.0
        a.T[3] = 1.0
        np.testing.assert_array_equal(x.asnumpy(), a)
        moved = x.T.reshape(24)  # has to move elements: a tensor of its own
        moved[0] = 7.0
        np.testing.assert_array_equal(x.asnumpy(), a)
        first, second = ops.split(x, 3, 1)
        first[0, 0] = 5.0
        a[0, 0] = 5.0
        np.testing.assert_array_equal(x.asnumpy(), a)
        np.testing.assert_array_equal(second.asnumpy(), a[:, 3:])


def test_writes_to_views_are_recorded():
    def work(x):
        y = x * 1.0
        y.T[1] = y[0, :3] * 2
        return (y.reshape(12) * ops.arange(12).astype(ms.float32)).sum()

    for k in range(3):
        grads = ms.grad(work)(ms.Tensor(array(3, 4, seed=k))).asnumpy()
        weight = np.arange(12.0).reshape(3, 4)
        wanted = weight.copy()
        wanted[:, 1] = 0
        wanted[0, :3] += 2 * weight[:, 1]
        np.testing.assert_allclose(grads, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"])
def test_numbers_are_read_from_tensors_of_one_element(dtype):
    value = np.array([1.5 if "float" in dtype else 1]).astype(dtype)
    t = ms.Tensor(value)
    assert t.item() == value.item() and type(t.item()) is type(value.item())
    assert float(t) == float(value[0]) and int(t) == int(value[0]) and bool(t) is True
    negative = ms.Tensor((value * (-1 if dtype not in ("uint8", "bool") else 0)).astype(dtype))
    assert negative.item() == (value * (-1 if dtype not in ("uint8", "bool") else 0)).astype(dtype).item()
    with pytest.raises(ValueError, match="has 2 elements"):
        ms.Tensor(np.repeat(value, 2)).item()


def test_memory_of_a_large_tensor_is_used_again():
    run = runtime()
    buffer = run.new_buffer(48 << 20)
    place = run.data_address(buffer)
    del buffer
    again = run.new_buffer(48 << 20)
    assert run.data_address(again) == place


def _again(call):
    """How many programs the third of equal calls makes."""
    call(), call()
    before = Template.lowerings
    call()
    return Template.lowerings - before


def test_loops_of_operations_are_compiled_once():
    from mycel.ops.incomplete_beta import betainc

    x, boxes = ms.Tensor([0.25, 0.5]), ms.Tensor([[0.0, 0.0, 1.0, 1.0, 0.5], [0.0, 0.0, 1.0, 0.9, 0.9]])
    assert _again(lambda: betainc(x, x + 1.0, x)) == 0
    assert _again(lambda: ms.grad(lambda a: betainc(a, x, x).sum())(x)) == 0
    assert _again(lambda: ops.NMSWithMask(0.5)(boxes)) == 0
    np.testing.assert_array_equal(ops.NMSWithMask(0.75)(boxes)[2].asnumpy(), [True, False])
    np.testing.assert_array_equal(ops.NMSWithMask(0.95)(boxes)[2].asnumpy(), [True, True])


def test_nan_among_the_arguments_is_one_argument():
    x = ms.Tensor([1.0, 2.0])
    assert _again(lambda: ops.where(x > 1.0, float("nan"), x)) == 0
    assert _again(lambda: ms.numpy.nanmax(x)) == 0

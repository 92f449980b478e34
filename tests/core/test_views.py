"""Views: which operations give them, what writes change, and what is kept alive."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mycel as ms
from mycel import ops

SHAPE = (2, 3, 4)


def base():
    return ms.Tensor(np.arange(24, dtype=np.float32).reshape(SHAPE))


def array():
    return np.arange(24, dtype=np.float32).reshape(SHAPE)


# What gives a view, and the same of a NumPy array.
VIEWS = {
    "int": (lambda x: x[1], lambda a: a[1]),
    "ints": (lambda x: x[0, 1], lambda a: a[0, 1]),
    "slice": (lambda x: x[:, 1:], lambda a: a[:, 1:]),
    "steps": (lambda x: x[..., ::2], lambda a: a[..., ::2]),
    "backwards": (lambda x: x[:, ::-1], lambda a: a[:, ::-1]),
    "new axis": (lambda x: x[None, 1, :, None], lambda a: a[None, 1, :, None]),
    "true": (lambda x: x[True], lambda a: a[None]),
    "dots": (lambda x: x[...], lambda a: a[...]),
    "everything": (lambda x: x[:], lambda a: a[:]),
    "scalar tensor": (lambda x: x[ms.Tensor(-1)], lambda a: a[-1]),
    "scalar tensor beside slices": (lambda x: x[ms.Tensor(1), 1:], lambda a: a[1, 1:]),
    "iteration": (lambda x: list(x)[1], lambda a: list(a)[1]),
    "reshape": (lambda x: x.reshape(6, 4), lambda a: a.reshape(6, 4)),
    "ops.reshape": (lambda x: ops.reshape(x, (4, -1)), lambda a: a.reshape(4, 6)),
    "view": (lambda x: x.view(24), lambda a: a.reshape(24)),
    "view_as": (lambda x: x.view_as(ms.ops.ones((4, 6))), lambda a: a.reshape(4, 6)),
    "reshape of rows": (lambda x: x[1:].reshape(12), lambda a: a[1:].reshape(12)),
    "reshape of a transpose that fits": (
        lambda x: x.permute(2, 0, 1).reshape(4, 6),
        lambda a: a.transpose(2, 0, 1).reshape(4, 6),
    ),
    "ravel": (lambda x: x.ravel(), lambda a: a.ravel()),
    "flatten": (lambda x: x.flatten(), lambda a: a.reshape(-1)),
    "ops.flatten": (lambda x: ops.flatten(x), lambda a: a.reshape(2, 12)),
    "transpose": (lambda x: x.transpose(1, 0, 2), lambda a: a.transpose(1, 0, 2)),
    "transpose of two": (lambda x: x.transpose(0, 1), lambda a: a.swapaxes(0, 1)),
    "permute": (lambda x: ops.permute(x, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "T": (lambda x: x.T, lambda a: a.T),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    "t": (lambda x: x[0].t(), lambda a: a[0].T),
    "swapaxes": (lambda x: x.swapaxes(0, 2), lambda a: a.swapaxes(0, 2)),
    "swapdims": (lambda x: x.swapdims(0, 1), lambda a: a.swapaxes(0, 1)),
    "movedim": (lambda x: ops.movedim(x, 0, 2), lambda a: np.moveaxis(a, 0, 2)),
    "split": (lambda x: x.split(1, 1)[2], lambda a: a[:, 2:]),
    "chunk": (lambda x: ops.chunk(x, 2, 2)[1], lambda a: a[..., 2:]),
    "unbind": (lambda x: x.unbind(1)[1], lambda a: a[:, 1]),
    "unstack": (lambda x: ops.unstack(x)[1], lambda a: a[1]),
    "tensor_split": (lambda x: ops.tensor_split(x, 2, 1)[0], lambda a: a[:, :2]),
    "hsplit": (lambda x: ops.hsplit(x, 3)[1], lambda a: a[:, 1:2]),
    "narrow": (lambda x: x.narrow(2, 1, 2), lambda a: a[..., 1:3]),
    "select": (lambda x: x.select(1, 2), lambda a: a[:, 2]),
    "strided_slice": (lambda x: ops.strided_slice(x, (0, 0, 1), (2, 3, 4), (1, 2, 2)), lambda a: a[0:2, 0:3:2, 1:4:2]),
    "ops.slice": (lambda x: ops.slice(x, (0, 1, 1), (2, -1, 2)), lambda a: a[:, 1:, 1:3]),
    "expand_dims": (lambda x: x.expand_dims(1), lambda a: a[:, None]),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda x: x[:1].squeeze(0), lambda a: a[:1].squeeze(0)),
    "diagonal": (
        lambda x: x.diagonal(1, 1, 2),
        lambda a: np.lib.stride_tricks.as_strided(a[:, :, 1:], (2, 3), (48, 20)),
    ),
}

COPIES = {
    "advanced": lambda x: x[[0, 1]],
    "mask": lambda x: x[x > -1],
    "copy": lambda x: x.copy(),
    "Tensor": lambda x: ms.Tensor(x),
    "reshape that moves": lambda x: x.swapaxes(0, 1).reshape(6, 4),
    "reshape of a narrow slice": lambda x: x[:, :2].reshape(16),
    "arithmetic": lambda x: x + 0,
    "flip": lambda x: ops.flip(x, (0,)),
    "concat": lambda x: ops.concat((x,)),
    "stack": lambda x: ops.stack((x,)),
    "index_select": lambda x: x.index_select(0, ms.Tensor([0, 1])),
    "stop_gradient": lambda x: ops.stop_gradient(x),
    "deepcopy": lambda x: copy.deepcopy(x),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_with_their_base_both_ways(name):
    make, same = VIEWS[name]
    x, a = base(), array()
    v, b = make(x), same(a)
    np.testing.assert_array_equal(v.asnumpy(), b)
    x[1, 1:] = 100.0
    a[1, 1:] = 100.0
    x.mul_(2)
    a *= 2
    np.testing.assert_array_equal(v.asnumpy(), b)
    v[0] = -1.0
    np.lib.stride_tricks.as_strided(b, writeable=True)[0] = -1.0
    np.testing.assert_array_equal(v.asnumpy(), b)
    np.testing.assert_array_equal(x.asnumpy(), a)
    v.add_(0.5)
    np.testing.assert_array_equal(x.asnumpy(), a + 0.5 * np.isin(np.arange(24).reshape(SHAPE), same(array())))


@pytest.mark.parametrize("name", COPIES)
def test_copies_share_nothing(name):
    x = base()
    c = COPIES[name](x)
    before = c.asnumpy().copy()
    x[...] = 7.0
    np.testing.assert_array_equal(c.asnumpy(), before)
    c[...] = 8.0
    assert (x.asnumpy() == 7.0).all()


def test_repeated_elements_are_read_and_not_written():
    x = ms.Tensor([1.0, 2.0])
    wide = ops.broadcast_to(x, (3, 2))
    x[1] = 5.0
    assert wide.tolist() == [[1.0, 5.0]] * 3
    with pytest.raises(ValueError, match=r"repeats elements, of shape \(3, 2\) over \(2,\).*copy"):
        wide[0] = 1.0
    with pytest.raises(ValueError, match="repeats elements"):
        wide[1:].fill_(0.0)
    added = ops.broadcast_to(x, (1, 2))
    added[0, 0] = 9.0
    assert x.tolist() == [9.0, 5.0]
    grid = ops.meshgrid(x, ms.Tensor([1.0]))[0]
    x[0] = 4.0
    assert grid.tolist() == [[4.0, 5.0]]


def test_more_methods_in_place():
    for shape, wrap, places in [
        ((3, 3), False, [0, 4, 8]),
        ((2, 5), True, [0, 6]),
        ((7, 3), False, [0, 4, 8]),
        ((7, 3), True, [0, 4, 8, 12, 16, 20]),
        ((3, 3, 3), False, [0, 13, 26]),
    ]:
        x = ops.zeros(shape)
        assert x.fill_diagonal_(2.0, wrap) is x
        assert np.flatnonzero(x.asnumpy()).tolist() == places and x.sum() == 2.0 * len(places)
    with pytest.raises(ValueError, match="equal sizes"):
        ops.zeros((2, 3, 2)).fill_diagonal_(1.0)
    x = ops.zeros((3, 4))
    part = x[:, 3]
    x.index_copy_(1, ms.Tensor([3, 0]), ops.arange(1.0, 7.0).reshape(3, 2))
    assert x.tolist() == [[2, 0, 0, 1], [4, 0, 0, 3], [6, 0, 0, 5]] and part.tolist() == [1, 3, 5]
    y = ops.zeros((2, 3))
    y.put_(ms.Tensor([[4, -1]]), ms.Tensor([5.0, 6.0])).put_(ms.Tensor([4, 4]), ms.Tensor([5.0, 6.0]), accumulate=True)
    assert y.tolist() == [[0, 0, 0], [0, 16, 6]]
    with pytest.raises(ValueError, match="as many values"):
        y.put_(ms.Tensor([1]), ms.Tensor([5.0, 6.0]))


def test_augmented_assignment_makes_a_new_tensor_and_items_are_written():
    x = ms.Tensor([1.0, 2.0, 3.0])
    before, v = x, x[1:]
    x += 1
    assert before.tolist() == [1.0, 2.0, 3.0] and v.tolist() == [2.0, 3.0] and x is not before
    before[1] += 5
    assert v.tolist() == [7.0, 3.0]
    v *= 2
    assert before.tolist() == [1.0, 7.0, 3.0]


def test_a_dropped_value_comes_back_for_every_use():
    for use, expected in [
        (lambda v: v.tolist(), [7.0, 3.0]),
        (lambda v: (v + v).tolist(), [14.0, 6.0]),
        (lambda v: (v * 2.0).tolist(), [14.0, 6.0]),
        (lambda v: ops.concat((v, v)).tolist(), [7.0, 3.0, 7.0, 3.0]),
        (lambda v: str(v), "[7. 3.]"),
        (lambda v: repr(v), "Tensor(shape=[2], dtype=Float32, value= [ 7.00000000e+00,  3.00000000e+00])"),
        (lambda v: float(v[0]), 7.0),
        (lambda v: np.asarray(v).tolist(), [7.0, 3.0]),
        (lambda v: ms.Tensor(v).tolist(), [7.0, 3.0]),
        (lambda v: ms.Tensor(v, ms.int32).tolist(), [7, 3]),
        (lambda v: ms.Parameter(v).asnumpy().tolist(), [7.0, 3.0]),
        (lambda v: copy.deepcopy(v).tolist(), [7.0, 3.0]),
        (lambda v: pickle.loads(pickle.dumps(v)).tolist(), [7.0, 3.0]),
        (lambda v: ms.jit(lambda t: t * 2)(v).tolist(), [14.0, 6.0]),
        (lambda v: ms.grad(lambda t: (t * t).sum())(v).tolist(), [14.0, 6.0]),
        (lambda v: ms.jit(lambda t: t[v.int()])(ms.ops.arange(8)).tolist(), [7, 3]),
        (lambda v: [float(e) for e in v], [7.0, 3.0]),
    ]:
        x = ms.Tensor([1.0, 2.0, 3.0])
        v = x[1:]
        x[1] = 7.0
        assert use(v) == expected


def test_a_scalar_view_as_an_index_is_checked():
    x = ms.Tensor([0, 1])
    i = x[0]
    x[0] = 9
    with pytest.raises(IndexError, match="out of range"):
        ms.Tensor([1.0, 2.0])[i]


def test_a_position_is_read_when_the_view_is_made():
    i = ms.Tensor(0)
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    v = x[i]
    i.add_(1)
    x[0, 0] = 9.0
    assert v.tolist() == [9.0, 2.0]
    v[1] = 8.0
    assert x.tolist() == [[9.0, 8.0], [3.0, 4.0]]


def test_parameters_and_their_views():
    p = ms.Parameter(ms.Tensor([1.0, 2.0, 3.0]), name="p")
    part, line = p[1:], p.reshape(3, 1)
    p.set_data(ms.Tensor([4.0, 5.0, 6.0]))
    assert part.tolist() == [5.0, 6.0] and line.tolist() == [[4.0], [5.0], [6.0]]
    ops.assign_add(p, ms.Tensor([1.0, 1.0, 1.0]))
    line[0] = 0.0
    assert part.tolist() == [6.0, 7.0] and p.asnumpy().tolist() == [0.0, 6.0, 7.0]
    p.set_dtype(ms.float16)
    p[1] = 9.0
    assert part.dtype == ms.float32 and part.tolist() == [6.0, 7.0]
    q = ms.Parameter(ms.Tensor([1.0, 2.0]), name="q")
    tail = q[1:]
    q.set_data(ms.Tensor([5.0, 6.0, 7.0]), slice_shape=True)
    assert tail.tolist() == [2.0] and q.shape == (3,)


def test_an_array_shares_the_memory_of_a_tensor_and_of_its_reshaped_views():
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    line = x.reshape(4)
    x.asnumpy()[0, 1] = 9.0
    assert x[0].tolist() == [1.0, 9.0] and line.tolist() == [1.0, 9.0, 3.0, 4.0]
    line[3] = 8.0
    line.asnumpy()[2] = 7.0
    assert x.tolist() == [[1.0, 9.0], [7.0, 8.0]]


def test_a_view_keeps_its_base_and_a_base_not_its_views():
    x = ms.Tensor(np.zeros((64, 8), np.float32))
    seen = weakref.ref(x)
    v = x[0]
    del x
    gc.collect()
    assert seen() is not None
    v[0] = 1.0
    assert seen()[0, 0] == 1.0
    part = weakref.ref(seen()[1])
    gc.collect()
    assert part() is None
    base_of_many = seen()
    for _ in range(300):
        base_of_many[2]
    assert len(base_of_many._views) < 100
    del v, base_of_many
    gc.collect()
    assert seen() is None


def test_gradients_of_any_order_go_through_writes():
    def f(x):
        y = x * x
        v = y[1:]
        v[0] = y[0] * y[1]
        y.mul_(x)
        return (v * y[:2]).sum()

    def pure(a):
        y = a * a
        y = np.array([y[0], y[0] * y[1], y[2]]) * a
        return y[1] * y[0] + y[2] * y[1]

    at = np.array([0.5, -1.5, 2.0])
    step = 1e-3
    unit = np.eye(3) * step
    second = [
        [(pure(at + i + j) - pure(at + i - j) - pure(at - i + j) + pure(at - i - j)) / (4 * step * step) for j in unit]
        for i in unit
    ]
    x = ms.Tensor(at.astype(np.float32))
    for run in (ms.grad(lambda t: ms.grad(f)(t).sum()), ms.jit(ms.grad(lambda t: ms.grad(f)(t).sum()))):
        np.testing.assert_allclose(run(x).asnumpy(), np.sum(second, 0), rtol=1e-3, atol=1e-3)


def test_gradients_by_weights_go_through_views_made_before():
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([1.0, 2.0, 3.0]), name="w")
            self.tail = self.w[1:]

        def construct(self, x):
            return (self.tail * self.tail * x).sum()

    for wrap in (lambda f: f, ms.jit):
        net = Net()
        slope = wrap(ms.grad(net, None, net.trainable_params()))
        assert slope(ms.Tensor(2.0))[0].tolist() == [0.0, 8.0, 12.0]
        net.w.set_data(ms.Tensor([0.0, 1.0, 1.0]))
        assert slope(ms.Tensor(2.0))[0].tolist() == [0.0, 4.0, 4.0]


# Random programs.

_VIEWS = st.one_of(
    st.tuples(st.just("item"), st.integers(-2, 1)),
    st.tuples(st.just("slice"), st.integers(0, 2), st.integers(-3, 3).filter(bool)),
    st.tuples(st.just("transpose")),
    st.tuples(st.just("reshape")),
    st.tuples(st.just("expand")),
)
_ACTIONS = st.one_of(
    st.tuples(st.just("view"), st.integers(0, 9), _VIEWS),
    st.tuples(st.just("fill"), st.integers(0, 9), st.integers(-9, 9)),
    st.tuples(st.just("scale"), st.integers(0, 9), st.sampled_from([0.5, 2.0, -1.0])),
    st.tuples(st.just("from"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("read"), st.integers(0, 9)),
)


def _view(t, form):
    if form[0] == "item":
        return t[form[1]] if t.ndim > 1 and t.shape[0] > 1 else t[:]
    if form[0] == "slice":
        return t[form[1] :: form[2]]
    if form[0] == "transpose":
        return t.T
    if form[0] == "expand":
        return t[None] if t.ndim < 4 else t[:]
    return t.reshape(-1) if t.ndim > 1 else t.reshape(1, -1)


def _run(x, actions):
    family, seen = [x], []
    for action in actions:
        t = family[action[1] % len(family)]
        if action[0] == "view":
            family.append(_view(t, action[2]))
        elif action[0] == "fill":
            t[...] = action[2]
        elif action[0] == "scale":
            t[1:] = t[1:] * action[2]
        elif action[0] == "from":
            source = family[action[2] % len(family)]
            t[...] = source[0] if source.ndim > 1 and source.shape[0] and source.shape[1:] == t.shape[1:] else t * 1
        else:
            seen.append(t * 1)
    return [t * 1 for t in family] + seen


@given(st.lists(_ACTIONS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_random_writes_agree_with_numpy_eagerly(actions):
    expected = _run(np.arange(12, dtype=np.float32).reshape(2, 3, 2), actions)
    found = _run(ms.Tensor(np.arange(12, dtype=np.float32).reshape(2, 3, 2)), actions)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a.asnumpy(), b)


@given(st.lists(_ACTIONS, max_size=8))
@settings(max_examples=25, deadline=None)
def test_random_writes_agree_with_numpy_compiled(actions):
    expected = _run(np.arange(12, dtype=np.float32).reshape(2, 3, 2), actions)
    found = ms.jit(lambda x: _run(x, actions), fullgraph=True)(
        ms.Tensor(np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    )
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a.asnumpy(), b)

"""Gradients of functions and cells: what is returned, values against finite differences in float64,
nesting, state and failures; in both modes.
"""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, get_grad, grad, nn, ops, value_and_grad
from mycel._src.foundation.pytree import map_leaves
from mycel._src.tensors.core import eager

CHECKED = dict.fromkeys(("grad", "value_and_grad", "get_grad"), "finite differences")


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs in both modes."""
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=before)


def plain(value: Any) -> Any:
    return map_leaves(lambda v: v.asnumpy().tolist() if isinstance(v, Tensor) else v, value)


X, Y = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0])
W, V = Parameter(Tensor([1.0, 1.0, 2.0]), name="w"), Parameter(Tensor(3.0), name="v")


def product(a: Any, b: Any) -> Any:
    return (a * b * b * W).sum()


BY_A, BY_B, BY_W, BY_V = [16, 25, 72], [8, 20, 72], [16, 50, 108], 0


@pytest.mark.parametrize(
    "position, weights, ids, want",
    [
        (0, None, False, BY_A),
        (1, None, False, BY_B),
        ((0,), None, False, BY_A),
        ((0, 1), None, False, (BY_A, BY_B)),
        ((1, 0), None, False, (BY_B, BY_A)),
        (0, W, False, (BY_A, BY_W)),
        (None, W, False, BY_W),
        (None, [W], False, (BY_W,)),
        (None, (W, V), False, (BY_W, BY_V)),
        (None, ParameterTuple([V, W]), False, (BY_V, BY_W)),
        ((0, 1), [W, V], False, ((BY_A, BY_B), (BY_W, BY_V))),
        ((0,), [W], False, (BY_A, (BY_W,))),
        (None, [], False, ()),
        (None, [W, W], False, (BY_W, BY_W)),
        (1, None, True, (1, BY_B)),
        ((0, 1), None, True, ((0, BY_A), (1, BY_B))),
        (None, W, True, ("w", BY_W)),
        (None, [W, V], True, (("w", BY_W), ("v", BY_V))),
        (0, W, True, ((0, BY_A), ("w", BY_W))),
        ((1, 0), [V], True, (((1, BY_B), (0, BY_A)), (("v", BY_V),))),
    ],
    ids=str,
)
def test_what_is_returned(position: Any, weights: Any, ids: bool, want: Any) -> None:
    assert plain(grad(product, position, weights, return_ids=ids)(X, Y)) == want
    value, gradients = value_and_grad(product, position, weights, return_ids=ids)(X, Y)
    assert float(value) == 16 + 50 + 216 and plain(gradients) == want


def test_weights_may_come_from_a_generator() -> None:
    assert plain(grad(product, None, [w for w in (W,)])(X, Y)) == (BY_W,)


def with_extras(a: Any) -> Any:
    return a.sum() * 2, a * 2, {"k": a + 1}


def test_extra_outputs() -> None:
    extras = ([2, 4, 6], {"k": [2, 3, 4]})
    assert plain(grad(with_extras, has_aux=True)(X)) == ([2, 2, 2], extras)
    assert plain(value_and_grad(with_extras, has_aux=True)(X)) == ((12, *extras), [2, 2, 2])
    assert plain(value_and_grad(with_extras, 0, [W], has_aux=True, return_ids=True)(X)) == (
        (12, *extras),
        ((0, [2, 2, 2]), (("w", [0, 0, 0]),)),
    )
    for fn in (lambda a: a.sum(), lambda a: (a.sum(),), lambda a: [a.sum(), a]):
        with pytest.raises(ValueError, match="must return a tuple of the value and at least one more output, not a"):
            grad(fn, has_aux=True)(X)


@pytest.mark.parametrize(
    "fn, want",
    [
        (lambda a: a * 2, [2, 2, 2]),
        (lambda a: (a * 2, a * 3), [5, 5, 5]),
        (lambda a: [a * 2, (a * 3, {"k": a})], [6, 6, 6]),
        (lambda a: (a * 2, 3, None, "s"), [2, 2, 2]),
        (lambda a: (a * 2, a > 1, a.astype(ms.int32)), [3, 3, 3]),
        (lambda a: a, [1, 1, 1]),
        (lambda a: a > 1, [0, 0, 0]),
        (lambda a: Y.sum(), [0, 0, 0]),
        (lambda a: None, [0, 0, 0]),
        (lambda a: a.argmax(), [0, 0, 0]),
        (lambda a: a[1], [0, 1, 0]),
        (lambda a: a[1:].sum() * a[0], [5, 1, 1]),
        (lambda a: a[[0, 0, 2]], [2, 0, 1]),
        (lambda a: ops.stop_gradient(a) * a, [1, 2, 3]),
        (lambda a: sum(v * v for v in a), [2, 4, 6]),
    ],
)
def test_outputs_of_every_kind(fn: Callable[..., Any], want: list[float]) -> None:
    assert plain(grad(fn)(X)) == want


def test_containers_of_inputs_have_gradients_where_they_are_mutable() -> None:
    times = lambda p: p[0] * p[1]
    named = lambda p: p["a"] * p["b"][0]
    assert plain(grad(times)(ms.mutable([X, Y]))) == [[4, 5, 6], [1, 2, 3]]
    assert plain(grad(named)(ms.mutable({"a": X, "b": (Y,)}))) == {"a": [4, 5, 6], "b": ([1, 2, 3],)}
    # Alone they have gradients, beside tensors they are constants.
    assert plain(grad(times)([X, Y])) == [[4, 5, 6], [1, 2, 3]]
    assert plain(grad(named)({"a": X, "b": (Y,)})) == {"a": [4, 5, 6], "b": ([1, 2, 3],)}
    assert plain(grad(lambda p, c: p[0] * c, (0, 1))([X, Y], X)) == [1, 2, 3]
    assert plain(ms.jit(lambda a, b: grad(times)([a, b]))(X, Y)) == [[4, 5, 6], [1, 2, 3]]


def test_numbers_and_other_arguments_without_tensors_are_constants() -> None:
    assert plain(grad(lambda a: a * a)(3.0)) == 6 and grad(lambda a: X)("s") == ()
    assert plain(grad(lambda a, b: a * b, (0, 1))(3.0, X)) == [3, 3, 3]
    assert plain(grad(lambda a, b, c: c * 2, (0, 1, 2))(None, "s", X)) == [2, 2, 2]
    assert grad(lambda: X)() == ()


def test_arguments_by_name() -> None:
    def fn(a: Any, b: Any = 2.0) -> Any:
        return a * b

    assert (
        plain(grad(fn)(X)) == [2, 2, 2]
        and plain(grad(fn)(X, b=Y)) == [4, 5, 6]
        and plain(grad(fn, 1)(X, b=Y)) == [1, 2, 3]
    )
    assert plain(grad(fn, (1, 0))(a=X, b=Y)) == ([1, 2, 3], [4, 5, 6])


def test_types_of_gradients_are_those_of_the_arguments() -> None:
    for dtype in (ms.float16, ms.bfloat16, ms.float32, ms.float64):
        assert grad(lambda a: (a * a).sum())(Tensor([1.0], dtype)).dtype is dtype
    mixed = grad(lambda a, b: (a * b).sum(), (0, 1))(Tensor([1.0, 2.0], ms.float16), Tensor([2.0], ms.float64))
    assert [(g.dtype, g.shape) for g in mixed] == [(ms.float16, (2,)), (ms.float64, (1,))]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: grad(3), TypeError, "fn must be a function, not int"),
        (lambda: grad(product, None), ValueError, "grad_position and weights are both None"),
        (lambda: grad(product, ()), RuntimeError, "grad_position is empty; give None to differentiate by weights"),
        (lambda: grad(product, [0, 1]), TypeError, "a tuple of them, or None, not [0, 1]"),
        (lambda: grad(product, (0, 0)), ValueError, "names a position twice: (0, 0)"),
        (lambda: grad(product, -1), ValueError, "must not be negative: -1"),
        (lambda: grad(product, "a"), TypeError, "a tuple of them, or None, not 'a'"),
        (lambda: grad(product, 1.0), TypeError, "not 1.0"),
        (
            lambda: grad(product, 2)(X, Y),
            IndexError,
            "grad_position 2 is out of range for a call with 2 positional arguments",
        ),
        (
            lambda: grad(product, 0, X)(X, Y),
            TypeError,
            "weights must be a Parameter or a list of them, such as net.trainable_params(), not Tensor",
        ),
        (lambda: grad(product, 0, "w")(X, Y), TypeError, "not str"),
        (
            lambda: grad(product, 0, [X])(X, Y),
            TypeError,
            "weights must be Parameters, not Tensor; pass other tensors as arguments",
        ),
        (
            lambda: grad(lambda a, b: a * 2)(Tensor([1.0], ms.float8_e4m3fn), Y),
            TypeError,
            "argument 0 has type float8_e4m3fn, which is for storage alone: convert it",
        ),
    ],
)
def test_what_cannot_be_differentiated_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()
    assert plain(grad(product)(X, Y)) == BY_A


def test_picking_a_gradient() -> None:
    found = grad(product, (0, 1), [W, V], return_ids=True)(X, Y)
    assert [plain(get_grad(found, i)) for i in (0, 1, W, V)] == [BY_A, BY_B, BY_W, BY_V]
    assert plain(get_grad(grad(product, 1, return_ids=True)(X, Y), 1)) == BY_B
    assert plain(get_grad(grad(product, None, W, return_ids=True)(X, Y), W)) == BY_W
    for gradients, wanted in ((found, 5), (found, Parameter(1.0, name="u")), (grad(product)(X, Y), 0), (3, 1)):
        with pytest.raises(RuntimeError, match="get_grad: there is no gradient for"):
            get_grad(gradients, wanted)
    with pytest.raises(TypeError, match="identifier must be an int or a Parameter, not str"):
        get_grad(found, "w")


# Values.


def relative(a: Any, b: Any) -> Any:
    return ((a - b) ** 2).mean() / (ops.abs(b).sum() + 1)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "polynomial": (lambda a: a**3 - 2 * a * a + a / 2, ((4,),)),
    "chain": (lambda a: ops.tanh(ops.exp(a * 0.3) - ops.log(a * a + 1)).sum(), ((3, 2),)),
    "matmul": (lambda a, b: ops.tanh(a @ b) @ b.T, ((3, 4), (4, 2))),
    "broadcast": (lambda a, b: relative(a, b), ((2, 3), (3,))),
    "softmax": (lambda a, b: -(ops.log_softmax(a @ b, axis=-1)[:, 0]).mean(), ((4, 3), (3, 5))),
    "index": (lambda a: (a[1:, ::2] * a[:-1, [0, 2]] + a[0, 0]).sum(), ((3, 4),)),
    "write": (lambda a, b: written(a, b), ((3, 4), (4,))),
    "reduce": (lambda a: a.max(axis=1).sum() * a.min() + a.std() * a.prod(), ((3, 2),)),
    "shape": (lambda a, b: (ops.concat((a.reshape(6, 2), b.T)) ** 2).cumsum(axis=0).mean(), ((3, 4), (2, 3))),
    "where": (lambda a, b: ops.where(a > b, a * b, ops.sin(b)) / (1 + a * a), ((5,), (5,))),
    "branch": (lambda a, b: a * a * b if (a.sum() > 0) else -(a * b), ((3,), (3,))),
    "loop": (lambda a, b: repeated(a, b), ((2, 2), (2, 2))),
    "normal": (lambda a, b: ops.layer_norm(a, (4,), b, b * 0.5, 1e-5) ** 2, ((3, 4), (4,))),
    "conv": (lambda a, b: ops.relu(ops.conv2d(a, b, pad_mode="same")) ** 2, ((1, 2, 4, 4), (3, 2, 3, 3))),
    "division": (lambda a, b: (a // 0.7) * a + a % 1.3 / (b * b + 0.5), ((4,), (4,))),
}


def written(a: Any, b: Any) -> Any:
    c = a * 2
    c[1] = b * c[0]
    c[:, 2] = c[:, 1] * 3
    c[c > 1.0] = 0.25
    return (c * c).sum() + a.sum()


def repeated(a: Any, b: Any) -> Any:
    x = a
    for _ in range(3):
        x = ops.tanh(x @ b)
        x += a
    return x.sum()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    fn, shapes = FUNCTIONS[name]
    draw = np.random.default_rng(11)
    arrays = [draw.normal(size=shape) for shape in shapes]
    got = grad(fn, tuple(range(len(shapes))))(*[Tensor(a) for a in arrays])
    for k, gradient in enumerate(got if len(shapes) > 1 else [got]):
        want = np.empty_like(arrays[k])
        for i in np.ndindex(want.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [a.copy() for a in arrays]
                moved[k][i] += step
                sides.append(float(fn(*[Tensor(a) for a in moved]).asnumpy().sum()))
            want[i] = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(gradient.asnumpy(), want, rtol=2e-6, atol=2e-8)


# Nesting.


def test_to_the_third_order() -> None:
    x = Tensor(2.0)
    quartic = lambda a: a**4
    assert [float(g(x)) for g in (grad(quartic), grad(grad(quartic)), grad(grad(grad(quartic))))] == [32, 48, 48]
    sines = [grad(ops.sin), grad(grad(ops.sin)), grad(grad(grad(ops.sin)))]
    np.testing.assert_allclose([float(g(x)) for g in sines], [np.cos(2), -np.sin(2), -np.cos(2)], rtol=1e-6)


def test_a_gradient_inside_uses_the_outer_variable() -> None:
    x = Tensor(2.0)
    assert float(grad(lambda a: a * grad(lambda b: a * b * b)(a))(x)) == 24
    assert float(grad(lambda a: grad(lambda b: b**3)(a) + a)(x)) == 13
    assert plain(grad(lambda a, b: grad(lambda c: c * c * b)(a), (0, 1))(x, Tensor(5.0))) == (10, 4)
    assert float(grad(lambda a: value_and_grad(lambda b: b**3)(a)[0])(x)) == 12
    assert float(grad(lambda a: grad(lambda b: a * b)(Tensor(1.0)))(x)) == 1
    assert float(grad(lambda a: grad(lambda b: b * 3)(a))(x)) == 0


def test_second_derivatives_of_vectors_agree_with_the_formula() -> None:
    a = np.array([0.3, -0.7, 1.1])
    inner = grad(lambda x: (ops.exp(x) * x).sum())
    np.testing.assert_allclose(grad(lambda x: inner(x).sum())(Tensor(a)).asnumpy(), np.exp(a) * (a + 2), rtol=1e-9)


def test_a_penalty_on_the_gradient_reaches_the_weights() -> None:
    def penalty(x: Any) -> Any:
        return (grad(lambda a: (a * a * W).sum())(x) ** 2).sum()

    value, gradients = value_and_grad(penalty, None, [W])(X)
    x, w = X.asnumpy(), W.asnumpy()
    np.testing.assert_allclose(float(value), ((2 * x * w) ** 2).sum())
    np.testing.assert_allclose(gradients[0].asnumpy(), 8 * x * x * w)


def test_weights_of_an_inner_gradient() -> None:
    def fn(x: Any) -> Any:
        inner = grad(lambda a: (a * W * W).sum(), None, W)(x)
        return (inner * x).sum()

    x, w = X.asnumpy(), W.asnumpy()
    gradients = grad(fn, 0, W)(X)
    np.testing.assert_allclose(gradients[0].asnumpy(), 4 * x * w)
    np.testing.assert_allclose(gradients[1].asnumpy(), 2 * x * x)


# Closures, state and writes.


def test_closures_and_methods() -> None:
    factor = Tensor(3.0)

    class Scaled:
        def __call__(self, x: Any) -> Any:
            return x * factor

        def method(self, x: Any) -> Any:
            return x * x * factor

    assert plain(grad(Scaled())(X)) == [3, 3, 3] and plain(grad(Scaled().method)(X)) == [6, 12, 18]
    assert plain(grad(lambda a: (lambda b: b * a)(a))(X)) == [2, 4, 6]


def test_a_cell_by_its_inputs_and_its_weights() -> None:
    net = nn.Dense(3, 2)
    value, (by_x, by_weights) = value_and_grad(net, 0, net.trainable_params())(Tensor([[1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(by_x.asnumpy(), net.weight.asnumpy().sum(0, keepdims=True), rtol=1e-6)
    assert value.shape == (1, 2) and plain(by_weights) == ([[1, 2, 3]] * 2, [1, 1])
    frozen = nn.Dense(3, 2)
    frozen.weight.requires_grad = False
    assert len(grad(frozen, None, frozen.trainable_params())(Tensor([[1.0, 2.0, 3.0]]))) == 1


def test_writing_into_an_argument() -> None:
    def fn(a: Any) -> Any:
        a[0] = a[1] * 5
        return (a * a).sum()

    assert plain(grad(fn)(Tensor([1.0, 2.0, 3.0]))) == [0, 104, 6]


def test_augmented_assignment() -> None:
    def fn(a: Any) -> Any:
        b = a
        b *= 3
        b += a * a
        return b.sum() + a.sum()

    assert plain(grad(fn)(X)) == [6, 8, 10]


def test_state_that_is_written_while_differentiating() -> None:
    state = Parameter(Tensor([0.0]), name="state", requires_grad=False)

    def fn(a: Any) -> Any:
        old = state * 1
        state.set_data(state + a.sum().reshape(1))
        return (a * a).sum() + old.sum() * 0

    for i in range(3):
        assert plain(grad(fn)(X)) == [2, 4, 6]
        assert state.tolist() == [6.0 * (i + 1)]
    norm = nn.BatchNorm1d(2).set_train()
    x = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    grad(norm)(Tensor(x))
    np.testing.assert_allclose(norm.moving_mean.asnumpy(), 0.1 * x.mean(0), rtol=1e-5)


def test_a_weight_written_inside_is_a_variable_wherever_it_is_read() -> None:
    w = Parameter(Tensor([2.0]), name="w")

    def fn(a: Any) -> Any:
        first = (a * w).sum()
        w.set_data(w * 10)
        return first + (a * w).sum()

    assert plain(grad(fn, 0, w)(Tensor([3.0]))) == ([22], [6]) and w.tolist() == [20]
    assert plain(grad(lambda a: (a * w).sum(), 0, w)(Tensor([3.0]))) == ([20], [3])


def test_an_exception_leaves_everything_clean() -> None:
    class Wrong(Exception):
        pass

    def fn(a: Any) -> Any:
        b = (a * W).sum()
        if True:
            raise Wrong("in the middle")
        return b

    for make in (lambda: grad(fn, 0, [W]), lambda: grad(lambda a: grad(fn)(a)), lambda: value_and_grad(fn, None, W)):
        with pytest.raises(Wrong):
            make()(X)
        assert eager.current_context() is None and W._node is None and eager.active == 0
        assert plain(grad(product, 0, W)(X, Y)) == (BY_A, BY_W)
    with pytest.raises(ValueError, match="broadcast"):
        grad(lambda a: a * Tensor([1.0, 2.0]))(X)
    assert plain(grad(product)(X, Y)) == BY_A


def test_what_was_recorded_is_freed(mode: str) -> None:
    kept = []

    def fn(a: Any) -> Any:
        hidden = ops.exp(a * 1)
        kept.append(weakref.ref(hidden) if mode == "PYNATIVE_MODE" else None)
        return (hidden * hidden).sum()

    value, gradients = value_and_grad(fn)(X)
    gc.collect()
    assert all(r is None or r() is None for r in kept) and gradients.shape == (3,)
    node = value._node
    assert node is None or not node.inputs
    np.testing.assert_allclose(gradients.asnumpy(), 2 * np.exp(2 * X.asnumpy()), rtol=1e-6)


def test_functions_keep_their_names() -> None:
    assert grad(product).__name__ == "product" and grad(nn.Dense(1, 1)) is not None

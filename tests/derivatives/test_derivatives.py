"""jvp, vjp, Jacobians, linearize, jet and derivative: the forms of results and errors, what is kept
alive, and nesting; in both modes.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, jacfwd, jacrev, jvp, nn, ops, vjp
from mycel._src.foundation.pytree import map_leaves
from mycel.ops import derivative, jet, linearize

CHECKED = dict.fromkeys(
    ("jvp", "vjp", "jacfwd", "jacrev", "ops.linearize", "ops.jet", "ops.derivative", "nn.Jvp", "nn.Vjp"),
    "derivatives by hand",
)


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs in both modes."""
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=before)


def plain(value: Any) -> Any:
    return map_leaves(lambda v: v.asnumpy().tolist() if isinstance(v, Tensor) else v, value)


X, V = Tensor([1.0, 2.0]), Tensor([1.0, 10.0])


def cube(x: Any) -> Any:
    return x * x * x


def two(x: Any, y: Any) -> Any:
    return x * x * x + y, y * 2


def with_extras(x: Any) -> Any:
    return x * x, x + 1, {"k": x * 2}


def test_forms_of_jvp() -> None:
    assert plain(jvp(cube, X, V)) == ([1, 8], [3, 120])
    assert plain(jvp(cube, (X,), (V,))) == plain(jvp(cube, [X], [V])) == ([1, 8], [3, 120])
    assert plain(jvp(two, (X, X), (V, V))) == (([2, 10], [2, 4]), ([4, 130], [2, 20]))
    assert plain(jvp(with_extras, X, V, has_aux=True)) == ([1, 4], [2, 40], ([2, 3], {"k": [2, 4]}))
    assert plain(jvp(two, (X, X), (V, V), True)) == ([2, 10], [4, 130], [2, 4])
    assert plain(jvp(lambda x: {"a": [x, x * 2]}, X, V)) == ({"a": [[1, 2], [2, 4]]}, {"a": [[1, 10], [2, 20]]})
    assert plain(jvp(lambda d: d["a"] * d["b"], ({"a": X, "b": X},), ({"a": V, "b": X},))) == ([1, 4], [2, 24])
    assert plain(jvp(cube, 2.0, Tensor(1.0))) == (8, 12)
    assert plain(jvp(lambda x: (x > 1, V), X, V)) == (([False, True], [1, 10]), ([False, False], [0, 0]))


def test_forms_of_vjp() -> None:
    out, pull = vjp(cube, X)
    assert plain(out) == [1, 8] and plain(pull(V)) == ([3, 120],) and plain(pull(X)) == ([3, 24],)
    out, pull = vjp(two, X, X)
    assert plain(pull(V, V)) == plain(pull((V, V))) == ([3, 120], [3, 30])
    out, pull, extra = vjp(with_extras, X, has_aux=True)
    assert plain((out, extra, pull(V))) == ([1, 4], ([2, 3], {"k": [2, 4]}), ([2, 40],))
    out, pull = vjp(lambda d: d["a"] * d["b"][0], {"a": X, "b": [X]})
    assert plain(pull(V)) == ({"a": [1, 20], "b": [[1, 20]]},)
    assert plain(vjp(lambda x: (x * 2, x > 1), X)[1](V, Tensor([True, False]))) == ([2, 20],)


def test_vjp_by_weights() -> None:
    net = nn.Dense(2, 1, weight_init="ones")
    out, pull = vjp(net, X[None], weights=net.trainable_params())
    assert out.shape == (1, 1)
    assert plain(pull(Tensor([[2.0]]))) == (([[2, 2]],), ([[2, 4]], [2]))
    assert plain(vjp(net, X[None], weights=net.bias)[1](Tensor([[3.0]]))) == (([[3, 3]],), [3])
    w = Parameter(Tensor(3.0), name="w")
    assert plain(vjp(lambda x: x * w, X, weights=[w])[1](V)) == (([3, 30],), (21,))
    assert plain(vjp(lambda x: x * 1, X, weights=w)[1](V)) == (([1, 10],), 0)


def test_forms_of_jacobians() -> None:
    for transform in (jacfwd, jacrev):
        assert plain(transform(cube)(X)) == plain(transform(cube, (0,))(X)) == [[3, 0], [0, 12]]
        (a, b), (c, d) = plain(transform(two, (0, 1))(X, V))
        assert (a, b, c, d) == ([[3, 0], [0, 12]], [[1, 0], [0, 1]], [[0, 0], [0, 0]], [[2, 0], [0, 2]])
        assert plain(transform(two, 1)(X, V)) == ([[1, 0], [0, 1]], [[2, 0], [0, 2]])
        jacobian, extra = transform(with_extras, has_aux=True)(X)
        assert plain((jacobian, extra)) == ([[2, 0], [0, 4]], ([2, 3], {"k": [2, 4]}))
        assert plain(transform(lambda x: x.sum())(X)) == [1, 1]
        assert plain(transform(lambda x: X * x)(Tensor(2.0))) == [1, 2]
        matrix = transform(lambda m: ops.matmul(m, m))(Tensor(np.eye(2, dtype=np.float32)))
        assert matrix.shape == (2, 2, 2, 2) and plain(matrix[0, 1]) == [[0, 2], [0, 0]]
        assert plain(transform(lambda d: d["a"] * d["b"])({"a": X, "b": V})) == {
            "a": [[1, 0], [0, 10]],
            "b": [[1, 0], [0, 2]],
        }
        assert plain(transform(lambda x: V * 1)(X)) == [[0, 0], [0, 0]]


def test_hessians_in_every_order() -> None:
    f = lambda x: (x * x * x).sum() + x[0] * x[1]
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev, ms.grad):
            assert plain(outer(inner(f))(X)) == [[6, 1], [1, 12]]


def test_linearize_jet_and_derivative() -> None:
    out, push = linearize(two, (X, X))
    assert plain(out) == ([2, 10], [2, 4])
    assert plain(push(V, V)) == plain(push((V, V))) == ([4, 130], [2, 20])
    assert plain(linearize(cube, X)[1](V)) == [3, 120]
    out, series = jet(cube, X, Tensor(np.ones((3, 2), np.float32)))
    assert plain((out, series)) == ([1, 8], [[3, 12], [9, 24], [27, 54]])
    out, series = jet(lambda x, y: (x * x * y, y), (X, X), (Tensor(np.ones((2, 2), np.float32)),) * 2)
    assert plain(series[0]) == [[3, 12], [9, 24]]
    assert plain(derivative(cube, X, 3)) == ([1, 8], [6, 6])
    assert plain(derivative(lambda x, y: x * x * y, (X, X), 2)) == ([1, 8], [6, 12])


def test_cells_of_derivatives() -> None:
    assert plain(nn.Jvp(nn.ReLU())(X, V)) == ([1, 2], [1, 10])
    assert plain(nn.Jvp(nn.ReLU())(-X, V)) == ([0, 0], [0, 0])
    assert plain(nn.Vjp(nn.ReLU())(X, V)) == ([1, 2], [1, 10])

    class Product(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x * y

    assert plain(nn.Jvp(Product())(X, X, (V, X))) == ([1, 4], [2, 24])
    assert plain(nn.Vjp(Product())(X, V, X)) == ([1, 20], ([1, 20], [1, 4]))


ERRORS = [
    (lambda: jvp(cube, X, Tensor([1.0] * 3)), ValueError, "jvp: tangent 0 has shape \\(3,\\), its input \\(2,\\)"),
    (lambda: jvp(cube, X, 1.0), TypeError, "tangent 0 must be a Tensor, not float"),
    (lambda: ms.jacrev(cube)(Tensor([1, 2])), TypeError, "argument 0 must be of a floating or complex type, not int64"),
    (lambda: jvp(two, (X, X), (X,)), ValueError, "1 tangents are given for 2 inputs"),
    (lambda: jvp(cube, Tensor([1, 2]), X), TypeError, "tangent 0 has type float32, its input int64; convert it"),
    (lambda: jvp(cube, "x", X), TypeError, "the inputs must be a tensor"),
    (lambda: jvp(cube, X, "v"), TypeError, "tangent 0 must be a Tensor, not str"),
    (lambda: jvp(3, X, X), TypeError, "fn must be a function"),
    (lambda: jvp(lambda x: 3, X, X), TypeError, "must return tensors, not int"),
    (
        lambda: jvp(cube, X, X, has_aux=True),
        ValueError,
        "must return a tuple of the value and at least one more output",
    ),
    (lambda: vjp(cube, X)[1](), RuntimeError, "0 cotangents are given for 1 outputs"),
    (lambda: vjp(cube, X)[1](Tensor([1.0] * 3)), ValueError, "cotangent 0 has shape \\(3,\\), its output \\(2,\\)"),
    (lambda: vjp(cube, X)[1]("c"), TypeError, "cotangent 0 must be a Tensor"),
    (lambda: vjp(cube, X, weights=[X]), TypeError, "vjp: weights must be Parameters"),
    (lambda: jacfwd(cube, None), TypeError, "grad_position must be an int"),
    (lambda: jacrev(cube, -1), ValueError, "must not be negative"),
    (lambda: jacrev(cube, 2)(X), ValueError, "grad_position 2 is out of range for a call with 1"),
    (lambda: jacrev(cube, has_aux=1), TypeError, "has_aux must be a bool"),
    (lambda: jacrev(lambda x: None)(X), TypeError, "must return tensors, not NoneType"),
    (lambda: derivative(cube, X, 0), ValueError, "order must be at least 1"),
    (lambda: jet(cube, X, X), ValueError, "series 0 has shape \\(2,\\)"),
    (lambda: ms.grad(cube, sens_param=True)(X, Tensor([[1.0], [2.0]])), ValueError, "cotangent 0 has shape"),
    (lambda: ms.grad(cube, sens_param=True)(), ValueError, "the last positional argument is the cotangent"),
    (lambda: ms.recompute(3), TypeError, "block must be a Cell or a function"),
    (lambda: ms.recompute(cube, X, context_fn=cube), ValueError, "context_fn is not supported"),
]


@pytest.mark.parametrize("call, error, text", ERRORS)
def test_errors_name_what_is_wrong(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_cotangent_in_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="cotangent 0 has type int64, its output float32; convert it"):
        ms.grad(cube, sens_param=True)(X, Tensor([1, 10]))
    with pytest.raises(TypeError, match="cotangent 0 has type float64"):
        vjp(cube, X)[1](Tensor(np.array([1.0, 10.0])))


def test_a_cotangent_is_broadcast_to_its_output_and_summed_for_a_number() -> None:
    assert plain(ms.grad(cube, sens_param=True)(X, Tensor([10.0]))) == [30, 120]
    assert plain(ms.grad(cube, sens_param=True)(X, Tensor([[1.0, 10.0]]))) == [3, 120]
    assert plain(ms.grad(cube, sens_param=True)(Tensor(2.0), Tensor([1.0, 2.0]))) == 36
    assert plain(ms.grad(cube, sens_param=True)(Tensor([2.0]), Tensor(3.0))) == [36]


def test_pulling_back_inside_other_transformations() -> None:
    _, pull = vjp(cube, X)
    assert plain(ms.grad(lambda c: pull(c)[0])(V)) == [3, 12]
    assert plain(ms.jit(lambda c: pull(c)[0])(V)) == [3, 120]
    assert plain(jvp(lambda c: pull(c)[0], V, X)[1]) == [3, 24]
    assert plain(ms.grad(lambda x: vjp(cube, x)[1](V)[0])(X)) == [6, 120]
    assert plain(ms.jit(ms.grad(lambda x: vjp(ms.jit(cube), x)[1](V)[0]))(X)) == [6, 120]


def test_a_function_taken_inside_a_gradient_belongs_there() -> None:
    kept = []

    def f(x: Any) -> Any:
        out, pull = vjp(cube, x)
        kept.append(pull)
        return out

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.grad(f)(X)
    with pytest.raises(RuntimeError, match="after the gradient inside which it was made has ended"):
        kept[0](V)


def test_what_vjp_recorded_is_freed_with_its_function() -> None:
    out, pull = vjp(lambda x: ops.sin(x) * x, X)
    recording = weakref.ref(pull.derivatives.context)
    assert out._node is None
    del pull
    gc.collect()
    assert recording() is None and plain(out * 1) == plain(out)


def test_state_is_written_once() -> None:
    count = Parameter(Tensor(0.0), name="count", requires_grad=False)

    class Counting(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = count

        def construct(self, x: Any) -> Any:
            self.count += 1
            return x * x

    net = Counting()
    for call in (lambda: jvp(net, X, V), lambda: vjp(net, X)[1](V), lambda: jacrev(net)(X), lambda: jacfwd(net)(X)):
        before = float(count)
        call()
        assert float(count) == before + 1
    out, pull = vjp(net, X)
    pull(V)
    pull(V)
    assert float(count) == before + 2


class Stochastic(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.drop, self.norm = nn.Dropout(p=0.5), nn.BatchNorm1d(4)
        self.set_train()

    def construct(self, x: Any) -> Any:
        return self.drop(self.norm(x)) * x


def test_recomputing_draws_and_writes_once() -> None:
    """Dropout is the same on the way back, and the moving averages move once."""
    x = Tensor(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))

    def take(again: bool) -> Any:
        ms.set_seed(3)
        ms.manual_seed(3)
        net = Stochastic()
        if again:
            net.recompute()
        gradient = ms.grad(lambda a: (net(a) * net(a)).sum())(x)
        return gradient.asnumpy(), net.norm.moving_mean.asnumpy().copy()

    found = [take(False), take(True)]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)
    assert np.abs(found[0][0]).max() > 0

"""Hooks of tensors, parameters and Cells, and derivatives that Cells give themselves: when they are
called, with what, and what goes wrong; in both modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn, ops
from mycel._src.foundation.pytree import map_leaves

CHECKED = dict.fromkeys(("Tensor.hooks", "ops.HookBackward"), "gradients by hand")


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs in both modes."""
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=before)


def plain(value: Any) -> Any:
    return map_leaves(lambda v: v.asnumpy().tolist() if isinstance(v, Tensor) else v, value)


X = Tensor([1.0, 2.0])


def ways(f: Any) -> Any:
    """A gradient taken eagerly (or in GRAPH_MODE), of the compiled function, and compiled."""
    return [ms.grad(f), ms.grad(ms.jit(f)), ms.jit(ms.grad(f))]


def test_a_hook_of_an_argument_is_called_at_the_end() -> None:
    for take in ways(lambda a: a * a):
        x = Tensor([1.0, 2.0])
        first = x.register_hook(lambda g: g * 7)
        second = x.register_hook(lambda g: g + 1)
        assert plain(take(x)) == [15, 29] and len(x.hooks()) == 2
        first.remove()
        first.remove()
        assert plain(take(x)) == [3, 5]
        second.remove()
        assert plain(take(x)) == [2, 4] and x.hooks() == []


def test_a_hook_of_a_parameter() -> None:
    net = nn.Dense(2, 1, weight_init="ones")
    weights = net.trainable_params()
    take = ms.grad(net, None, weights)
    assert plain(take(X[None])) == ([[1, 2]], [1])
    handle = net.weight.register_hook(lambda g: g * 5)
    assert plain(take(X[None])) == ([[5, 10]], [1])
    assert plain(ms.vjp(net, X[None], weights=weights)[1](Tensor([[1.0]]))[1]) == ([[5, 10]], [1])
    handle.remove()
    assert plain(take(X[None])) == ([[1, 2]], [1])


def test_a_hook_inside_sees_each_gradient_once() -> None:
    seen: list[Any] = []

    def watch(g: Any) -> None:
        seen.append(g)

    def f(a: Any) -> Any:
        b = a * a
        b.register_hook(watch)
        return b * 3 + b

    for take in ways(f):
        seen.clear()
        assert plain(take(X)) == [8, 16]
        assert plain(seen) == [[4, 4]]
        assert plain(take(X)) == [8, 16] and len(seen) == 2


def test_hooks_are_not_called_where_no_gradient_comes() -> None:
    def f(a: Any) -> Any:
        b = a * 5
        b.register_hook(lambda g: 1 / 0)
        return a * 2

    for take in ways(f):
        assert plain(take(X)) == [2, 2]


def test_hooks_are_differentiated_through() -> None:
    def f(a: Any) -> Any:
        b = a * a
        b.register_hook(lambda g: g * a)
        return b

    for take in ways(lambda a: ms.grad(f)(a)):
        assert plain(take(X)) == [4, 8]  # of 2 a * a


def test_hooks_leave_forward_mode_alone() -> None:
    def f(a: Any) -> Any:
        b = a * a
        b.register_hook(lambda g: g * 100)
        return b

    assert plain(ms.jvp(f, X, X)[1]) == plain(ms.jit(lambda a: ms.jvp(f, a, a)[1])(X)) == [2, 8]


def test_what_a_hook_returns_is_checked() -> None:
    def returning(value: Any) -> Any:
        def f(a: Any) -> Any:
            b = a * a
            b.register_hook(lambda g: value)
            return b

        return f

    with pytest.raises(TypeError, match="must return a tensor or None, not int"):
        ms.grad(returning(3))(X)
    with pytest.raises(ValueError, match="returned a gradient of shape \\(3,\\) in place of \\(2,\\)"):
        ms.grad(returning(Tensor([1.0] * 3)))(X)
    for value in (Tensor([2.0]), Tensor([2, 2])):
        assert ms.grad(returning(value))(X).tolist() == ms.grad(returning(Tensor([2.0, 2.0])))(X).tolist()
    with pytest.raises(TypeError, match="the hook must be a function, not int"):
        Tensor([1.0]).register_hook(3)


class Square(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * x


def test_backward_hooks_see_both_ends() -> None:
    seen: list[Any] = []
    net = Square()
    first = net.register_backward_pre_hook(lambda cell, grad_output: seen.append((type(cell), grad_output)))
    second = net.register_backward_hook(lambda cell, grad_input, grad_output: seen.append((grad_input, grad_output)))
    assert net.enable_backward_hook
    for take in ways(lambda a: net(a) * 3):
        seen.clear()
        assert plain(take(X)) == [6, 12]
        assert plain(seen) == [(Square, ([3, 3],)), (([6, 12],), ([3, 3],))]
    first.remove()
    second.remove()
    assert not net.enable_backward_hook and plain(ms.grad(net)(X)) == [2, 4]


def test_a_backward_hook_of_a_cell_whose_input_is_not_differentiated() -> None:
    seen: list[Any] = []
    net = nn.Dense(2, 1, weight_init="ones")
    net.register_backward_hook(lambda cell, grad_input, grad_output: seen.append((grad_input, grad_output)))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert plain(ms.grad(net, None, net.trainable_params())(X[None])) == ([[1, 2]], [1])
    assert plain(seen) == [((None,), ([[1]],))]


def test_backward_hooks_of_several_inputs_and_outputs() -> None:
    class Two(nn.Cell):
        def construct(self, x: Any, n: Any, y: Any) -> Any:
            return x * y, n, x + y

    net = Two()
    net.register_backward_pre_hook(lambda cell, grads: (grads[0] * 2, grads[1]))
    net.register_backward_hook(lambda cell, grads, outs: (grads[1], None))
    for take in ways(lambda a: (lambda out: out[0] + out[2])(net(a, 3, a * 10))):
        # x: 2 y + 1, y: 2 x + 1; the hook puts that of y in the place of that of x.
        assert plain(take(X)) == [(2 + 1) + 10 * (2 + 1), (4 + 1) + 10 * (4 + 1)]
    net.register_backward_hook(lambda cell, grads, outs: (grads[0],))
    with pytest.raises(ValueError, match="returned 1 gradients in place of 2"):
        ms.grad(lambda a: net(a, 3, a)[0])(X)


def test_forward_hooks_in_order_and_with_keywords() -> None:
    net = Square()
    called: list[str] = []
    net.register_forward_pre_hook(lambda cell, inputs: called.append("second"))
    net.register_forward_pre_hook(lambda cell, inputs: called.append("first"), prepend=True)
    net.register_forward_hook(lambda cell, args, kwargs, output: output + len(args), with_kwargs=True)
    assert plain(net(X)) == [2, 5]
    assert called == ["first", "second"]
    with pytest.raises(TypeError, match="a hook must be a function, not int"):
        net.register_forward_hook(3)


def test_a_forward_hook_that_is_always_called() -> None:
    class Broken(nn.Cell):
        def construct(self, x: Any) -> Any:
            raise ValueError("broken")

    called = []
    net = Broken()
    net.register_forward_hook(lambda cell, inputs, output: called.append(output), always_call=True)
    net.register_forward_hook(lambda cell, inputs, output: called.append("not"))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(ValueError, match="broken"):
        net(X)
    assert called == [None]


# bprop.


class Own(nn.Cell):
    def __init__(self, given: Any = None) -> None:
        super().__init__()
        self.w = Parameter(Tensor(2.0), name="w")
        self.given = given

    def construct(self, x: Any, y: Any) -> Any:
        return x * y * self.w

    def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
        if self.given is not None:
            return self.given(dout)
        return dout * 100, dout * out


def test_the_arguments_of_bprop() -> None:
    net = Own()
    both = ms.grad(net, (0, 1))
    assert plain(both(X, X)) == ([100, 100], [2, 8])
    assert plain(ms.grad(lambda a: net(a, y=a))(X)) == [102, 108]
    assert plain(ms.grad(lambda a: net(a, 3.0))(X)) == [100, 100]
    assert plain(ms.grad(net, (0, 1), net.trainable_params())(X, X)) == (([100, 100], [2, 8]), (0,))


@pytest.mark.parametrize(
    "given, want",
    [
        (lambda d: (d, None), ([1, 1], [0, 0])),
        (lambda d: [d, d * 2], ([1, 1], [2, 2])),
        (lambda d: (None, None), ([0, 0], [0, 0])),
        (lambda d: ((d, d * 3), {}), ([1, 1], [3, 3])),
    ],
)
def test_what_bprop_may_return(given: Any, want: Any) -> None:
    assert plain(ms.grad(Own(given), (0, 1))(X, X)) == want


@pytest.mark.parametrize(
    "given, error, text",
    [
        (lambda d: d, ValueError, "Own.bprop returned 1 gradients for 2 inputs"),
        (lambda d: (d, 3), TypeError, "Own.bprop, for input 1, must return a tensor or None, not int"),
        (
            lambda d: (d, d[0]),
            ValueError,
            "Own.bprop, for input 1, returned a gradient of shape \\(\\) in place of \\(2,\\)",
        ),
    ],
)
def test_what_bprop_must_not_return(given: Any, error: Any, text: str) -> None:
    net = Own(given)
    assert plain(net(X, X)) == [2, 8]
    with pytest.raises(error, match=text):
        ms.grad(net, (0, 1))(X, X)


def test_bprop_may_give_gradients_of_weights() -> None:
    class Weighted(Own):
        def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
            return (dout, dout), {self.w: dout.sum() * 7}

    net = Weighted()
    for take in (ms.grad(net, 0, net.w), ms.jit(ms.grad(net, 0, net.w)), ms.grad(ms.jit(net), 0, net.w)):
        assert plain(take(X, X)) == ([1, 1], 14)


def test_bprop_of_containers() -> None:
    class Packed(nn.Cell):
        def construct(self, pair: Any, scale: Any) -> Any:
            return {"sum": (pair[0] + pair[1]) * scale, "n": 3}

        def bprop(self, pair: Any, scale: Any, out: Any, dout: Any) -> Any:
            return (dout["sum"] * 10, dout["sum"] * 20), None

    net = Packed()
    for take in ways(lambda a: net((a, a * 1), 2.0)["sum"]):
        assert plain(take(X)) == [30, 30]


def test_a_changed_bprop_is_noticed() -> None:
    class Changing(nn.Cell):
        factor = 1

        def construct(self, x: Any) -> Any:
            return x * x

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * self.factor,)

    net = Changing()
    take = ms.jit(ms.grad(net))
    assert plain(take(X)) == [1, 1]
    net.factor = 5
    assert plain(take(X)) == [5, 5]
    Changing.bprop = lambda self, x, out, dout: (dout * x,)
    assert plain(take(X)) == [1, 2]


def test_bprop_with_effects_runs_where_the_gradient_is() -> None:
    seen = []

    class Noting(Square):
        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            seen.append(plain(out) if not ms.get_context("mode") == ms.GRAPH_MODE else "graph")
            return (dout * 3,)

    net = Noting()
    assert plain(net(X)) == [1, 4] and seen == []
    assert plain(ms.grad(net)(X)) == [3, 3] and len(seen) == 1


def test_operations_of_gradients() -> None:
    assert plain(ms.grad(lambda a: a * ops.StopGradient()(a))(X)) == [1, 2]
    seen: list[Any] = []
    hook = ops.HookBackward(lambda grads: seen.append(plain(grads)))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert plain(ms.grad(lambda a: (lambda u, w: u * w)(*hook(a * 1, a * 2)))(X)) == [4, 8]
    assert seen == [([2, 4], [1, 2])]
    for wrong in (lambda: ops.HookBackward(3), lambda: ops.InsertGradientOf("f")):
        with pytest.raises(TypeError, match="must be a function"):
            wrong()


def test_hooks_inside_recomputed_blocks() -> None:
    def block(a: Any) -> Any:
        b = ops.sin(a)
        b.register_hook(lambda g: g * 10)
        return b * a

    for take in ways(lambda a: ms.recompute(block, a)):
        x = np.array([1.0, 2.0])
        np.testing.assert_allclose(take(X).asnumpy(), np.sin(x) + 10 * x * np.cos(x), rtol=1e-5)


def test_hooks_with_effects_where_tensors_decide() -> None:
    seen: list[Any] = []

    def f(a: Any) -> Any:
        b = a * a
        if ops.sum(b) > 0:
            c = b * 2
            c.register_hook(lambda g: seen.append("branch"))
            b = c * 3
        while ops.sum(b) < 100:
            b = b * 2
            b.register_hook(lambda g: seen.append("loop"))
        return b

    for take in ways(f):
        for _ in range(2):
            seen.clear()
            assert plain(take(X)) == [48, 96]
            assert seen == ["loop", "loop", "branch"]
    seen.clear()
    assert plain(ms.jit(f)(X)) == [24, 96] and seen == []


def test_hooks_that_need_values() -> None:
    """In derivatives of derivatives too, with Python in between."""
    seen: list[Any] = []

    def f(a: Any) -> Any:
        scale = float(ops.sum(a))
        b = a * a * scale
        b.register_hook(lambda g: seen.append(g.asnumpy().tolist()))
        return b

    programs = (
        lambda a: ms.jvp(f, a, a)[1],
        lambda a: ms.vjp(f, a)[1](a)[0],
        lambda a: ms.jacrev(f)(a),
        lambda a: ms.grad(f)(a),
    )
    for program in programs:
        results = []
        for call in (
            lambda p: p(X),
            lambda p: ms.jit(p)(X),
            lambda p: ms.grad(p)(X),
            lambda p: ms.grad(ms.jit(p))(X),
            lambda p: ms.jit(ms.grad(p))(X),
        ):
            seen.clear()
            results.append((plain(call(program)), len(seen)))
        assert results[0] == results[1] and results[2] == results[3] == results[4]


def test_stopping_a_gradient_in_place() -> None:
    def f(a: Any) -> Any:
        b = a * a
        assert ops.stop_gradient_(b) is b
        return a * b

    for take in ways(f):
        assert plain(take(X)) == [1, 4]
    with pytest.raises(TypeError, match="must be a Tensor"):
        ops.stop_gradient_(3)

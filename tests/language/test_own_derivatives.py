"""Derivatives that a program changes: `bprop` of Cells, and hooks of tensors and Cells, in control
flow and in derivatives of higher order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mycel as ms
from mycel import nn
from tests.language.harness import F, P, Programs, X, Y

CHECKED = {"ops.InsertGradientOf": "gradients by hand"}

programs = Programs()


# Derivatives of the program's own.


class Cubed(nn.Cell):
    """The square, whose derivative by its own account is that of the cube."""

    def construct(self, x: Any) -> Any:
        return x * x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (3 * out * dout,)


class Pair(nn.Cell):
    def construct(self, x: Any, y: Any) -> Any:
        if F.sum(x) > 0:
            x = x * 2
        return x * y, x + y

    def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
        return dout[0] * y + out[1] * 0, dout[1] * 100


cubed, pair = Cubed(), Pair()


@programs.add((X,), grad=None, oracle=lambda x: 3 * x * x)
def own_derivative(x: Any) -> Any:
    return ms.grad(cubed)(x)


@programs.add((X,), grad=None, oracle=lambda x: (9 * x * x, 27 * x * x))
def own_derivative_of_higher_order(x: Any) -> Any:
    """The derivative of 3 * out goes back through the rule again."""
    return ms.grad(ms.grad(cubed))(x), ms.grad(ms.grad(ms.grad(cubed)))(x)


@programs.add((X, Y), (-X, Y), grad=None, oracle=lambda x, y: (y, 100 + 0 * y))
def own_derivative_of_two(x: Any, y: Any) -> Any:
    return ms.grad(pair, (0, 1))(x, y)


@programs.add((X, Y), grad=1, oracle=lambda x, v: 3 * x * x * v)
def own_derivative_forwards(x: Any, v: Any) -> Any:
    return ms.jvp(cubed, x, v)[1]


def cubed_rounds(x: Any) -> Any:
    factor = np.ones_like(x)
    while x.sum() < 50:
        factor, x = factor * 3 * x * x, x * x + 1
    return factor


@programs.add((X,), grad=None, oracle=cubed_rounds)
def own_derivative_inside_a_while(x: Any) -> Any:
    def f(u: Any) -> Any:
        while F.sum(u) < 50:
            u = cubed(u) + 1
        return u

    return ms.grad(f)(x)


@programs.add((X, P), (X, -P), grad=None, oracle=lambda x, p: 3 * x * x if p > 0 else np.cos(x))
def own_derivative_inside_a_branch(x: Any, p: Any) -> Any:
    return ms.grad(lambda u: cubed(u) if p > 0 else F.sin(u))(x)


@programs.add((X,), grad=None, oracle=lambda x: np.diag(3 * x * x))
def own_derivative_in_a_jacobian(x: Any) -> Any:
    return ms.jacrev(cubed)(x) * 0.5 + ms.jacfwd(cubed)(x) * 0.5


# Hooks.


def hooked(x: Any) -> Any:
    y = x * x
    before = y * 1.0
    y.register_hook(lambda g: g * 10)
    return y * 3 + before


@programs.add((X,), oracle=lambda x: 80 * x)
def hook_of_a_tensor(x: Any) -> Any:
    """All that goes back to the tensor is hooked, also by what used it before."""
    return ms.grad(hooked)(x)


@programs.add((X,), oracle=lambda x: 2 * x * (3 * 2 + 1) * 2)
def hooks_in_order(x: Any) -> Any:
    def f(u: Any) -> Any:
        y = u * u
        y.register_hook(lambda g: g * 2)
        y.register_hook(lambda g: g + 1)
        y.register_hook(lambda g: None)
        return y * 3

    return ms.grad(f)(x) * 2


@programs.add((X,), oracle=lambda x: 6 * x)
def hook_removed(x: Any) -> Any:
    def f(u: Any) -> Any:
        y = u * u
        handle = y.register_hook(lambda g: g * 100)
        handle.remove()
        return y * 3

    return ms.grad(f)(x)


@programs.add((X, P), (X, -P), grad=None, oracle=lambda x, p: 20 * x if p > 0 else 2 * x)
def hook_inside_a_branch(x: Any, p: Any) -> Any:
    def f(u: Any) -> Any:
        y = u * u
        if p > 0:
            z = y * 1.0
            z.register_hook(lambda g: g * 10)
            y = z
        return y

    return ms.grad(f)(x)


@programs.add((X,), oracle=lambda x: (2 * x * 4, 2 * x * 7))
def operations_on_gradients(x: Any) -> Any:
    double = ms.ops.HookBackward(lambda grads: (grads[0] * 2,))
    shift = ms.ops.InsertGradientOf(lambda g: g + 5)
    return ms.grad(lambda u: double(u * u) * 2)(x), ms.grad(lambda u: shift(u * u) * 2)(x)


class Scaled(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * x


def _watched() -> Any:
    net = Scaled()
    net.register_forward_pre_hook(lambda cell, inputs: (inputs[0] + 1,))
    net.register_forward_hook(lambda cell, inputs, output: output * 2)
    return net


watched = _watched()


@programs.add((X,), oracle=lambda x: ((x + 1) ** 2 * 2, 4 * (x + 1)))
def forward_hooks_of_a_cell(x: Any) -> Any:
    return watched(x), ms.grad(watched)(x)


def _backward_watched() -> Any:
    net = Scaled()
    net.register_backward_pre_hook(lambda cell, grad_output: (grad_output[0] + 1,))
    net.register_backward_hook(lambda cell, grad_input, grad_output: (grad_input[0] * grad_output[0],))
    return net


backward_watched = _backward_watched()


@programs.add((X,), grad=None, oracle=lambda x: 2 * x * 4 * 4)
def backward_hooks_of_a_cell(x: Any) -> Any:
    return ms.grad(lambda u: backward_watched(u) * 3)(x)


test_programs = programs.test()

"""Derivatives as parts of programs: forward and reverse mode, Jacobians and recomputation, nested
in each other and in control flow.

Oracles are closed forms, recurrences and finite differences in float64; gradients of these programs
are derivatives of one order more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mycel as ms
from mycel import nn
from tests.language.harness import F, P, Programs, X, Y

programs = Programs()


def slope(f: Any, x: Any, v: Any = None, step: float = 1e-5) -> Any:
    """The derivative of a function of float64 arrays along v, by central differences of fourth
    order.
    """
    v = np.ones_like(x) if v is None else v
    near, far = f(x + step * v) - f(x - step * v), f(x + 2 * step * v) - f(x - 2 * step * v)
    return (8 * near - far) / (12 * step)


def jacobian(f: Any, x: Any, step: float = 1e-5) -> Any:
    """Columns by finite differences."""
    columns = [slope(f, x, np.eye(x.size)[i].reshape(x.shape), step) for i in range(x.size)]
    return np.stack(columns, -1).reshape(*np.shape(columns[0]), *x.shape)


def gradient(f: Any, x: Any, step: float = 1e-5) -> Any:
    return jacobian(lambda a: np.asarray(np.sum(f(a))), x, step)


# Forward mode.


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: (np.sin(x), np.cos(x) * v))
def jvp_of_sine(x: Any, v: Any) -> Any:
    return ms.jvp(F.sin, x, v)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (x**3 * y, y, 3 * x**2 * y * y + x**3 * x, x))
def jvp_by_two_inputs(x: Any, y: Any) -> Any:
    (a, b), (da, db) = ms.jvp(lambda u, w: (u * u * u * w, w), (x, y), (y, x))
    return a, b, da, db


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: (2 * x * v, x + 1))
def jvp_with_another_output(x: Any, v: Any) -> Any:
    _, moved, extra = ms.jvp(lambda u: (u * u, u + 1), x, v, has_aux=True)
    return moved, extra


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: 6 * x * v * v)
def jvp_of_jvp(x: Any, v: Any) -> Any:
    return ms.jvp(lambda u: ms.jvp(lambda w: w**3, u, v)[1], x, v)[1]


def doubled(x: Any) -> Any:
    while F.sum(x * x) < 100:
        x = x * x * 0.5 + 2 * x
    return x


@programs.add((X, Y), oracle=lambda x, v: slope(doubled, x, v), tolerance=2e-3)
def jvp_through_a_while(x: Any, v: Any) -> Any:
    return ms.jvp(doubled, x, v)[1]


def bent(x: Any) -> Any:
    if F.sum(x) > 0:
        y = F.sin(x) * x
    else:
        y = F.exp(x)
    return y


@programs.add((X, Y), (-X, Y), oracle=lambda x, v: slope(bent, x, v))
def jvp_through_an_if(x: Any, v: Any) -> Any:
    return ms.jvp(bent, x, v)[1]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: 6 * x * v)
def forward_over_reverse(x: Any, v: Any) -> Any:
    return ms.jvp(ms.grad(lambda u: F.sum(u**3)), x, v)[1]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: 6 * x * v)
def reverse_over_forward(x: Any, v: Any) -> Any:
    return ms.grad(lambda u: ms.jvp(lambda w: F.sum(w**3), u, v)[1])(x)


@programs.add((X, 4), oracle=lambda x, n: (np.cos(x) * x * n, n * np.sin(x)))
def jvp_inside_a_loop_over_numbers(x: Any, n: Any) -> Any:
    total, value = 0.0, 0.0
    for _ in range(n):
        v, t = ms.jvp(F.sin, x, x)
        value, total = value + v, total + t
    return total, value


def tangents_added(x: Any) -> Any:
    total = x * 0.0
    while F.sum(total) < 5:
        total = total + ms.jvp(lambda u: u * u, x, x + 1.0)[1] + 1.0
    return total


def tangents_added_oracle(x: Any) -> Any:
    total = x * 0.0
    while total.sum() < 5:
        total = total + 2 * x * (x + 1) + 1
    return total


@programs.add((X,), oracle=tangents_added_oracle)
def jvp_inside_a_while(x: Any) -> Any:
    return tangents_added(x)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: (np.exp(x), np.exp(x) * v, np.exp(x) * 2 * v))
def linearized_once_pushed_twice(x: Any, v: Any) -> Any:
    out, push = ms.ops.linearize(F.exp, x)
    return out, push(v), push(v * 2)


@programs.add((X,), oracle=lambda x: (x**4, 12 * x**2, 24 * x))
def derivatives_along_a_line(x: Any) -> Any:
    out, second = ms.ops.derivative(lambda u: u * u * u * u, x, 2)
    return out, second, ms.ops.derivative(lambda u: u * u * u * u, x, 3)[1]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: np.stack([2 * x * y, 2 * y * y + 2 * x]))
def series_along_a_curve(x: Any, y: Any) -> Any:
    return ms.ops.jet(lambda u: u * u, x, ms.ops.stack([y, ms.ops.ones_like(y)]))[1]


# Reverse mode.


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: (np.sin(x), np.cos(x) * v))
def vjp_of_sine(x: Any, v: Any) -> Any:
    out, pull = ms.vjp(F.sin, x)
    return out, pull(v)[0]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (y * y + x * x, x * y + 2 * y * x))
def vjp_of_two_outputs(x: Any, y: Any) -> Any:
    _, pull = ms.vjp(lambda u, w: (u * w, w * w * 1.0 + u * u / 2), x, y)
    a, b = pull(y, x)
    return a, b


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: (2 * x * v, 6 * x * v, x + 1))
def vjp_called_twice(x: Any, v: Any) -> Any:
    _, pull, extra = ms.vjp(lambda u: (u * u, u + 1), x, has_aux=True)
    return pull(v)[0], pull(v * 3)[0], extra


@programs.add((X, Y), oracle=lambda x, v: gradient(lambda a: doubled(a) * v, x), tolerance=2e-3)
def vjp_through_a_while(x: Any, v: Any) -> Any:
    return ms.vjp(doubled, x)[1](v)[0]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, v: (2 * v, 2 * x))
def transposed_twice(x: Any, v: Any) -> Any:
    """The pull-back is linear in the cotangent, so that pulling back through it pushes forward."""
    _, pull = ms.vjp(lambda u: u * u, x)
    out, back = ms.vjp(lambda c: pull(c)[0] / x, v)
    return out, back(x / x * x)[0]


@programs.add((X, P), grad=(0, 1), oracle=lambda x, p: (3 * x**2 * p, (x**3).sum()))
def gradient_by_two_positions(x: Any, p: Any) -> Any:
    return ms.grad(lambda u, w: F.sum(u * u * u) * w, (0, 1))(x, p)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (2 * x * y, (x * x, x)))
def gradient_with_cotangent(x: Any, y: Any) -> Any:
    value, g = ms.value_and_grad(lambda u: (u * u, u), has_aux=True, sens_param=True)(x, y)
    return g, value


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (y + x, y * y, x * y + y))
def gradient_operation(x: Any, y: Any) -> Any:
    by_all = ms.ops.GradOperation(get_all=True)(lambda u, w: u * w + u * u / 2)(x, y)
    weighted = ms.ops.GradOperation(sens_param=True)(lambda u, w: u * w)(x, y, y)
    return by_all[0], weighted, ms.ops.GradOperation(get_all=True, sens_param=True)(lambda u: u * u / 2 + u)(x, y)[0]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (x, y))
def gradient_picked_by_position(x: Any, y: Any) -> Any:
    found = ms.grad(lambda u, w: u * w, (0, 1), return_ids=True)(x, y)
    return ms.get_grad(found, 1), ms.get_grad(found, 0)


@programs.add((X,), grad=None, oracle=lambda x: (2 * x * np.cos(x * x), x))
def what_is_constant(x: Any) -> Any:
    inner = ms.grad(lambda u: F.sin(u * u))(x)
    return inner, ms.grad(lambda u: u * ms.ops.stop_gradient(u))(x)


@programs.add((X,), oracle=lambda x: -np.cos(x))
def third_derivative(x: Any) -> Any:
    return ms.grad(ms.grad(ms.grad(F.sin)))(x)


@programs.add((P,), oracle=lambda p: np.sqrt(p))
def newton(p: Any) -> Any:
    """The root of u * u - p by Newton's method, differentiated through all of it."""
    f = lambda u: u * u - p
    u = p / 2 + 0.5
    while F.abs(f(u)) > 1e-5:
        u = u - f(u) / ms.grad(f)(u)
    return u


@programs.add((X,), oracle=lambda x: x * (1 - 0.2) ** 20 + (1 - 0.8**20) * 3)
def descent(x: Any) -> Any:
    """Gradient descent on (u - 3)**2, whose distance shrinks by the same factor in every step."""
    u = x
    for _ in range(20):
        u = u - 0.1 * ms.grad(lambda w: (w - 3) ** 2)(u)
    return u


@programs.add((X, P), (X, -P), grad=0, oracle=lambda x, p: 2 * x if p > 0 else np.cos(x))
def gradient_inside_a_branch(x: Any, p: Any) -> Any:
    if p > 0:
        return ms.grad(lambda u: u * u)(x)
    return ms.grad(F.sin)(x)


def settled(x: Any) -> Any:
    y = x
    for _ in range(200):
        y = F.cos(y) * 0.9 + 0.1 * x
    return y


@programs.add((X,))
def a_loop_of_many_rounds(x: Any) -> Any:
    return settled(x)


@programs.add((X, np.int64(150)), oracle=lambda x, n: gradient(counted(n), x))
def a_gradient_of_unknown_many_rounds(x: Any, n: Any) -> Any:
    return ms.grad(lambda u: F.sum(counted(n)(u)))(x)


def counted(n: Any) -> Any:
    def run(x: Any) -> Any:
        y = x
        for i in range(n):
            y = F.sin(y) + 0.1 * x + 0.001 * i
        return y

    return run


@programs.add((X, Y), oracle=lambda x, v: slope(lambda a: gradient(counted(7), a, 1e-3), x, v, 1e-2), tolerance=5e-3)
def a_loop_differentiated_twice(x: Any, v: Any) -> Any:
    return ms.jvp(ms.grad(lambda u: F.sum(counted(ms.Tensor(7))(u))), x, v)[1]


@programs.add((X,), oracle=lambda x: gradient(lambda a: np.sin(a) * np.exp(a), x))
def compiled_inside_differentiated_inside(x: Any) -> Any:
    inner = ms.jit(lambda u: F.sin(u) * F.exp(u))
    return ms.grad(lambda u: inner(u))(x)


@programs.add((X,), oracle=lambda x: {"a": 2 * x, "b": [x * 0 + 3]})
def gradient_by_a_container(x: Any) -> Any:
    return ms.grad(lambda d: d["a"] * d["a"] + d["b"][0] * 3)({"a": x, "b": [x]})


# Jacobians.


def mixed(x: Any) -> Any:
    return F.sin(x) * F.sum(x * x)


@programs.add((X,), oracle=lambda x: jacobian(mixed, x))
def jacobian_by_columns(x: Any) -> Any:
    return ms.jacfwd(mixed)(x)


@programs.add((X,), oracle=lambda x: jacobian(mixed, x))
def jacobian_by_rows(x: Any) -> Any:
    return ms.jacrev(mixed)(x)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: ((np.diag(y), np.diag(x)), (np.zeros((3, 3)), np.diag(2 * y))))
def jacobians_of_two_by_two(x: Any, y: Any) -> Any:
    f = lambda u, w: (u * w, w * w)
    columns, rows = ms.jacfwd(f, (0, 1))(x, y), ms.jacrev(f, (0, 1))(x, y)
    return tuple((a[0] * 0.5 + b[0] * 0.5, a[1] * 0.5 + b[1] * 0.5) for a, b in zip(columns, rows))


@programs.add((X,), oracle=lambda x: (np.diag(2 * x), x * 3))
def jacobian_with_another_output(x: Any) -> Any:
    rows, extra = ms.jacrev(lambda u: (u * u, u * 3), has_aux=True)(x)
    return rows, extra


@programs.add((X,), oracle=lambda x: np.diag(6 * x) + 2 * (np.ones((3, 3)) - np.eye(3)))
def hessian(x: Any) -> Any:
    return ms.jacfwd(ms.jacrev(lambda u: F.sum(u**3) + F.sum(u) ** 2 - F.sum(u * u)))(x)


@programs.add((X,), oracle=lambda x: (6 * x).sum())
def laplacian(x: Any) -> Any:
    return F.sum(ms.jacrev(ms.jacrev(lambda u: F.sum(u**3)))(x))


@programs.add((X,), oracle=lambda x: jacobian(doubled, x), tolerance=2e-3)
def jacobian_through_a_while(x: Any) -> Any:
    return ms.jacfwd(doubled)(x)


@programs.add((X,), oracle=lambda x: jacobian(doubled, x), tolerance=2e-3)
def jacobian_by_rows_through_a_while(x: Any) -> Any:
    return ms.jacrev(doubled)(x)


@programs.add((X,), (-X,), oracle=lambda x: jacobian(bent, x))
def jacobian_through_an_if(x: Any) -> Any:
    return ms.jacrev(bent)(x)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: np.multiply.outer(y * 2 * x, np.ones(3)).diagonal() * 1.0)
def jacobian_times_vector(x: Any, y: Any) -> Any:
    return ms.ops.matmul(ms.jacrev(lambda u: u * u)(x), y)


# Recomputation.


def block(x: Any) -> Any:
    return F.sin(x) * F.exp(-x * x)


@programs.add((X,), oracle=block)
def recomputed(x: Any) -> Any:
    return ms.recompute(block, x)


@programs.add((X,), oracle=lambda x: block(block(block(x))) + x)
def recomputed_blocks(x: Any) -> Any:
    y = x
    for _ in range(3):
        y = ms.recompute(block, y)
    return y + x


@programs.add((X,), oracle=lambda x: block(block(x) * 2))
def recomputed_inside_recomputed(x: Any) -> Any:
    return ms.recompute(lambda u: block(ms.recompute(block, u) * 2), x)


@programs.add((X, np.int64(90)), oracle=lambda x, n: counted(n)(x))
def recomputed_loop(x: Any, n: Any) -> Any:
    return ms.recompute(counted(n), x)


@programs.add((X,), oracle=lambda x: gradient(block, x))
def gradient_of_recomputed(x: Any) -> Any:
    return ms.grad(lambda u: ms.recompute(block, u))(x)


class Block(nn.Cell):
    def construct(self, x: Any) -> Any:
        return block(x)


def _recomputed_cell() -> Any:
    net = Block()
    net.recompute()
    return net


recomputed_cell = _recomputed_cell()


@programs.add((X,), oracle=lambda x: block(x) * 2)
def a_recomputed_cell(x: Any) -> Any:
    return recomputed_cell(x) * 2


def rounds_of_blocks(x: Any) -> Any:
    while F.sum(x * x) > 0.5:
        x = block(x) if isinstance(x, np.ndarray) else ms.recompute(block, x)
    return x


@programs.add((X,))
def recomputed_inside_a_while(x: Any) -> Any:
    return rounds_of_blocks(x)


# With values asked for on the way.


@programs.add((X,), grad=None, breaks=True, oracle=lambda x: 2 * x * x.sum())
def value_inside_what_is_differentiated(x: Any) -> Any:
    return ms.grad(lambda u: F.sum(u * u) * float(F.sum(x)))(x)


@programs.add((X, Y), grad=None, breaks=True, oracle=lambda x, y: 2 * x * y * y.sum())
def value_between_forwards_and_backwards(x: Any, y: Any) -> Any:
    _, pull = ms.vjp(lambda u: u * u, x)
    scale = float(F.sum(y))
    return pull(y)[0] * scale


@programs.add((X, Y), grad=None, breaks=True, oracle=lambda x, y: (3 * x * x * y, np.diag(3 * x * x)))
def value_inside_forward_mode(x: Any, y: Any) -> Any:
    def f(u: Any) -> Any:
        power = int(F.sum(u * 0)) + 3
        return u**power

    return ms.jvp(f, x, y)[1], ms.jacfwd(f)(x)


test_programs = programs.test()

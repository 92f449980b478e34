"""Complex numbers against NumPy, whose complex arithmetic is independent; derivatives by both
parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import REGISTRY, outputs_of
from mycel._src.compiler.transforms.complex_pairs import FORMULAS
from mycel._src.engines.reference import evaluate

CHECKED = {f"ops.{n}": "NumPy" for n in ("abs", "angle", "conj", "imag", "polar", "real", "sgn", "view_as_real")}
Z = np.array([[1 + 2j, -0.5 + 0.25j, 3 - 1j], [-2 - 0.1j, 0.7j, -1.5 + 0j]])
W = np.array([0.5 - 1j, 2 + 0.3j, -1 + 1j])
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": lambda z: np.exp(z * np.log(2)),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "neg": np.negative,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "abs": np.abs,
    "angle": np.angle,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "sgn": lambda z: z / np.abs(z),
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "isreal": np.isreal,
    "view_as_real": lambda z: np.stack([z.real, z.imag], -1),
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "cumsum": lambda z: np.cumsum(z, 0),
    "cumprod": lambda z: np.cumprod(z, 0),
}
AXES = {"cumsum": (0,), "cumprod": (0,)}
SMOOTH = [n for n in FUNCTIONS if n not in ("isnan", "isfinite", "isreal", "view_as_real")]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_functions(name: str, kind: Any) -> None:
    z = Z.astype(kind)
    want = np.asarray(FUNCTIONS[name](Z))
    near = 1e-5 if kind is np.complex64 else 1e-12
    function, args = getattr(ops, name), AXES.get(name, ())
    for got in (function(Tensor(z), *args), ms.jit(lambda t: function(t, *args))(Tensor(z))):
        assert got.shape == want.shape and got.asnumpy().dtype.kind == want.dtype.kind
        np.testing.assert_allclose(got.asnumpy(), want, rtol=near, atol=near)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_by_both_parts(name: str) -> None:
    weights = np.cos(np.arange(6.0)), np.sin(np.arange(6.0) + 1)
    args = AXES.get(name, ())
    # On the branch cuts there are no differences to take.
    # Nothing on a branch cut, where there are no differences to take.
    z0 = Z + (0.2 + 0.37j)

    def loss(z: Tensor) -> Tensor:
        out = getattr(ops, name)(z, *args).reshape(-1)
        n = out.shape[0]
        return (ops.real(out) * Tensor(weights[0][:n])).sum() + (ops.imag(out) * Tensor(weights[1][:n])).sum()

    got = ms.grad(loss)(Tensor(z0)).asnumpy()
    np.testing.assert_allclose(ms.jit(ms.grad(loss))(Tensor(z0)).asnumpy(), got, rtol=1e-12, atol=1e-12)
    want = np.zeros_like(z0)
    for place in np.ndindex(z0.shape):
        for direction in (1, 1j):
            ends = []
            for sign in (1, -1):
                moved = z0.copy()
                moved[place] += sign * direction * 1e-6
                ends.append(float(loss(Tensor(moved))))
            want[place] += direction * (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "eq": np.equal,
    "ne": np.not_equal,
    "matmul": lambda a, b: a @ b,
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(name: str) -> None:
    want = BINARY[name](Z, W)
    for call in (getattr(ops, name), ms.jit(getattr(ops, name))):
        np.testing.assert_allclose(call(Tensor(Z), Tensor(W)).asnumpy(), want, rtol=1e-12)
    if name not in ("eq", "ne"):
        gradients = ms.grad(lambda a, b: ops.real(getattr(ops, name)(a, b) * (1 - 2j)).sum(), (0, 1))
        given = [Z + 0.37j, W]
        for position, got in enumerate(gradients(*map(Tensor, given))):
            for place in np.ndindex(given[position].shape):
                for direction in (1, 1j):
                    ends = []
                    for sign in (1, -1):
                        moved = [g.copy() for g in given]
                        moved[position][place] += sign * direction * 1e-6
                        ends.append((BINARY[name](*moved) * (1 - 2j)).real.sum())
                    part = got.asnumpy()[place]
                    want_part = (ends[0] - ends[1]) / 2e-6
                    assert abs((part.real if direction == 1 else part.imag) - want_part) < 1e-5 * (1 + abs(want_part))


def test_real_and_complex_operands_meet() -> None:
    x = Tensor(np.array([1.0, 2.0], np.float32))
    z = Tensor(np.array([1j, 2], np.complex64))
    assert (
        (x + z).dtype is ms.complex64
        and (z * 2.5).dtype is ms.complex64
        and (z + Tensor(np.ones(2))).dtype is ms.complex128
    )
    assert (x * 1j).dtype is ms.complex64
    np.testing.assert_array_equal((x + z).asnumpy(), np.array([1 + 1j, 4]))
    assert z.astype(ms.float32).tolist() == [0, 2] and z.astype(ms.bool_).tolist() == [True, True]
    assert ops.polar(Tensor([2.0]), Tensor([0.0])).tolist() == [2 + 0j]
    with pytest.raises(TypeError, match="polar"):
        ops.polar(x, Tensor(np.ones(2)))
    with pytest.raises(TypeError, match="view_as_real"):
        ops.view_as_real(x)


def test_movement_indices_and_writes() -> None:
    z = Tensor(Z)
    np.testing.assert_array_equal(z.T.asnumpy(), Z.T)
    np.testing.assert_array_equal(z.H.asnumpy(), Z.conj().T)
    np.testing.assert_array_equal(z[:, ::-1].asnumpy(), Z[:, ::-1])
    np.testing.assert_array_equal(ops.concat([z, z], 1).asnumpy(), np.concatenate([Z, Z], 1))
    np.testing.assert_array_equal(ops.gather(z, Tensor([1, 0, 1]), 1).asnumpy(), Z[:, [1, 0, 1]])
    np.testing.assert_array_equal(ops.where(Tensor(Z.real > 0), z, -z).asnumpy(), np.where(Z.real > 0, Z, -Z))
    np.testing.assert_array_equal(ops.pad(z, (1, 2)).asnumpy(), np.pad(Z, ((0, 0), (1, 2))))
    z[0, 1] = 5j
    assert z[0, 1].item() == 5j and z[0, 0].item() == 1 + 2j


def test_extremes_do_not_overflow() -> None:
    big = Tensor(np.array([3e300 + 4e300j]))
    np.testing.assert_allclose(ops.abs(big).asnumpy(), [5e300])
    np.testing.assert_allclose((big / big).asnumpy(), [1])
    zero = Tensor(np.array([0j]))
    assert ms.grad(lambda z: ops.abs(z).sum())(zero).tolist() == [0] and ops.sgn(zero).tolist() == [0]
    np.testing.assert_array_equal(
        ops.angle(Tensor(np.array([0j, -0.0 + 0j]))).asnumpy(), np.angle(np.array([0j, -0.0 + 0j]))
    )


def test_control_flow_carries_complex_numbers() -> None:
    @ms.jit(fullgraph=True)
    def escape(c: Tensor) -> tuple[Tensor, Tensor]:
        z, n = c * 0, ops.zeros((), ms.int32)
        while ops.logical_and(ops.abs(z) < 2, n < 50):
            z, n = z * z + c, n + 1
        return (z if n < 50 else ops.conj(z)), n

    for c in (0.3 + 0.5j, 1 + 1j, -1 + 0.1j):
        z, n = 0j, 0
        while abs(z) < 2 and n < 50:
            z, n = z * z + c, n + 1
        got, count = escape(Tensor(np.complex128(c)))
        assert int(count) == n
        np.testing.assert_allclose(got.asnumpy(), z if n < 50 else np.conj(z), rtol=1e-9)


def test_a_gradient_through_a_loop() -> None:
    def power(z: Tensor, n: Tensor) -> Tensor:
        out = z
        while n > 1:
            out, n = out * z, n - 1
        return ops.real(out)

    z0 = 0.7 + 0.4j
    got = ms.jit(ms.grad(power))(Tensor(np.complex128(z0)), Tensor(5)).asnumpy()
    np.testing.assert_allclose(got, np.conj(5 * z0**4), rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        p.name
        for p in (*FORMULAS, E.neg, E.add, E.sub)
        # Those of transforms are in tests/transforms/test_fourier_products.py, those of ranks in
        # tests/communication.
        if not p.exchanges and p.name not in ("constant", "cast", "complex") and not p.name.startswith("fourier")
    ],
)
def test_formulas_agree_with_the_reference_engine(name: str) -> None:
    primitive = REGISTRY[name]
    shape = (3, 3)
    kind = tensor_type(shape, ms.complex128)
    arity = 2 if name in ("add", "sub", "mul", "div", "pow", "matmul", "eq", "ne") else 1
    inputs = [input_node(kind) for _ in range(arity)]
    graph = Graph(inputs, [outputs_of(primitive.node(*inputs))], name)
    random = np.random.default_rng(3)
    arrays = [random.normal(size=shape) + 1j * random.normal(size=shape) for _ in inputs]
    (want,) = evaluate(graph, arrays)

    from mycel._src.compiler.transforms.complex_pairs import complex_pairs

    (got,) = evaluate(complex_pairs(graph), [np.stack([a.real, a.imag], -1) for a in arrays])
    if want.dtype.kind == "c":
        got = got[..., 0] + 1j * got[..., 1]
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_symbolic_sizes_of_complex_numbers() -> None:
    @ms.jit
    def power(z: Tensor) -> Tensor:
        return ops.abs(ops.exp(z) * z).sum()

    for n in (3, 5, 7, 4):
        z = np.exp(1j * np.arange(float(n)))
        np.testing.assert_allclose(float(power(Tensor(z))), np.abs(np.exp(z) * z).sum(), rtol=1e-12)

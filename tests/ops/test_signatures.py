"""Methods of tensors take `self` and the names of MindSpore's parameters, and what is passed by
name is what is passed by position.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from tests.meaning import A, Checks

# Names of parameters behind `self`.
SIGNATURES = {
    "addmm_": "mat1 mat2 beta alpha",
    "approximate_equal": "other tolerance",
    "bernoulli_": "p generator",
    "clamp_": "min max",
    "diagonal": "offset axis1 axis2",
    "exponential_": "lambd generator",
    "float_power": "other",
    "index_add_": "dim index source alpha",
    "index_put_": "indices values accumulate",
    "multiply": "value",
    "normal_": "mean std generator",
    "random_": "from_ to generator",
    "scatter_add_": "dim index src",
    "uniform_": "from_ to generator",
    "cummax": "axis",
    "svd": "full_matrices compute_uv",
    "unfold": "kernel_size dilation padding stride",
    "fold": "output_size kernel_size dilation padding stride",
    "top_k": "k sorted",
    "nonzero": "as_tuple",
    "cov": "correction fweights aweights",
    "swapaxes": "axis0 axis1",
    "logit": "eps",
    "erfinv": "",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters(name: str) -> None:
    assert list(inspect.signature(getattr(Tensor, name)).parameters) == ["self", *SIGNATURES[name].split()]


@pytest.mark.parametrize("name", sorted(n for n in vars(Tensor) if not n.startswith("_") and hasattr(Tensor, n)))
def test_methods_take_self(name: str) -> None:
    method = inspect.getattr_static(Tensor, name)
    if not callable(method) or isinstance(method, (staticmethod, property)):
        return
    first = next(iter(inspect.signature(method).parameters.values()))
    assert first.name == "self" or first.kind is first.VAR_POSITIONAL


def test_functions_keep_their_own_names() -> None:
    assert list(inspect.signature(ms.ops.diagonal).parameters) == ["input", "offset", "dim1", "dim2"]
    assert list(inspect.signature(ms.ops.multiply).parameters) == ["input", "other"]


def test_by_name() -> None:
    array = np.arange(24.0).reshape(2, 3, 4) / 10
    t = Tensor(array)
    np.testing.assert_array_equal(t.diagonal(offset=1, axis1=2, axis2=1).asnumpy(), array.diagonal(1, 2, 1))
    np.testing.assert_allclose(t.multiply(value=t).asnumpy(), array * array)
    np.testing.assert_allclose(t.float_power(other=2.5).asnumpy(), array**2.5)
    np.testing.assert_array_equal(t.approximate_equal(other=t + 0.1, tolerance=0.2).asnumpy(), True)
    x = Tensor(np.zeros((3, 2)))
    x.index_add_(dim=0, index=Tensor([2, 0]), source=Tensor(np.array([[1.0, 2.0], [3.0, 4.0]])), alpha=2)
    np.testing.assert_array_equal(x.asnumpy(), [[6, 8], [0, 0], [2, 4]])
    x.scatter_add_(dim=1, index=Tensor([[1], [0]]), src=Tensor(np.array([[10.0], [20.0]])))
    np.testing.assert_array_equal(x.asnumpy(), [[6, 18], [20, 0], [2, 4]])
    x.clamp_(min=1, max=9)
    np.testing.assert_array_equal(x.asnumpy(), [[6, 9], [9, 1], [2, 4]])
    x.index_put_(indices=[Tensor([1])], values=Tensor(np.array([7.0, 7.0])), accumulate=True)
    np.testing.assert_array_equal(x.asnumpy(), [[6, 9], [16, 8], [2, 4]])


def test_compiled_and_differentiated() -> None:
    def f(t):
        return (t.multiply(value=t) + t.float_power(other=3)).diagonal(axis1=1, axis2=0)

    array = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(ms.jit(f)(Tensor(array)).asnumpy(), [2, 80])
    for g in (f, ms.jit(f)):
        np.testing.assert_allclose(
            ms.grad(lambda t, g=g: g(t).sum())(Tensor(array)).asnumpy(), np.diag([5.0, 8 + 48.0])
        )


def windows(x, kernel_size, dilation=1, padding=0, stride=1):
    """Columns of windows, by the definition."""
    (kh, kw), p = kernel_size, padding
    x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    rows = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    columns = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    found = [
        x[
            :,
            :,
            i * stride : i * stride + dilation * (kh - 1) + 1 : dilation,
            j * stride : j * stride + dilation * (kw - 1) + 1 : dilation,
        ]
        for i in range(rows)
        for j in range(columns)
    ]
    return np.stack([f.reshape(len(x), -1) for f in found], -1)


def folded(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The transpose of `windows`: every element of the picture is a unit vector in turn."""
    channels = x.shape[1] // (kernel_size[0] * kernel_size[1])
    picture = np.eye(channels * output_size[0] * output_size[1]).reshape(-1, channels, *output_size)
    return np.einsum("pkl,nkl->np", windows(picture, kernel_size, dilation, padding, stride), x).reshape(
        len(x), channels, *output_size
    )


checks = Checks("definition")
checks.add("Tensor.unfold", windows, (A(2, 3, 5, 4), (2, 2)), (A(1, 1, 3, 3), (3, 1)), (A(1, 2, 1, 1), (1, 1)))
checks.add("Tensor.unfold", windows, (A(1, 2, 6, 7), (2, 3)), kwargs={"dilation": 2, "padding": 1, "stride": 2})
checks.add(
    "Tensor.fold", folded, (A(1, 8, 4), (3, 3), (2, 2)), (A(2, 3, 3), (5, 1), (3, 1)), (A(1, 2, 1), (1, 1), (1, 1))
)
checks.add("Tensor.fold", folded, (A(1, 12, 9), (6, 7), (2, 3)), kwargs={"dilation": 2, "padding": 1, "stride": 2})
test_values, test_gradients = checks.tests()

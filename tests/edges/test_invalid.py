"""Wrong arguments: a TypeError, ValueError, IndexError, OverflowError or RuntimeError that names
the operation, whatever is wrong; never an error of our own insides.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mycel as ms
from mycel import Tensor, mint, nn, ops
from tests.edges.support import examples

CLEAR = (TypeError, ValueError, IndexError, RuntimeError, OverflowError)

INTERNAL = re.compile(
    r"has no attribute|unsupported operand|object is not (?:callable|subscriptable|iterable)|must be a string or a "
    r"real number|LLVM|takes \d+ positional|'NoneType'"
)
NO_TENSORS = st.sampled_from((None, "text", object(), {"a": 1}, {1, 2}, len))


# Functions that are another one with certain arguments may give that one's name.
ALSO = {
    "argsort": "sort",
    "fliplr": "flip",
    "flipud": "flip",
    "relu6": "hardtanh",
    "selu": "elu",
    "truedivide": "div",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "ger": "outer",
    "unbind": "unstack",
    "nansum": "sum",
    "softmin": "softmax",
    "unsqueeze": "expanddims",
    "mm": "matmul",
    "equal": "eq",
    "less": "lt",
    "cast": "datatype",
    "eye": "datatype",
}


def x23() -> Tensor:
    return Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


def refuses(name: str, call: Any, *, said: str = "") -> None:
    """The call raises a clear error that names the operation and the value."""
    with pytest.raises(CLEAR) as caught:
        call()
    message = str(caught.value)
    assert not INTERNAL.search(message), f"{name}: {type(caught.value).__name__}: {message}"
    assert type(caught.value) is not RecursionError
    bare, plain = name.rsplit(".", 1)[-1].lower().replace("_", ""), re.sub("[_ ]", "", message.lower())
    assert bare in plain or any(other in plain for other in ALSO.get(bare, "-").split()), (
        f"{name} is not named by: {type(caught.value).__name__}: {message}"
    )
    assert said in message, f"{said} is not named by: {message}"


ONE = (
    "abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal neg sin cos tan asin acos atan sinh cosh "
    "tanh asinh acosh atanh sigmoid erf erfc erfinv "
    "lgamma digamma deg2rad rad2deg sinc frac floor ceil trunc round sign signbit isfinite isinf isnan nan_to_num "
    "logical_not relu relu6 gelu silu softsign hardswish "
    "hardsigmoid elu selu mish logsigmoid softmax log_softmax hardtanh leaky_relu softplus sum mean prod amax amin max "
    "min std var any all argmax argmin median norm "
    "sort argsort unique nonzero tril triu diag trace t matrix_exp inverse det cholesky svd qr pinv numel flatten "
    "ravel squeeze conj real imag angle fft ifft rfft "
    "zeros_like ones_like fliplr flipud diff cumsum cumprod cummax cummin logsumexp softmin celu glu count_nonzero "
    "nansum i0 count_nonzero adjoint diagonal rot90 swapaxes"
).split()
NEEDING_AXIS = {"cumsum", "cumprod", "cummax", "cummin", "logsumexp", "softmax", "log_softmax"}


@pytest.mark.parametrize("name", sorted(set(ONE)))
@examples(4)
@given(value=NO_TENSORS)
def test_what_is_no_tensor(name: str, value: Any) -> None:
    rest = (0,) if name in NEEDING_AXIS else (0, 1) if name == "swapaxes" else ()
    refuses(name, lambda: getattr(ops, name)(value, *rest))


TWO = (
    "add sub mul div maximum minimum pow atan2 hypot fmod floor_div floor_mod equal not_equal less less_equal greater "
    "greater_equal logical_and logical_or bitwise_and "
    "bitwise_or bitwise_xor matmul dot outer inner kron cross xlogy logaddexp isclose true_divide subtract multiply "
    "divide mm mv bmm bitwise_left_shift ger gcd lcm "
    "mse_loss l1_loss smooth_l1_loss huber_loss kl_div cdist lerp"
).split()


@pytest.mark.parametrize("name", TWO)
@examples(4)
@given(value=NO_TENSORS, first=st.booleans())
def test_what_is_no_operand(name: str, value: Any, first: bool) -> None:
    rest = (0.5,) if name == "lerp" else ()
    refuses(name, lambda: getattr(ops, name)(*((value, x23()) if first else (x23(), value)), *rest))


@pytest.mark.parametrize(
    "name",
    (
        "add sub mul div maximum pow atan2 fmod equal less logical_and floor_div mse_loss l1_loss xlogy where addcmul "
        "lerp "
        "isclose masked_fill"
    ).split(),
)
@examples(3)
@given(shapes=st.sampled_from((((2, 3), (2,)), ((3,), (0,)), ((2, 1, 3), (3, 2)))))
def test_shapes_that_do_not_broadcast(name: str, shapes: Any) -> None:
    x, y = (Tensor(np.ones(s, np.float32)) for s in shapes)
    calls = {
        "where": lambda: ops.where(x > 0, x, y),
        "addcmul": lambda: ops.addcmul(x, y, y),
        "lerp": lambda: ops.lerp(x, y, 0.5),
        "masked_fill": lambda: ops.masked_fill(x, y > 0, 1.0),
    }
    refuses(name, calls.get(name, lambda: getattr(ops, name)(x, y)), said=str(shapes[1][0]))


AXES: dict[str, Any] = {
    **{
        name: getattr(ops, name)
        for name in (
            "sum mean prod amax amin all any std var argmax argmin cumsum cumprod cummax cummin logsumexp softmax "
            "log_softmax sort argsort median unbind "
            "expand_dims squeeze count_nonzero nansum logcumsumexp softmin glu"
        ).split()
    },
    "concat": lambda x, a: ops.concat((x, x), a),
    "stack": lambda x, a: ops.stack((x, x), a + (1 if a > 0 else -1)),
    "split": lambda x, a: ops.split(x, 1, a),
    "flip": lambda x, a: ops.flip(x, (a,)),
    "roll": lambda x, a: ops.roll(x, 1, (a,)),
    "gather": lambda x, a: ops.gather(x, Tensor([0]), a),
    "topk": lambda x, a: ops.topk(x, 1, a),
    "transpose": lambda x, a: ops.transpose(x, (0, a)),
    "swapaxes": lambda x, a: ops.swapaxes(x, 0, a),
    "moveaxis": lambda x, a: ops.moveaxis(x, 0, a),
    "index_select": lambda x, a: ops.index_select(x, a, Tensor([0])),
    "gather_elements": lambda x, a: ops.gather_elements(x, a, Tensor([[0]])),
    "diff": lambda x, a: ops.diff(x, 1, a),
    "repeat_interleave": lambda x, a: ops.repeat_interleave(x, 2, a),
    "tensor_split": lambda x, a: ops.tensor_split(x, 2, a),
    "chunk": lambda x, a: ops.chunk(x, 2, a),
    "flatten": lambda x, a: ops.flatten(x, start_dim=0, end_dim=a),
    "cross": lambda x, a: ops.cross(x, x, a),
    "narrow": lambda x, a: ops.narrow(x, a, 0, 1),
    "renorm": lambda x, a: ops.renorm(x, 2, a, 1.0),
    "index_add": lambda x, a: ops.index_add(x, Tensor([0], ms.int32), x, a),
    "quantile": lambda x, a: ops.quantile(x, 0.5, a),
    "diagonal": lambda x, a: ops.diagonal(x, 0, 0, a),
    "rot90": lambda x, a: ops.rot90(x, 1, (0, a)),
    "fft": lambda x, a: ops.fft(x, None, a),
    "select_scatter": lambda x, a: ops.select_scatter(x, x[0], a, 0),
}
AXES["unsqueeze"] = lambda x, a: ops.unsqueeze(x, a)


@pytest.mark.parametrize("name", AXES)
@examples(5)
@given(axis=st.sampled_from((5, -6, 4, -7)), wrong=st.sampled_from((None, "0", 1.5)))
def test_axes_out_of_range_and_of_wrong_types(name: str, axis: int, wrong: Any) -> None:
    refuses(name, lambda: AXES[name](x23(), axis))
    if name in ("stack",) or wrong is None or wrong == 1.5 and name == "std":
        return
    refuses(name, lambda: AXES[name](x23(), wrong))


CASES: dict[str, list[Any]] = {
    "reshape": [
        lambda x: ops.reshape(x, (4, 2)),
        lambda x: ops.reshape(x, (-1, -1)),
        lambda x: ops.reshape(x, (-1, 4)),
        lambda x: ops.reshape(x, (2.5, 2)),
        lambda x: ops.reshape(x, "ab"),
        lambda x: ops.reshape(x, (-2, 3)),
        lambda x: ops.reshape(x, None),
    ],
    "broadcast_to": [
        lambda x: ops.broadcast_to(x, (2, 4)),
        lambda x: ops.broadcast_to(x, (3,)),
        lambda x: ops.broadcast_to(x, (-2, 3)),
        lambda x: ops.broadcast_to(x, None),
    ],
    "transpose": [
        lambda x: ops.transpose(x, (0, 0)),
        lambda x: ops.transpose(x, (0,)),
        lambda x: ops.transpose(x, "01"),
    ],
    "concat": [
        lambda x: ops.concat(()),
        lambda x: ops.concat((x, Tensor(np.ones((2, 2, 2), np.float32)))),
        lambda x: ops.concat((x, Tensor(np.ones((3, 4), np.float32)))),
        lambda x: ops.concat((x, None)),
        lambda x: ops.concat(None),
        lambda x: ops.concat("ab"),
    ],
    "stack": [
        lambda x: ops.stack(()),
        lambda x: ops.stack((x, Tensor([1.0]))),
        lambda x: ops.stack((x, "a")),
        lambda x: ops.stack(5),
    ],
    "split": [
        lambda x: ops.split(x, 0),
        lambda x: ops.split(x, -1),
        lambda x: ops.split(x, (1, 5), 1),
        lambda x: ops.split(x, "a"),
        lambda x: ops.split(x, None),
        lambda x: ops.split(x, 1.5),
    ],
    "tile": [
        lambda x: ops.tile(x, (-1, 2)),
        lambda x: ops.tile(x, None),
        lambda x: ops.tile(x, ("a",)),
        lambda x: ops.tile(x, (1.5, 1)),
    ],
    "pad": [
        lambda x: ops.pad(x, (1,)),
        lambda x: ops.pad(x, (1, 1), mode="odd"),
        lambda x: ops.pad(x, (9, 9), mode="reflect"),
        lambda x: ops.pad(x, (1,) * 6),
        lambda x: ops.pad(x, "ab"),
        lambda x: ops.pad(x, (-9, -9)),
    ],
    "roll": [lambda x: ops.roll(x, (1, 2), (0,)), lambda x: ops.roll(x, "a", 0), lambda x: ops.roll(x, None, 0)],
    "expand_dims": [lambda x: ops.expand_dims(x, None)],
    "flip": [lambda x: ops.flip(x, (0, 0))],
    "eye": [lambda x: ops.eye(-1), lambda x: ops.eye("a"), lambda x: ops.eye(1.5), lambda x: ops.eye(2, dtype="no")],
    "zeros": [
        lambda x: ops.zeros(-1),
        lambda x: ops.zeros("a"),
        lambda x: ops.zeros((2, -3)),
        lambda x: ops.zeros((2.5,)),
        lambda x: ops.zeros(None),
    ],
    "ones": [lambda x: ops.ones(-1), lambda x: ops.ones("a"), lambda x: ops.ones((2, -3))],
    "full": [lambda x: ops.full((-1,), 2), lambda x: ops.full("a", 2), lambda x: ops.full((2,), "a")],
    "arange": [lambda x: ops.arange(0, 5, 0), lambda x: ops.arange("a"), lambda x: ops.arange(None)],
    "linspace": [
        lambda x: ops.linspace(0.0, 1.0, -1),
        lambda x: ops.linspace(0.0, 1.0, "a"),
        lambda x: ops.linspace(None, 1.0, 3),
        lambda x: ops.linspace(0.0, 1.0, 2.5),
    ],
    "one_hot": [
        lambda x: ops.one_hot(x, 3, 1.0, 0.0),
        lambda x: ops.one_hot(Tensor([0]), -3, Tensor(1.0), Tensor(0.0)),
        lambda x: ops.one_hot(None, 3, 1.0, 0.0),
    ],
    "topk": [
        lambda x: ops.topk(x, 9),
        lambda x: ops.topk(x, -1),
        lambda x: ops.topk(x, "a"),
        lambda x: ops.topk(x, None),
        lambda x: ops.topk(x, 1.5),
    ],
    "gather": [
        lambda x: ops.gather(x, Tensor([0.5]), 0),
        lambda x: ops.gather(x, None, 0),
        lambda x: ops.gather(x, "a", 0),
    ],
    "gather_nd": [
        lambda x: ops.gather_nd(x, Tensor([[0.5]])),
        lambda x: ops.gather_nd(x, Tensor(np.zeros((1, 5), np.int32))),
        lambda x: ops.gather_nd(x, None),
    ],
    "gather_elements": [
        lambda x: ops.gather_elements(x, 0, Tensor([0])),
        lambda x: ops.gather_elements(x, 0, Tensor([[0.5]])),
        lambda x: ops.gather_elements(x, 0, None),
    ],
    "index_select": [
        lambda x: ops.index_select(x, 0, Tensor([[0]])),
        lambda x: ops.index_select(x, 0, Tensor([0.5])),
        lambda x: ops.index_select(x, 0, None),
    ],
    "masked_select": [lambda x: ops.masked_select(x, x), lambda x: ops.masked_select(x, None)],
    "masked_fill": [
        lambda x: ops.masked_fill(x, x, 1.0),
        lambda x: ops.masked_fill(x, x > 0, "a"),
        lambda x: ops.masked_fill(x, None, 1.0),
    ],
    "scatter_nd": [
        lambda x: ops.scatter_nd(Tensor([[0.5]]), Tensor([1.0]), (3,)),
        lambda x: ops.scatter_nd(Tensor([[0]]), Tensor([1.0]), None),
    ],
    "tensor_scatter_add": [
        lambda x: ops.tensor_scatter_add(x, Tensor([[0.5]]), Tensor([1.0])),
        lambda x: ops.tensor_scatter_add(x, None, Tensor([1.0])),
        lambda x: ops.tensor_scatter_add(x, Tensor([[0]]), Tensor([1.0, 2.0])),
    ],
    "matmul": [
        lambda x: ops.matmul(x, x),
        lambda x: ops.matmul(x, Tensor(2.0)),
        lambda x: ops.matmul(x, Tensor([1.0])),
    ],
    "bmm": [lambda x: ops.bmm(x, x)],
    "mm": [lambda x: ops.mm(x, x)],
    "mv": [lambda x: ops.mv(x, x)],
    "dot": [lambda x: ops.dot(x, x)],
    "einsum": [
        lambda x: ops.einsum("ij,jk", x),
        lambda x: ops.einsum("ij,jk->ik", x, x),
        lambda x: ops.einsum("i", x),
        lambda x: ops.einsum("ij->iz", x),
        lambda x: ops.einsum(None, x),
        lambda x: ops.einsum("i?->i", x),
    ],
    "inverse": [lambda x: ops.inverse(x), lambda x: ops.inverse(x[0])],
    "det": [lambda x: ops.det(x)],
    "cholesky": [lambda x: ops.cholesky(x)],
    "trace": [lambda x: ops.trace(x[0])],
    "diag": [lambda x: ops.diag("a")],
    "cross": [lambda x: ops.cross(x.T, x.T, 1)],
    "clamp": [lambda x: ops.clamp(x), lambda x: ops.clamp(x, "a"), lambda x: ops.clamp(None, 1, 2)],
    "norm": [lambda x: ops.norm(x, "odd"), lambda x: ops.norm(x, (1, 2), 0)],
    "softmax": [lambda x: ops.softmax(x, None), lambda x: ops.softmax(x, 7)],
    "conv2d": [
        lambda x: ops.conv2d(x, x),
        lambda x: ops.conv2d(Tensor(np.ones((1, 2, 4, 4), np.float32)), Tensor(np.ones((3, 5, 2, 2), np.float32))),
        lambda x: ops.conv2d(Tensor(np.ones((1, 2, 4, 4), np.float32)), Tensor(np.ones((3, 2, 7, 7), np.float32))),
        lambda x: ops.conv2d(None, x),
        lambda x: ops.conv2d(
            Tensor(np.ones((1, 2, 4, 4), np.float32)), Tensor(np.ones((3, 2, 2, 2), np.float32)), stride=0
        ),
        lambda x: ops.conv2d(
            Tensor(np.ones((1, 2, 4, 4), np.float32)), Tensor(np.ones((3, 2, 2, 2), np.float32)), pad_mode="odd"
        ),
    ],
    "max_pool2d": [
        lambda x: ops.max_pool2d(x, 2),
        lambda x: ops.max_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), 9),
        lambda x: ops.max_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), 0),
        lambda x: ops.max_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), "a"),
    ],
    "avg_pool2d": [
        lambda x: ops.avg_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), 9, 1),
        lambda x: ops.avg_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), -1),
        lambda x: ops.avg_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), 2, padding=(np.inf, 1, 1, 1)),
        lambda x: ops.avg_pool2d(Tensor(np.ones((1, 1, 4, 4), np.float32)), 2, divisor_override="a"),
    ],
    "max_unpool2d": [
        lambda x, f=f, size=size: f(Tensor([[[[1.0]]]]), Tensor([[[[1]]]]), 2, output_size=size)
        for f in (ops.max_unpool2d, mint.nn.functional.max_unpool2d)
        for size in (3, ("a", 2), (1, 2, 3))
    ],
    "adaptive_max_pool2d": [
        lambda x, size=size: mint.nn.functional.adaptive_max_pool2d(
            Tensor(np.ones((1, 1, 4, 4), np.float32)), size, True
        )
        for size in ((), (1, 2, 3), 0, "a")
    ],
    "var": [lambda x, d=d: ops.var(x, ddof=d) for d in (np.inf, 0.5, "a", 2**64)],
    "nanvar": [lambda x: ms.numpy.nanvar(x, ddof="a")],
    "cov": [lambda x: ops.cov(x, correction=None)],
    "triangular_solve": [lambda x: mint.triangular_solve(x, x[:, :2], unitriangular=np.inf)],
    "matrix_diag": [lambda x: ops.matrix_diag(x, num_cols=()), lambda x: ops.matrix_diag(x, np.inf)],
    "average": [lambda x: ms.numpy.average(x, 5, [1.0])],
    "histogram": [
        lambda x: ms.numpy.histogram(x, [1.0]),
        lambda x: ms.numpy.histogram(x, 3, (0, np.inf)),
        lambda x: ms.numpy.histogram(x, 3, 4),
    ],
    "histogramdd": [
        lambda x: ms.numpy.histogramdd(()),
        lambda x: ms.numpy.histogramdd((x, x[0])),
        lambda x: ms.numpy.histogramdd((x, x), None),
    ],
    "interpolate": [
        lambda x: mint.nn.functional.interpolate(Tensor(np.ones((1, 1, 4, 4), np.float32)), (3,), mode="bicubic"),
        lambda x: mint.nn.functional.interpolate(Tensor(np.ones((1, 1, 4), np.float32)), (), mode="linear"),
        lambda x: ops.interpolate(Tensor(np.ones((1, 1, 4, 4), np.float32)), scale_factor=1e308),
        lambda x: ops.interpolate(x, size=3),
        lambda x: ops.interpolate(Tensor(np.ones((1, 1, 4, 4), np.float32)), mode="odd"),
        lambda x: ops.interpolate(Tensor(np.ones((1, 1, 4, 4), np.float32))),
    ],
    "layer_norm": [lambda x: ops.layer_norm(x, (4,), Tensor(np.ones(4, np.float32)), Tensor(np.ones(4, np.float32)))],
    "cross_entropy": [
        lambda x: ops.cross_entropy(x, Tensor([0, 1, 2])),
        lambda x: ops.cross_entropy(x, None),
        lambda x: ops.cross_entropy(x, Tensor([0, 1]), reduction="odd"),
    ],
    "dropout": [lambda x: ops.dropout(x, 1.5), lambda x: ops.dropout(x, -0.1), lambda x: ops.dropout(x, "a")],
    "cast": [lambda x: ops.cast(x, "no"), lambda x: ops.cast(x, None), lambda x: ops.cast(None, ms.float32)],
    "repeat_interleave": [lambda x: ops.repeat_interleave(x, -1, 0), lambda x: ops.repeat_interleave(x, "a", 0)],
    "meshgrid": [lambda x: ops.meshgrid(x, x, indexing="odd"), lambda x: ops.meshgrid(None)],
    "searchsorted": [lambda x: ops.searchsorted(None, x), lambda x: ops.searchsorted(x, None)],
    "bincount": [lambda x: ops.bincount(x), lambda x: ops.bincount(Tensor([0, 1]), minlength=-1)],
    "unfold": [lambda x: ops.unfold(x, 2), lambda x: ops.unfold(Tensor(np.ones((1, 1, 4, 4), np.float32)), 9)],
    "pixel_shuffle": [
        lambda x: ops.pixel_shuffle(x, 2),
        lambda x: ops.pixel_shuffle(Tensor(np.ones((1, 3, 2, 2), np.float32)), 2),
        lambda x: ops.pixel_shuffle(Tensor(np.ones((1, 4, 2, 2), np.float32)), 0),
    ],
    "vmap": [
        lambda x: ops.vmap(lambda a, b: a + b)(x, Tensor([1.0])),
        lambda x: ops.vmap(5)(x),
        lambda x: ops.vmap(lambda a: a, in_axes=7)(x),
    ],
    "randperm": [lambda x: ops.randperm(-1), lambda x: ops.randperm("a")],
    "normal": [lambda x: ops.normal((-1,), 0.0, 1.0), lambda x: ops.normal("a", 0.0, 1.0)],
    "uniform": [lambda x: ops.uniform((-1,), Tensor(0.0), Tensor(1.0))],
    "multinomial": [
        lambda x: ops.multinomial(x, -1),
        lambda x: ops.multinomial(x, 9, False),
        lambda x: ops.multinomial(None, 2),
    ],
}


@pytest.mark.parametrize(("name", "number"), [(n, k) for n, calls in CASES.items() for k in range(len(calls))])
def test_values_that_do_not_fit(name: str, number: int) -> None:
    refuses(name, lambda: CASES[name][number](x23()))


MINT = (
    "add sub mul div sum mean max min argmax softmax concat stack split reshape matmul where gather index_select "
    "topk sort cumsum squeeze flatten tile roll"
).split()


@pytest.mark.parametrize("name", MINT)
@examples(2)
@given(value=NO_TENSORS)
def test_mint(name: str, value: Any) -> None:
    x = x23()
    rest: dict[str, Any] = {
        "add": (x,),
        "sub": (x,),
        "mul": (x,),
        "div": (x,),
        "softmax": (0,),
        "matmul": (x,),
        "where": (x, x),
        "split": (1,),
        "reshape": ((6,),),
        "gather": (0, Tensor([[0]])),
        "index_select": (0, Tensor([0])),
        "topk": (1,),
        "cumsum": (0,),
        "tile": ((2, 2),),
        "roll": (1, 0),
    }
    refuses(name, lambda: getattr(mint, name)(value, *rest.get(name, ())))


LAYERS: dict[str, Any] = {
    "Dense": lambda: nn.Dense(3, 2),
    "Conv1d": lambda: nn.Conv1d(3, 2, 3),
    "Conv2d": lambda: nn.Conv2d(3, 2, 3),
    "Conv3d": lambda: nn.Conv3d(3, 2, 3),
    "Conv2dTranspose": lambda: nn.Conv2dTranspose(3, 2, 3),
    "BatchNorm1d": lambda: nn.BatchNorm1d(5),
    "BatchNorm2d": lambda: nn.BatchNorm2d(5),
    "LayerNorm": lambda: nn.LayerNorm((7,)),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "LSTM": lambda: nn.LSTM(5, 4),
    "GRU": lambda: nn.GRU(5, 4),
    "RNN": lambda: nn.RNN(5, 4),
    "MaxPool2d": lambda: nn.MaxPool2d(2),
    "AvgPool2d": lambda: nn.AvgPool2d(2),
    "MaxPool1d": lambda: nn.MaxPool1d(2),
    "Embedding": lambda: nn.Embedding(4, 3),
    "MultiheadAttention": lambda: nn.MultiheadAttention(8, 2),
    "PReLU": lambda: nn.PReLU(7),
}


@pytest.mark.parametrize("name", LAYERS)
@examples(3)
@given(value=st.one_of(NO_TENSORS, st.just("shape")))
def test_inputs_of_layers(name: str, value: Any) -> None:
    layer = LAYERS[name]()
    if value == "shape" and name == "MaxPool1d":
        return
    given_value = Tensor(np.ones((2, 2), np.float32)) if value == "shape" else value
    arguments = (given_value,) * (3 if name == "MultiheadAttention" else 1)
    with pytest.raises(CLEAR) as caught:
        layer(*arguments)
    assert not INTERNAL.search(str(caught.value)), str(caught.value)


MADE: list[Any] = [
    lambda: nn.Dense(-1, 2),
    lambda: nn.Dense("a", 2),
    lambda: nn.Dense(0, 2),
    lambda: nn.Conv2d(3, 2, 0),
    lambda: nn.Conv2d(3, 2, "a"),
    lambda: nn.Conv2d(3, 4, 3, group=2),
    lambda: nn.Conv2d(3, 4, 3, pad_mode="odd"),
    lambda: nn.Conv2d(3, 4, 3, stride=-1),
    lambda: nn.Dropout(p=1.5),
    lambda: nn.Dropout(p=-0.1),
    lambda: nn.Embedding(-1, 3),
    lambda: nn.LayerNorm("a"),
    lambda: nn.GroupNorm(3, 4),
    lambda: nn.LSTM(0, 2),
    lambda: nn.LSTM(2, "a"),
    lambda: nn.MultiheadAttention(7, 2),
    lambda: nn.MaxPool2d(0),
    lambda: nn.MaxPool2d("a"),
    lambda: nn.AvgPool2d(2, -1),
    lambda: nn.BatchNorm2d(0),
    lambda: nn.BatchNorm2d(3, momentum=2.0),
    lambda: nn.PixelShuffle(0),
    lambda: nn.Softmax("a")(x23()),
    lambda: nn.LeakyReLU("a")(x23()),
    lambda: nn.SGD([], 0.1),
    lambda: nn.Adam(nn.Dense(2, 2).trainable_params(), learning_rate=-1.0),
    lambda: nn.Adam(nn.Dense(2, 2).trainable_params(), beta1=1.5),
    lambda: nn.Momentum(nn.Dense(2, 2).trainable_params(), 0.1, -1.0),
    lambda: nn.Adam(None),
    lambda: nn.SequentialCell(5),
    lambda: nn.CellList([5]),
    lambda: nn.Pad(((1,),))(x23()),
    lambda: nn.ConstantPad1d("a", 0)(x23()),
    lambda: nn.ReflectionPad1d(9)(x23()),
    lambda: nn.Unflatten(0, (3, 3))(x23()),
    lambda: nn.CrossEntropyLoss(reduction="odd"),
    lambda: nn.MSELoss("odd"),
]


@pytest.mark.parametrize("number", range(len(MADE)))
def test_arguments_of_layers(number: int) -> None:
    with pytest.raises(CLEAR) as caught:
        MADE[number]()
    assert not INTERNAL.search(str(caught.value)), str(caught.value)

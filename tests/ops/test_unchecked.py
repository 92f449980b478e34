"""Arguments of wrong kinds: every error names the function that was called, the parameter and the
value, and none comes from inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
IMAGES = ops.ones((1, 1, 4, 4))
EMPTY = ops.zeros((2, 0))

CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "lp_pool1d": (lambda: ops.lp_pool1d(IMAGES[0], ms.float32, 2), TypeError, "lp_pool1d: norm_type must be a number"),
    "lp_pool2d": (lambda: ops.lp_pool2d(IMAGES, "a", 2), TypeError, "lp_pool2d: norm_type must be a number, not str"),
    "rrelu": (lambda: ops.rrelu(X, "a"), TypeError, "rrelu: lower must be a number, not str"),
    "rot90": (lambda: ops.rot90(X, 1, 3), TypeError, "rot90: dims must be a tuple or a list, not int"),
    "rot90 of three": (lambda: ops.rot90(X, 1, (0, 1, 2)), ValueError, "rot90: dims must be two axes"),
    "shape_mul": (lambda: ops.shape_mul(3), TypeError, "shape_mul: a shape must be a sequence of ints, not int"),
    "reduced_shape": (lambda: ops.reduced_shape((2, 3), 1.5), TypeError, "reduced_shape: axis must be a tuple or a"),
    "reduced_shape of": (lambda: ops.reduced_shape(3, 1), TypeError, "reduced_shape: a shape must be a sequence"),
    "irfftn": (lambda: ops.irfftn(EMPTY), ValueError, "irfftn: a transform needs at least 1 element, not"),
    "fft": (lambda: ops.fft(EMPTY), ValueError, "fft: a transform needs at least 1 element, not 0, along axis 1"),
    "ifft2": (lambda: ops.ifft2(EMPTY), ValueError, "ifft2: a transform needs at least 1 element, not 0"),
    "cross_entropy": (
        lambda: ops.cross_entropy(X, Tensor([0, 1]), label_smoothing="a"),
        TypeError,
        "cross_entropy: label_smoothing must be a number, not str",
    ),
    "smooth_l1_loss": (lambda: ops.smooth_l1_loss(X, X, "a"), TypeError, "smooth_l1_loss: beta must be a number"),
    "cosine_similarity": (lambda: ops.cosine_similarity(X, X, 1, "a"), TypeError, "cosine_similarity: eps must be a"),
    "isclose": (lambda: ops.isclose(X, X, None), TypeError, "isclose: rtol must be a number, not NoneType"),
    "approximate_equal": (lambda: ops.approximate_equal(X, X, "a"), TypeError, "tolerance must be a number, not str"),
    "batch_dot": (lambda: ops.batch_dot(X, X, 1.5), TypeError, "batch_dot: axes must be an int or two, not float"),
    "triplet_margin_loss": (
        lambda: ops.triplet_margin_loss(X, X, X, "a"),
        TypeError,
        "triplet_margin_loss: margin must be a number, not str",
    ),
    "addcdiv": (lambda: ops.addcdiv(X, X, X, None), TypeError, "addcdiv: value must be a number, not NoneType"),
    "addcmul": (lambda: ops.addcmul(X, X, X, "a"), TypeError, "addcmul: value must be a number, not str"),
    "is_nonzero": (lambda: ops.is_nonzero(X), ValueError, "is_nonzero: takes a tensor of one element"),
    "sequence_mask": (lambda: ops.sequence_mask(Tensor([])), ValueError, "sequence_mask: lengths of shape"),
    "make_dict": (lambda: ops.make_dict(3, 4), TypeError, "make_dict: keys must be a tuple or a list, not int"),
    "prim_attr_register": (lambda: ops.prim_attr_register(X), TypeError, "prim_attr_register: fn must be a function"),
    "PipelineGradReducer": (lambda: nn.PipelineGradReducer(1.5), TypeError, "parameters must be a sequence of"),
    "DistributedGradReducer": (lambda: nn.DistributedGradReducer(3), TypeError, "DistributedGradReducer: parameters"),
    "rotary_position_embedding": (
        lambda: ops.rotary_position_embedding(X, X, X, np.ones(2)),
        TypeError,
        "rotary_position_embedding: mode must be an int, not numpy.ndarray",
    ),
    "embedding": (
        lambda: ops.embedding(Tensor([0]), X, scale_grad_by_freq=1),
        TypeError,
        "embedding: scale_grad_by_freq must be a bool, not int",
    ),
    "scatter_nd_sub": (
        lambda: ops.scatter_nd_sub(ms.Parameter(Tensor([1.0])), Tensor([[-1]]), Tensor([1.0])),
        IndexError,
        "scatter_nd_sub: index -1 is out of range",
    ),
    "GRU": (lambda: nn.GRU(), TypeError, "GRU: missing 'input_size' and 'hidden_size'"),
    "RNN": (lambda: nn.RNN(3), TypeError, "RNN: missing 'hidden_size'"),
    "LSTM": (lambda: nn.LSTM(hidden_size=3), TypeError, "LSTM: missing 'input_size'"),
    "Tensor.gather": (lambda: X.gather(Tensor([0])), TypeError, "gather: takes input_indices, axis, batch_dims, but"),
    "Tensor.gather of an axis": (lambda: X.gather(0), TypeError, "gather: takes dim, index, but was given int"),
    "Tensor.scatter_add": (lambda: X.scatter_add(), TypeError, "scatter_add: takes indices, updates, but was given n"),
    "Tensor.select": (lambda: X.select(X > 1, X, X), TypeError, "select: takes condition, y, but was given Tensor, T"),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_errors(name: str) -> None:
    call, kind, text = CALLS[name]
    with pytest.raises(kind) as raised:
        call()
    assert text in str(raised.value)


def test_constructors_are_called_by_the_names_of_their_classes() -> None:
    public = [
        k for n, k in vars(nn).items() if isinstance(k, type) and not n.startswith("_") and issubclass(k, nn.Cell)
    ]
    assert len(public) > 200
    for kind in public:
        assert kind.__init__.__qualname__ == f"{kind.__name__}.__init__"
    with pytest.raises(TypeError, match=r"^BatchNorm2d.__init__\(\) missing 1 required positional argument"):
        nn.BatchNorm2d()  # type: ignore[call-arg]

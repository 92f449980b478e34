"""The functions on tensors that have no value and a batch of unknown size: the graph they build
computes what they compute eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.base import GET_ITEM, Primitive, constant
from mycel._src.engines import buffers
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.execution_context import Context, Staging
from mycel._src.tensors.core.tensor import make_staged

from .checks import numbers


class Builder(Context, Staging):
    """A context that turns every operation into a node."""

    is_staging = True

    @property
    def staging(self) -> Staging:
        return self

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        nodes = [constant(buffers.to_array(t._buf, t._type)) if t._node is None else t._node for t in inputs]
        node = primitive.node(*nodes, **params)
        if isinstance(node.type, tuple):
            return tuple(make_staged(Node(GET_ITEM, (node,), {"index": i}, t)) for i, t in enumerate(node.type))
        return make_staged(node)

    def node_of(self, t: Tensor) -> Node:
        raise AssertionError("a node is asked for")

    def literal(self, value: Any, dtype: Any = None) -> Tensor:
        return make_staged(constant(value, dtype))

    def created(self, value: Any) -> Any:
        assert value._node is None
        return value

    def need_value(self, tensor: Tensor, what: str) -> Any:
        raise AssertionError(f"{what} asks for a value")

    def track(self, t: Tensor) -> None:
        """Do nothing, as tensors get no value later."""

    def viewed(self, t: Tensor) -> None:
        """Do nothing, as nothing is written to."""

    def before_draw(self, state: Tensor) -> None:
        raise AssertionError("random numbers are drawn")


def _build(function: Callable[[Tensor], Any], shape: tuple[Any, ...]) -> Graph:
    node = input_node(tensor_type(shape, ms.float64))
    with eager.use_context(Builder()):
        result = function(make_staged(node))
    outputs = [r._node for r in (result if isinstance(result, (tuple, list)) else (result,))]
    return Graph([node], outputs)


WEIGHT = Tensor(numbers(4, 3, 3, 3, seed=1))
SCALE = Tensor(numbers(3, seed=2))
IMAGES = {
    "conv2d": lambda x: ops.conv2d(x, WEIGHT, pad_mode="same", stride=2),
    "max_pool2d": lambda x: ops.max_pool2d(x, 3, 2, 1, return_indices=True, ceil_mode=True),
    "avg_pool2d": lambda x: ops.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "adaptive_avg_pool2d": lambda x: ops.adaptive_avg_pool2d(x, (2, 5)),
    "batch_norm": lambda x: ops.batch_norm(x, None, None, SCALE, SCALE, True),
    "layer_norm": lambda x: ops.layer_norm(x, (6, 5)),
    "group_norm": lambda x: ops.group_norm(x, 3),
    "flatten": lambda x: ops.flatten(x),
    "reshape": lambda x: ops.reshape(x, (-1, 10)),
    "transpose": lambda x: x.transpose(0, 2, 3, 1),
    "mean": lambda x: (ops.mean(x), x.mean((0, 2)), ops.std(x, 0), ops.logsumexp(x, 0)),
    "pad": lambda x: ops.pad(x, (1, 2, 0, 1), "reflect"),
    "indices": lambda x: (x[1:, None, ..., ::-1], x[:, [0, 2], 1:3], x[-1], x[Tensor(1)]),
    "softmax": lambda x: ops.softmax(x, 1),
    "concat": lambda x: ops.concat((x, x), 0),
    "stack": lambda x: ops.stack((x, x), 1),
    "tile": lambda x: ops.tile(x, (2, 1, 1, 1)),
    "split": lambda x: ops.split(x, 2, 1),
    "chunk": lambda x: ops.chunk(x, 2, 3),
    "unfold": lambda x: ops.unfold(x, 3, padding=1),
    "pixel_unshuffle": lambda x: ops.pixel_unshuffle(x[..., :4], 2),
    "einsum": lambda x: ops.einsum("bchw,dchw->bd", x, x),
    "mse_loss": lambda x: ops.mse_loss(x, x * 2),
    "roll": lambda x: ops.roll(x, 1, 0),
    "flip": lambda x: ops.flip(x, (0, 2)),
    "cumsum": lambda x: ops.cumsum(x, 0),
    "interval": lambda x: x + ops.arange(x.shape[0]).reshape((-1, 1, 1, 1)),
    "zeros_like": lambda x: ops.zeros_like(x) + ops.ones(x.shape),
    "topk": lambda x: ops.topk(x, 2, 1),
    "clamp": lambda x: ops.clamp(x, -1, 1),
    "shape": lambda x: ops.dyn_shape(x),
}
ROWS = {
    "cross_entropy": lambda x: ops.cross_entropy(x, ops.argmax(x, 1), label_smoothing=0.1),
    "nll_loss": lambda x: ops.nll_loss(x, ops.argmin(x, 1), SCALE),
    "matmul": lambda x: ops.matmul(x, x.T),
    "dense": lambda x: ops.dense(x, Tensor(numbers(2, 3))),
    "gather": lambda x: (ops.gather_elements(x, 1, ops.argsort(x)), ops.gather(x, ops.argmax(x, 1), 1)),
    "one_hot": lambda x: ops.one_hot(ops.argmax(x, 1), 4),
    "triangles": lambda x: (ops.tril(x), ops.triu(x, 1)),
    "cov": lambda x: ops.cov(x.T),
    "normalized": lambda x: x / ops.norm(x, dim=1, keepdim=True),
    "scatter": lambda x: ops.tensor_scatter_add(x, Tensor([[0], [1]]), Tensor(numbers(2, 3))),
}


@pytest.mark.parametrize("name", [*IMAGES, *ROWS])
def test_an_unknown_batch(name: str) -> None:
    function = {**IMAGES, **ROWS}[name]
    rest = (3, 6, 5) if name in IMAGES else (3,)
    graph = _build(function, (symbol("n", low=2), *rest))
    for size in (2, 4):
        x = numbers(size, *rest, seed=size)
        want = function(Tensor(x))
        for got, one in zip(evaluate(graph, [x]), want if isinstance(want, (tuple, list)) else (want,)):
            assert got.dtype == one.asnumpy().dtype
            np.testing.assert_allclose(got, one.asnumpy(), rtol=1e-10, atol=1e-12)

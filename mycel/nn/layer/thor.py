"""Layers that record the second moments of their inputs and of the gradients of their outputs for
second-order optimization.

With rows a of inputs and d of output gradients, one for each example (and position), a layer writes
``matrix_a = mean(a a^T)`` in each forward pass and ``matrix_g = mean(d d^T)`` in each backward
pass, while its flag `thor` is set. `mycel.nn.thor` reads them. An embedding's inputs are rows of an
identity matrix; its matrix_a holds how often each row was looked up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.conv import Conv2d
from mycel.nn.layer.embedding import Embedding, EmbeddingLookup
from mycel.ops.convolution import paddings

__all__ = ["Conv2dThor", "DenseThor", "EmbeddingLookupThor", "EmbeddingThor", "SavesFactors"]


def _held(name: str, value: Any) -> Parameter:
    return Parameter(Tensor(np.asarray(value, np.float32)), name=name, requires_grad=False)


def _second_moment(rows: Tensor) -> Tensor:
    """Return ``mean(r r^T)`` over the rows r."""
    wide = cast(rows, D.float32)
    return ops.matmul(ops.swapaxes(wide, 0, 1), wide) / rows.shape[0]


class SavesFactors(Cell):
    """Base of the layers of this module."""

    matrix_a: Parameter
    matrix_g: Parameter

    def _begin_saving(self, matrix_a: Any, outputs: int) -> None:
        self.thor = True
        self.matrix_a = _held("matrix_a", matrix_a)
        self.matrix_g = _held("matrix_g", np.eye(outputs))
        self._watched = ops.InsertGradientOf(self._save_gradient)

    def _gradient_rows(self, dout: Tensor) -> Tensor:
        return ops.reshape(dout, (-1, dout.shape[-1]))

    def _save_gradient(self, dout: Tensor) -> Tensor:
        if self.thor:
            store(self.matrix_g, _second_moment(self._gradient_rows(dout)))
        return dout


class DenseThor(Dense, SavesFactors):
    """`Dense` that records the second moments of its inputs and output gradients for
    `mycel.nn.thor`.

    Args:
        in_channels (int): The size of the last axis of the input.
        out_channels (int): The size of the last axis of the result.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: "normal".
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(in_channels))``. Default: "zeros".
        has_bias (bool): Whether a bias is added. Default: True.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): A name, a Cell, an operation as
            an object or None; a name in the place of `has_bias` is the activation. Default: None.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.DenseThor(3, 4, weight_init="ones")
        >>> net(ms.Tensor([[1.0, 2.0, 3.0]])).tolist(), net.matrix_a[2].tolist()
        ([[6.0, 6.0, 6.0, 6.0]], [3.0, 6.0, 9.0])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        activation: Any = None,
    ) -> None:
        super().__init__(in_channels, out_channels, weight_init, bias_init, has_bias, activation)
        self._begin_saving(np.eye(in_channels), out_channels)

    def construct(self, x: Tensor) -> Tensor:
        """Return the product with the weight."""
        if self.thor:
            store(self.matrix_a, _second_moment(ops.reshape(ops.stop_gradient(x), (-1, self.in_channels))))
        y = self._watched(ops.dense(x, self.weight, self.bias))
        return y if self.activation is None else self.activation(y)


class Conv2dThor(Conv2d, SavesFactors):
    """`Conv2d` that records the second moments of its patches and output gradients, and the number
    of positions, for `mycel.nn.thor`.

    With several groups nothing is recorded.

    Args:
        in_channels (int): The number of channels that come in.
        out_channels (int): The number of channels that come out.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which adds `padding` zeros on each side. Default:
            "same".
        padding (int | tuple[int, ...]): The zeros on each side with `pad_mode` "pad". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for that of the layer. Default: "normal".
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            that of the layer. Default: "zeros".

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.Conv2dThor(1, 2, 2, pad_mode="valid", weight_init="ones")
        >>> net(ms.ops.ones((1, 1, 3, 3))).shape, net.matrix_a.shape, net.a_normalizer.tolist()
        ((1, 2, 2, 2), (4, 4), [4.0])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
        )
        size = int(np.prod(self.weight.shape[1:]))
        self._begin_saving(np.eye(size), out_channels)
        self.a_normalizer, self.g_normalizer = _held("a_normalizer", [1.0]), _held("g_normalizer", [1.0])
        self.thor = group == 1

    def _gradient_rows(self, dout: Tensor) -> Tensor:
        return ops.reshape(ops.transpose(dout, (0, 2, 3, 1)), (-1, dout.shape[1]))

    def construct(self, x: Tensor) -> Tensor:
        """Return the convolution of an image."""
        y = super().construct(x)
        if not self.thor:
            return y
        patches = _patches(ops.stop_gradient(x), self)
        positions = ops.full((1,), float(y.shape[2] * y.shape[3]))
        for held in (self.a_normalizer, self.g_normalizer):
            store(held, positions)
        store(self.matrix_a, _second_moment(ops.reshape(ops.transpose(patches, (0, 2, 1)), (-1, patches.shape[1]))))
        return self._watched(y)


def _patches(x: Tensor, layer: Conv2d) -> Tensor:
    """Return the patch that the kernel covers at each position: (N, channels * height * width,
    positions).
    """
    sizes = (layer.kernel_size, layer.stride, layer.dilation)
    high, wide = paddings("Conv2dThor", layer.pad_mode, layer.padding, x.shape[2:], *sizes)
    padded = ops.pad(x, (*wide, *high)) if any((*wide, *high)) else x
    return ops.unfold(padded, layer.kernel_size, layer.dilation, 0, layer.stride)


class _Rows(SavesFactors):
    """Base of embeddings that count how often each row is looked up."""

    vocab_size: int

    def _counted(self, ids: Tensor, rows: Tensor) -> Tensor:
        if not self.thor:
            return rows
        flat = ops.reshape(ids, (-1,))
        ones = ops.ones((flat.shape[0],), D.float32)
        store(self.matrix_a, ops.unsorted_segment_sum(ones, flat, self.vocab_size))
        return self._watched(rows)


class EmbeddingThor(Embedding, _Rows):
    """`Embedding` that records how often each row is used and the second moment of the rows'
    gradients for `mycel.nn.thor`.

    Args:
        vocab_size (int): The number of rows.
        embedding_size (int): The length of a row.
        use_one_hot (bool): Whether the look-up is computed as a product. Default: False.
        embedding_table (Tensor | str | Initializer | float): The initializer of the table. Default:
            "normal".
        dtype (DType | None): The element type of the table. Default: float32.
        padding_idx (int | None): The row that starts as zeros; None for none. Default: None.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.EmbeddingThor(3, 2)
        >>> net(ms.Tensor([[1, 2, 1]])).shape, net.matrix_a.tolist()
        ((1, 3, 2), [0.0, 2.0, 1.0])
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: Any = D.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__(vocab_size, embedding_size, use_one_hot, embedding_table, dtype, padding_idx)
        self._begin_saving(np.zeros(vocab_size), embedding_size)

    def construct(self, ids: Tensor) -> Tensor:
        """Return the rows."""
        return self._counted(ids, super().construct(ids))


class EmbeddingLookupThor(EmbeddingLookup, _Rows):
    """`EmbeddingLookup` that records how often each row is used and the second moment of the rows'
    gradients for `mycel.nn.thor`.

    Args:
        vocab_size (int): The number of rows.
        embedding_size (int): The length of a row.
        param_init (Tensor | str | Initializer | float): The initializer of the table. Default:
            "normal".
        target (str): "CPU" or "DEVICE"; has no effect on one CPU. Default: "CPU".
        slice_mode (str): How the table is divided over devices; has no effect on one CPU. Default:
            "batch_slice".
        manual_shapes (tuple[int, ...] | None): The parts of the table on devices; has no effect on
            one CPU. Default: None.
        max_norm (float | None): The norm to which longer rows are scaled; None for no limit.
            Default: None.
        sparse (bool): Has no effect on one CPU. Default: True.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.EmbeddingLookupThor(3, 2)
        >>> net(ms.Tensor([1, 2, 1])).shape, net.matrix_a.tolist()
        ((3, 2), [0.0, 2.0, 1.0])
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
    ) -> None:
        super().__init__(vocab_size, embedding_size, param_init, target, slice_mode, manual_shapes, max_norm, sparse)
        self._begin_saving(np.zeros(vocab_size), embedding_size)

    def construct(self, indices: Tensor) -> Tensor:
        """Return the rows."""
        return self._counted(indices, super().construct(indices))

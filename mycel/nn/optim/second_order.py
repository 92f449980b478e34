"""THOR: second-order steps from Kronecker factors, which are inverted every so many steps.

The curvature of a layer's weight is approximated by the Kronecker product of A, the second moment
of its inputs, and G, that of the gradients of its outputs (Martens and Grosse, 2015; for
convolutions Grosse and Martens, 2016; kept for several steps: Chen et al., 2021). Its inverse times
a gradient g of the weight is

    (G + sqrt(damping) I)^-1 g (A + sqrt(damping) I)^-1

where both dampings are divided by the number of positions of a convolution, and both inverses by
its root. A is diagonal for an embedding. Gradients of the scale and shift of layer normalisations
are divided by ``g**2 / batch_size + sqrt(damping)``, others stay. Weight decay, clipping and
momentum come after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.layer.normalization import LayerNorm
from mycel.nn.layer.thor import Conv2dThor, SavesFactors
from mycel.nn.layer.thor_conversion import convert_to_thor
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["thor"]


def _everywhere(parameter: Parameter) -> bool:
    return True


def _inverse(moment: Tensor, damping: Tensor, positions: Tensor | None) -> Tensor:
    """Return the damped inverse of a second moment; one of a single dimension is the diagonal of a
    matrix.
    """
    share = damping if positions is None else damping / positions
    if moment.ndim == 1:
        return 1 / (moment + ops.sqrt(share))
    inverse = ops.cholesky_inverse(ops.cholesky(moment + ops.sqrt(share) * ops.eye(moment.shape[0], dtype=D.float32)))
    return inverse if positions is None else inverse / ops.sqrt(positions)


class _Thor(Optimizer):
    """The optimizer that `thor` makes.

    Its arguments `net`, `learning_rate`, `damping`, `momentum`, `weight_decay`, `loss_scale`,
    `batch_size`, `use_nesterov`, `decay_filter`, `enable_clip_grad` and `frequency` are those of
    `thor`.
    """

    def __init__(
        self,
        net: Cell,
        learning_rate: Tensor,
        damping: Tensor,
        momentum: float,
        weight_decay: float,
        loss_scale: float,
        batch_size: int,
        use_nesterov: bool,
        decay_filter: Callable[[Parameter], bool],
        enable_clip_grad: bool,
        frequency: int,
    ) -> None:
        super().__init__(learning_rate, net.trainable_params(), 0.0, loss_scale)
        self.momentum = Parameter(Tensor(momentum, D.float32), name="momentum", requires_grad=False)
        self.moments = self.states("moments")
        self.damping = Tensor(np.asarray(damping.asnumpy(), np.float32).reshape(-1))
        self.cov_step = Parameter(Tensor(np.zeros(1, np.int32)), name="cov_step", requires_grad=False)
        self.decay, self.batch_size = float(weight_decay), batch_size
        self.use_nesterov, self.enable_clip_grad, self.frequency = use_nesterov, enable_clip_grad, frequency
        self.decay_flags = tuple(bool(decay_filter(p)) for p in self.parameters)
        layers: dict[int, SavesFactors] = {}
        scales: set[int] = set()
        for _, cell in net.cells_and_names():
            if isinstance(cell, SavesFactors) and cell.thor:
                layers[id(cell.weight if hasattr(cell, "weight") else cell.embedding_table)] = cell
            elif isinstance(cell, LayerNorm):
                scales |= {id(cell.gamma), id(cell.beta)}
        self._scales = tuple(id(p) in scales for p in self.parameters)
        chosen = [layers[id(p)] for p in self.parameters if id(p) in layers]
        numbers = {id(p): k for k, p in enumerate(p for p in self.parameters if id(p) in layers)}
        self._factors = tuple(numbers.get(id(p)) for p in self.parameters)
        self._saved = tuple((c.matrix_a, c.matrix_g) for c in chosen)
        self._positions = tuple(
            (c.a_normalizer, c.g_normalizer) if isinstance(c, Conv2dThor) else (None, None) for c in chosen
        )
        self.matrix_a = self._inverses("matrix_a_inv", [a for a, _ in self._saved])
        self.matrix_g = self._inverses("matrix_g_inv", [g for _, g in self._saved])

    @staticmethod
    def _inverses(name: str, moments: list[Parameter]) -> ParameterTuple:
        return ParameterTuple(
            [
                Parameter(Tensor(np.zeros(m.shape, np.float32)), name=f"{name}_{k}", requires_grad=False)
                for k, m in enumerate(moments)
            ]
        )

    def get_frequency(self) -> int:
        """Return the number of steps between two computations of the inverses."""
        return self.frequency

    def _renew(self, damping: Tensor) -> None:
        """Compute the inverses in every step whose number is a multiple of the frequency."""
        kept = [*self.matrix_a, *self.matrix_g]
        if not kept:
            return
        count = len(self._saved)
        moments = [a for a, _ in self._saved] + [g for _, g in self._saved]
        positions = [a for a, _ in self._positions] + [g for _, g in self._positions]
        where = [k for k, p in enumerate(positions) if p is not None]
        operands = [damping, *moments, *(ops.reshape(p, ()) for p in positions if p is not None), *kept]

        def renewed(damping: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            held = dict(zip(where, values[2 * count :]))
            scales = self.reciprocal_scale**2 * self.batch_size**2
            found = []
            for k, moment in enumerate(values[: 2 * count]):
                if k >= count:
                    moment = moment * scales
                elif moment.ndim == 1:
                    moment = moment / self.batch_size
                found.append(_inverse(moment, damping, held.get(k)))
            return tuple(found)

        def old(damping: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
            return values[-2 * count :]

        types = [v._type for v in operands]
        due = ops.equal(ops.reshape(self.cov_step, ()) % self.frequency, 0)
        found: Any = eager.apply(
            control.cond, due, *operands, true=graph_of(renewed, types), false=graph_of(old, types)
        )
        for target, value in zip(kept, found):
            store(target, value)

    def _preconditioned(self, i: int, g: Tensor, damping: Tensor) -> Tensor:
        k = self._factors[i]
        if k is None:
            return g / (g * g / self.batch_size + ops.sqrt(damping)) if self._scales[i] else g
        a, side = self.matrix_a[k], self.matrix_g[k]
        if a.ndim == 1:
            return ops.matmul(ops.expand_dims(a, 1) * g, side)
        flat = ops.reshape(g, (g.shape[0], -1))
        return ops.reshape(ops.matmul(ops.matmul(side, flat), a), g.shape)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        found, rates = self.scale_grad(self._check_gradients(gradients)), self._rates()
        place = ops.minimum(ops.reshape(self.cov_step, ()), self.damping.shape[0] - 1)
        damping = ops.gather(self.damping, place, 0)
        self._renew(damping)
        self.advance()
        store(self.cov_step, self.cov_step + 1)
        for i, (lr, p, g, v) in enumerate(zip(rates, self.parameters, found, self.moments)):
            g = self._preconditioned(i, cast(g, D.float32), damping)
            g = g + p * self.decay if self.decay > 0 and self.decay_flags[i] else g
            if self.enable_clip_grad:
                g = g / ops.maximum(ops.sqrt(ops.sum(g * g)), 1.0)
            for target, value in zip((p, v), optimizer_updates.momentum(p, g, v, lr, self.momentum, self.use_nesterov)):
                store(target, value)
        return True


def thor(
    net: Cell,
    learning_rate: Tensor,
    damping: Tensor,
    momentum: float,
    weight_decay: float = 0.0,
    loss_scale: float = 1.0,
    batch_size: int = 32,
    use_nesterov: bool = False,
    decay_filter: Callable[[Parameter], bool] = _everywhere,
    split_indices: list[int] | None = None,
    enable_clip_grad: bool = False,
    frequency: int = 100,
) -> Optimizer:
    """Return an optimizer that takes second-order steps for the dense, convolutional and embedding
    layers of a network (module docstring).

    Args:
        net (Cell): The network, whose layers are replaced by `DenseThor`, `Conv2dThor`,
            `EmbeddingThor` and `EmbeddingLookupThor` with the same parameters
            (`mycel.train.ConvertNetUtils`).
        learning_rate (Tensor): A tensor of one number, or of one for each training step (the last
            holds after the end).
        damping (Tensor): What is added to the second moments, as `learning_rate`.
        momentum (float): The weight of the steps before.
        weight_decay (float): The decay: it times the parameter is added to the gradients. Default:
            0.0.
        loss_scale (float): The factor of the loss. Default: 1.0.
        batch_size (int): The number of examples over which the loss is a mean. Default: 32.
        use_nesterov (bool): Whether Nesterov's form is computed. Default: False.
        decay_filter (Callable[[Parameter], bool]): Which parameters decay. Default: _everywhere.
        split_indices (list[int] | None): How layers are divided among devices; has no effect.
            Default: None.
        enable_clip_grad (bool): Whether gradients are scaled down to norm 1. Default: False.
        frequency (int): After how many training steps the inverses are computed, of whole second
            moments instead of blocks. Default: 100.

    Returns:
        Optimizer: The optimizer.

    Raises:
        TypeError, ValueError: For other arguments.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.DenseThor(2, 1, "ones", has_bias=False)
        >>> step = ms.nn.thor(net, ms.Tensor(0.5), ms.Tensor(0.25), 0.0, batch_size=1, frequency=2)
        >>> _ = ms.grad(lambda x: net(x).sum(), None, step.parameters)(ms.Tensor([[1.0, 0.0]]))
        >>> _ = step((ms.Tensor([[1.0, 0.0]]),)); net.weight.asnumpy().round(4)
        array([[0.7778, 1.    ]], dtype=float32)
    """
    arguments.instance("thor", "net", net, Cell)
    for name, value in (("learning_rate", learning_rate), ("damping", damping)):
        arguments.instance("thor", name, value, Tensor)
        if value.ndim > 1 or value.size == 0:
            raise ValueError(f"thor: {name} must be one number or one for each step, not of shape {value.shape}")
    arguments.number("thor", "momentum", momentum, at_least=0)
    arguments.number("thor", "weight_decay", weight_decay, at_least=0)
    arguments.integer("thor", "batch_size", batch_size, 1)
    arguments.flag("thor", "use_nesterov", use_nesterov)
    arguments.flag("thor", "enable_clip_grad", enable_clip_grad)
    arguments.integer("thor", "frequency", frequency, 2)
    convert_to_thor(net)
    return _Thor(
        net,
        learning_rate,
        damping,
        momentum,
        weight_decay,
        loss_scale,
        batch_size,
        use_nesterov,
        decay_filter,
        enable_clip_grad,
        frequency,
    )

"""`mindspore.nn.wrap.loss_scale`: gradients divided by the scale of a loss, and their overflow."""

from __future__ import annotations

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.operations import FloatStatus, IsFinite, Reciprocal

__all__: list[str] = []

reciprocal = Reciprocal()
ascend_grad_overflow = IsFinite()
grad_overflow = FloatStatus()
_grad_scale = ops.MultitypeFuncGraph("grad_scale")
grad_scale = ops.MultitypeFuncGraph("grad_scale")
shard_grad_scale = ops.MultitypeFuncGraph("shard_grad_scale")


@_grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale: Tensor, grad: Tensor) -> Tensor:
    """Return a gradient divided by a scale, in the gradient's type."""
    return grad * reciprocal(scale).astype(grad.dtype)


@grad_scale.register("Tensor", "Tensor", "Tensor")
def tensor_grad_scale_pipeline(scale: Tensor, grad: Tensor, accu_grad: Tensor) -> Tensor:
    """Return an accumulated gradient divided by a scale, and set what is accumulated to zero."""
    result = accu_grad * reciprocal(scale).astype(grad.dtype)
    ops.assign(accu_grad, ops.zeros_like(accu_grad))
    return result


@shard_grad_scale.register("Tensor", "Tensor", "Tensor")
def tensor_shard_grad_scale_pipeline(scale: Tensor, grad: Tensor, accu_grad: Tensor) -> Tensor:
    """Return a gradient divided by a scale, and set what is accumulated to zero."""
    result = grad * reciprocal(scale).astype(grad.dtype)
    ops.assign(accu_grad, ops.zeros_like(accu_grad))
    return result

"""Cells around networks: with a loss, for evaluation, with gradients, and whole training steps."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.pytree import map_leaves
from mycel._src.staging.derivatives import value_and_grad
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.grad_reducer import reducer_in_force
from mycel.nn.layer.basic import Identity
from mycel.nn.optim.optimizer import Optimizer

__all__ = ["ForwardValueAndGrad", "ParameterUpdate", "TrainOneStepCell", "WithEvalCell", "WithGradCell", "WithLossCell"]


class WithLossCell(Cell):
    """A network and its loss as one Cell: ``loss_fn(backbone(data), label)``.

    >>> import mycel as ms
    >>> net = ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.L1Loss())
    >>> float(net(ms.Tensor([-1.0, 3.0]), ms.Tensor([0.0, 1.0])))
    1.0
    """

    def __init__(self, backbone: Cell, loss_fn: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = arguments.instance("WithLossCell", "backbone", backbone, Cell)
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        """Return the loss."""
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network."""
        return self._backbone


class WithEvalCell(Cell):
    """A network and its loss for evaluation, which returns the loss, the outputs and the labels.

    `add_cast_fp32` converts the outputs and labels to float32.

    >>> import mycel as ms
    >>> net = ms.nn.WithEvalCell(ms.nn.ReLU(), ms.nn.L1Loss())
    >>> loss, out, label = net(ms.Tensor([-1.0]), ms.Tensor([1.0]))
    >>> float(loss), float(out), float(label)
    (1.0, 0.0, 1.0)
    """

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = arguments.instance("WithEvalCell", "network", network, Cell)
        self._loss_fn = loss_fn
        self.add_cast_fp32 = arguments.flag("WithEvalCell", "add_cast_fp32", add_cast_fp32)

    def construct(self, data: Any, label: Any) -> tuple[Any, Any, Any]:
        """Return the loss, the outputs and the labels."""
        outputs = self._network(data)
        if self.add_cast_fp32:
            wide = lambda v: cast(v, D.float32) if isinstance(v, Tensor) and v.dtype.is_floating else v
            outputs, label = map_leaves(wide, outputs), map_leaves(wide, label)
        return self._loss_fn(outputs, label), outputs, label


class ForwardValueAndGrad(Cell):
    """The value of a network and its gradients.

    Args:
        network (Cell): What is computed.
        weights (Iterable[Parameter] | None): The parameters with respect to which gradients are
            taken with `get_by_list`; None for none. Default: None.
        get_all (bool): Whether gradients are those of all inputs instead of the first. Default:
            False.
        get_by_list (bool): Whether gradients are those of the parameters `weights`; with `get_all`
            those of both. Default: False.
        sens_param (bool): Whether the last input is not given to the network but scales the
            gradients. Default: False.

    Examples:
        >>> import mycel as ms
        >>> value, gradient = ms.nn.ForwardValueAndGrad(ms.nn.ReLU())(ms.Tensor(2.0))
        >>> float(value), float(gradient)
        (2.0, 1.0)
    """

    def __init__(
        self,
        network: Any,
        weights: Any = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        arguments.function("ForwardValueAndGrad", "network", network, "a Cell or a function")
        for name, flag in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            arguments.flag("ForwardValueAndGrad", name, flag)
        if get_by_list and weights is None:
            raise ValueError("ForwardValueAndGrad: get_by_list=True needs weights")
        self.network = network
        self.weights = (
            None if weights is None else ParameterTuple([weights] if isinstance(weights, Parameter) else weights)
        )
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs: Any) -> tuple[Any, Any]:
        """Return the value and the gradients."""
        sens = None
        if self.sens_param:
            *given, sens = inputs
            inputs = tuple(given)
        positions: Any = tuple(range(len(inputs))) if self.get_all else None if self.get_by_list else 0
        weights = self.weights if self.get_by_list else None
        return _scaled_gradients(self.network, sens, positions, weights, inputs)


def _scaled_gradients(network: Any, sens: Any, positions: Any, weights: Any, inputs: Any) -> tuple[Any, Any]:
    """Return the value of a network, and the gradients of that value times `sens` (None: 1), as
    which they flow back through the network.

    The network is called, also where it was called with these inputs before.
    """
    if sens is None or (isinstance(sens, (int, float)) and sens == 1):
        differentiated: Any = value_and_grad(network, positions, weights)
        differentiated.anew = True
        return differentiated(*inputs)
    (_, value), grads = value_and_grad(_weighted(network, sens), positions, weights, has_aux=True)(*inputs)
    return value, grads


def _weighted(network: Any, sens: Any) -> Any:
    """Return a function that gives the network's output times a constant, and the output itself."""

    def run(*inputs: Any) -> tuple[Any, Any]:
        value = network(*inputs)
        if isinstance(value, (tuple, list)):
            scales = sens if isinstance(sens, (tuple, list)) else [sens] * len(value)
            return sum(ops.sum(v * s) for v, s in zip(value, scales)), value
        return ops.sum(value * sens), value

    return run


class WithGradCell(Cell):
    """The gradients of a network with its loss, scaled by `sens`, with respect to its trainable
    parameters.

    Where the loss is None, the network itself gives it.

    >>> import mycel as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> gradients = ms.nn.WithGradCell(net, ms.nn.MSELoss())
    >>> [g.shape for g in gradients(ms.ops.ones((3, 2)), ms.ops.ones((3, 1)))]
    [(1, 2), (1,)]
    """

    def __init__(self, network: Cell, loss_fn: Cell | None = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = arguments.instance("WithGradCell", "network", network, Cell)
        self.loss_fn = loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)

    def construct(self, *inputs: Any) -> Any:
        """Return the gradients."""
        return _scaled_gradients(self.network_with_loss, self.sens, None, self.weights, inputs)[1]


class TrainOneStepCell(Cell):
    """A training step: the loss of `network`, its gradients with respect to the optimizer's
    parameters, and their update.

    A call returns the loss.

    Args:
        network (Cell): The network, which returns the loss.
        optimizer (Optimizer): What updates the parameters.
        sens (float | Tensor): The scale of the gradients, so that they do not vanish in 16-bit
            floats; the optimizer divides by it. Default: None.
        return_grad (bool): Whether the gradients are returned beside the loss, by parameter name.
            Default: False.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.01)
        >>> step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), optimizer)
        >>> step(ms.ops.ones((3, 2)), ms.ops.ones((3, 1))).shape
        ()
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self.network = arguments.instance("TrainOneStepCell", "network", network, Cell)
        self.network.set_grad()
        self.optimizer = arguments.instance("TrainOneStepCell", "optimizer", optimizer, Cell)
        if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, "parameters"):
            raise TypeError(f"TrainOneStepCell: optimizer must be an Optimizer, not {type(optimizer).__name__}")
        if sens is not None and not isinstance(sens, (int, float, Tensor)) or isinstance(sens, bool):
            raise TypeError(f"TrainOneStepCell: sens must be a number, not {type(sens).__name__}")
        self.weights = self.optimizer.parameters
        self.sens = 1.0 if sens is None else sens
        self.return_grad = bool(return_grad)
        # For subclasses that define their own step.
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = ops.GradOperation(get_by_list=True)
        self.hyper_map = ops.HyperMap()
        reducer = reducer_in_force(self.weights, self.optimizer)
        self.reducer_flag = reducer is not None
        self.grad_reducer: Cell = Identity() if reducer is None else reducer

    def construct(self, *inputs: Any) -> Any:
        """Take a step on a batch, and return the loss."""
        loss, grads = _scaled_gradients(
            self.network,
            None if isinstance(self.sens, float) and self.sens == 1.0 else self.sens,
            None,
            self.weights,
            inputs,
        )
        grads = self.grad_reducer(grads)
        self.optimizer(grads)
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, grads)}
        return loss


class ParameterUpdate(Cell):
    """A Cell that assigns the value that it is called with to a parameter.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.nn.ParameterUpdate(w)(ms.Tensor([2.0])); w.asnumpy()
    array([2.], dtype=float32)
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        arguments.instance("ParameterUpdate", "param", param, Parameter)
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        """Assign the value, and return it."""
        store(self._param, x)
        return x

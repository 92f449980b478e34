"""Gradient freezing: some steps train only the later part of a network, whose gradients cost less.

The parameters are cut into blocks in the order of the network. Training uses several optimizers:
number 0 has all parameters, each further one begins some blocks later. A strategy lists the number
of the optimizer that takes each step. Each optimizer has its own step counter, its own states and,
where the learning rate is a list, the rates of the steps that it takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.boost.grad_accumulation import GradientAccumulation
from mycel.nn import LARS, CellList, DistributedGradReducer, Identity, Optimizer
from mycel.ops._operands import numbers, one_by_one

__all__ = ["FreezeOpt", "GradientFreeze", "freeze_cell"]

_CONTINUOUS, _INTERVAL = 0, 1


class FreezeOpt(Cell):
    """Several optimizers like `opt`, one for each list of parameters in `train_parameter_groups`.

    They are in the attribute `opts`. Without groups there is one, for all parameters.
    `train_strategy` lists the number of the optimizer for each step. Raises TypeError and
    ValueError for other arguments, and for a strategy without groups.

    >>> import mycel as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> w, b = net.trainable_params()
    >>> frozen = ms.boost.FreezeOpt(ms.nn.SGD([w, b], 0.1), [[w, b], [b]], [0, 1])
    >>> [opt.param_length for opt in frozen.opts]
    [2, 1]
    """

    def __init__(self, opt: Optimizer, train_parameter_groups: Any = None, train_strategy: Any = None) -> None:
        super().__init__(auto_prefix=False)
        arguments.instance("FreezeOpt", "opt", opt, Optimizer)
        if train_strategy is not None and train_parameter_groups is None:
            raise ValueError("FreezeOpt: train_strategy wants train_parameter_groups")
        groups = [list(opt.parameters)] if train_parameter_groups is None else train_parameter_groups
        if not isinstance(groups, (tuple, list)) or not all(isinstance(g, (tuple, list)) for g in groups):
            raise TypeError(
                "FreezeOpt: train_parameter_groups must be a tuple or list of tuples or lists of Parameters"
            )
        self.is_lars = isinstance(opt, LARS)
        self.single_opt: Any = opt.opt if isinstance(opt, LARS) else opt
        self.parameters = opt.parameters
        self.groups_num = len(groups)
        self.train_strategy = _strategy(train_strategy, len(groups))
        self.learning_rate = self.single_opt.init_learning_rate
        self.dynamic_lr = self.single_opt.dynamic_lr
        made: list[Any] = []
        for number, members in enumerate(groups):
            kind: Any = type(self.single_opt)
            one = kind(list(members), learning_rate=self._rates_of(number), **self.single_opt.init_args)
            if isinstance(opt, LARS):
                one = LARS(one, **{k: v for k, v in opt.init_args.items() if k != "optimizer"})
            for p in one.get_parameters():
                if not any(p is q for q in self.parameters):
                    p.name = f"boost_{number}.{p.name}"
            made.append(one)
        self.opts = CellList(made, auto_prefix=False)

    def _rates_of(self, number: int) -> Any:
        """Return the learning rate of an optimizer; of a list that covers steps of the strategy,
        the rates of its own steps.
        """
        if self.train_strategy is None or not isinstance(self.learning_rate, list):
            return self.learning_rate
        steps = self.train_strategy.asnumpy().tolist()
        own = [rate for rate, step in zip(self.learning_rate, steps) if step == number]
        return own if own and len(self.learning_rate) <= len(steps) else self.learning_rate


def _strategy(given: Any, groups: int) -> Tensor | None:
    if given is None:
        return None
    if isinstance(given, Tensor):
        if given.ndim != 1 or given.dtype is not D.int32:
            raise ValueError(
                f"FreezeOpt: train_strategy must be of 1 dimension and int32, not {given.shape} and {given.dtype}"
            )
    elif not isinstance(given, (tuple, list)):
        raise TypeError(f"FreezeOpt: train_strategy must be a tuple, list or Tensor, not {type(given).__name__}")
    elif not all(isinstance(k, (int, np.integer)) for k in given):
        raise ValueError("FreezeOpt: train_strategy must consist of whole numbers")
    elif not all(0 <= k < groups for k in given):
        raise ValueError(f"FreezeOpt: train_strategy must name groups 0 to {groups - 1}, not {given}")
    steps = given if isinstance(given, Tensor) else Tensor(np.array(given, np.int32))
    if steps.size and not 0 <= int(steps.min()) <= int(steps.max()) < groups:
        raise ValueError(f"FreezeOpt: train_strategy must name groups 0 to {groups - 1}, not {given}")
    return steps


class _StepOf(Cell):
    """A training step by one optimizer.

    `gradient` makes a function of `network` and the parameters that gives the gradients times
    `sens`; `reducer` is applied to them; then `finish`, or the optimizer if it is None, gets them.
    """

    def __init__(
        self, network: Cell, sens: Any, gradient: Any, reducer: Cell, optimizer: Any, finish: Cell | None
    ) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer, self.reducer, self.finish = network, optimizer, reducer, finish
        self._gradient = gradient(network, optimizer.parameters)
        self._sens = sens

    def construct(self, *batch: Any) -> Any:
        """Take a step on a batch, and return the loss."""
        loss = self.network(*batch)
        found = self.reducer(self._gradient(*batch, ops.full_like(loss, self._sens)))
        if self.finish is not None:
            return self.finish(loss, found)
        self.optimizer(found)
        return loss


class GradientFreeze:
    """A schedule that freezes the gradients of the first layers in part of the steps.

    Args:
        param_groups (int): The number of optimizers.
        freeze_type (int): 0 for runs of training steps that train everything, each followed by one
            step of every other optimizer; 1 for single steps of the other optimizers, chosen at
            random with NumPy's generator, earlier ones more often.
        freeze_p (float): The fraction of steps that train everything.
        total_steps (int): The number of steps of the training.

    Examples:
        >>> import mycel as ms
        >>> ms.boost.GradientFreeze(3, 0, 0.5, 4).generate_freeze_index_sequence(3, 0, 0.5, 4)
        [0, 0, 1, 2]
    """

    def __init__(self, param_groups: int, freeze_type: int, freeze_p: float, total_steps: int) -> None:
        name = "GradientFreeze"
        self._param_groups = arguments.integer(name, "param_groups", param_groups, 1)
        self._freeze_type = arguments.integer(name, "freeze_type", freeze_type)
        self._freeze_p = arguments.number(name, "freeze_p", freeze_p, at_least=0)
        self._total_steps = arguments.integer(name, "total_steps", total_steps, 1)
        if freeze_type not in (_CONTINUOUS, _INTERVAL) or freeze_p >= 1:
            raise ValueError(
                f"{name}: freeze_type must be 0 or 1 and freeze_p below 1, not {freeze_type} and {freeze_p}"
            )
        self.grad_reducer = Identity()

    def split_parameters_groups(self, net: Cell, freeze_para_groups_number: int) -> list[list[Parameter]]:
        """Return a list of parameters for each optimizer: all, then those from each further block
        on.

        Blocks hold at least three parameters; biases and parameters of "bn" layers stay in the
        block of the parameter before them.
        """
        name = "GradientFreeze"
        arguments.integer(name, "freeze_para_groups_number", freeze_para_groups_number, 1)
        one_by_one(name, "groups", freeze_para_groups_number)
        blocks: list[list[Parameter]] = [[]]
        for p in arguments.instance(name, "net", net, Cell).trainable_params():
            if len(blocks[-1]) >= 3 and "bn" not in p.name and "bias" not in p.name:
                blocks.append([])
            blocks[-1].append(p)
        stride = len(blocks) // freeze_para_groups_number
        return [
            [p for block in blocks[number * stride :] for p in block] for number in range(freeze_para_groups_number)
        ]

    def generate_freeze_index_sequence(
        self, parameter_groups_number: int, freeze_strategy: int, freeze_p: float, total_steps: int
    ) -> list[int]:
        """Return the number of the optimizer for each training step.

        Args:
            parameter_groups_number (int): The number of optimizers.
            freeze_strategy (int): As `freeze_type` of the class.
            freeze_p (float): The fraction of steps that train everything.
            total_steps (int): The number of training steps.

        Returns:
            list[int]: The numbers, at least 1.01 * `total_steps` of them.
        """
        name = "GradientFreeze"
        arguments.integer(name, "parameter_groups_number", parameter_groups_number, 1)
        arguments.number(name, "freeze_p", freeze_p, at_least=0, below=1)
        length = int(one_by_one(name, "steps", arguments.integer(name, "total_steps", total_steps, 0), 16) * 1.01)
        others = numbers(parameter_groups_number)[1:]
        if not len(others):
            return [0] * length
        if freeze_strategy == _CONTINUOUS:
            first = one_by_one(name, "steps", int(freeze_p * len(others) // (1 - freeze_p) + 0.5), 16)
            round_: list[int] = [0] * first + others.tolist()
            return [k for _ in range(-(-length // len(round_))) for k in round_]
        if freeze_strategy != _INTERVAL:
            raise ValueError(f"{name}: freeze_strategy must be 0 or 1, not {freeze_strategy}")
        found, frozen = [0], 0
        while len(found) < length:
            if frozen / len(found) < 1 - freeze_p:
                found.append(int(np.random.choice(others[::-1], p=others / others.sum())))
                frozen += 1
            else:
                found.append(0)
        return found

    def freeze_generate(self, network: Cell, optimizer: Optimizer) -> tuple[Cell, FreezeOpt]:
        """Return the network unchanged, and a `FreezeOpt` with the strategy, made of its
        optimizer.
        """
        groups = self.split_parameters_groups(network, self._param_groups)
        steps = self.generate_freeze_index_sequence(
            self._param_groups, self._freeze_type, self._freeze_p, self._total_steps
        )
        return network, FreezeOpt(optimizer, groups, steps)


def freeze_cell(
    reducer_flag: bool,
    network: Cell,
    optimizer: FreezeOpt,
    sens: Any,
    grad: Any,
    use_grad_accumulation: bool,
    mean: bool | None = None,
    degree: int | None = None,
    max_accumulation_step: int = 1,
) -> tuple[Cell, ...]:
    """Return a training step for each optimizer of a `FreezeOpt`, called with a batch and giving
    the loss.

    Args:
        reducer_flag (bool): Whether gradients go through a `DistributedGradReducer`.
        network (Cell): Computes the loss.
        optimizer (FreezeOpt): The `FreezeOpt`.
        sens (float): The scale of the gradients.
        grad (GradOperation): A `GradOperation` with `get_by_list` and `sens_param`, which gives the
            gradients times `sens`.
        use_grad_accumulation (bool): Whether gradients of several calls are added up.
        mean (bool | None): As in `DistributedGradReducer`. Default: None.
        degree (int | None): As in `DistributedGradReducer`. Default: None.
        max_accumulation_step (int): After how many calls the parameters are updated. Default: 1.

    Returns:
        tuple[Cell, ...]: The training steps.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
        >>> grad = ms.ops.GradOperation(get_by_list=True, sens_param=True)
        >>> optimizer = ms.boost.FreezeOpt(ms.nn.SGD(net.trainable_params(), 0.1))
        >>> step, = ms.boost.freeze_cell(False, net, optimizer, 1.0, grad, False)
        >>> step(ms.ops.ones((3, 2)), ms.ops.ones((3, 1))).shape
        ()
    """
    arguments.instance("freeze_cell", "optimizer", optimizer, FreezeOpt)
    made: list[Cell] = []
    for one in optimizer.opts:
        reducer: Cell = DistributedGradReducer(one.parameters, mean, degree) if reducer_flag else Identity()
        finish = GradientAccumulation(max_accumulation_step, one) if use_grad_accumulation else None
        made.append(_StepOf(network, sens, grad, reducer, one, finish))
    return tuple(made)

"""The base of all optimizers: parameters and their groups, learning rates, weight decay, loss scale
and the step counter.

Everything that changes is a `Parameter`: the step counter, the states, and the learning rate, so
that a whole training step can be compiled once and stays valid when the rate changes. Gradients are
prepared in this order: divide by the loss scale, centralize, add ``weight_decay * parameter`` where
a group asks for it (without groups: for all parameters but those with "beta" or "gamma" in their
name). Then each parameter is updated by a function of tensors alone. The step of an optimizer that
is called often is therefore one compiled program in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.migration_hints import OF_CELLS, OF_OPTIMIZERS
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.assignment import store
from mycel.nn.layer.container import CellList
from mycel.nn.learning_rate_schedule import LearningRateSchedule
from mycel.nn.optim.user_optimizers import Extensible

__all__ = ["Optimizer"]

_GROUP_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")
Rate = Parameter | Cell
_RATES = "a number, a tensor, an iterable of numbers or a LearningRateSchedule"


class _ListedRate(LearningRateSchedule):
    """A learning rate for each step from a list, whose last rate holds after its end."""

    def __init__(self, rates: Tensor, name: str) -> None:
        super().__init__(auto_prefix=False)
        self.learning_rate = Parameter(rates, name=name)

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        last = self.learning_rate.shape[0] - 1
        return ops.gather(self.learning_rate, ops.minimum(global_step, last), 0)


class _ConstantRate(LearningRateSchedule):
    """A constant learning rate, used beside rates that change."""

    def __init__(self, rate: Parameter) -> None:
        super().__init__(auto_prefix=False)
        self.learning_rate = rate

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        return self.learning_rate + 0.0


class Optimizer(Extensible):
    """Base of optimizers; a subclass defines ``construct(gradients)`` for a tuple of one gradient
    for each of `parameters`.

    Args:
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): A number, a tensor
            of one element, a schedule (`LearningRateSchedule`), or an iterable or 1-D tensor of one
            rate for each training step.
        parameters (Iterable[Parameter] | list[dict[str, Any]]): Parameters, or groups: dicts with
            "params" and optionally "lr", "weight_decay" and "grad_centralization", which override
            the arguments, and at most one with "order_params", all parameters in the order of the
            gradients.
        weight_decay (float | Cell): A number, or a Cell that computes it from the training step.
            Default: 0.0.
        loss_scale (float): What gradients are divided by. Default: 1.0.

    Raises:
        TypeError, ValueError: For other arguments.
        RuntimeError: For a parameter in two groups.

    Examples:
        >>> import mycel as ms
        >>> class Descent(ms.nn.Optimizer):
        ...     def construct(self, gradients):
        ...         lr = self.get_lr()
        ...         for p, g in zip(self.parameters, gradients):
        ...             p.set_data(p - lr * g)
        ...         return True
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = Descent(0.5, [w])((ms.Tensor([1.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    _names_elsewhere = {**OF_CELLS, **OF_OPTIMIZERS}

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        members = self._listed(parameters)
        self.loss_scale = arguments.number(name, "loss_scale", loss_scale, above=0)
        self.need_scale = self.loss_scale != 1.0
        self.reciprocal_scale = 1.0 / self.loss_scale
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), name="global_step", requires_grad=False)
        self.is_group = isinstance(members[0], dict)
        self.is_group_lr = self.is_group_params_ordered = False
        self.dynamic_weight_decay = isinstance(weight_decay, Cell)
        default = self._rate(learning_rate, "learning_rate")
        if self.is_group:
            self._take_groups(members, default, learning_rate, weight_decay)
        else:
            decay = self._decay(weight_decay)
            self.grad_centralization: Any = False
            self.dynamic_lr = isinstance(default, Cell)
            self.learning_rate: Any = default
            self._set_parameters(members)
            self._keep_decay(decay)
            self.decay_flags: tuple[bool, ...] = tuple(
                "beta" not in p.name and "gamma" not in p.name for p in self.parameters
            )
            self.exec_weight_decay = isinstance(decay, Cell) or decay > 0
        self.param_length = len(self.parameters)
        self.params = self._parameters = self.parameters
        self.optim_filter = (True,) * self.param_length

    # The parameters.

    def _listed(self, parameters: Any) -> list[Any]:
        if parameters is None:
            raise ValueError(f"{type(self).__name__}: the parameters are None; give a list of them")
        if isinstance(parameters, (Tensor, Cell)) or not isinstance(parameters, Iterable):
            raise TypeError(
                f"{type(self).__name__}: the parameters must be a list of them, such as net.trainable_params(), "
                f"not {type(parameters).__name__}"
            )
        members = list(parameters)
        if not members:
            raise ValueError(f"{type(self).__name__}: there are no parameters to optimize")
        for kind in (Parameter, dict):
            if all(isinstance(m, kind) for m in members):
                return members
        found = sorted({type(m).__name__ for m in members})
        raise TypeError(
            f"{type(self).__name__}: the parameters must be all Parameters or all groups (dict), not {', '.join(found)}"
        )

    def _set_parameters(self, members: Sequence[Parameter]) -> None:
        for i, p in enumerate(members):
            if not p.__dict__["has_name"]:
                p.name, p.__dict__["has_name"] = f"Parameter${i}", True
        self.parameters = ParameterTuple(members)

    def _take_groups(self, groups: list[dict[str, Any]], default: Rate, learning_rate: Any, weight_decay: Any) -> None:
        name = type(self).__name__
        order: list[Parameter] | None = None
        entries: dict[Parameter, tuple[Rate, Any, bool]] = {}
        for number, group in enumerate(groups):
            for key in group:
                if key not in _GROUP_KEYS:
                    raise KeyError(
                        f"{name}: {key!r} is not a key of a parameter group; use {', '.join(map(repr, _GROUP_KEYS))}"
                    )
            for key in ("params", "order_params"):
                if key in group and not isinstance(group[key], Iterable):
                    raise TypeError(f"{name}: {key!r} must be a list of parameters, not {type(group[key]).__name__}")
            if "order_params" in group:
                if len(group) > 1 or order is not None:
                    raise ValueError(f"{name}: 'order_params' must be alone in one group")
                order = list(group["order_params"])
                continue
            if "params" not in group:
                raise KeyError(f"{name}: group {number} has no 'params'")
            members = list(group["params"])
            if not members:
                raise ValueError(f"{name}: group {number} has no parameters")
            self.is_group_lr = self.is_group_lr or "lr" in group
            rate = self._rate(group["lr"], f"learning_rate_group_{number}") if "lr" in group else default
            own = group.get("weight_decay", weight_decay)
            self.dynamic_weight_decay = self.dynamic_weight_decay or isinstance(own, Cell)
            decay = self._decay(own)
            for p in members:
                arguments.instance(name, "the members of a group", p, Parameter, "Parameters")
                if p in entries:
                    raise RuntimeError(f"{name}: the parameter {p.name!r} is in two groups")
                entries[p] = (
                    rate,
                    decay,
                    arguments.flag(name, "grad_centralization", group.get("grad_centralization", False)),
                )
        if order is not None:
            self.is_group_params_ordered = True
            if len(order) != len(entries) or {id(p) for p in order} != {id(p) for p in entries}:
                raise ValueError(f"{name}: 'order_params' must list every parameter of the groups once")
            entries = {p: entries[p] for p in order}
        rates = [rate for rate, _, _ in entries.values()]
        decays = [decay for _, decay, _ in entries.values()]
        self.grad_centralization = tuple(flag for _, _, flag in entries.values())
        self.dynamic_lr = any(isinstance(rate, Cell) for rate in rates)
        if not self.is_group_lr:
            self.learning_rate = default
        elif self.dynamic_lr:
            self.learning_rate = CellList(auto_prefix=False)
            for rate in rates:
                self.learning_rate.append(rate if isinstance(rate, Cell) else _ConstantRate(rate))
        else:
            self.learning_rate = ParameterTuple([rate for rate in rates if isinstance(rate, Parameter)])
        self._set_parameters(list(entries))
        if any(isinstance(decay, Cell) for decay in decays):
            self.decay_cells = CellList([d for d in decays if isinstance(d, Cell)], auto_prefix=False)
        self._keep_decay(tuple(decays))
        self.decay_flags = tuple(isinstance(decay, Cell) or decay > 0 for decay in decays)
        self.exec_weight_decay = any(self.decay_flags)

    def _rate(self, value: Any, name: str) -> Rate:
        owner = type(self).__name__
        if isinstance(value, LearningRateSchedule):
            return value
        if isinstance(value, Tensor):
            if value.ndim > 1:
                raise ValueError(
                    f"{owner}: a learning rate given as a tensor must have 0 or 1 dimensions, not {value.ndim}"
                )
            rates = np.asarray(value.asnumpy(), np.float32)
        elif isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool):
            rates = np.float32(arguments.number(owner, "learning_rate", value, at_least=0))
        elif isinstance(value, str):
            raise arguments.wrong_value(owner, "the learning rate", _RATES, value)
        elif isinstance(value, bytes) or not isinstance(value, Iterable):
            raise arguments.wrong_type(owner, "the learning rate", _RATES, value)
        else:
            rates = np.asarray(
                [arguments.number(owner, "each learning rate", v, at_least=0) for v in value], np.float32
            )
        if rates.ndim == 0 or rates.shape == (1,) and isinstance(value, Tensor):
            return Parameter(Tensor(np.asarray(rates, np.float32).reshape(())), name=name, requires_grad=False)
        if rates.size == 0:
            raise ValueError(f"{owner}: the list of learning rates is empty")
        return _ListedRate(Tensor(rates), name)

    def _decay(self, value: Any) -> Any:
        if isinstance(value, Cell):
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                f"{type(self).__name__}: weight_decay must be a number or a Cell, not {type(value).__name__}"
            )
        return arguments.number(type(self).__name__, "weight_decay", value, at_least=0)

    # What `construct` of a subclass uses.

    def _check_gradients(self, gradients: Any) -> tuple[Tensor, ...]:
        found = tuple(gradients) if isinstance(gradients, (tuple, list)) else (gradients,)
        if len(found) != self.param_length:
            raise RuntimeError(
                f"{type(self).__name__}: there are {len(found)} gradients for {self.param_length} parameters"
            )
        for p, g in zip(self.parameters, found):
            if not isinstance(g, Tensor):
                raise arguments.wrong_type(type(self).__name__, f"the gradient of {p.name!r}", "a Tensor", g)
            if g.shape != p.shape:
                raise ValueError(
                    f"{type(self).__name__}: the gradient of {p.name!r} has shape {g.shape}, the parameter {p.shape}"
                )
        return found

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients with ``weight_decay * parameter`` added where it applies."""
        if not self.exec_weight_decay:
            return tuple(gradients)
        decays = self._decays()
        return tuple(
            g + p * decay if flag else g
            for g, p, decay, flag in zip(gradients, self.parameters, decays, self.decay_flags)
        )

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients, those of convolution weights less their mean over all axes but the
        first, in groups with "grad_centralization" (Yong et al., 2020).
        """
        flags = self.grad_centralization
        if not flags:
            return tuple(gradients)
        return tuple(
            g - ops.mean(g, tuple(range(1, g.ndim)), True) if flag and g.ndim > 3 else g
            for g, flag in zip(gradients, flags)
        )

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients divided by the loss scale."""
        return tuple(g * self.reciprocal_scale for g in gradients) if self.need_scale else tuple(gradients)

    def prepare(self, gradients: Any) -> tuple[Tensor, ...]:
        """Return checked gradients with the loss scale, centralization and weight decay applied."""
        return self.decay_weight(self.gradients_centralization(self.scale_grad(self._check_gradients(gradients))))

    def get_lr(self) -> Any:
        """Return the learning rate of this step as a tensor of no dimensions.

        Where groups have their own rates, it is a tuple of one for each parameter.
        """
        if not self.dynamic_lr:
            return tuple(self.learning_rate) if self.is_group_lr else self.learning_rate
        if self.is_group_lr:
            found: dict[int, Tensor] = {}
            for cell in self.learning_rate:
                if id(cell) not in found:
                    found[id(cell)] = ops.reshape(cell(self.global_step), ())
            return tuple(found[id(cell)] for cell in self.learning_rate)
        return ops.reshape(self.learning_rate(self.global_step), ())

    def _rates(self) -> tuple[Tensor, ...]:
        lr = self.get_lr()
        return lr if isinstance(lr, tuple) else (lr,) * self.param_length

    def get_weight_decay(self) -> Any:
        """Return the weight decay of this step.

        Where there are groups, it is a tuple of one for each parameter.
        """
        return self._decays() if self.is_group else self._decays()[0]

    def _decays(self) -> tuple[Any, ...]:
        if self.is_group:
            return tuple(self._decay_now(decay) for decay in self._own_decay)
        return (self._decay_now(self._own_decay),) * self.param_length

    def _keep_decay(self, decay: Any) -> None:
        # The numbers are constants of compiled steps; `weight_decay` shows them as tensors.
        self.__dict__["_own_decay"] = decay
        each = decay if isinstance(decay, tuple) else (decay,)
        shown = tuple([d if isinstance(d, Cell) else Tensor(float(d), D.float32) for d in each])
        self.weight_decay = shown if isinstance(decay, tuple) else shown[0]

    def _decay_now(self, decay: Any) -> Any:
        return ops.reshape(decay(self.global_step), ()) if isinstance(decay, Cell) else decay

    def get_lr_parameter(self, param: Any) -> Any:
        """Return the Parameter that holds the learning rate of a parameter, or a list of them for a
        list.

        Where the rate is a schedule, it is returned instead.
        """
        if isinstance(param, Parameter):
            for p, holder in zip(self.parameters, self._holders()):
                if p is param:
                    return holder
            raise ValueError(f"{type(self).__name__}: the parameter {param.name!r} is not optimized here")
        return [self.get_lr_parameter(p) for p in param]

    def _holders(self) -> list[Any]:
        rates = list(self.learning_rate) if self.is_group_lr else [self.learning_rate] * self.param_length
        return [r.learning_rate if isinstance(r, (_ListedRate, _ConstantRate)) else r for r in rates]

    def states(self, prefix: str, init: Any = "zeros") -> ParameterTuple:
        """Create one state for each parameter, named ``prefix.name``.

        Raises ValueError for a parameter that is listed twice, whose states would share a name.
        """
        if len({id(p) for p in self.parameters}) != self.param_length:
            raise ValueError(f"{type(self).__name__}: a parameter is listed twice")
        return self.parameters.clone(prefix=prefix, init=init)

    def advance(self) -> None:
        """Count one step."""
        store(self.global_step, self.global_step + 1)

    def update(self, gradients: Any, rule: Callable[..., Sequence[Tensor]], *states: Sequence[Parameter]) -> bool:
        """Count the step, and assign ``rule(rate, parameter, gradient, *states)`` to each parameter
        and its states.
        """
        prepared = self.prepare(gradients)
        rates = self._rates()
        self.advance()
        for rate, gradient, *targets in zip(rates, prepared, self.parameters, *states):
            for target, value in zip(targets, rule(rate, targets[0], gradient, *targets[1:])):
                store(target, value)
        return True

    def construct(self, gradients: Any) -> Any:
        """Take one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define construct(gradients)")

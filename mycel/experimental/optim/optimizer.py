"""The base of optimizers with parameter groups: options, learning rates that schedulers set, and
states.

A group is a dictionary of options of its own: "params", "lr" and the options in the optimizer's
defaults. The rate of a group is a `Parameter`, so a compiled step stays valid when a scheduler, or
an assignment of a number to ``group["lr"]``, changes it; any other option is a constant of the
step, and the next call sees a change of it. States are Parameters named ``<state>.<parameter>``. A
step goes through the groups and gives every parameter and its states new values by operations on
tensors alone: called often, it is one compiled program in every mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import state_epoch
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.optim.compiled_step import Stepping

__all__ = ["Group", "Optimizer"]

_LISTS = (list, tuple)


class Group(dict[str, Any]):
    """The options of one group.

    A number or tensor given to "lr" is written into the Parameter that holds the rate.
    """

    def __setitem__(self, key: str, value: Any) -> None:
        held = self.get("lr")
        if key == "lr" and isinstance(held, Parameter) and not isinstance(value, Parameter):
            store(held, Tensor(np.float32(_rate("lr", value))) if not isinstance(value, Tensor) else value)
            return
        super().__setitem__(key, value)
        state_epoch.value += 1


def _rate(owner: str, value: Any) -> float:
    if isinstance(value, Tensor):
        if value.size != 1:
            raise ValueError(f"{owner}: the learning rate must be one number, not a tensor of shape {value.shape}")
        value = value.asnumpy().item()
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise TypeError(f"{owner}: the learning rate must be a number or a tensor of one, not {type(value).__name__}")
    return arguments.number(owner, "the learning rate", float(value), at_least=0)


class Optimizer(Stepping):
    """Base of optimizers with groups; a subclass defines ``construct(gradients)`` for a tuple of
    one gradient for each of `parameters`.

    `params` is a list of Parameters, or of groups: dictionaries with "params" and any of the
    options in `defaults`, which groups that lack an option take it from. `param_groups` lists the
    groups, and their rates are Parameters ("learning_rate_group_0", ...), which
    `mycel.experimental.optim.lr_scheduler` sets. Raises TypeError or ValueError for other
    arguments, ValueError for a parameter in two groups and for two parameters of one name.

    >>> import mycel as ms
    >>> class Descent(ms.experimental.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def construct(self, gradients):
    ...         for p, g in zip(self.parameters, gradients):
    ...             p.set_data(p - self.param_groups[0]["lr"] * g)
    ...         return True
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = Descent([w], 0.5)((ms.Tensor([1.0]),)); w.asnumpy()
    array([0.5], dtype=float32)
    """

    # The options that must not be 0, unless a group has one of its own.
    _above_zero: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        if params is None or isinstance(params, dict) and not params:
            raise ValueError(f"{name}: there are no parameters to optimize")
        if isinstance(params, (Tensor, dict, str)) or not isinstance(params, Iterable):
            raise TypeError(
                f"{name}: params must be a list of Parameters or of groups, such as net.trainable_params(), not "
                f"{type(params).__name__}"
            )
        members = list(params)
        if not members:
            raise ValueError(f"{name}: there are no parameters to optimize")
        for key in self._above_zero:
            if (_rate(name, defaults[key]) if key == "lr" else arguments.number(name, key, defaults[key])) == 0:
                raise arguments.wrong_value(name, key, "above 0", defaults[key])
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        # The number of each group's first parameter among all of them, and of all.
        self.group_start_id: list[int] = [0]
        self.lrs: Sequence[Parameter] = ParameterTuple(())
        self.parameters: Sequence[Parameter] = ParameterTuple(())
        self._made: dict[str, Any] = {}
        for group in members if isinstance(members[0], dict) else [{"params": members}]:
            self.add_param_group(group)

    # The groups.

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own options."""
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{name}: params must be all Parameters or all groups (dict), but there is a "
                f"{type(param_group).__name__}"
            )
        if "params" not in param_group:
            raise KeyError(f"{name}: a parameter group has no 'params'; it has {', '.join(map(repr, param_group))}")
        given = param_group["params"]
        members = [given] if isinstance(given, Parameter) else list(given)
        number = len(self.param_groups)
        if not members:
            raise ValueError(f"{name}: parameter group {number} has no parameters")
        names = {p.name: p for p in self.parameters}
        for p in members:
            if not isinstance(p, Parameter):
                raise TypeError(f"{name}: can only optimize Parameters, not {type(p).__name__}")
            if any(p is q for q in self.parameters):
                raise ValueError(f"{name}: the parameter {p.name!r} is in two parameter groups")
            if not p.__dict__["has_name"]:
                p.name, p.__dict__["has_name"] = f"Parameter${len(names)}", True
            if p.name in names:
                raise ValueError(f"{name}: two parameters are named {p.name!r}; give each its own name")
            names[p.name] = p
        options: dict[str, Any] = {**self.defaults, **param_group, "params": members}
        if "lr" not in options:
            raise ValueError(f"{name}: parameter group {number} has no 'lr', and there is none in the defaults")
        group = Group({"params": members})
        holder = options.pop("lr")
        if not (isinstance(holder, Parameter) and holder.dtype is D.float32 and holder.ndim == 0):
            rate = Tensor(np.float32(_rate(name, holder)))
            holder = Parameter(rate, name=f"learning_rate_group_{number}", requires_grad=False)
        group.update(lr=holder, **options)
        self._check_group(group)
        self.param_groups = [*self.param_groups, group]
        self.lrs = ParameterTuple([*self.lrs, holder])
        self.parameters = ParameterTuple([*self.parameters, *members])
        self.group_start_id = [*self.group_start_id, len(self.parameters)]
        added = ParameterTuple(members)
        for state, init in self._made.items():
            setattr(self, state, ParameterTuple([*getattr(self, state), *self._new_states(added, state, init, group)]))

    def _check_group(self, group: Group) -> None:
        """Raise an error for invalid options of a group; subclasses define it."""

    def _checked(
        self,
        group: Group,
        nonnegative: Sequence[str] = (),
        pair: str | None = None,
    ) -> None:
        name = type(self).__name__
        for key in nonnegative:
            arguments.number(name, key, group[key], at_least=0)
        if pair is not None:
            betas = group[pair]
            if not isinstance(betas, _LISTS) or len(betas) != 2:
                raise TypeError(f"{name}: {pair} must be two numbers, not {betas!r}")
            for beta in betas:
                arguments.number(name, f"each of {pair}", beta, at_least=0, below=1)

    # States.

    def _states(self, name: str, init: Any = "zeros") -> None:
        """Make a state of every parameter, as the attribute `name`.

        `init` is an initializer, or a function from a group to one.
        """
        self._made[name] = init
        made: list[Parameter] = []
        for group in self.param_groups:
            made += self._new_states(ParameterTuple(group["params"]), name, init, group)
        setattr(self, name, ParameterTuple(made))

    @staticmethod
    def _new_states(members: ParameterTuple, name: str, init: Any, group: Group) -> ParameterTuple:
        return members.clone(prefix=name, init=init(group) if callable(init) else init)

    def _counter(self, name: str) -> None:
        """Make the step counter `name`, an int32 Parameter that is 0 before the first step."""
        setattr(self, name, Parameter(Tensor(np.int32(0)), name=name, requires_grad=False))

    @staticmethod
    def _count(counter: Parameter) -> Tensor:
        """Count one step, and return the number of steps in float64, so that its powers and
        differences are exact enough.
        """
        store(counter, counter + 1)
        return cast(counter, D.float64)

    # Steps.

    def _gradients(self, gradients: Any) -> tuple[Tensor, ...]:
        name = type(self).__name__
        if not isinstance(gradients, (*_LISTS, Tensor)):
            raise arguments.wrong_type(name, "the gradients", "a tuple of tensors", gradients)
        found = tuple(gradients) if isinstance(gradients, _LISTS) else (gradients,)
        if len(found) != len(self.parameters):
            raise ValueError(f"{name}: there are {len(found)} gradients for {len(self.parameters)} parameters")
        for p, g in zip(self.parameters, found):
            if not isinstance(g, Tensor):
                raise arguments.wrong_type(name, f"the gradient of {p.name!r}", "a Tensor", g)
            if g.shape != p.shape:
                raise ValueError(f"{name}: the gradient of {p.name!r} has shape {g.shape}, the parameter {p.shape}")
        return found

    def _each(
        self, gradients: Any, *states: Sequence[Parameter], decay: bool = True
    ) -> Iterator[tuple[Group, list[tuple[Tensor, tuple[Any, ...]]]]]:
        """Yield every group with, for each of its parameters, the prepared gradient and the
        parameter with its states.

        The gradient is negated where the group maximizes. Where the group has a weight decay and
        `decay` is true, ``weight_decay * parameter`` is added to it.
        """
        found, first = self._gradients(gradients), 0
        for group in self.param_groups:
            rows = []
            for i, p in enumerate(group["params"], first):
                g = -found[i] if group.get("maximize") else found[i]
                if decay and group.get("weight_decay"):
                    g = g + group["weight_decay"] * p
                rows.append((g, (p, *(state[i] for state in states))))
            first += len(rows)
            yield group, rows

    def construct(self, gradients: Any) -> Any:
        """Take one step; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define construct(gradients)")

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            for key in sorted(group):
                if key != "params":
                    value = group[key]
                    lines.append(f"    {key}: {str(value.asnumpy()) if isinstance(value, Tensor) else value}")
        return "\n".join([*lines, ")"])


def check_betas(name: str, betas: Any) -> None:
    """Check that each of two weights is a float; how many they are is checked with the group."""
    for beta in betas if isinstance(betas, _LISTS) else ():
        arguments.real(name, "each of betas", beta)


def put(targets: Sequence[Parameter], *values: Tensor) -> None:
    """Assign new values to a parameter and its first states."""
    for target, value in zip(targets, values):
        store(target, value)


def single(value: Tensor) -> Tensor:
    """Convert a number computed in float64 to the float32 that the rules use."""
    return cast(value, D.float32)

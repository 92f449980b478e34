"""Parameter groups for other optimizers of the same network: for gradient centralization, for
parameters that replace others, and for splits of communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel.nn import LARS, Optimizer

__all__ = ["OptimizerProcess", "ParameterProcess"]

_CENTRALIZED = ("Conv2d", "Dense")


class OptimizerProcess:
    """The maker of an optimizer like `opt` that centralizes the gradients of weights of
    convolutions and dense layers (Yong et al., 2020).

    Gradients are centralized only where the parameters of `opt` are in groups. Raises TypeError for
    an `opt` that is no Optimizer.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Conv2d(1, 2, 3), ms.nn.BatchNorm2d(2))
    >>> process = ms.boost.OptimizerProcess(ms.nn.SGD([{"params": net.trainable_params()}], 0.1))
    >>> process.add_grad_centralization(net)
    >>> process.generate_new_optimizer().grad_centralization
    (True, False, False)
    """

    def __init__(self, opt: Optimizer) -> None:
        arguments.instance("OptimizerProcess", "opt", opt, Optimizer)
        self.lars_args = opt.init_args if isinstance(opt, LARS) else None
        self.single_opt: Any = opt.opt if isinstance(opt, LARS) else opt
        if self.lars_args is not None:
            self.lars_args.pop("optimizer", None)
        self.origin_params = _listed(self.single_opt.init_params["params"])

    @staticmethod
    def build_params_dict(network: Cell) -> dict[int, str]:
        """Return a dictionary from each parameter's ``id`` to the name of the class of its
        layer.
        """
        return {
            id(p): type(cell).__name__
            for _, cell in arguments.instance("OptimizerProcess", "network", network, Cell).cells_and_names()
            for p in cell.get_parameters(expand=False)
        }

    @staticmethod
    def build_gc_params_group(
        params_dict: dict[int, str], parameters: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the groups, each divided into the weights whose gradients are centralized and the
        other parameters.
        """
        made: list[dict[str, Any]] = []
        for group in parameters:
            if "order_params" in _group("OptimizerProcess", group):
                made.append(group)
                continue
            flags = [params_dict.get(id(p)) in _CENTRALIZED and "bias" not in p.name for p in group["params"]]
            chosen = [p for p, flag in zip(group["params"], flags) if flag]
            others = [p for p, flag in zip(group["params"], flags) if not flag]
            made += [{**group, "params": chosen, "grad_centralization": True}] if chosen else []
            made += [{**group, "params": others}] if others else []
        return made

    def add_grad_centralization(self, network: Cell) -> None:
        """Make the new optimizer centralize gradients; without groups only log a warning."""
        if isinstance(self.origin_params[0], Parameter):
            logger.warning("OptimizerProcess: gradients are centralized in groups of parameters only")
            return
        self.origin_params = self.build_gc_params_group(self.build_params_dict(network), self.origin_params)

    def generate_new_optimizer(self) -> Optimizer:
        """Return the new optimizer, of the same class and with the same arguments as `opt`."""
        opt = self.single_opt
        made = type(opt)(self.origin_params, learning_rate=opt.init_learning_rate, **opt.init_args)
        return made if self.lars_args is None else LARS(made, **self.lars_args)


class ParameterProcess:
    """Groups for parameters that replace those of a network, and the positions where communication
    between devices is split.

    >>> import mycel as ms
    >>> net = ms.nn.Dense(2, 2)
    >>> process = ms.boost.ParameterProcess()
    >>> [p.comm_fusion for p in process.assign_parameter_group(net.trainable_params())]
    [1, 2]
    """

    def __init__(self) -> None:
        self._parameter_indices = 1

    @staticmethod
    def generate_group_params(parameters: Sequence[Parameter], origin_params: Any) -> list[dict[str, Any]]:
        """Return the groups of `origin_params`, with each parameter replaced by that of the same
        name in `parameters`.

        The remaining `parameters` form one more group, with the options of the group that has the
        most of them. Raises ValueError for an empty list, TypeError for members of another kind.
        """
        origin = _listed(origin_params)
        if not origin:
            raise ValueError("ParameterProcess: the parameter list is empty")
        arguments.instance("ParameterProcess", "members", origin[0], (dict, Parameter), "Parameters or groups")
        if isinstance(origin[0], Parameter):
            return [{"params": parameters}]
        waiting = {p.name: p for p in _parameters("ParameterProcess", parameters)}
        made: list[dict[str, Any]] = []
        for group in origin:
            if "order_params" in _group("ParameterProcess", group):
                made.append({**group, "order_params": parameters})
            else:
                found = [waiting.pop(p.name) for p in group["params"] if p.name in waiting]
                made.append({**group, "params": found})
        if waiting:
            model: dict[str, Any] = max((g for g in origin if "order_params" not in g), key=len, default={})
            made.append({**model, "params": list(waiting.values())})
        return made

    def assign_parameter_group(self, parameters: Any, split_point: Sequence[int] | None = None) -> Any:
        """Number the parameters by the part that they are in, as their `comm_fusion`, and return
        them.

        A new part begins at each position in `split_point`, by default at the middle.
        """
        if not isinstance(parameters, (list, tuple)) or not parameters:
            return parameters
        arguments.optional("ParameterProcess", "split_point", split_point, (list, tuple), "a list of positions")
        points = list(split_point) if split_point else [len(parameters) // 2]
        for position, p in enumerate(_parameters("ParameterProcess", parameters)):
            self._parameter_indices += position in points
            p.comm_fusion = self._parameter_indices
        return parameters


def _parameters(owner: str, members: Any) -> Sequence[Parameter]:
    if not isinstance(members, (list, tuple)) or not all(isinstance(p, Parameter) for p in members):
        raise TypeError(f"{owner}: takes a list of Parameters, not {members!r:.200}")
    return members


def _group(owner: str, group: Any) -> dict[str, Any]:
    if not isinstance(group, dict) or not ("order_params" in group or "params" in group):
        raise TypeError(f"{owner}: a group is a dictionary with 'params' or 'order_params', not {group!r:.200}")
    if "order_params" not in group:
        _parameters(owner, group["params"])
    return group


def _listed(parameters: Any) -> list[Any]:
    if not isinstance(parameters, (type(None), Iterable)):
        raise TypeError(f"ParameterProcess: takes a list of Parameters or groups, not {type(parameters).__name__}")
    return [] if parameters is None else list(parameters)

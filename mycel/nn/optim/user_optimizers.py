"""The methods that MindSpore's base class offers to optimizers written outside of this library,
except those that prepare gradients.

Some of them exist for devices and clusters. Sparse gradients do not occur here, gradients are never
flattened into one tensor, and the only device is the CPU, so those methods leave gradients
unchanged. The arguments of a constructor are kept, so that an optimizer like a given one can be
built for other parameters.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.assignment import store
from mycel.nn.optim.compiled_step import Stepping

__all__ = ["Extensible"]


class Extensible(Stepping):
    """The part of `Optimizer` that subclasses of other packages use."""

    map_ = ops.Map()
    map_reverse = ops.Map(None, True)
    hyper_map: Any = ops.HyperMap()
    hyper_map_reverse = ops.HyperMap(None, True)
    use_parallel = False
    global_step: Parameter
    dynamic_lr: bool
    dynamic_weight_decay: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an optimizer that keeps the arguments that it was built with."""
        made = super().__new__(cls)
        made.__dict__["_given"] = (args, kwargs)
        return made

    def _arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments by name, defaults included."""
        args, kwargs = self.__dict__["_given"]
        signature = inspect.signature(type(self).__init__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        further = [n for n, p in signature.parameters.items() if p.kind is inspect.Parameter.VAR_KEYWORD]
        found = {n: v for n, v in list(bound.arguments.items())[1:] if n not in further}
        for name in further:
            found.update(bound.arguments[name])
        return found

    @property
    def init_params(self) -> dict[str, Any]:  # type: ignore[override]
        """The parameters or groups that the constructor was given, under "params"."""
        return {"params": self._arguments().get("params")}

    @property
    def init_learning_rate(self) -> Any:
        """The learning rate that the constructor was given."""
        return self._arguments().get("learning_rate")

    @property
    def init_args(self) -> dict[str, Any]:
        """The other arguments that the constructor was given, by name.

        >>> import mycel as ms
        >>> optimizer = ms.nn.LARS(ms.nn.SGD(ms.nn.Dense(2, 1).trainable_params()), use_clip=True)
        >>> optimizer.opt.init_args["momentum"]
        0.0
        """
        return {name: value for name, value in self._arguments().items() if name not in ("params", "learning_rate")}

    @property
    def global_step_increase_tensor(self) -> Tensor:
        """The number that each step adds to `global_step`: one."""
        return Tensor(np.ones(1, np.int32))

    @property
    def target(self) -> str:
        """The device on which parameters are updated: "CPU"; setting another value raises
        ValueError.
        """
        return "CPU"

    @target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)

    def _set_base_target(self, value: str) -> None:
        arguments.text(type(self).__name__, "target", value)
        if value != "CPU":
            raise ValueError(f"{type(self).__name__}: target must be 'CPU', the only device, not {value!r}")

    @property
    def unique(self) -> bool:
        """Whether indices of sparse gradients are made unique; it has no effect, since gradients
        are dense here.
        """
        return bool(self.__dict__.get("_unique", True))

    @unique.setter
    def unique(self, value: bool) -> None:
        self.__dict__["_unique"] = arguments.flag(type(self).__name__, "unique", value)

    def assignadd(self, parameter: Parameter, value: Any) -> Parameter:
        """Add a value to a parameter in place."""
        store(parameter, parameter + value)
        return parameter

    def flatten_gradients(self, gradients: Any) -> Any:
        """Return the gradients unchanged, each of the shape of its parameter."""
        return gradients

    def _grad_sparse_indices_deduplicate(self, gradients: Any) -> Any:
        return gradients

    def _is_dynamic_lr_or_weight_decay(self) -> bool:
        return self.dynamic_lr or self.dynamic_weight_decay

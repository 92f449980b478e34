"""Migration hints: names of other frameworks that raise an error saying what to write instead.

Each is an attribute of a class that is not there: `hasattr` is False, and using it raises an
AttributeError that says what to write. Objects and subclasses may have attributes of these names.
Such attributes cost nothing, while a ``__getattr__`` would slow down every attribute.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["Elsewhere", "attach", "missing"]

_GRADIENT = "gradients are functions here: value, grads = mycel.value_and_grad(forward, None, weights)(inputs)"
_DEVICE = "tensors lie on the device of mycel.set_device; leave the call out"
_TYPE = "write to(mycel.{0}) instead"
_STEP = "optimizers are called with the gradients: optimizer(grads)"
OF_TENSORS = {
    "backward": _GRADIENT,
    "grad": _GRADIENT,
    "grad_fn": _GRADIENT,
    "retain_grad": _GRADIENT,
    "requires_grad": "mycel.Parameter has it; gradients by inputs are chosen by grad_position of mycel.value_and_grad",
    "detach": "write mycel.ops.stop_gradient(x)",
    "detach_": "write mycel.ops.stop_gradient(x)",
    "cuda": _DEVICE,
    "cpu": _DEVICE,
    "is_cuda": _DEVICE,
}
OF_CELLS = {
    "parameters": "write trainable_params() or get_parameters()",
    "named_parameters": "write parameters_and_names()",
    "modules": "write cells_and_names()",
    "named_modules": "write cells_and_names()",
    "children": "write cells()",
    "named_children": "write name_cells()",
    "eval": "write set_train(False)",
    "train": "write set_train(), or train with mycel.Model",
    "zero_grad": "nothing accumulates: gradients are what mycel.value_and_grad returns; leave the call out",
    "requires_grad_": "set requires_grad of the parameters, or call freeze()",
    "register_parameter": "assign a Parameter to an attribute, or call insert_param_to_cell()",
    "add_module": "assign a Cell to an attribute, or call insert_child_to_cell()",
    "cuda": _DEVICE,
    "cpu": _DEVICE,
    "half": _TYPE.format("float16"),
    "double": _TYPE.format("float64"),
}
OF_OPTIMIZERS = {
    "step": _STEP,
    "zero_grad": OF_CELLS["zero_grad"],
    "minimize": _STEP,
    "apply_gradients": _STEP,
}
_NO_GRADIENT = "only what mycel.grad and mycel.value_and_grad run is differentiated; leave it out"
_OPS = "it is in mycel.ops: mycel.ops.{0}"
OF_PACKAGE = {
    "no_grad": _NO_GRADIENT,
    "enable_grad": _NO_GRADIENT,
    "set_grad_enabled": _NO_GRADIENT,
    "inference_mode": _NO_GRADIENT,
    "autograd": "gradients come from mycel.grad, mycel.value_and_grad, mycel.jvp and mycel.vjp",
    "device": "write mycel.set_device",
    "cuda": "write mycel.set_device and mycel.runtime",
    "optim": "optimizers are in mycel.nn, and those of groups in mycel.experimental.optim",
    "utils": "datasets are in mycel.dataset, checkpoints in mycel.train",
    "save": "write mycel.save_checkpoint",
    "compile": "write mycel.jit",
    "Module": "write mycel.nn.Cell",
    **{
        name: _OPS.format(name)
        for name in "abs arange cat concat einsum exp eye full linspace matmul mean ones ones_like rand randint "
        "randn relu sigmoid softmax sqrt stack sum tanh where zeros zeros_like".split()
    },
}
OF_NN = {
    "Module": "write nn.Cell, with construct in place of forward",
    "ModuleList": "write nn.CellList",
    "ModuleDict": "write nn.CellDict",
    "Parameter": "write mycel.Parameter",
    "ParameterList": "write mycel.ParameterTuple",
    "functional": "functions are in mycel.ops",
    "init": "initializers are in mycel.common.initializer",
    "DataParallel": "write mycel.set_auto_parallel_context, or run ranks by mycel launch",
    "utils": "gradients are clipped by mycel.ops.clip_by_global_norm",
}


class Elsewhere:
    """An attribute that is not there, whose error says what to write."""

    __slots__ = ("hint", "name")

    def __init__(self, name: str, hint: str) -> None:
        self.name, self.hint = name, hint

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        kind = owner.__name__
        what = f"type object {kind!r}" if instance is None else f"{kind!r} object"
        raise AttributeError(f"{what} has no attribute {self.name!r}; {self.hint}")


def attach(kind: type, hints: dict[str, str]) -> None:
    """Give a class the names that it has not."""
    for name, hint in hints.items():
        if not hasattr(kind, name):
            setattr(kind, name, Elsewhere(name, hint))


def missing(module: str, name: str, hints: dict[str, str]) -> AttributeError:
    """Return the error for a name that a module has not."""
    hint = f"; {hints[name]}" if name in hints else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def present(names: list[str], kind: type) -> list[str]:
    """Return the names of an object of a class without those that are not there."""
    absent = {n for base in kind.__mro__ for n, value in vars(base).items() if isinstance(value, Elsewhere)}
    return [n for n in names if n not in absent]

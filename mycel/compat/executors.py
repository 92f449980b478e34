"""MindSpore's executors under their own methods: one runs operations at once, the other compiles
Cells.
"""

from __future__ import annotations

import threading
import time
from typing import Any, NoReturn

from mycel._src.devices.runtime import synchronize
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import plan
from mycel._src.staging.derivatives.custom_functions import no_gradients, refused
from mycel._src.staging.derivatives.gradient import grad
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel.formats.exporting import model_of
from mycel.formats.mindir.export_rules import mindir_parts
from mycel.formats.onnx.export.node_rules import onnx_bytes
from mycel.parallel.regions import chosen_strategy, is_compiled, parallel_info
from mycel.train.callback.flops import step_flops

__all__ = ["CellExecutor", "EagerExecutor"]


class _Stretches(threading.local):
    """The open stretch without derivatives of each thread, if there is one."""

    def __init__(self) -> None:
        self.open: list[no_gradients] = []


_stretches = _Stretches()


class EagerExecutor:
    """The executor of operations that run at once.

    MindSpore records a network's call between `new_graph` and `end_graph`, and `grad` goes back
    through the record. Here `grad` takes the derivative of the network itself at the arguments; the
    two calls only say which one it may be asked for.
    """

    def __init__(self) -> None:
        self._grad_flag = False
        self._ended: set[int] = set()

    def sync(self) -> None:
        """Wait for what runs in the background."""
        synchronize()

    def set_grad_flag(self, flag: bool) -> None:
        """Set what `grad_flag` returns."""
        self._grad_flag = bool(flag)

    def grad_flag(self) -> bool:
        """Return whether derivatives are asked for: here by a transformation, or set."""
        return self._grad_flag or self.requires_grad()

    def requires_grad(self) -> bool:
        """Return whether operations are recorded for a derivative now."""
        context = eager.current_context()
        return context is not None and bool(context.differentiating)

    def high_order(self) -> bool:
        """Return whether a derivative of a derivative is taken now."""
        context = eager.current_context()
        return context is not None and context.differentiating.context.depth > 1

    def enable_grad(self) -> bool:
        """Return whether derivatives pass through what is computed now, in this thread."""
        return not refused()

    def set_enable_grad(self, flag: bool) -> None:
        """Begin or end a stretch of the program, in this thread, through which no derivative
        passes.
        """
        stretches = _stretches.open
        if not flag and not stretches:
            stretches.append(no_gradients())
            stretches[0].__enter__()
        elif flag and stretches:
            stretches.pop().__exit__(None, None, None)

    def set_async_for_graph(self, flag: bool) -> None:
        """Set whether compiled functions run beside Python, which has no effect."""
        without_effect(f"_pynative_executor.set_async_for_graph({flag!r})", "a call returns when its work is done")

    def new_graph(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        """Announce a call of a network or function, for `grad`."""
        self._ended.discard(id(obj))

    def end_graph(self, obj: Any, output: Any, *args: Any, **kwargs: Any) -> None:
        """Note that the call announced by `new_graph` has ended."""
        self._ended.add(id(obj))

    def check_run(self, grad: Any, obj: Any, weights: Any, grad_hash_id: Any, *args: Any, **kwargs: Any) -> bool:
        """Return whether the call of `obj` was announced and has ended, so that `grad` can follow.

        `grad`, `weights`, `grad_hash_id` and the arguments are those of the derivative.
        """
        return id(obj) in self._ended

    def grad(self, obj: Any, grad: Any, weights: Any, grad_position: Any, has_aux: bool, *args: Any) -> Any:
        """Return the derivative of a network or function `obj` at its arguments.

        `grad` is a `GradOperation`, whose options say by what to differentiate: by the first
        argument, by all (`get_all`), by those at `grad_position` (`get_by_position`), by `weights`
        (`get_by_list`); with `sens_param` the last of `args` is the cotangent of the output. With
        `has_aux` only the first output is differentiated. Raises RuntimeError unless the call was
        announced by `new_graph` and `end_graph`.
        """
        if id(obj) not in self._ended:
            raise RuntimeError("grad: call new_graph and end_graph around a call of the network first")
        self._ended.discard(id(obj))
        return _derivative(obj, grad, weights, grad_position, has_aux, args)

    def call_custom_bprop(self, obj: Cell, output: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the output of a Cell that has a method bprop.

        Raises Unsupported while a derivative is taken: there a call of the Cell itself uses its
        bprop.
        """
        if self.requires_grad():
            raise Unsupported(
                "call_custom_bprop: the bprop of a Cell is used where the Cell is called; call it in place of its "
                "construct"
            )
        return output

    def real_run_op(self, *args: Any) -> Any:
        """Return an operation's result; the arguments are the operation, its name, its inputs."""
        operation, _, inputs = args
        return operation(*inputs)

    run_op_async = real_run_op

    def clear_res(self) -> None:
        """Forget the calls that were announced."""
        self._ended.clear()

    def set_dynamic_input(self, obj: Any) -> None:
        """Do nothing: a Cell keeps the inputs that `set_inputs` was given."""


def _derivative(obj: Any, options: Any, weights: Any, positions: Any, has_aux: bool, args: tuple[Any, ...]) -> Any:
    chosen: Any = 0
    count = len(args) - bool(options.sens_param)
    if options.get_all:
        chosen = tuple(range(count))
    elif getattr(options, "get_by_position", False):
        chosen = positions if positions is not None else 0
        chosen = chosen[0] if isinstance(chosen, tuple) and len(chosen) == 1 else chosen
    elif options.get_by_list:
        chosen = None
    asked = weights if options.get_by_list else None
    found = grad(obj, chosen, asked, has_aux=has_aux, sens_param=options.sens_param)(*args)
    if options.get_all and count == 1:
        # The derivative by one argument comes without a tuple.
        return ((found[0],), found[1]) if options.get_by_list else (found,)
    return found


class GraphExecutor:
    """What the executor of compiled Cells tells of them by the names of their phases, as
    MindSpore's inner executor does.
    """

    def __init__(self, executor: CellExecutor) -> None:
        self._executor = executor

    def _cell(self, phase: str) -> Any:
        return self._executor._compiled(None, phase)[0]

    def has_compiled(self, phase: str) -> bool:
        """Return whether a phase of this whole name was compiled."""
        return self._executor.has_compiled(phase)

    def get_strategy(self, phase: str) -> dict[str, list[list[int]]]:
        """Return how the operators of a phase are divided; KeyError for a phase that there is
        not.
        """
        return chosen_strategy(self._cell(phase))

    def get_parameter_layout(self, phase: str) -> dict[str, Any]:
        """Return how the parameters of a phase are divided (`Cell.parameter_layout_dict`); KeyError
        for a phase that there is not.
        """
        found: dict[str, Any] = self._cell(phase).parameter_layout_dict
        return found

    def get_parallel_parameter_name_list(self, phase: str) -> list[str]:
        """Return the names of the parameters of a phase; KeyError for a phase that there is not."""
        return list(self._cell(phase).parallel_parameter_name_list)

    def get_num_parallel_ops(self, phase: str) -> int:
        """Return how many operators of a phase are divided; KeyError for a phase that there is
        not.
        """
        return len(parallel_info(self._cell(phase)))

    def get_allreduce_fusion(self, phase: str) -> dict[str, Any]:
        """Return which reductions are joined, by parameters: joined are those that can be, so there
        is no such table.
        """
        return {}

    def get_parallel_graph_info(self, phase: str) -> NoReturn:
        """Raise Unsupported: the graph of a rank has primitives in place of MindSpore's operators.

        `phase` is the name of one.
        """
        raise Unsupported(
            "get_parallel_graph_info: the graph of a rank has primitives of its own; "
            "print(mycel.explain(net, *inputs, parallel=True)) shows what is sent where, and "
            "mycel.parallel.regions.parallel_info(net) the operators"
        )


class CellExecutor:
    """The executor of compiled Cells.

    `compile` compiles a Cell and gives the name of what it compiled, a *phase*; the other methods
    take that name.
    """

    enable_tuple_broaden = False

    def __init__(self, phases: dict[int, set[str]]) -> None:
        self._phases = phases
        self._arguments: dict[str, tuple[Any, tuple[Any, ...]]] = {}
        self._graph_executor = GraphExecutor(self)

    @property
    def is_init(self) -> bool:
        """Whether something was compiled."""
        return bool(self._arguments)

    def compile(
        self,
        obj: Any,
        *args: Any,
        phase: str = "predict",
        do_convert: bool = True,
        jit_config_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[str, bool]:
        """Compile a Cell for arguments, and return the name of the phase and whether it is new.

        `phase` is the beginning of the name, and `kwargs` are further arguments of the Cell.
        `do_convert` has no effect; `jit_config_dict` has options as `JitConfig` has them. Raises
        AttributeError unless `obj` is a Cell.
        """
        if not hasattr(obj, "construct"):
            raise AttributeError(f"compile: {type(obj).__name__} has no method construct; give a Cell")
        if jit_config_dict:
            obj.jit_config_dict = dict(jit_config_dict)
        obj.compile(*args, **kwargs)
        if plan() is not None:
            # What does not fit the devices is an error here.
            obj.parameter_layout_dict  # noqa: B018
        name = self._name(obj, phase)
        new = name not in self._arguments
        self._arguments[name] = (obj, args)
        self._phases.setdefault(id(obj), set()).add(name)
        return name, new

    def _name(self, obj: Any, phase: str) -> str:
        made = obj.__dict__.setdefault("_compiled_at", time.time_ns())
        return f"{phase}.{made}.{id(obj)}.0"

    def has_compiled(self, phase: str = "predict") -> bool:
        """Return whether a phase of this whole name was compiled."""
        return phase in self._arguments

    def run(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Return the result of a Cell that was compiled; KeyError for another phase."""
        name = self._name(obj, phase)
        if name not in self._arguments:
            raise KeyError(f"{name}: nothing of this name was compiled")
        return obj.compile_and_run(*args)

    def __call__(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        return self.run(obj, *args, phase=phase)

    def del_net_res(self, obj: Any, net_id: Any) -> None:
        """Forget the phases of these names."""
        for name in net_id:
            self._arguments.pop(name, None)
            self._phases.get(id(obj), set()).discard(name)

    def _get_func_graph_proto(
        self, obj: Any, exec_id: str, ir_type: str = "onnx_ir", use_prefix: bool = False, incremental: bool = False
    ) -> bytes:
        """Return what was compiled as the bytes of a file.

        `exec_id` is the name of the phase, or its beginning with `use_prefix`; `ir_type` is
        "onnx_ir" or "mind_ir". `incremental` has no effect. Raises KeyError for a phase that there
        is not, Unsupported for another type.
        """
        if ir_type not in ("onnx_ir", "mind_ir"):
            raise Unsupported(f"_get_func_graph_proto: graphs are given as onnx_ir or mind_ir, not {ir_type!r}")
        model = model_of(*self._compiled(obj, exec_id, use_prefix))
        return onnx_bytes(model) if ir_type == "onnx_ir" else b"".join(mindir_parts(model))

    def _compiled(self, obj: Any, exec_id: str, use_prefix: bool = False) -> tuple[Any, tuple[Any, ...]]:
        name = self._name(obj, exec_id) if use_prefix else exec_id
        if name not in self._arguments:
            raise KeyError(f"{name}: nothing of this name was compiled")
        return self._arguments[name]

    def flops_collection(self, phase: str = "train") -> tuple[float, float, float, float, bool]:
        """Return the flops of what was compiled: of the model and of the hardware, in all processes
        and in this one, and False, as sizes are known.

        Raises RuntimeError for a phase that there is not.
        """
        if phase not in self._arguments:
            raise RuntimeError(f"flops_collection: nothing was compiled under {phase!r}")
        network, args = self._arguments[phase]
        model, hardware = map(float, step_flops(network, *args))
        return model, hardware, model, hardware, False

    def init_dataset(
        self,
        queue_name: str,
        dataset_size: int,
        batch_size: int,
        dataset_types: Any,
        dataset_shapes: Any,
        input_indexs: Any,
        phase: str = "dataset",
        need_run: bool = True,
    ) -> None:
        """Raise RuntimeError: there is no queue of batches on a device.

        `queue_name`, `dataset_size`, `batch_size`, `dataset_types`, `dataset_shapes`,
        `input_indexs`, `phase` and `need_run` describe one.
        """
        raise RuntimeError("init_dataset: batches are arguments here, not taken from a device's queue")

    def _get_shard_strategy(self, obj: Any) -> dict[str, Any]:
        """Return how a network's operators are divided (`mycel.parallel.regions`); none before it
        was compiled.
        """
        return chosen_strategy(obj) if is_compiled(obj) else {}

    def _get_num_parallel_ops(self, obj: Any) -> int:
        """Return the number of operators that are divided; 0 before the network was compiled."""
        return len(parallel_info(obj)) if is_compiled(obj) else 0

    def _get_allreduce_fusion(self, obj: Any) -> dict[str, Any]:
        """Return which reductions between processes are fused: none."""
        return {}

    def set_queue_name(self, queue_name: str) -> None:
        """Raise RuntimeError: there is no queue of batches on a device."""
        raise RuntimeError("set_queue_name: batches are arguments here, not taken from a device's queue")

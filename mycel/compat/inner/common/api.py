"""`mindspore.common.api`: executors, and what compiled Cells are kept by."""

from __future__ import annotations

import inspect
from typing import Any

from mycel._src.devices.machine import ms_memory_recycle as _ms_memory_recycle
from mycel._src.foundation.settings.jit_config import JitConfig
from mycel._src.staging.derivatives.custom_functions import no_gradients
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.executors import CellExecutor, EagerExecutor

__all__: list[str] = []

BROADCAST_PHASE = "_broadcast_"
ARG_SPECIFIED = "arg_specified_infos"
TOTAL_ARG_LEN = "total_arg_length"
ENABLE_DYNAMIC = "__enable_dynamic__"
_PYNATIVE_PARALLEL_FUNC_NAME = "after_shard"
_DEFAULT_JIT_CONFIG = JitConfig()

_PyNativeExecutor = EagerExecutor
_CellGraphExecutor = CellExecutor
# The names of what was compiled, by the Cells' identities.
cells_compile_cache: dict[int, set[str]] = {}
ms_compile_cache: set[str] = set()
function_phases: dict[str, set[int]] = {}
_pynative_executor = EagerExecutor()
_no_grad = no_gradients
_cell_graph_executor = CellExecutor(cells_compile_cache)


def flops_collection(phase: str = "train") -> tuple[float, float, float, float, bool]:
    """Return the flops of a Cell that `_cell_graph_executor.compile` compiled, by its phase.

    They are those of the model and of the hardware, in all processes and in this one, and whether
    sizes were unknown. Raises RuntimeError for a phase that there is not.
    """
    return _cell_graph_executor.flops_collection(phase)


def is_stub_tensor(tensor: Any) -> bool:
    """Return False: tensors are never placeholders of results to come."""
    return False


def _get_obj_id(input_obj: Any) -> str:
    """Return the name and the identity of an object as text."""
    return f"{type(input_obj).__module__}.{type(input_obj).__name__}.{id(input_obj)}"


def _convert_python_data(data: Any) -> Any:
    """Return data that an executor gave, which are Python's and tensors already."""
    return data


def _is_args_fullmode(args: Any, is_init: bool = True) -> bool:
    """Return whether arguments are all tensors, without sequences or dicts of them.

    `is_init` has no effect.
    """
    return all(isinstance(value, Tensor) for value in args)


def _no_recursive(callable_obj: Any) -> Any:
    """Return a function unchanged: compiled functions may call themselves."""
    return callable_obj


def _function_forbid_reuse(func: Any) -> Any:
    """Return a function unchanged: each call of it is compiled as it stands there.

    Raises TypeError for what is not a function.
    """
    if not inspect.isfunction(func):
        raise TypeError(f"_function_forbid_reuse decorates functions, not {func!r}")
    return func


def _is_inner_func(func: Any) -> bool:
    """Return whether a function is a Cell's construct of this package."""
    owner = getattr(func, "__self__", None)
    return isinstance(owner, Cell) and type(owner).__module__.startswith("mycel.")

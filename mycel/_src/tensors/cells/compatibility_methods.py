"""MindSpore's other methods of Cells: conversion of parameters, names, and settings for clusters.

Settings for other devices are accepted, so that a program written for them runs here, and have no
effect, as their docstrings say. How Cells are divided among devices is noted for those who divide
graphs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

from mycel._src.compiler.ir.sharding.strategies import Strategy, divisions, note_unused, plan_of
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.settings.ignored_settings import asked_for_host
from mycel._src.tensors.core.precision import Precision
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["CellExtras", "MixedPrecisionType"]


class MixedPrecisionType(Enum):
    """The element type in which a Cell computes."""

    NOTSET = 0
    FP16 = 1
    FP32 = 2
    BF16 = 3


_TYPES = {MixedPrecisionType.FP16: D.float16, MixedPrecisionType.FP32: D.float32, MixedPrecisionType.BF16: D.bfloat16}


class _Division:
    """A hook, set by `staging.distributed`, that tells how a compiled Cell is divided: the layouts
    of its parameters and the names of all that its program has.
    """

    layouts: Callable[[Any], tuple[dict[str, Any], tuple[str, ...]]] | None = None


division = _Division()


class CellExtras:
    """The part of `Cell` that converts, checks and marks."""

    cls_name = "Cell"
    bprop_debug = False
    cell_type = ""

    @property
    def phase(self) -> str:
        """The phase: the value that was assigned, else "train" or "predict" as `set_train` says."""
        return str(self.__dict__.get("_phase") or ("train" if getattr(self, "training", False) else "predict"))

    @phase.setter
    def phase(self, value: str) -> None:
        arguments.text("Cell.phase", "value", value)
        self.__dict__["_phase"] = value

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert all floating parameters and buffers to another floating type in place, and return
        this cell.

        Call it as ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` or ``to(tensor)``, which
        stands for the tensor's type; the device must be "CPU". Raises TypeError for types that are
        not floating or complex, ValueError for other devices.

        >>> import mycel as ms
        >>> ms.nn.Dense(2, 3).to(ms.float16).weight.dtype
        mindspore.float16
        """
        wanted = kwargs.pop("dtype", None)
        device = kwargs.pop("device", None)
        kwargs.pop("non_blocking", None)
        if kwargs:
            raise TypeError(f"to: there is no option {sorted(kwargs)[0]!r}")
        for given in args:
            if isinstance(given, Tensor):
                wanted = given.dtype
            elif isinstance(given, str) and given.lower().split(":")[0] in ("cpu", "gpu", "cuda", "ascend", "npu"):
                device = given
            elif not isinstance(given, bool):
                wanted = given
        _check_device("to", device)
        if wanted is None:
            return self
        kind = D.from_any(wanted)
        if not (kind.is_floating or kind.is_complex):
            raise TypeError(f"to: parameters are converted to floating types only, not to {kind.name}")
        cells: Any = self
        for parameter in cells.get_parameters():
            if (parameter.dtype.is_floating or parameter.dtype.is_complex) and parameter.dtype is not kind:
                parameter.set_dtype(kind)
        for _, cell in cells.cells_and_names():
            for name, buffer in list(cell.__dict__["_buffers"].items()):
                if buffer is not None and (buffer.dtype.is_floating or buffer.dtype.is_complex):
                    setattr(cell, name, buffer.astype(kind))
        return self

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Any:
        """Set all parameters to values of no meaning, which are zeros here, and return this cell.

        `device` must be "CPU"; with `recurse` inner cells are included.
        """
        _check_device("to_empty", device)
        cells: Any = self
        for parameter in cells.get_parameters(expand=recurse):
            parameter.set_data(Tensor(shape=parameter.shape, dtype=parameter.dtype))
        return self

    def cast_inputs(self, inputs: Any, dst_type: Any) -> tuple[Any, ...]:
        """Return `inputs` as a tuple, with tensors, also those in nested tuples, converted to an
        element type.

        >>> import mycel as ms
        >>> ms.nn.Cell().cast_inputs((ms.Tensor(1.0),), ms.float16)[0].dtype
        mindspore.float16
        """
        kind = D.from_any(dst_type)
        return tuple(
            [
                self.cast_inputs(x, kind) if isinstance(x, tuple) else x.astype(kind) if isinstance(x, Tensor) else x
                for x in inputs
            ]
        )

    def update_cell_type(self, cell_type: str) -> None:
        """Set `cell_type`, which has no effect here."""
        self.cell_type = cell_type

    def check_names(self) -> None:
        """Raise ValueError if two parameters have the same name."""
        cells: Any = self
        seen: set[str] = set()
        for parameter in cells.get_parameters():
            if parameter.name in seen:
                raise ValueError(f"check_names: two parameters are named {parameter.name!r}; give each its own name")
            seen.add(parameter.name)

    def check_names_and_refresh_name(self) -> None:
        """Name parameters without a name by their paths; all of them if two have the same name.

        A cell does so when it is called for the first time.

        >>> from mycel import nn
        >>> class Pair(nn.Cell):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.left, self.right = nn.CellList(), nn.CellList()
        ...         self.left.append(nn.PReLU())
        ...         self.right.append(nn.PReLU())
        >>> pair = Pair()
        >>> [parameter.name for parameter in pair.get_parameters()]
        ['0.w', '0.w']
        >>> pair.check_names_and_refresh_name()
        >>> [parameter.name for parameter in pair.get_parameters()]
        ['left.0.w', 'right.0.w']
        """
        cells: Any = self
        names: set[str] = set()
        found = list(cells.parameters_and_names())
        for path, parameter in found:
            if not parameter.__dict__["has_name"]:
                parameter.name = path
                parameter.__dict__["has_name"] = True
            names.add(parameter.name)
        if len(names) < len(found):
            cells.update_parameters_name()

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict[str, Any]:
        """Return the parameters by name; all of them are the same on the one device."""
        cells: Any = self
        return OrderedDict((p.name, p) for p in cells.get_parameters(expand=recurse) if not p.layerwise_parallel)

    # Names and scopes.

    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    @property
    def create_time(self) -> int:
        """The time at which the Cell was made, in nanoseconds since 1970."""
        return int(self.__dict__["_created"])

    @property
    def compiled(self) -> bool:
        """Whether something was compiled for calls of this Cell."""
        call = self.__dict__.get("_compiled_call")
        return call is not None and bool(call.versions or call.lives)

    @property
    def exist_names(self) -> set[str]:
        """The names of the parameters that are attributes as members of a `ParameterTuple`."""
        return {name for names in self.__dict__["_tuples"].values() for name in names}

    def generate_scope(self) -> None:
        """Give every inner Cell its path of names and classes, such as
        "Default/block-Block/0-Dense", for `get_scope`.

        >>> import mycel as ms
        >>> net = ms.nn.SequentialCell(ms.nn.ReLU())
        >>> net.generate_scope()
        >>> net[0].get_scope()
        'Default/0-ReLU'
        """
        cells: Any = self
        scopes = {"": "Default"}
        for path, cell in cells.cells_and_names():
            if path:
                outer, _, name = path.rpartition(".")
                scopes[path] = f"{scopes[outer]}/{name}-{type(cell).__name__}"
                cell.__dict__["_scope"] = scopes[path]

    def get_scope(self) -> str | None:
        """Return the path that `generate_scope` of an outer Cell set, or None."""
        return self.__dict__.get("_scope")

    def get_mixed_precision_type(self) -> MixedPrecisionType:
        """Return the element type that `to_float` or `set_mixed_precision_type` set.

        >>> import mycel as ms
        >>> ms.nn.ReLU().to_float(ms.float16).get_mixed_precision_type().name
        'FP16'
        """
        kept = self.__dict__.get("_cast_to")
        return next((k for k, d in _TYPES.items() if kept is not None and d is kept.dtype), MixedPrecisionType.NOTSET)

    def set_mixed_precision_type(self, type: MixedPrecisionType) -> None:
        """Compute in an element type as `to_float` says, but here only and not in inner Cells.

        Raises TypeError for what is no `MixedPrecisionType`.
        """
        arguments.instance("set_mixed_precision_type", "type", type, MixedPrecisionType)
        kind = _TYPES.get(type)
        self._cast_to = None if kind is None else Precision(kind)

    def offload(self, backward_prefetch: str | int = "Auto") -> None:
        """Do nothing: values kept for the backward pass are in the memory of the engine, which says
        so once; mostly that is the host's.

        `register_saved_tensors_hooks` can put them elsewhere. Raises ValueError for a
        `backward_prefetch` that is neither "Auto" nor an integer of at least 0.
        """
        if isinstance(backward_prefetch, bool) or not isinstance(backward_prefetch, (str, int)):
            raise TypeError(f'offload: backward_prefetch must be "Auto" or an integer, not {backward_prefetch!r}')
        if backward_prefetch != "Auto" and (isinstance(backward_prefetch, str) or backward_prefetch < 0):
            raise ValueError(
                f'offload: backward_prefetch must be "Auto" or an integer from 0 on, not {backward_prefetch!r}'
            )
        asked_for_host("Cell.offload")

    # Marks for clusters.

    @property
    def pipeline_stage(self) -> int:
        """The stage of a pipeline that computes this cell, as it was set.

        Regions of operators have it in graphs that are divided among devices; it has no effect on
        one. Raises AttributeError where none was set.
        """
        return self._mark("pipeline_stage")

    @pipeline_stage.setter
    def pipeline_stage(self, value: int) -> None:
        self._set_mark("pipeline_stage", value)

    @property
    def pipeline_segment(self) -> int:
        """The segment of a pipeline's stages that was set, as stages may be in turn on the same
        devices; it has no effect on one device.

        Raises AttributeError where none was set.
        """
        return self._mark("pipeline_segment")

    @pipeline_segment.setter
    def pipeline_segment(self, value: int) -> None:
        self._set_mark("pipeline_segment", value)

    def _mark(self, name: str) -> int:
        if f"_{name}" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; it was not set")
        return int(self.__dict__[f"_{name}"])

    def _set_mark(self, name: str, value: Any) -> None:
        self.__dict__[f"_{name}"] = arguments.integer("Cell", name, value, 0, numpy=False)

    @property
    def parameter_layout_dict(self) -> dict[str, Any]:
        """How the parameters of this cell are divided among devices, by name, after it was compiled
        or run in a parallel mode; empty otherwise, or what was set.

        An entry is a tuple of the shape of the grid of devices, for each axis of the parameter the
        axis of that grid that cuts it, counted from the last, or -1 (a list of several), the shape
        of a part, 0, whether all parts have that shape, "", and the shape of the parameter. Raises
        TypeError where it is set to what is no dict.
        """
        found: dict[str, Any] = self._noted("parameter_layout_dict", lambda: self._layouts()[0])
        return found

    @parameter_layout_dict.setter
    def parameter_layout_dict(self, value: dict[str, Any]) -> None:
        self._note("parameter_layout_dict", value, dict)

    @property
    def parallel_parameter_name_list(self) -> Sequence[str]:
        """The names of the parameters that a compiled program in a parallel mode has; empty
        otherwise, or what was set.

        Raises TypeError where it is set to what is no list.
        """
        found: Sequence[str] = self._noted("parallel_parameter_name_list", lambda: self._layouts()[1])
        return found

    @parallel_parameter_name_list.setter
    def parallel_parameter_name_list(self, value: list[str]) -> None:
        self._note("parallel_parameter_name_list", value, list)

    @property
    def parallel_parameter_merge_net_dict(self) -> dict[str, Any]:
        """What was set, a dict; empty at first.

        Raises TypeError where it is set to anything else.
        """
        found: dict[str, Any] = self._noted("parallel_parameter_merge_net_dict", dict)
        return found

    @parallel_parameter_merge_net_dict.setter
    def parallel_parameter_merge_net_dict(self, value: dict[str, Any]) -> None:
        self._note("parallel_parameter_merge_net_dict", value, dict)

    def _noted(self, name: str, default: Callable[[], Any]) -> Any:
        noted = self.__dict__.get("_notes")
        return noted[name] if noted and name in noted else default()

    def _note(self, name: str, value: Any, kind: type) -> None:
        arguments.instance(type(self).__name__, name, value, kind)
        self.__dict__.setdefault("_notes", {})[name] = value

    def _layouts(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        return ({}, ()) if division.layouts is None else division.layouts(self)

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Any:
        """Set `comm_fusion` of every trainable parameter, which has no effect in one process, and
        return this cell. Raises TypeError for what is no int, ValueError for negative numbers.
        """
        cells: Any = self
        for parameter in cells.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def set_broadcast_flag(self, mode: bool = True) -> Any:
        """Note whether parameters are sent to other processes, as the flag "broadcast_flag" of this
        cell, and return it; `parameter_broadcast` of the settings decides.
        """
        cell: Any = self
        return cell.add_flags(broadcast_flag=arguments.flag("set_broadcast_flag", "mode", mode))

    def set_data_parallel(self) -> None:
        """Do nothing: all work runs on one device."""

    def remove_redundant_parameters(self) -> None:
        """Do nothing: one device has no parameters of other devices."""

    _pipeline_stage: int | None = None
    _pipeline_segment: int | None = None
    _micro_batch: int | None = None
    # Whether what a Cell of the library calls has operators of its own, as users wrote it.
    _is_opened: bool = False
    _strategy: Strategy | None = None
    # How a layer of the library computes by the operations that are its attributes.
    _by_operators: Callable[..., Any] | None = None

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
        """Set how inputs, results and parameters of this cell are divided among devices, and return
        it.

        `in_strategy` and `out_strategy` have an entry for each tensor: a tuple of the numbers of
        parts of its axes, a `mycel.Layout`, or None to leave it open; `parameter_plan` has the same
        for parameters, by name. A compiled function has them in its graph while parallel_mode is
        "semi_auto_parallel" or "auto_parallel"; otherwise they have no effect, which is logged
        once. Raises TypeError for what is no strategy; one that does not fit the tensors is a
        ValueError of the call.
        """
        inputs = divisions("shard", "in_strategy", in_strategy, may_be_open=True)
        if inputs is None:
            raise arguments.wrong_type("shard", "in_strategy", "a tuple with an element for each tensor", in_strategy)
        results = divisions("shard", "out_strategy", out_strategy, may_be_open=True)
        self._strategy = Strategy(inputs, results, plan=plan_of("shard", parameter_plan))
        note_unused(f"{type(self).__name__}.shard")
        return self


def _check_device(name: str, device: Any) -> None:
    if device is not None and not str(device).lower().startswith("cpu"):
        raise ValueError(f"{name}: device {device!r} is not available in this build; use 'CPU'")

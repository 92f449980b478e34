"""What Cells have for MindSpore's programs besides computing: types and casts of all parameters at once, names, and marks for clusters.

A mark for clusters or for other devices is accepted, so that a program written for them runs here, and has no effect, which its description says.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mycel import dtype as D
from mycel.tensor import Tensor

__all__ = ["CellExtras"]


class CellExtras:
    """The part of `Cell` that converts, checks and marks."""

    cls_name = "Cell"
    bprop_debug = False
    cell_type = ""

    @property
    def phase(self) -> str:
        """ "train" or "predict", as `set_train` said last; what was assigned, where that was done."""
        return str(self.__dict__.get("_phase") or ("train" if getattr(self, "training", False) else "predict"))

    @phase.setter
    def phase(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"Cell.phase: takes a string, not {value!r}")
        self.__dict__["_phase"] = value

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert all floating parameters and buffers to another floating type, in place; the cell itself.

        ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` or ``to(tensor)``, whose type is taken; the device must be "CPU". TypeError for types that are not floating or
        complex, ValueError for other devices.

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
        """Parameters with values of no meaning, which are zeros here, on a device, which must be "CPU"; the cell itself."""
        _check_device("to_empty", device)
        cells: Any = self
        for parameter in cells.get_parameters(expand=recurse):
            parameter.set_data(Tensor(shape=parameter.shape, dtype=parameter.dtype))
        return self

    def cast_inputs(self, inputs: Any, dst_type: Any) -> tuple[Any, ...]:
        """The tensors among inputs in another element type, as a tuple; nested tuples likewise.

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
        """Set `cell_type`, which nothing here depends on."""
        self.cell_type = cell_type

    def check_names(self) -> None:
        """ValueError where two parameters have one name."""
        cells: Any = self
        seen: set[str] = set()
        for parameter in cells.get_parameters():
            if parameter.name in seen:
                raise ValueError(f"check_names: two parameters are named {parameter.name!r}; give each its own name")
            seen.add(parameter.name)

    def check_names_and_refresh_name(self) -> None:
        """Name parameters that have no name by their paths, then `check_names`."""
        cells: Any = self
        for path, parameter in cells.parameters_and_names():
            if not parameter.__dict__["has_name"]:
                parameter.name = path
                parameter.__dict__["has_name"] = True
        self.check_names()

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict[str, Any]:
        """The parameters by name; all of them are the same on the one device."""
        cells: Any = self
        return OrderedDict((p.name, p) for p in cells.get_parameters(expand=recurse) if not p.layerwise_parallel)

    # Marks for clusters.

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Any:
        """Set every trainable parameter's `comm_fusion`, which has no effect in one process; the cell itself. ValueError for negative numbers."""
        if not isinstance(fusion_type, int) or isinstance(fusion_type, bool) or fusion_type < 0:
            raise ValueError(f"set_comm_fusion: fusion_type must be an integer from 0 on, not {fusion_type!r}")
        cells: Any = self
        for parameter in cells.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def set_broadcast_flag(self, mode: bool = True) -> Any:
        """The cell itself. It has no effect, as one process has nobody to send parameters to."""
        if not isinstance(mode, bool):
            raise TypeError(f"set_broadcast_flag: takes True or False, not {mode!r}")
        return self

    def set_data_parallel(self) -> None:
        """It has no effect, as work runs on one device."""

    def remove_redundant_parameters(self) -> None:
        """It has no effect, as one device has no parameters of others."""

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
        """The cell itself. It has no effect, as tensors are not divided among devices. TypeError for a strategy that is no tuple."""
        if not isinstance(in_strategy, tuple):
            raise TypeError(f"shard: in_strategy must be a tuple, not {type(in_strategy).__name__}")
        return self


def _check_device(name: str, device: Any) -> None:
    if device is not None and not str(device).lower().startswith("cpu"):
        raise ValueError(f"{name}: device {device!r} is not available in this build; use 'CPU'")

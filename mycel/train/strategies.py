"""Strategy files of MindSpore: how parameters are divided among devices, and a rank's slice.

A strategy file is a Protocol Buffers message, or JSON of the same names where the file's name ends
in ".json"::

    ParallelStrategyMap  { uint32 current_stage = 1;
                           repeated ParallelStrategyItem parallel_strategy_item = 2;
                           repeated ParallelLayoutItem parallel_layout_item = 3; }
    ParallelStrategyItem { string node_name = 1;
                           ParallelStrategys { uint32 stage = 1; ... } parallel_strategys = 2; }
    ParallelLayoutItem   { string param_name = 1; ParallelLayouts parallel_layouts = 2; }
    ParallelLayouts      { repeated DevMatrix dev_matrix = 1; repeated TensorMap tensor_map = 2;
                           repeated ParamSplitShape param_split_shape = 3;
                           repeated IndicesOffset indices_offset = 4; int32 field = 5;
                           int32 opt_weight_shard_step = 6; int32 opt_weight_shard_size = 7; }

where DevMatrix and so on hold one repeated field 1 of numbers. In files of all pipeline stages
together, names begin with the stage: ``1-dense.weight``.

A layout says: the devices of a stage are an array of shape `dev_matrix`, ranks in row-major order.
`tensor_map` has for each axis of the parameter the axis of that array, counted from the right,
along which it is cut; several (outermost first) for an axis that is cut more than once, or -1 for
none. A parameter that the optimizer shards is cut further along axis 0, into
`opt_weight_shard_size` parts, among ranks that would otherwise hold the same values: along the
unused axes of the array, the innermost first. If there is one such axis, these ranks are
`opt_weight_shard_step` apart.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.files.atomic_files import replacing
from mycel._src.foundation.files.protobuf_wire import WireError, fields, integers, signed
from mycel._src.foundation.files.protobuf_wire import field as wire_field
from mycel.train.checkpoint_format import CheckpointError

__all__ = [
    "Dims",
    "Layout",
    "ParallelLayouts",
    "build_searched_strategy",
    "layouts_of",
    "merge_pipeline_strategys",
    "restore_group_info_list",
    "stage_of_file",
    "write_strategy",
]

# Ranks are counted one by one.
_MOST_DEVICES = 1 << 20
_STAGE = re.compile(r"(\d+)-(.+)", re.S)


@dataclass
class Dims:
    """A list of numbers."""

    dim: list[int] = field(default_factory=list)


@dataclass
class ParallelLayouts:
    """The layout of a parameter, as it is in a strategy file."""

    dev_matrix: list[Dims] = field(default_factory=list)
    tensor_map: list[Dims] = field(default_factory=list)
    param_split_shape: list[Dims] = field(default_factory=list)
    indices_offset: list[Dims] = field(default_factory=list)
    field: int = 0
    opt_weight_shard_step: int = 0
    opt_weight_shard_size: int = 0


_LISTS = {1: "dev_matrix", 2: "tensor_map", 3: "param_split_shape", 4: "indices_offset"}
_NUMBERS = {5: "field", 6: "opt_weight_shard_step", 7: "opt_weight_shard_size"}


@dataclass
class StrategyFile:
    """The content of a strategy file; `nodes` are the strategies of operations, kept unchanged."""

    stage: int
    nodes: list[Any]
    layouts: dict[str, ParallelLayouts]


def build_searched_strategy(strategy_filename: Any) -> Any:
    """Return the layouts of a strategy file, by parameter; None for None.

    A layout has the attributes `dev_matrix`, `tensor_map`, `param_split_shape` and
    `indices_offset`, lists of objects with a list `dim`, and the numbers `field`,
    `opt_weight_shard_step` and `opt_weight_shard_size`. Raises TypeError unless `strategy_filename`
    is a path, ValueError for a file that is missing, empty or damaged.

    >>> import mycel as ms, pathlib, tempfile
    >>> path = str(pathlib.Path(tempfile.mkdtemp()) / "strategy.ckpt")
    >>> write_strategy(path, {"w": ParallelLayouts([Dims([2, 4])], [Dims([0, -1])])})
    >>> ms.build_searched_strategy(path)["w"].tensor_map[0].dim
    [0, -1]
    """
    if strategy_filename is None:
        return None
    return _read(strategy_filename, "build_searched_strategy").layouts


def _read(path: Any, function: str) -> StrategyFile:
    arguments.path(function, "the name of a strategy file", path, "a string")
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"{function}: there is no strategy file {path!r}")
    with open(path, "rb") as file:
        content = file.read()
    if not content:
        raise CheckpointError(f"{function}: the strategy file {path!r} is empty")
    try:
        return _from_json(json.loads(content)) if path.endswith(".json") else _from_message(content)
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged, or not a strategy file: {error}") from error


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("a number where a message should be")
    return value


def _from_message(content: bytes) -> StrategyFile:
    found = StrategyFile(0, [], {})
    for number, value in fields(content):
        if number == 2:
            found.nodes.append(_message(value))
        elif number == 3:
            name, layout = "", ParallelLayouts()
            for inner, part in fields(_message(value)):
                if inner == 1:
                    name = _message(part).decode()
                elif inner == 2:
                    layout = _layout(_message(part))
            found.layouts[name] = layout
    if found.nodes:
        found.stage = _stage(found.nodes[0])
    return found


def _stage(node: bytes) -> int:
    for number, value in fields(node):
        if number == 2:
            for inner, part in fields(_message(value)):
                if inner == 1 and isinstance(part, int):
                    return part
    return 0


def _layout(content: bytes) -> ParallelLayouts:
    layout = ParallelLayouts()
    for number, value in fields(content):
        if number in _LISTS:
            dims = [signed(n) for inner, part in fields(_message(value)) if inner == 1 for n in integers(part)]
            getattr(layout, _LISTS[number]).append(Dims(dims))
        elif number in _NUMBERS:
            if not isinstance(value, int):
                raise WireError(f"bytes where the number {_NUMBERS[number]} should be")
            setattr(layout, _NUMBERS[number], signed(value))
    return layout


def _from_json(content: Mapping[str, Any]) -> StrategyFile:
    nodes = content.get("parallel_strategy_item") or {}
    found = StrategyFile(0, [nodes], {})
    for strategy in nodes.values():
        found.stage = int(strategy.get("stage", 0))
        break
    for name, item in (content.get("parallel_layout_item") or {}).items():
        layout = ParallelLayouts()
        for title in _LISTS.values():
            if title in item or title in ("dev_matrix", "tensor_map"):
                parts = item[title]
                nested = bool(parts) and isinstance(parts[0], list)
                getattr(layout, title).extend([Dims([int(n) for n in p]) for p in (parts if nested else [parts])])
        for title in _NUMBERS.values():
            setattr(layout, title, int(item.get(title) or 0))
        found.layouts[name] = layout
    return found


def _check_layout(name: Any, layout: Any) -> None:
    """Raise TypeError or ValueError for a layout that a strategy file cannot hold."""
    if not isinstance(name, str) or not isinstance(layout, ParallelLayouts):
        raise TypeError(f"write_strategy: layouts are ParallelLayouts by name, not {layout!r:.200} by {name!r:.200}")
    for title in _LISTS.values():
        lists = getattr(layout, title)
        if not isinstance(lists, (list, tuple)) or not all(
            isinstance(d, Dims) and isinstance(d.dim, (list, tuple)) for d in lists
        ):
            raise TypeError(f"write_strategy: {name!r}: {title} must be a list of Dims, not {lists!r:.200}")
        for dims in lists:
            for n in dims.dim:
                _check_number(name, title, n)
    for title in _NUMBERS.values():
        _check_number(name, title, getattr(layout, title))


def _check_number(name: str, title: str, value: Any) -> None:
    if not isinstance(value, int):
        raise TypeError(f"write_strategy: {name!r}: {title} must hold ints, not {value!r:.80}")
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"write_strategy: {name!r}: {title} holds {value!r:.80}, which has more than 64 bits")


def write_strategy(
    path: Any, layouts: Mapping[str, ParallelLayouts], nodes: Iterable[bytes] = (), stage: int = 0
) -> None:
    """Write the layouts of parameters by name as the strategy file `path`, whole or not at all.

    `nodes` are the strategies of operations; without them, an entry without a name says the
    `stage`.
    """
    if not isinstance(layouts, Mapping):
        raise TypeError(f"write_strategy: layouts are a dictionary of ParallelLayouts by name, not {layouts!r:.200}")
    nodes = list(nodes) or [wire_field(1, "stage") + wire_field(2, wire_field(1, stage))]
    content = b"".join([wire_field(2, node) for node in nodes])
    for name, layout in layouts.items():
        _check_layout(name, layout)
        parts = [
            wire_field(number, b"".join([wire_field(1, n) for n in dims.dim]))
            for number, title in _LISTS.items()
            for dims in getattr(layout, title)
        ]
        parts += [wire_field(number, getattr(layout, title)) for number, title in _NUMBERS.items()]
        content += wire_field(3, wire_field(1, name) + wire_field(2, b"".join(parts)))
    with replacing(path, "strategy") as temporary:
        temporary.write_bytes(wire_field(1, 1) + content)


def merge_pipeline_strategys(src_strategy_dirs: Any, dst_strategy_file: Any) -> None:
    """Merge the strategy files (all ".ckpt" or all ".json") of all pipeline stages in a folder into
    one; of files of the same stage, the first by name is taken.

    Raises NotADirectoryError if the folder is missing, ValueError for an empty folder, files of
    both kinds and files without layouts.
    """
    function = "merge_pipeline_strategys"
    if not os.path.isdir(src_strategy_dirs):
        raise NotADirectoryError(f"{function}: {os.fspath(src_strategy_dirs)!r} is not a folder")
    names = sorted(os.listdir(src_strategy_dirs))
    kinds = {kind: [n for n in names if n.endswith(kind)] for kind in (".ckpt", ".json")}
    if bool(kinds[".ckpt"]) == bool(kinds[".json"]):
        found = "files of both kinds" if kinds[".ckpt"] else "neither"
        raise CheckpointError(
            f"{function}: the folder {os.fspath(src_strategy_dirs)!r} must hold strategies in .ckpt or in .json files, "
            f"it has {found}"
        )
    stages: dict[int, StrategyFile] = {}
    for name in kinds[".ckpt"] or kinds[".json"]:
        path = os.path.join(src_strategy_dirs, name)
        strategy = _read(path, function)
        if not strategy.layouts or not strategy.nodes or not strategy.nodes[0]:
            raise CheckpointError(f"{function}: the strategy file {path!r} holds no strategies")
        stages.setdefault(strategy.stage, strategy)
    target = os.path.abspath(dst_strategy_file)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    layouts = {f"{s}-{name}": layout for s, file in stages.items() for name, layout in file.layouts.items()}
    if kinds[".ckpt"]:
        write_strategy(target, layouts, [node for file in stages.values() for node in file.nodes])
        return
    merged: dict[str, Any] = {"current_stage": 1, "parallel_strategy_item": {}, "parallel_layout_item": {}}
    for file in stages.values():
        merged["parallel_strategy_item"].update(file.nodes[0])
    for name, layout in layouts.items():
        lists = {title: [d.dim for d in getattr(layout, title)] for title in _LISTS.values() if getattr(layout, title)}
        numbers = {title: getattr(layout, title) for title in _NUMBERS.values()}
        merged["parallel_layout_item"][name] = {t: v[0] if len(v) == 1 else v for t, v in lists.items()} | numbers
    with replacing(target, "strategy") as temporary:
        temporary.write_text(json.dumps(merged), encoding="utf-8")


def stage_of_file(path: Any) -> int:
    """Return the pipeline stage of a strategy file."""
    return _read(path, "transform_checkpoints").stage


def restore_group_info_list(group_info_file_name: Any) -> list[int]:
    """Return the ranks whose checkpoints hold the same values as this rank's, from a file of
    communication groups.

    Raises TypeError unless the name is a string, ValueError for a file that is missing, empty,
    damaged or without such a list.
    """
    arguments.text("restore_group_info_list", "group_info_file_name", group_info_file_name)
    if not os.path.isfile(group_info_file_name) or not os.path.getsize(group_info_file_name):
        raise CheckpointError(f"restore_group_info_list: the file {group_info_file_name!r} is missing or empty")
    with open(group_info_file_name, "rb") as file:
        content = file.read()
    try:
        lists = [_message(value) for number, value in fields(content) if number == 2]
        ranks = [n for part in lists for number, value in fields(part) if number == 1 for n in integers(value)]
    except WireError as error:
        raise CheckpointError(f"{group_info_file_name}: damaged, or not a file of groups: {error}") from error
    if not lists:
        raise CheckpointError(f"restore_group_info_list: {group_info_file_name!r} has no list of ranks to restore from")
    return ranks


@dataclass(frozen=True)
class Layout:
    """A parameter's layout in one pipeline stage; see the module's description.

    `devices` is the shape of the array of devices. `axes` has for each axis of the parameter the
    axes of that array, counted from the left, that cut it. The optimizer cuts axis 0 further into
    `shard` parts, `step` ranks apart. `stages` are the pipeline stages that have the parameter.
    """

    devices: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    shard: int = 1
    step: int = 0
    stages: tuple[int, ...] = (0,)

    @property
    def count(self) -> int:
        """The number of devices of a stage."""
        return math.prod(self.devices)

    def cuts(self) -> tuple[int, ...]:
        """Return the number of parts along each axis, including those that the optimizer shards."""
        cuts = [math.prod(self.devices[a] for a in axes) for axes in self.axes]
        if self.shard > 1:
            cuts[0] *= self.shard
        return tuple(cuts)

    def place(self, rank: int) -> tuple[int, ...]:
        """Return the number of the part along each axis that a rank of the stage holds."""
        at = _coordinates(rank % self.count, self.devices)
        places = [self._mixed(at, axes) for axes in self.axes]
        if self.shard > 1:
            places[0] = places[0] * self.shard + self._shard_of(at)
        return tuple(places)

    def _mixed(self, at: Sequence[int], axes: Iterable[int]) -> int:
        number = 0
        for axis in axes:
            number = number * self.devices[axis] + at[axis]
        return number

    def unused(self) -> list[int]:
        """Return the axes of the device array that cut nothing.

        Ranks that differ only along these axes hold the same values, except for parts that the
        optimizer shards.
        """
        used = {a for axes in self.axes for a in axes}
        return [a for a, size in enumerate(self.devices) if a not in used and size > 1]

    def _shard_of(self, at: Sequence[int]) -> int:
        free = self.unused()
        number, weight, left = 0, 1, self.shard
        for axis in reversed(free):
            size = math.gcd(left, self.devices[axis])
            number += at[axis] % size * weight
            weight, left = weight * size, left // size
        return number

    def checked(self, name: str) -> Layout:
        """Return the layout itself.

        Raises ValueError if it is not a valid division of a tensor.
        """
        used = [a for axes in self.axes for a in axes]
        if (
            not self.devices
            or any(d < 1 for d in self.devices)
            or self.count > _MOST_DEVICES
            or len(set(used)) != len(used)
        ):
            raise CheckpointError(
                f"parameter {name!r} has an impossible layout: devices {list(self.devices)}, axes {self.axes}"
            )
        left = self.shard
        for axis in reversed(self.unused()):
            if left % self.devices[axis] and self.devices[axis] % left:
                break
            left //= math.gcd(left, self.devices[axis])
        if left != 1 or (self.shard > 1 and not self.axes):
            raise CheckpointError(
                f"parameter {name!r}: the optimizer's shards ({self.shard}) do not fit the devices "
                f"{list(self.devices)} that the layout {self.axes} leaves"
            )
        return self


def _coordinates(rank: int, devices: Sequence[int]) -> tuple[int, ...]:
    found = []
    for size in reversed(devices):
        found.append(rank % size)
        rank //= size
    return tuple(reversed(found))


def layout_of(name: str, given: ParallelLayouts, stage: int = 0) -> Layout:
    """Return the layout that an entry of a strategy file describes."""
    if given.field:
        raise CheckpointError(
            f"parameter {name!r} is an embedding cut by fields, which only merge_sliced_parameter puts together"
        )
    if given.param_split_shape and given.param_split_shape[0].dim:
        raise CheckpointError(
            f"parameter {name!r} is cut into unequal parts, which only merge_sliced_parameter puts together"
        )
    if not given.dev_matrix:
        raise CheckpointError(f"parameter {name!r} has no device matrix")
    devices = tuple(given.dev_matrix[0].dim)
    maps: list[Sequence[int]]
    if len(given.tensor_map) > 1:
        maps = [part.dim for part in given.tensor_map if part.dim]
    else:
        maps = [[n] for n in (given.tensor_map[0].dim if given.tensor_map else ())]
    return layout(name, devices, maps, given.opt_weight_shard_size, given.opt_weight_shard_step, (stage,))


def layout(
    name: str, devices: Sequence[int], maps: Sequence[Any], size: int = 0, step: int = 0, stages: tuple[int, ...] = (0,)
) -> Layout:
    """Return the layout of the parameter `name` from a device matrix and a tensor map.

    `devices` and `maps` are those of a strategy file; an entry of `maps` may be a list. `size` and
    `step` are those of the optimizer's shards (a size of -1: as many as there are ranks with the
    same values), `stages` the pipeline stages that have the parameter.
    """
    axes = []
    for entry in maps:
        numbers = [int(n) for n in (entry if isinstance(entry, (list, tuple)) else [entry]) if n != -1]
        if any(not 0 <= n < len(devices) for n in numbers):
            raise CheckpointError(
                f"parameter {name!r}: its tensor map {list(maps)} names an axis that the device matrix {list(devices)} "
                "does not have"
            )
        axes.append(tuple([len(devices) - 1 - n for n in numbers]))
    made = Layout(tuple(devices), tuple(axes), 1, step, stages)
    if size == -1:
        size = made.count // max(1, math.prod(made.cuts()))
    return Layout(made.devices, made.axes, max(size, 1), step, stages).checked(name)


def layouts_of(strategy: Any, stage: int | None = None) -> dict[str, Layout] | None:
    """Return the layouts by parameter of a strategy file, or of a result of
    `build_searched_strategy`.

    The result is None for None. Names are without their stage, which `Layout.stages` has. The
    layout of a parameter in several stages is that of `stage`, or of the first one.
    """
    if strategy is None:
        return None
    given = strategy if isinstance(strategy, Mapping) else _read(strategy, "layouts_of").layouts
    if not given:
        raise CheckpointError(f"the strategy file {strategy!r} holds no layouts")
    found: dict[str, dict[int, Layout]] = {}
    for title, entry in given.items():
        match = _STAGE.fullmatch(title)
        number, name = (int(match[1]), match[2]) if match else (0, title)
        found.setdefault(name, {})[number] = layout_of(title, entry, number)
    result = {}
    for name, by_stage in found.items():
        stages = tuple(sorted(by_stage))
        chosen = by_stage[stage if stage in by_stage else stages[0]]
        result[name] = Layout(chosen.devices, chosen.axes, chosen.shard, chosen.step, stages)
    counts = {entry.count for entry in result.values()}
    if len(counts) != 1:
        raise CheckpointError(
            f"the parameters of a strategy are for stages of {sorted(counts)} devices; all stages must have as many"
        )
    return result

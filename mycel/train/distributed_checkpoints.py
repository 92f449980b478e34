"""Checkpoints of several devices as files: cut, put together, and cut anew, in one process.

By its layout (`strategies`) a rank holds a box of each parameter: part k of n along each axis. A parameter for another layout is the box that the target rank should have, filled from the boxes of the
source ranks that overlap it. Ranks that hold the same are interchangeable; whichever file has the parameter serves, first the one in the target rank's own place, so that checkpoints without repetitions
(`remove_redundancy`) are read as others are. Elements are moved, never computed with: a checkpoint that is cut and put together again is the same in every bit.

A parameter that the source strategy does not name is on every rank as it is; one that the target strategy does not name is kept whole. One that belongs to other pipeline stages of the
target is left out.
"""

from __future__ import annotations

import glob
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from mycel.base import arguments
from mycel.base.atomic_files import replacing
from mycel.base.log import logger
from mycel.cells.cell import Cell
from mycel.communication import get_group_size, get_rank
from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor
from mycel.train.checkpoint_format import (
    CheckpointError,
    Entry,
    read_ckpt,
    read_safetensors,
    write_ckpt,
    write_safetensors,
)
from mycel.train.serialization import load_checkpoint, load_param_into_net
from mycel.train.strategies import Layout, ParallelLayouts, build_searched_strategy, layout, layouts_of, stage_of_file

__all__ = [
    "get_ckpt_path_with_strategy",
    "load_distributed_checkpoint",
    "load_segmented_checkpoints",
    "merge_sliced_parameter",
    "rank_list_for_transform",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
]

Array = NDArray[Any]
Layouts = Optional[Mapping[str, Layout]]
_WRITERS: dict[str, Callable[..., None]] = {"ckpt": write_ckpt, "safetensors": write_safetensors}
_READERS: dict[str, Callable[..., dict[str, Entry]]] = {"ckpt": read_ckpt, "safetensors": read_safetensors}
# What a file of unified_safetensors holds at most, about.
_PART = 3 << 30


# Boxes.


def _box(layout: Layout, rank: int, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Where in a whole parameter of this shape a rank's part begins and ends along each axis."""
    parts = [(size // n, k) for size, n, k in zip(shape, layout.cuts(), layout.place(rank))]
    return tuple([(length * k, length * (k + 1)) for length, k in parts])


def _whole(layout: Layout, part: Sequence[int]) -> tuple[int, ...]:
    return tuple([size * n for size, n in zip(part, layout.cuts())])


def _unsharded(rank: int) -> Layout:
    return Layout((1,), ((),) * rank)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def _assembled(name: str, source: Layout, target: Layout, rank: int, parts: Mapping[int, Array]) -> Array:
    """The part of a parameter that a rank of the target has, of the parts that ranks of the source stage have."""
    some = next(iter(parts.values()))
    if some.ndim != len(source.axes) or some.ndim != len(target.axes):
        axes = len(source.axes) if some.ndim != len(source.axes) else len(target.axes)
        raise CheckpointError(f"parameter {name!r} has {some.ndim} axes in the checkpoint and {axes} in the strategy")
    shape = _whole(source, some.shape)
    for size, n in zip(shape, target.cuts()):
        if size % n:
            raise CheckpointError(
                f"parameter {name!r} of shape {list(shape)} cannot be cut into {list(target.cuts())} equal parts"
            )
    wanted = _box(target, rank, shape)
    made = np.empty([stop - start for start, stop in wanted], some.dtype)
    holders: dict[tuple[int, ...], list[int]] = {}
    for holder in range(source.count):
        holders.setdefault(source.place(holder), []).append(holder)
    for ranks in holders.values():
        box = _box(source, ranks[0], shape)
        common = [_overlap(w, b) for w, b in zip(wanted, box)]
        if any(start >= stop for start, stop in common):
            continue
        present = [r for r in ranks if r in parts]
        if not present:
            raise CheckpointError(
                f"parameter {name!r}: the checkpoint of rank {' or '.join(map(str, ranks))} of the stage is missing"
            )
        part = parts[_nearest(source, present, rank)]
        if part.shape != some.shape or part.dtype != some.dtype:
            raise CheckpointError(
                f"parameter {name!r} is {part.dtype}{list(part.shape)} on one rank and {some.dtype}{list(some.shape)} on another"
            )
        into = tuple([slice(start - w, stop - w) for (start, stop), (w, _) in zip(common, wanted)])
        made[into] = part[tuple([slice(start - b, stop - b) for (start, stop), (b, _) in zip(common, box)])]
    return made


def _nearest(layout: Layout, ranks: Iterable[int], rank: int) -> int:
    """Of ranks that hold the same, the one that lies as `rank` does along the axes that cut nothing."""
    rank %= layout.count
    free = layout.unused()

    def distance(candidate: int) -> tuple[int, int]:
        strides = [math.prod(layout.devices[a + 1 :]) for a in free]
        differs = sum(
            candidate // s % layout.devices[a] != rank // s % layout.devices[a] for a, s in zip(free, strides)
        )
        return differs, candidate

    return min(ranks, key=distance)


def _needed(source: Layout, target: Layout, rank: int) -> set[int]:
    """The ranks of the source stage whose parts a rank of the target is made of."""
    # Parts are counted in common units of both cuttings, so that no size is needed.
    shape = [a * b for a, b in zip(source.cuts(), target.cuts())]
    wanted = _box(target, rank, shape)
    holders: dict[tuple[int, ...], list[int]] = {}
    for holder in range(source.count):
        box = _box(source, holder, shape)
        if all(start < stop for start, stop in [_overlap(w, b) for w, b in zip(wanted, box)]):
            holders.setdefault(source.place(holder), []).append(holder)
    return {_nearest(source, ranks, rank) for ranks in holders.values()}


def _count(layouts: Layouts) -> int:
    return 1 if layouts is None else next(iter(layouts.values())).count


def _stages(layouts: Layouts) -> int:
    if layouts is None:
        return 1
    found = sorted({s for entry in layouts.values() for s in entry.stages})
    if found != list(range(len(found))):
        raise CheckpointError(
            f"the strategy has the pipeline stages {found}; the files of all stages must be merged, see merge_pipeline_strategys"
        )
    return len(found)


# Ranks.


def rank_list_for_transform(rank_id: int, src_strategy_file: Any = None, dst_strategy_file: Any = None) -> list[int]:
    """The ranks of the source whose checkpoints a rank of the target is made from, in falling order.

    Strategies are names of files, or what `build_searched_strategy` gives; None stands for parameters that are whole on one device. Raises TypeError for a rank that is no
    int and ValueError for a rank that the target does not have and for strategies that do not fit.

    >>> import mycel as ms
    >>> from mycel.train.strategies import Dims, ParallelLayouts
    >>> ms.rank_list_for_transform(0, {"w": ParallelLayouts([Dims([4])], [Dims([0, -1])])})
    [3, 2, 1, 0]
    """
    arguments.integer("rank_list_for_transform", "rank_id", rank_id, numpy=False)
    source, target, stage = _strategies(rank_id, src_strategy_file, dst_strategy_file, "rank_list_for_transform")
    if source is None:
        return [0]
    local: set[int] = set()
    stages: set[int] = set()
    for name, entry in source.items():
        other = _target_of(name, target, stage, len(entry.axes))
        if other is not None:
            local |= _needed(entry, other, rank_id % _count(target))
            stages.update(entry.stages)
    return sorted({s * _count(source) + r for s in stages for r in local}, reverse=True)


def _strategies(rank: int, source: Any, target: Any, function: str) -> tuple[Layouts, Layouts, int]:
    """The layouts of both sides, and the stage of the target that a rank is in."""
    layouts = layouts_of(source)
    stages = _stages(layouts_of(target))
    count = _count(layouts_of(target))
    if not 0 <= rank < max(count * stages, 1) and target is not None:
        raise ValueError(f"{function}: rank {rank} is not one of the target's {count * stages} ranks")
    stage = rank // count if target is not None else 0
    return layouts, layouts_of(target, stage), stage


def _target_of(name: str, target: Layouts, stage: int, axes: int) -> Optional[Layout]:
    """The target's layout of a parameter; None where it is not in this stage."""
    if target is None or name not in target:
        return _unsharded(axes)
    return target[name] if stage in target[name].stages else None


def _transformed(
    rank: int, source: Layouts, target: Layouts, stage: int, entries: Mapping[int, Mapping[str, Entry]]
) -> dict[str, Entry]:
    """What a rank of the target holds, of what files by global rank of the source hold."""
    count = _count(source)
    made: dict[str, Entry] = {}
    names = dict.fromkeys(name for file in entries.values() for name in file)
    for name in names:
        holding = {r: file[name] for r, file in sorted(entries.items()) if name in file}
        own = holding.get(rank % count, next(iter(holding.values())))
        if isinstance(own, str) or (source is not None and name not in source):
            if target is None or name not in target or stage in target[name].stages:
                made[name] = own
            continue
        arrays = {r: a for r, a in holding.items() if not isinstance(a, str)}
        origin = _unsharded(own.ndim) if source is None else source[name]
        goal = _target_of(name, target, stage, own.ndim)
        if goal is None:
            continue
        # All stages that share a parameter hold the same; the first of which there are files serves.
        first = min(arrays) // count
        parts = {r % count: a for r, a in arrays.items() if r // count == first}
        made[name] = _assembled(name, origin, goal, rank % _count(target), parts)
    return made


def transform_checkpoint_by_rank(
    rank_id: int,
    checkpoint_files_map: Mapping[int, Any],
    save_checkpoint_file_name: Any,
    src_strategy_file: Any = None,
    dst_strategy_file: Any = None,
) -> None:
    """Write the checkpoint of one rank of the target, from the files in `checkpoint_files_map` by rank of the source (see `rank_list_for_transform`).

    Raises TypeError for arguments of other types, ValueError for files that are missing or damaged, for a name that does not end in ".ckpt", and for strategies that do not fit.
    """
    function = "transform_checkpoint_by_rank"
    arguments.mapping(function, "checkpoint_files_map", checkpoint_files_map)
    arguments.integer(function, "rank_id", rank_id, numpy=False)
    arguments.text(function, "save_checkpoint_file_name", save_checkpoint_file_name)
    if not save_checkpoint_file_name.endswith(".ckpt"):
        raise ValueError(f"{function}: save_checkpoint_file_name {save_checkpoint_file_name!r} must end in '.ckpt'")
    for rank, path in checkpoint_files_map.items():
        if not os.path.isfile(path):
            raise CheckpointError(f"{function}: there is no file {path!r}, the checkpoint of rank {rank}")
    source, target, stage = _strategies(rank_id, src_strategy_file, dst_strategy_file, function)
    entries = {rank: read_ckpt(path) for rank, path in checkpoint_files_map.items()}
    write_ckpt(save_checkpoint_file_name, _transformed(rank_id, source, target, stage, entries))


def transform_checkpoints(
    src_checkpoints_dir: Any,
    dst_checkpoints_dir: Any,
    ckpt_prefix: str,
    src_strategy_file: Any = None,
    dst_strategy_file: Any = None,
    process_num: int = 1,
    output_format: str = "ckpt",
) -> None:
    """Write the checkpoints of all ranks of the target: ``dst/rank_0/<prefix>0.ckpt`` and so on, from ``src/rank_0/*.ckpt`` or ``*.safetensors`` and so on.

    Of several files of a rank, the last by name is taken. Where both strategies are of one stage and the source's lacks parameters of the target's, the source is one stage of several: files
    ``<prefix><rank>_part<stage>`` are written, which `load_segmented_checkpoints` puts together. `output_format` "safetensors" needs a source of that kind. Ranks are handled one after the
    other whatever `process_num` says.

    Raises NotADirectoryError without the source's folder, ValueError for files that are missing or damaged and strategies that do not fit; nothing is written then for the rank in question.
    """
    function = "transform_checkpoints"
    if not isinstance(ckpt_prefix, str) or os.path.basename(ckpt_prefix) != ckpt_prefix:
        raise TypeError(f"{function}: ckpt_prefix must be a string without a folder, not {ckpt_prefix!r}")
    arguments.one_of(function, "output_format", output_format, _WRITERS)
    arguments.integer(function, "process_num", process_num, 1, flags=True, numpy=False, error=ValueError)
    if not os.path.isdir(src_checkpoints_dir):
        raise NotADirectoryError(f"{function}: {os.fspath(src_checkpoints_dir)!r} is not a folder")
    kind, files = _source_files(src_checkpoints_dir, function)
    if kind == "ckpt" and output_format == "safetensors":
        raise ValueError(
            f"{function}: output_format 'safetensors' needs safetensors files as a source; see ckpt_to_safetensors"
        )
    source, target = layouts_of(src_strategy_file), layouts_of(dst_strategy_file)
    suffix, offset = "", 0
    if source is not None and target is not None and _one_of_several(source, target):
        stage = stage_of_file(src_strategy_file)
        suffix, offset = f"_part{stage}", stage * _count(source)
        target = {name: entry for name, entry in target.items() if name in source}
    elif source is not None:
        _stages(source)
    cached: dict[int, dict[str, Entry]] = {}
    for rank in range(_count(target) * _stages(target)):
        if suffix:
            wanted = [offset + r for r in range(_count(source))]
        else:
            wanted = rank_list_for_transform(rank, src_strategy_file, dst_strategy_file)
        wanted = [r for r in wanted if r in files] if suffix else wanted
        for needed in wanted:
            if needed not in files:
                raise CheckpointError(
                    f"{function}: the checkpoint of rank {needed} is needed for rank {rank}, and is not in {os.fspath(src_checkpoints_dir)!r}"
                )
        cached = {r: cached[r] if r in cached else _READERS[kind](files[r]) for r in wanted}
        _, goal, at = _strategies(rank, None, dst_strategy_file, function)
        if suffix:
            goal = target
        entries = {r - offset: file for r, file in cached.items()}
        made = _transformed(rank, source, goal, at, entries)
        folder = os.path.join(os.fspath(dst_checkpoints_dir), f"rank_{rank}")
        os.makedirs(folder, exist_ok=True)
        _WRITERS[output_format](os.path.join(folder, f"{ckpt_prefix}{rank}{suffix}.{output_format}"), made)


def _one_of_several(source: Mapping[str, Layout], target: Mapping[str, Layout]) -> bool:
    """Whether the source is one pipeline stage by itself, of a network that is whole in the target."""
    if {s for entry in (*source.values(), *target.values()) for s in entry.stages} != {0}:
        return False
    mine, theirs = (
        {n for n in side if not n.startswith(("accu_grads", "adam_v", "adam_m"))} for side in (source, target)
    )
    return mine < theirs


def _numbers(path: str) -> tuple[list[int], str]:
    return [int(n) for n in re.findall(r"\d+", os.path.basename(path))][-2:], path


def _rank_files(folder: Any, kind: str, suffix: Optional[str] = None) -> dict[int, str]:
    """The file of each rank in the folders rank_0, rank_1 and so on of a folder."""
    found: dict[int, str] = {}
    for path in glob.glob(os.path.join(glob.escape(os.fspath(folder)), "rank_[0-9]*")):
        number = path.rsplit("rank_", 1)[1]
        if not number.isdigit() or not os.path.isdir(path):
            continue
        files = [
            f
            for f in glob.glob(os.path.join(glob.escape(path), f"*{glob.escape(suffix or '')}.{kind}"))
            if os.path.isfile(f)
        ]
        if files:
            found[int(number)] = max(files) if kind == "ckpt" else max(files, key=_numbers)
        elif suffix is not None:
            raise CheckpointError(f"unified_safetensors: no file in {path!r} ends in '{suffix}.{kind}'")
    return dict(sorted(found.items()))


def _source_files(folder: Any, function: str, suffix: Optional[str] = None) -> tuple[str, dict[int, str]]:
    kinds = {"ckpt": _rank_files(folder, "ckpt"), "safetensors": _rank_files(folder, "safetensors", suffix)}
    present = [kind for kind, files in kinds.items() if files]
    if len(present) != 1:
        found = "both kinds of file" if present else "neither"
        raise CheckpointError(
            f"{function}: {os.fspath(folder)!r} must hold folders rank_0, rank_1, ... with .ckpt or with .safetensors files; it has {found}"
        )
    return present[0], kinds[present[0]]


# One parameter.


def merge_sliced_parameter(sliced_parameters: Any, strategy: Any = None) -> Parameter:
    """Put a parameter together from the parts that ranks hold, given in the order of ranks.

    `strategy` is what `build_searched_strategy` gives; without it the parts are joined along axis 0. Parts may differ in size along axis 0 where the strategy says how
    (`param_split_shape`). Raises TypeError for arguments of other types, KeyError for a parameter that the strategy lacks, ValueError for parts that do not fit it.

    >>> import mycel as ms
    >>> parts = [ms.Parameter(ms.Tensor([1.0, 2.0]), name="w"), ms.Parameter(ms.Tensor([3.0, 4.0]), name="w")]
    >>> merge_sliced_parameter(parts).asnumpy()
    array([1., 2., 3., 4.], dtype=float32)
    """
    function = "merge_sliced_parameter"
    arguments.instance(function, "sliced_parameters", sliced_parameters, list)
    if not sliced_parameters:
        raise ValueError(f"{function}: sliced_parameters is empty")
    if strategy is not None:
        arguments.mapping(function, "strategy", strategy, "a dict or None")
    for number, parameter in enumerate(sliced_parameters):
        if not isinstance(parameter, Parameter):
            raise TypeError(
                f"{function}: sliced_parameters holds parameters, not {type(parameter).__name__} (number {number})"
            )
    first = sliced_parameters[0]
    for number, parameter in enumerate(sliced_parameters):
        if parameter.name != first.name or parameter.ndim != first.ndim or parameter.shape[1:] != first.shape[1:]:
            raise ValueError(f"{function}: part {number} is {parameter.name!r} of shape {list(parameter.shape)}, and part 0 {first.name!r} of shape {list(first.shape)}; "
                             "name and shape behind axis 0 must be the same")  # fmt: skip
    arrays = [p.asnumpy() for p in sliced_parameters]
    if not strategy:
        merged = np.concatenate(arrays)
    elif first.name not in strategy:
        raise KeyError(f"{function}: the strategy has no parameter {first.name!r}")
    else:
        merged = _merged(first.name, arrays, strategy[first.name])
    made = Parameter(Tensor.from_numpy(merged), name=first.name, requires_grad=first.requires_grad)
    made.layerwise_parallel = first.layerwise_parallel
    return made


def _merged(name: str, arrays: Sequence[Array], given: ParallelLayouts) -> Array:
    function = "merge_sliced_parameter"
    maps = [part.dim for part in given.tensor_map if part.dim] if len(given.tensor_map) > 1 else given.tensor_map[0].dim
    known = layout(name, tuple(given.dev_matrix[0].dim), maps)
    if len(arrays) != known.count:
        raise ValueError(
            f"{function}: {len(arrays)} parts of {name!r} are given, and the strategy is for {known.count} devices"
        )
    lengths = given.param_split_shape[0].dim if given.param_split_shape else []
    if not lengths:
        if len({a.shape for a in arrays}) != 1:
            raise ValueError(
                f"{function}: the parts of {name!r} have different shapes, and the strategy does not say which"
            )
        if given.field > 0:
            rows, columns = arrays[0].shape
            if rows % given.field:
                raise ValueError(f"{function}: {rows} rows of {name!r} do not fit {given.field} fields")
            stacked = np.stack(arrays).reshape(known.count, given.field, rows // given.field, columns)
            return np.ascontiguousarray(stacked.transpose(1, 0, 2, 3)).reshape(known.count * rows, columns)
        return _assembled(name, known, _unsharded(arrays[0].ndim), 0, dict(enumerate(arrays)))
    cuts = known.cuts()
    if len(lengths) != math.prod(cuts):
        raise ValueError(
            f"{function}: param_split_shape of {name!r} has {len(lengths)} lengths for {math.prod(cuts)} parts"
        )
    grid = np.empty(cuts, object)
    for rank, array in enumerate(arrays):
        place = known.place(rank)
        wanted = lengths[int(np.ravel_multi_index(place, cuts))]
        if array.shape[0] != wanted:
            raise ValueError(
                f"{function}: the part of {name!r} on rank {rank} has length {array.shape[0]} along axis 0, and the strategy says {wanted}"
            )
        grid[place] = array
    return np.block(grid.tolist())


# Whole networks.


def load_segmented_checkpoints(
    ckpt_file_dir: Any,
    net: Optional[Cell] = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: Optional[bytes] = None,
    dec_mode: Any = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Optional[Callable[[str], bool]] = None,
) -> dict[str, Any]:
    """Load all ".ckpt" files in a folder, in the order of their names, as one checkpoint, into `net` if it is given; arguments are those of `load_checkpoint`.

    Raises TypeError for what is no string, ValueError where there is no such folder, no file in it, a damaged one, or nothing to load in any.
    """
    arguments.text("load_segmented_checkpoints", "ckpt_file_dir", ckpt_file_dir)
    if not os.path.isdir(ckpt_file_dir):
        raise CheckpointError(f"load_segmented_checkpoints: there is no folder {ckpt_file_dir!r}")
    paths = sorted(glob.glob(os.path.join(glob.escape(ckpt_file_dir), "*.ckpt")))
    if not paths:
        raise CheckpointError(f"load_segmented_checkpoints: there is no .ckpt file in {ckpt_file_dir!r}")
    loaded: dict[str, Any] = {}
    for path in paths:
        loaded.update(load_checkpoint(path, None, False, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func))
    if net is not None:
        load_param_into_net(net, loaded, strict_load)
    return loaded


def unified_safetensors(
    src_dir: Any,
    src_strategy_file: Any,
    dst_dir: Any,
    merge_with_redundancy: bool = True,
    file_suffix: Optional[str] = None,
    max_process_num: int = 64,
    choice_func: Optional[Callable[[str], Union[bool, str]]] = None,
    split_dst_file: Sequence[int] = (),
) -> None:
    """Put the safetensors files of all ranks together: parameters in ``part0.safetensors`` and so on, of about 3 GiB, and their places in ``param_name_map.json``.

    What the strategy does not name goes into ``hyper_param.safetensors``. `file_suffix` chooses files by the end of their names; `choice_func` gives False for
    a parameter to leave out, or a new name. `split_dst_file`, (i, n), writes the i-th of n shares only. Whether ranks repeat what others hold is seen from the files, so
    `merge_with_redundancy` and `max_process_num` change nothing. Raises ValueError for files that are missing or damaged and for strategies that do not fit.
    """
    function = "unified_safetensors"
    kind, files = _source_files(src_dir, function, file_suffix)
    if kind != "safetensors":
        raise ValueError(f"{function}: {os.fspath(src_dir)!r} holds .ckpt files; see ckpt_to_safetensors")
    if split_dst_file and (len(split_dst_file) != 2 or not 1 <= split_dst_file[0] <= split_dst_file[1]):
        raise ValueError(f"{function}: split_dst_file must be (i, n) with 1 <= i <= n, not {split_dst_file!r}")
    source = layouts_of(src_strategy_file)
    if source is None:
        raise TypeError(f"{function}: src_strategy_file must name a strategy file")
    count = _count(source)
    # Files are looked into one after the other, and parameters read as they are put together: no more is in memory than a part.
    contents = {rank: _lengths(path) for rank, path in files.items()}
    titles: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for name in dict.fromkeys(n for content in contents.values() for n in content):
        if name not in source or name.startswith("accu_grads"):
            continue
        chosen = True if choice_func is None else choice_func(name)
        if not isinstance(chosen, (bool, str)):
            raise ValueError(f"{function}: choice_func must give a bool or a name, not {chosen!r}")
        if chosen is False:
            continue
        titles[name] = chosen if isinstance(chosen, str) else name
        some = next(content[name] for content in contents.values() if name in content)
        sizes[name] = some * math.prod(source[name].cuts())
    if len(set(titles.values())) != len(titles):
        raise ValueError(f"{function}: choice_func gives two parameters the same name")
    groups: list[list[str]] = [[] for _ in range(max(1, min(-(-sum(sizes.values()) // _PART), len(sizes))))]
    loads = [0] * len(groups)
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        lightest = loads.index(min(loads))
        groups[lightest].append(name)
        loads[lightest] += sizes[name]
    os.makedirs(dst_dir, exist_ok=True)
    share = range(len(groups))
    if split_dst_file:
        i, n = split_dst_file
        share = range((i - 1) * len(groups) // n, i * len(groups) // n)
    for number in share:
        made: dict[str, Entry] = {}
        for name in groups[number]:
            held = [r for r in files if name in contents[r]]
            stage = held[0] // count
            parts: dict[int, Array] = {}
            for rank in (r for r in held if r // count == stage):
                entry = read_safetensors(files[rank], wanted=name.__eq__)[name]
                assert not isinstance(entry, str)
                parts[rank % count] = entry
            made[titles[name]] = _assembled(name, source[name], _unsharded(next(iter(parts.values())).ndim), 0, parts)
        write_safetensors(os.path.join(dst_dir, f"part{number}.safetensors"), made)
    if not split_dst_file or split_dst_file[0] == 1:
        others = [n for n in contents[min(contents)] if n not in source]
        if others:
            kept = read_safetensors(files[min(files)], wanted=set(others).__contains__)
            write_safetensors(os.path.join(dst_dir, "hyper_param.safetensors"), kept)
        places = {titles[name]: f"part{i}.safetensors" for i, group in enumerate(groups) for name in group}
        described = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": places}
        with replacing(os.path.join(dst_dir, "param_name_map.json"), "checkpoint") as temporary:
            temporary.write_text(json.dumps(described, indent=4), encoding="utf-8")


def _lengths(path: str) -> dict[str, int]:
    """How many bytes each tensor of a safetensors file has, from its header."""
    try:
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return {n: e["data_offsets"][1] - e["data_offsets"][0] for n, e in header.items() if n != "__metadata__"}
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise CheckpointError(f"{path}: damaged, or not a safetensors file: {error}") from error


def load_distributed_checkpoint(
    network: Optional[Cell],
    checkpoint_filenames: Optional[list[str]] = None,
    predict_strategy: Any = None,
    train_strategy_filename: Any = None,
    strict_load: bool = False,
    dec_key: Optional[bytes] = None,
    dec_mode: str = "AES-GCM",
    format: str = "ckpt",
    unified_safetensors_dir: Any = None,
    dst_safetensors_dir: Any = None,
    rank_id: Optional[int] = None,
    output_format: str = "safetensors",
    name_map: Optional[Mapping[str, str]] = None,
    max_process_num: int = 64,
    return_param_dict: bool = False,
) -> Any:
    """Load the checkpoints of all ranks into a network, put together and cut as this process needs it.

    With `format` "ckpt", `checkpoint_filenames` are the files of a stage in the order of ranks, cut by the strategy in `train_strategy_filename` (default: the `strategy_ckpt_load_file` of
    `set_auto_parallel_context`); `predict_strategy` maps names to ``[device matrix, tensor map, ...]`` for this network, None to whole parameters. With "safetensors", `unified_safetensors_dir` is
    what `unified_safetensors` wrote, and `predict_strategy` the name of a strategy file; without a network the parts are saved in ``dst_safetensors_dir/rank_<i>/net.<output_format>``, for `rank_id` or all
    ranks. `name_map` maps names of the network to those in the files.

    Gives True; with "safetensors" and a network what `load_param_into_net` gives, or the parameters with `return_param_dict`. Raises TypeError and ValueError for arguments and files that do not fit; the network is unchanged then.
    """
    function = "load_distributed_checkpoint"
    for title, value in (("format", format), ("output_format", output_format)):
        arguments.one_of(function, title, value, _WRITERS)
    if format == "safetensors":
        if unified_safetensors_dir is None:
            raise ValueError(f"{function}: format 'safetensors' needs unified_safetensors_dir")
        if (
            checkpoint_filenames is not None
            or train_strategy_filename is not None
            or dec_key is not None
            or strict_load
        ):
            raise ValueError(
                f"{function}: checkpoint_filenames, train_strategy_filename, dec_key and strict_load go with format 'ckpt'"
            )
        if network is None:
            return _save_unified(
                unified_safetensors_dir, predict_strategy, dst_safetensors_dir, rank_id, output_format, name_map
            )
        entries = _unified(unified_safetensors_dir, predict_strategy, get_rank(), name_map)
        parameters = {name: Parameter(Tensor.from_numpy(a), name=name) for name, a in entries.items()}
        return parameters if return_param_dict else load_param_into_net(network, parameters)
    network = arguments.instance(function, "network", network, Cell)
    if not isinstance(checkpoint_filenames, (list, tuple)) or not checkpoint_filenames:
        raise ValueError(
            f"{function}: checkpoint_filenames must be a list of files in the order of ranks, not {checkpoint_filenames!r}"
        )
    if train_strategy_filename is None:
        import mycel

        train_strategy_filename = mycel.get_auto_parallel_context("strategy_ckpt_load_file") or None
        if train_strategy_filename is None:
            raise ValueError(
                f"{function}: give train_strategy_filename, or strategy_ckpt_load_file in set_auto_parallel_context"
            )
    source = layouts_of(train_strategy_filename)
    if len(checkpoint_filenames) != _count(source):
        raise ValueError(
            f"{function}: {len(checkpoint_filenames)} files are given, and the strategy is for {_count(source)} devices"
        )
    files = {
        r: load_checkpoint(path, dec_key=dec_key, dec_mode=dec_mode) for r, path in enumerate(checkpoint_filenames)
    }
    goals = _predicted(predict_strategy)
    own = {p.name for _, p in network.parameters_and_names()}
    arrays = {
        r: {n: v if isinstance(v, str) else v.asnumpy() for n, v in file.items() if n in own}
        for r, file in files.items()
    }
    missing = sorted(own - set(source or ()))
    if missing:
        logger.warning(
            "%s: %s of the network are not in the strategy, so that they are taken as they are on rank 0",
            function,
            ", ".join(missing[:20]),
        )
    made = _transformed(get_rank(), source, goals, 0, arrays)
    for name, group in _shard_groups(predict_strategy):
        entry = made.get(name)
        if isinstance(entry, np.ndarray):
            made[name] = np.split(entry, get_group_size(group))[get_rank(group)]
    parameters = {
        name: Parameter(Tensor.from_numpy(a), name=name) for name, a in made.items() if not isinstance(a, str)
    }
    load_param_into_net(network, parameters, strict_load)
    return True


def _predicted(strategy: Any) -> Layouts:
    if strategy is None:
        return None
    good = isinstance(strategy, Mapping) and all(
        isinstance(n, str) and isinstance(v, (list, tuple)) and len(v) >= 4 and v[3] == 0 for n, v in strategy.items()
    )
    if not good:
        raise ValueError(
            "load_distributed_checkpoint: predict_strategy must map names to lists [device matrix, tensor map, split shape, field size 0, ...]"
        )
    return {name: layout(name, tuple(entry[0]), list(entry[1])) for name, entry in strategy.items()} or None


def _shard_groups(strategy: Any) -> list[tuple[str, str]]:
    """The parameters that the optimizer shards in the network at hand, with the groups that share them."""
    return [(n, v[5]) for n, v in (strategy or {}).items() if len(v) > 5 and v[5]]


def _unified(folder: Any, strategy: Any, rank: int, names: Optional[Mapping[str, str]]) -> dict[str, Array]:
    """What a rank needs of the files that unified_safetensors wrote."""
    function = "load_distributed_checkpoint"
    path = os.path.join(folder, "param_name_map.json")
    files = sorted(glob.glob(os.path.join(glob.escape(os.fspath(folder)), "*.safetensors")))
    if os.path.isfile(path):
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            places = {str(n): os.path.basename(str(f)) for n, f in content.get("weight_map", content).items()}
        except (ValueError, AttributeError) as error:
            raise CheckpointError(f"{path}: damaged, or not a map of names to files: {error}") from error
    elif len(files) == 1:
        places = dict.fromkeys(_lengths(files[0]), os.path.basename(files[0]))
    else:
        raise CheckpointError(
            f"{function}: {os.fspath(folder)!r} holds {len(files)} safetensors files and no param_name_map.json that says what is where"
        )
    _, target, stage = _strategies(rank, None, strategy, function)
    own = {held: name for name, held in (names or {}).items()}
    made: dict[str, Array] = {}
    for held, place in places.items():
        name = own.get(held, held)
        if target is not None and name not in target:
            continue
        found = read_safetensors(os.path.join(folder, place), wanted=held.__eq__)
        if held not in found:
            raise CheckpointError(
                f"{os.path.join(folder, place)}: it lacks {held!r}, which param_name_map.json says it holds"
            )
        whole = found[held]
        assert not isinstance(whole, str)
        goal = _target_of(name, target, stage, whole.ndim)
        if goal is not None:
            made[name] = _assembled(name, _unsharded(whole.ndim), goal, rank % _count(target), {0: whole})
    extra = os.path.join(folder, "hyper_param.safetensors")
    if os.path.isfile(extra):
        made.update({n: a for n, a in read_safetensors(extra).items() if not isinstance(a, str)})
    return made


def _save_unified(
    folder: Any, strategy: Any, target: Any, rank: Optional[int], kind: str, names: Optional[Mapping[str, str]]
) -> bool:
    if target is None:
        raise ValueError("load_distributed_checkpoint: without a network, dst_safetensors_dir says where to save")
    goals = layouts_of(strategy)
    for number in range(_count(goals) * _stages(goals)) if rank is None else [rank]:
        place = os.path.join(os.fspath(target), f"rank_{number}")
        made = _unified(folder, strategy, number, names)
        os.makedirs(place, exist_ok=True)
        _WRITERS[kind](os.path.join(place, f"net.{kind}"), made)
    return True


def get_ckpt_path_with_strategy(cur_ckpt_path: str, cur_strategy_path: Any) -> Optional[str]:
    """The checkpoint that this rank can be restored from: `cur_ckpt_path` if it is there, else that of a rank that holds the same; None where there is none.

    Ranks are told by ``rank_<i>`` in the path. Ranks hold the same where the strategy file cuts no parameter differently for them.
    """
    cur_ckpt_path = os.fspath(cur_ckpt_path)
    rank = get_rank()
    if f"rank_{rank}" in cur_ckpt_path and os.path.isfile(cur_ckpt_path):
        return cur_ckpt_path
    strategy = layouts_of(build_searched_strategy(cur_strategy_path)) or {}
    count = _count(strategy or None)
    same = set(range(count))
    for name, entry in strategy.items():
        if not name.startswith(("accu_grads", "inputs")):
            same &= {r for r in range(count) if entry.place(r) == entry.place(rank % count)}
    for local in sorted(same):
        path = re.sub(r"rank_\d+", f"rank_{rank // count * count + local}", cur_ckpt_path)
        if os.path.isfile(path):
            return path
    return None

"""Distributed checkpoints as files: split, merged and resharded in one process.

A parameter for another layout is the box that the target rank should have, filled from the boxes of
the source ranks that overlap it (`checkpoint_resharding`). Any file that has the parameter can
serve, first the one in the target rank's own place, so that checkpoints without repetitions
(`remove_redundancy`) are read as others are. Splitting and merging a checkpoint changes no bit.
Files are read where they are written: there is one parameter in memory at a time.

A parameter that the source strategy does not name is whole on every rank; one that the target
strategy does not name is kept whole. One that belongs to other pipeline stages of the target is
left out.
"""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_rank
from mycel.train.checkpoint_format import CheckpointError, write_ckpt, write_safetensors
from mycel.train.checkpoint_resharding import (
    Layouts,
    assembled,
    device_count,
    needed_ranks,
    stage_count,
    unsharded,
)
from mycel.train.stored_values import ArrayValues, StoredValues, stored_ckpt, stored_safetensors
from mycel.train.strategies import Layout, ParallelLayouts, build_searched_strategy, layout, layouts_of, stage_of_file

__all__ = [
    "get_ckpt_path_with_strategy",
    "merge_sliced_parameter",
    "rank_list_for_transform",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
]


Array = np.ndarray[Any, Any]
Stored = StoredValues | str

WRITERS: dict[str, Callable[..., None]] = {"ckpt": write_ckpt, "safetensors": write_safetensors}
READERS: dict[str, Callable[..., dict[str, Stored]]] = {"ckpt": stored_ckpt, "safetensors": stored_safetensors}


# Ranks.


def rank_list_for_transform(rank_id: int, src_strategy_file: Any = None, dst_strategy_file: Any = None) -> list[int]:
    """Return the ranks of the source whose checkpoints a rank of the target is made from, in
    descending order.

    Strategies are names of files, or results of `build_searched_strategy`; None stands for
    parameters that are whole on one device. Raises TypeError for a rank that is not an int,
    ValueError for a rank that the target does not have and for strategies that do not fit.

    >>> import mycel as ms
    >>> from mycel.train.strategies import Dims, ParallelLayouts
    >>> ms.rank_list_for_transform(0, {"w": ParallelLayouts([Dims([4])], [Dims([0, -1])])})
    [3, 2, 1, 0]
    """
    arguments.integer("rank_list_for_transform", "rank_id", rank_id, numpy=False)
    source, target, stage = strategies_of(rank_id, src_strategy_file, dst_strategy_file, "rank_list_for_transform")
    if source is None:
        return [0]
    local: set[int] = set()
    stages: set[int] = set()
    for name, entry in source.items():
        other = target_of(name, target, stage, len(entry.axes))
        if other is not None:
            local |= needed_ranks(entry, other, rank_id % device_count(target))
            stages.update(entry.stages)
    return sorted({s * device_count(source) + r for s in stages for r in local}, reverse=True)


def strategies_of(rank: int, source: Any, target: Any, function: str) -> tuple[Layouts, Layouts, int]:
    """Return the layouts of the strategies `source` and `target`, and the stage of the target that
    `rank` is in.

    `function` is the name in errors.
    """
    layouts = layouts_of(source)
    stages = stage_count(layouts_of(target))
    count = device_count(layouts_of(target))
    if not 0 <= rank < max(count * stages, 1) and target is not None:
        raise ValueError(f"{function}: rank {rank} is not one of the target's {count * stages} ranks")
    stage = rank // count if target is not None else 0
    return layouts, layouts_of(target, stage), stage


def target_of(name: str, target: Layouts, stage: int, axes: int) -> Layout | None:
    """Return the layout that the target has for the parameter `name`, which has `axes` axes.

    It is None for a parameter that is not in this `stage`.
    """
    if target is None or name not in target:
        return unsharded(axes)
    return target[name] if stage in target[name].stages else None


def transformed(
    rank: int, source: Layouts, target: Layouts, stage: int, entries: Mapping[int, Mapping[str, Stored]]
) -> dict[str, Stored]:
    """Return the entries by name that a rank of the target holds.

    `source` and `target` are layouts, `stage` is the rank's stage in the target, and `entries` are
    the contents of the source's files by global rank.
    """
    count = device_count(source)
    made: dict[str, Stored] = {}
    names = dict.fromkeys(name for file in entries.values() for name in file)
    for name in names:
        holding = {r: file[name] for r, file in sorted(entries.items()) if name in file}
        own = holding.get(rank % count, next(iter(holding.values())))
        if isinstance(own, str) or (source is not None and name not in source):
            if target is None or name not in target or stage in target[name].stages:
                made[name] = own
            continue
        arrays = {r: a for r, a in holding.items() if not isinstance(a, str)}
        origin = unsharded(len(own.shape)) if source is None else source[name]
        goal = target_of(name, target, stage, len(own.shape))
        if goal is None:
            continue
        # Stages that share a parameter hold the same values; the first one with files is taken.
        first = min(arrays) // count
        parts = {r % count: a for r, a in arrays.items() if r // count == first}
        made[name] = assembled(name, origin, goal, rank % device_count(target), parts)
    return made


def transform_checkpoint_by_rank(
    rank_id: int,
    checkpoint_files_map: Mapping[int, Any],
    save_checkpoint_file_name: Any,
    src_strategy_file: Any = None,
    dst_strategy_file: Any = None,
) -> None:
    """Write the checkpoint of one rank of the target.

    Args:
        rank_id (int): The rank of the target.
        checkpoint_files_map (Mapping[int, Any]): The files of the source by rank (see
            `rank_list_for_transform`).
        save_checkpoint_file_name (str): The file to write.
        src_strategy_file (str | None): The strategy of the source; None for parameters that are
            whole on one device. Default: None.
        dst_strategy_file (str | None): The strategy of the target; None for parameters that are
            whole on one device. Default: None.

    Raises:
        TypeError: For arguments of other types.
        ValueError: For files that are missing or damaged, for a name that does not end in ".ckpt",
            and for strategies that do not fit.
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
    source, target, stage = strategies_of(rank_id, src_strategy_file, dst_strategy_file, function)
    entries = {rank: stored_ckpt(path) for rank, path in checkpoint_files_map.items()}
    write_ckpt(save_checkpoint_file_name, transformed(rank_id, source, target, stage, entries))


def transform_checkpoints(
    src_checkpoints_dir: Any,
    dst_checkpoints_dir: Any,
    ckpt_prefix: str,
    src_strategy_file: Any = None,
    dst_strategy_file: Any = None,
    process_num: int = 1,
    output_format: str = "ckpt",
) -> None:
    """Write the checkpoints of all ranks of the target.

    If both strategies are of one stage and the source lacks parameters of the target, the source is
    one stage of several: files ``<ckpt_prefix><rank>_part<stage>`` are written, which
    `load_segmented_checkpoints` merges.

    Args:
        src_checkpoints_dir (str): The folder of the source, with ``rank_0/*.ckpt`` or
            ``rank_0/*.safetensors`` and so on; of several files of a rank, the last by name is
            taken.
        dst_checkpoints_dir (str): The folder of the target, where ``rank_0/<ckpt_prefix>0.ckpt``
            and so on are written.
        ckpt_prefix (str): The beginning of names of files.
        src_strategy_file (str | None): The strategy of the source; None for parameters that are
            whole on one device. Default: None.
        dst_strategy_file (str | None): The strategy of the target; None for parameters that are
            whole on one device. Default: None.
        process_num (int): Has no effect: ranks are handled one after the other. Default: 1.
        output_format (str): "ckpt" or "safetensors", which needs a source of that format. Default:
            "ckpt".

    Raises:
        NotADirectoryError: If the source folder is missing.
        ValueError: For files that are missing or damaged and strategies that do not fit; nothing is
            written then for the rank in question.
    """
    function = "transform_checkpoints"
    if not isinstance(ckpt_prefix, str) or os.path.basename(ckpt_prefix) != ckpt_prefix:
        raise TypeError(f"{function}: ckpt_prefix must be a string without a folder, not {ckpt_prefix!r}")
    arguments.one_of(function, "output_format", output_format, WRITERS)
    arguments.integer(function, "process_num", process_num, 1, flags=True, numpy=False, error=ValueError)
    if not os.path.isdir(src_checkpoints_dir):
        raise NotADirectoryError(f"{function}: {os.fspath(src_checkpoints_dir)!r} is not a folder")
    kind, files = source_files(src_checkpoints_dir, function)
    if kind == "ckpt" and output_format == "safetensors":
        raise ValueError(
            f"{function}: output_format 'safetensors' needs safetensors files as a source; see ckpt_to_safetensors"
        )
    source, target = layouts_of(src_strategy_file), layouts_of(dst_strategy_file)
    suffix, offset = "", 0
    if source is not None and target is not None and _one_of_several(source, target):
        stage = stage_of_file(src_strategy_file)
        suffix, offset = f"_part{stage}", stage * device_count(source)
        target = {name: entry for name, entry in target.items() if name in source}
    elif source is not None:
        stage_count(source)
    cached: dict[int, dict[str, Stored]] = {}
    for rank in range(device_count(target) * stage_count(target)):
        if suffix:
            wanted = [offset + r for r in range(device_count(source))]
        else:
            wanted = rank_list_for_transform(rank, src_strategy_file, dst_strategy_file)
        wanted = [r for r in wanted if r in files] if suffix else wanted
        for needed in wanted:
            if needed not in files:
                raise CheckpointError(
                    f"{function}: the checkpoint of rank {needed} is needed for rank {rank}, and is not in "
                    f"{os.fspath(src_checkpoints_dir)!r}"
                )
        cached = {r: cached[r] if r in cached else READERS[kind](files[r]) for r in wanted}
        _, goal, at = strategies_of(rank, None, dst_strategy_file, function)
        if suffix:
            goal = target
        entries = {r - offset: file for r, file in cached.items()}
        made = transformed(rank, source, goal, at, entries)
        folder = os.path.join(os.fspath(dst_checkpoints_dir), f"rank_{rank}")
        os.makedirs(folder, exist_ok=True)
        WRITERS[output_format](os.path.join(folder, f"{ckpt_prefix}{rank}{suffix}.{output_format}"), made)


def _one_of_several(source: Mapping[str, Layout], target: Mapping[str, Layout]) -> bool:
    """Return whether the source is a single pipeline stage of a network that is whole in the
    target.
    """
    if {s for entry in (*source.values(), *target.values()) for s in entry.stages} != {0}:
        return False
    mine, theirs = (
        {n for n in side if not n.startswith(("accu_grads", "adam_v", "adam_m"))} for side in (source, target)
    )
    return mine < theirs


def _numbers(path: str) -> tuple[list[int], str]:
    return [int(n) for n in re.findall(r"\d+", os.path.basename(path))][-2:], path


def _rank_files(folder: Any, kind: str, suffix: str | None = None) -> dict[int, str]:
    """Return the file of each rank, from the subfolders rank_0, rank_1 and so on."""
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


def source_files(folder: Any, function: str, suffix: str | None = None) -> tuple[str, dict[int, str]]:
    kinds = {"ckpt": _rank_files(folder, "ckpt"), "safetensors": _rank_files(folder, "safetensors", suffix)}
    present = [kind for kind, files in kinds.items() if files]
    if len(present) != 1:
        found = "both kinds of file" if present else "neither"
        raise CheckpointError(
            f"{function}: {os.fspath(folder)!r} must hold folders rank_0, rank_1, ... with .ckpt or with .safetensors "
            f"files; it has {found}"
        )
    return present[0], kinds[present[0]]


# One parameter.


def merge_sliced_parameter(sliced_parameters: Any, strategy: Any = None) -> Parameter:
    """Merge the parts of a parameter that ranks hold, given in the order of ranks.

    `strategy` is the result of `build_searched_strategy`; without it the parts are concatenated
    along axis 0. Parts may differ in size along axis 0 if the strategy lists the sizes
    (`param_split_shape`). Raises TypeError for arguments of other types, KeyError for a parameter
    that the strategy lacks, ValueError for parts that do not fit it.

    >>> import mycel as ms
    >>> first = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> second = ms.Parameter(ms.Tensor([3.0, 4.0]), name="w")
    >>> merge_sliced_parameter([first, second]).asnumpy()
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
            raise ValueError(
                f"{function}: part {number} is {parameter.name!r} of shape {list(parameter.shape)}, and part 0 "
                f"{first.name!r} of shape {list(first.shape)}; "
                "name and shape behind axis 0 must be the same"
            )
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
        parts: dict[int, StoredValues] = {rank: ArrayValues(a) for rank, a in enumerate(arrays)}
        return assembled(name, known, unsharded(arrays[0].ndim), 0, parts).array()
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
                f"{function}: the part of {name!r} on rank {rank} has length {array.shape[0]} along axis 0, and the "
                f"strategy says {wanted}"
            )
        grid[place] = array
    return np.block(grid.tolist())


def get_ckpt_path_with_strategy(cur_ckpt_path: str, cur_strategy_path: Any) -> str | None:
    """Return the path of a checkpoint that this rank can be restored from; None if there is none.

    It is `cur_ckpt_path` if that file exists, else the file of a rank that holds the same values.
    The rank of a file is the ``rank_<i>`` in its path. Ranks hold the same values if the strategy
    file `cur_strategy_path` gives them the same part of every parameter.
    """
    cur_ckpt_path = os.fspath(cur_ckpt_path)
    rank = get_rank()
    if f"rank_{rank}" in cur_ckpt_path and os.path.isfile(cur_ckpt_path):
        return cur_ckpt_path
    strategy = layouts_of(build_searched_strategy(cur_strategy_path)) or {}
    count = device_count(strategy or None)
    same = set(range(count))
    for name, entry in strategy.items():
        if not name.startswith(("accu_grads", "inputs")):
            same &= {r for r in range(count) if entry.place(r) == entry.place(rank % count)}
    for local in sorted(same):
        path = re.sub(r"rank_\d+", f"rank_{rank // count * count + local}", cur_ckpt_path)
        if os.path.isfile(path):
            return path
    return None

"""Unified checkpoints: those of all ranks merged into safetensors files, and loaded in parts.

`checkpoint_resharding` moves the elements; `distributed_checkpoints` finds the part of each rank
from a strategy. Parameters are read as they are written, one at a time, or where the network has
them: each rank reads its part once its layout is known.
"""

from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files.atomic_files import replacing
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.ignored_settings import unused
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_group_size, get_rank
from mycel.train.checkpoint_format import CheckpointError, write_safetensors
from mycel.train.checkpoint_resharding import Layouts, assembled, device_count, stage_count, unsharded
from mycel.train.distributed_checkpoints import WRITERS, Stored, source_files, strategies_of, target_of, transformed
from mycel.train.parameter_loading import parameter_of
from mycel.train.parameter_slices import is_parallel
from mycel.train.serialization import entries_of, load_checkpoint, load_param_into_net
from mycel.train.stored_values import ArrayValues, JoinedValues, StoredValues, stored_safetensors
from mycel.train.strategies import layout, layouts_of

__all__ = ["load_distributed_checkpoint", "load_segmented_checkpoints", "unified_safetensors"]


# What a file of unified_safetensors holds at most, about.
_PART = 3 << 30


# Whole networks.


def load_segmented_checkpoints(
    ckpt_file_dir: Any,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: bytes | None = None,
    dec_mode: Any = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Load all ".ckpt" files of a folder, in the order of their names, as one checkpoint.

    Args:
        ckpt_file_dir (str): The folder.
        net (Cell | None): The network that the values are put into too; None for none. Default:
            None.
        strict_load (bool): As in `load_param_into_net`. Default: False.
        filter_prefix (str | Sequence[str] | None): Names that begin so are dropped. Default: None.
        dec_key (bytes | None): The key of an encrypted ckpt file; this needs the package
            cryptography. Default: None.
        dec_mode (str): The mode of its encryption. Default: "AES-GCM".
        specify_prefix (str | Sequence[str] | None): Only names that begin so are kept. Default:
            None.
        choice_func (Callable[[str], bool] | None): Which entries to load, by name. Default: None.

    Returns:
        dict[str, Any]: Parameters (and strings) by name.

    Raises:
        TypeError: Unless the folder is a string.
        ValueError: If there is no such folder, no file in it, a damaged file, or nothing to load in
            any.
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
    file_suffix: str | None = None,
    max_process_num: int = 64,
    choice_func: Callable[[str], bool | str] | None = None,
    split_dst_file: Sequence[int] = (),
) -> None:
    """Merge the safetensors files of all ranks.

    Parameters go into ``part0.safetensors`` and so on, of about 3 GiB each, and the names of their
    files into ``param_name_map.json``.

    Args:
        src_dir (str): The folder of the source.
        src_strategy_file (str): The strategy of the source; entries that it does not name go into
            ``hyper_param.safetensors``.
        dst_dir (str): The folder to write to.
        merge_with_redundancy (bool): Has no effect. Default: True.
        file_suffix (str | None): The end of the names of files that are read; None for all.
            Default: None.
        max_process_num (int): Has no effect. Default: 64.
        choice_func (Callable[[str], bool | str] | None): Gives False for a parameter to leave out,
            or a new name. Default: None.
        split_dst_file (Sequence[int]): (i, n) writes only the i-th of n shares. Default: ().

    Raises:
        ValueError: For files that are missing or damaged and for strategies that do not fit.
    """
    function = "unified_safetensors"
    given = {"merge_with_redundancy": (merge_with_redundancy, True), "max_process_num": (max_process_num, 64)}
    unused(function, "files say what they repeat, and are read one by one", **given)
    kind, files = source_files(src_dir, function, file_suffix)
    if kind != "safetensors":
        raise ValueError(f"{function}: {os.fspath(src_dir)!r} holds .ckpt files; see ckpt_to_safetensors")
    if split_dst_file and (len(split_dst_file) != 2 or not 1 <= split_dst_file[0] <= split_dst_file[1]):
        raise ValueError(f"{function}: split_dst_file must be (i, n) with 1 <= i <= n, not {split_dst_file!r}")
    source = layouts_of(src_strategy_file)
    if source is None:
        raise TypeError(f"{function}: src_strategy_file must name a strategy file")
    count = device_count(source)
    # Parameters are read as they are written: there is one in memory at a time.
    contents = {rank: _tensors(path) for rank, path in files.items()}
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
        sizes[name] = some.nbytes * math.prod(source[name].cuts())
    if len(set(titles.values())) != len(titles):
        raise ValueError(f"{function}: choice_func gives two parameters the same name")
    groups = _parts(sizes)
    os.makedirs(dst_dir, exist_ok=True)
    share = range(len(groups))
    if split_dst_file:
        i, n = split_dst_file
        share = range((i - 1) * len(groups) // n, i * len(groups) // n)
    for number in share:
        made: dict[str, Stored] = {}
        for name in groups[number]:
            held = [r for r in files if name in contents[r]]
            stage = held[0] // count
            parts = {rank % count: contents[rank][name] for rank in held if rank // count == stage}
            axes = len(contents[held[0]][name].shape)
            made[titles[name]] = assembled(name, source[name], unsharded(axes), 0, parts)
        write_safetensors(os.path.join(dst_dir, f"part{number}.safetensors"), made)
    if not split_dst_file or split_dst_file[0] == 1:
        others = [n for n in contents[min(contents)] if n not in source]
        if others:
            kept = {name: contents[min(contents)][name] for name in others}
            write_safetensors(os.path.join(dst_dir, "hyper_param.safetensors"), kept)
        places = {titles[name]: f"part{i}.safetensors" for i, group in enumerate(groups) for name in group}
        described = {"metadata": {"total_size": sum(sizes.values())}, "weight_map": places}
        with replacing(os.path.join(dst_dir, "param_name_map.json"), "checkpoint") as temporary:
            temporary.write_text(json.dumps(described, indent=4), encoding="utf-8")


def _tensors(path: str) -> dict[str, StoredValues]:
    """Return the tensors of a safetensors file."""
    return {name: entry for name, entry in stored_safetensors(path).items() if not isinstance(entry, str)}


def _parts(sizes: Mapping[str, int]) -> list[list[str]]:
    """Return the names divided into files of about the same size."""
    groups: list[list[str]] = [[] for _ in range(max(1, min(-(-sum(sizes.values()) // _PART), len(sizes))))]
    loads = [0] * len(groups)
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        lightest = loads.index(min(loads))
        groups[lightest].append(name)
        loads[lightest] += sizes[name]
    return groups


def load_distributed_checkpoint(
    network: Cell | None,
    checkpoint_filenames: list[str] | None = None,
    predict_strategy: Any = None,
    train_strategy_filename: Any = None,
    strict_load: bool = False,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
    format: str = "ckpt",
    unified_safetensors_dir: Any = None,
    dst_safetensors_dir: Any = None,
    rank_id: int | None = None,
    output_format: str = "safetensors",
    name_map: Mapping[str, str] | None = None,
    max_process_num: int = 64,
    return_param_dict: bool = False,
) -> Any:
    """Load the checkpoints of all ranks into a network, merged and cut as this process needs them.

    Args:
        network (Cell | None): The network; None to save the parts.
        checkpoint_filenames (list[str] | None): With "ckpt", the files of a stage in the order of
            ranks. Default: None.
        predict_strategy (dict[str, Any] | str | None): How this network is cut: with "ckpt" names
            to ``[device matrix, tensor map, ...]``, None for whole parameters, with "safetensors"
            the name of a strategy file. Default: None.
        train_strategy_filename (str | None): With "ckpt", the strategy by which the files are cut;
            None for the `strategy_ckpt_load_file` of `set_auto_parallel_context`. Default: None.
        strict_load (bool): As in `load_param_into_net`. Default: False.
        dec_key (bytes | None): As in `load_checkpoint`; with "ckpt" only. Default: None.
        dec_mode (str): As in `load_checkpoint`; with "ckpt" only. Default: "AES-GCM".
        format (str): "ckpt" or "safetensors". Default: "ckpt".
        unified_safetensors_dir (str | None): With "safetensors", the folder that
            `unified_safetensors` wrote. Default: None.
        dst_safetensors_dir (str | None): Without a network, where the parts are saved, as
            ``rank_<i>/net.<output_format>``. Default: None.
        rank_id (int | None): The rank whose parts are saved; None for all. Default: None.
        output_format (str): The format of the saved parts. Default: "safetensors".
        name_map (Mapping[str, str] | None): Names of the network to those in the files. Default:
            None.
        max_process_num (int): Has no effect. Default: 64.
        return_param_dict (bool): Whether, with "safetensors" and a network, the parameters are
            returned. Default: False.

    Returns:
        Any: True; with "safetensors" and a network the result of `load_param_into_net`, or the
            parameters.

    Raises:
        TypeError, ValueError: For arguments and files that do not fit; the network is unchanged
            then.
    """
    function = "load_distributed_checkpoint"
    unused(function, "files are read one after the other", max_process_num=(max_process_num, 64))
    for title, value in (("format", format), ("output_format", output_format)):
        arguments.one_of(function, title, value, WRITERS)
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
                f"{function}: checkpoint_filenames, train_strategy_filename, dec_key and strict_load go with format "
                "'ckpt'"
            )
        if network is None:
            return _save_unified(
                unified_safetensors_dir, predict_strategy, dst_safetensors_dir, rank_id, output_format, name_map
            )
        entries = _unified(unified_safetensors_dir, predict_strategy, get_rank(), name_map)
        if return_param_dict and not is_parallel():
            return {name: Parameter(Tensor.from_numpy(values.array()), name=name) for name, values in entries.items()}
        parameters = {name: parameter_of(name, values) for name, values in entries.items()}
        return parameters if return_param_dict else load_param_into_net(network, parameters)
    return _load_ranks(
        network, checkpoint_filenames, predict_strategy, train_strategy_filename, strict_load, dec_key, dec_mode
    )


def _load_ranks(
    network: Any,
    checkpoint_filenames: Any,
    predict_strategy: Any,
    train_strategy_filename: Any,
    strict_load: bool,
    dec_key: bytes | None,
    dec_mode: str,
) -> bool:
    """Load the files of a stage, one a rank, into a network."""
    function = "load_distributed_checkpoint"
    network = arguments.instance(function, "network", network, Cell)
    if not isinstance(checkpoint_filenames, (list, tuple)) or not checkpoint_filenames:
        raise ValueError(
            f"{function}: checkpoint_filenames must be a list of files in the order of ranks, not "
            f"{checkpoint_filenames!r}"
        )
    if train_strategy_filename is None:
        import mycel

        train_strategy_filename = mycel.get_auto_parallel_context("strategy_ckpt_load_file") or None
        if train_strategy_filename is None:
            raise ValueError(
                f"{function}: give train_strategy_filename, or strategy_ckpt_load_file in set_auto_parallel_context"
            )
    source = layouts_of(train_strategy_filename)
    if len(checkpoint_filenames) != device_count(source):
        raise ValueError(
            f"{function}: {len(checkpoint_filenames)} files are given, and the strategy is for {device_count(source)} "
            "devices"
        )
    own = {p.name for _, p in network.parameters_and_names()}
    files = {
        rank: entries_of(path, "ckpt", own.__contains__, False, dec_key, dec_mode, stored=True)
        for rank, path in enumerate(checkpoint_filenames)
    }
    entries = {rank: {name: _values(entry) for name, entry in file.items()} for rank, file in files.items()}
    goals = _predicted(predict_strategy)
    missing = sorted(own - set(source or ()))
    if missing:
        logger.warning(
            "%s: %s of the network are not in the strategy, so that they are taken as they are on rank 0",
            function,
            ", ".join(missing[:20]),
        )
    made = transformed(get_rank(), source, goals, 0, entries)
    if goals is not None:
        # Parameters that are whole here are divided when the network is called.
        shapes = {p.name: tuple(p.shape) for _, p in network.parameters_and_names()}
        parts = [n for n, a in made.items() if n in shapes and not isinstance(a, str) and a.shape != shapes[n]]
        if parts:
            known = {r: {n: file[n] for n in parts if n in file} for r, file in entries.items()}
            whole = transformed(get_rank(), source, None, 0, known)
            made.update({n: a for n, a in whole.items() if not isinstance(a, str) and a.shape == shapes[n]})
    for name, group in _shard_groups(predict_strategy):
        entry = made.get(name)
        if isinstance(entry, StoredValues):
            made[name] = _share(entry, get_rank(group), get_group_size(group))
    parameters = {name: parameter_of(name, a) for name, a in made.items() if not isinstance(a, str)}
    load_param_into_net(network, parameters, strict_load)
    return True


def _values(entry: Any) -> Stored:
    return ArrayValues(entry) if isinstance(entry, np.ndarray) else entry


def _share(values: StoredValues, rank: int, count: int) -> StoredValues:
    """Return one of `count` equal shares of values along axis 0."""
    size, left = divmod(values.shape[0], count) if values.shape else (0, 1)
    if left:
        raise CheckpointError(f"values of shape {list(values.shape)} have no {count} equal shares along axis 0")
    shape = (size, *values.shape[1:])
    firsts = (rank * size, *[0] * len(shape[1:]))
    return JoinedValues(shape, values.kind, [(tuple([(0, n) for n in shape]), firsts, values)])


def _predicted(strategy: Any) -> Layouts:
    if strategy is None:
        return None
    good = isinstance(strategy, Mapping) and all(
        isinstance(n, str) and isinstance(v, (list, tuple)) and len(v) >= 4 and v[3] == 0 for n, v in strategy.items()
    )
    if not good:
        raise ValueError(
            "load_distributed_checkpoint: predict_strategy must map names to lists [device matrix, tensor map, split "
            "shape, field size 0, ...]"
        )
    return {name: layout(name, tuple(entry[0]), list(entry[1])) for name, entry in strategy.items()} or None


def _shard_groups(strategy: Any) -> list[tuple[str, str]]:
    """Return the parameters of the present network that the optimizer shards, with the groups that
    share them.
    """
    return [(n, v[5]) for n, v in (strategy or {}).items() if len(v) > 5 and v[5]]


def _unified(folder: Any, strategy: Any, rank: int, names: Mapping[str, str] | None) -> dict[str, StoredValues]:
    """Return the values that a rank needs from the files that `unified_safetensors` wrote."""
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
        places = dict.fromkeys(_tensors(files[0]), os.path.basename(files[0]))
    else:
        raise CheckpointError(
            f"{function}: {os.fspath(folder)!r} holds {len(files)} safetensors files and no param_name_map.json that "
            "says what is where"
        )
    _, target, stage = strategies_of(rank, None, strategy, function)
    own = {held: name for name, held in (names or {}).items()}
    made: dict[str, StoredValues] = {}
    known: dict[str, dict[str, StoredValues]] = {}
    for held, place in places.items():
        name = own.get(held, held)
        if target is not None and name not in target:
            continue
        if place not in known:
            known[place] = _tensors(os.path.join(folder, place))
        if held not in known[place]:
            raise CheckpointError(
                f"{os.path.join(folder, place)}: it lacks {held!r}, which param_name_map.json says it holds"
            )
        whole = known[place][held]
        axes = len(whole.shape)
        goal = target_of(name, target, stage, axes)
        if goal is not None:
            made[name] = assembled(name, unsharded(axes), goal, rank % device_count(target), {0: whole})
    extra = os.path.join(folder, "hyper_param.safetensors")
    if os.path.isfile(extra):
        made.update(_tensors(extra))
    return made


def _save_unified(
    folder: Any, strategy: Any, target: Any, rank: int | None, kind: str, names: Mapping[str, str] | None
) -> bool:
    if target is None:
        raise ValueError("load_distributed_checkpoint: without a network, dst_safetensors_dir says where to save")
    goals = layouts_of(strategy)
    for number in range(device_count(goals) * stage_count(goals)) if rank is None else [rank]:
        place = os.path.join(os.fspath(target), f"rank_{number}")
        made = _unified(folder, strategy, number, names)
        os.makedirs(place, exist_ok=True)
        WRITERS[kind](os.path.join(place, f"net.{kind}"), made)
    return True

"""Checkpoints of networks and optimizers: saving, loading, and loading into a network.

A checkpoint maps names to tensors and strings; `checkpoint_format` has the file formats. Saving is
atomic, so a file always holds a whole checkpoint. Asynchronous saves copy the values first and are
written by one background thread in the order of the calls. Loading waits for them, and so does the
exit of the interpreter; a failed save is logged at once, and its error raised by the next save or
load. Loading into a network checks everything before it changes anything.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mycel._src.compiler.transport.current_transport import transport
from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.system import locks
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.encryption import check_key
from mycel.train.checkpoint_format import (
    CheckpointError,
    Entry,
    Saved,
    read_ckpt,
    read_safetensors,
    safetensors_order,
    write_ckpt,
    write_safetensors,
)
from mycel.train.parameter_loading import fitted, parameter_of
from mycel.train.parameter_slices import entry_of, is_parallel, put_part, take_values, written_together
from mycel.train.saving_options import check_saving
from mycel.train.sharded_checkpoint import (
    ShardedCheckpoint,
    byte_count,
    index_of,
    read_shards,
    shards_order,
    stored_shards,
    write_shards,
)
from mycel.train.stored_values import StoredValues, stored_ckpt, stored_safetensors

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = [
    "CheckpointError",
    "async_ckpt_thread_status",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "save_checkpoint",
]

_FORMATS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "ckpt": (read_ckpt, write_ckpt),
    "safetensors": (read_safetensors, write_safetensors),
}
STORED: dict[str, Callable[..., dict[str, StoredValues | str]]] = {
    "ckpt": stored_ckpt,
    "safetensors": stored_safetensors,
}


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: Any,
    integrated_save: bool = True,
    async_save: Any = False,
    append_dict: Mapping[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: Any = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **kwargs: Any,
) -> None:
    """Save parameters to a file that MindSpore reads too, whole or not at all.

    Args:
        save_obj (Cell | dict[str, Any] | list[Any]): A Cell, a dict of parameters by name, a list
            of parameters, or a list of ``{"name": ..., "data": ...}``.
        ckpt_file_name (str | os.PathLike[str]): The file; the suffix of `format` is added where it
            is missing.
        integrated_save (bool): Whether parameters that the ranks of a launch have apart are joined,
            for which all ranks have to save at the same place, each a file of its own; otherwise
            each saves its parts, which strategy files explain. Default: True.
        async_save (bool): Whether (True, "thread" or "process") to return at once and write in the
            background. Default: False.
        append_dict (Mapping[str, Any] | None): Numbers, booleans, tensors, generators' states and,
            in ckpt files, strings to add; these replace entries of `save_obj` with the same names.
            Default: None.
        enc_key (bytes | None): The key, of 16, 24 or 32 bytes, that encrypts a ckpt file; this
            needs the package cryptography. Default: None.
        enc_mode (str): "AES-GCM", "AES-CBC" or "SM4-CBC". Default: "AES-GCM".
        choice_func (Callable[[str], bool] | None): Which parameters to save, by name. Default:
            None.
        crc_check (bool): Whether a checksum is added. Default: False.
        format (str): "ckpt" or "safetensors". Default: "ckpt".
        **kwargs (Any): `incremental`, `remove_redundancy` and `global_step_num`, which have no
            effect, which is logged, and ``max_shard_size="5GB"`` (or a number of bytes), an
            argument of Mycel's own, with which a larger safetensors checkpoint goes into several
            files with an index (`mycel.train.sharded_checkpoint`).

    Raises:
        TypeError, ValueError: For arguments that cannot be saved.
        OSError: If the file cannot be written.

    Examples:
        >>> import mycel as ms, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.ckpt"
        >>> values = [{"name": "w", "data": ms.Tensor([1.0, 2.0])}]
        >>> ms.save_checkpoint(values, path, append_dict={"epoch": 3})
        >>> ms.load_checkpoint(path)["epoch"]
        Parameter (name=epoch, shape=(), dtype=Int64, requires_grad=True)
    """
    path = _named(ckpt_file_name, "save_checkpoint")
    _check_format(format, "save_checkpoint")
    if enc_key is not None:
        _check_encryption(enc_key, enc_mode, format, "save_checkpoint", "enc")
    most = kwargs.pop("max_shard_size", None)
    redundant = kwargs.pop("remove_redundancy", False)
    check_saving("save_checkpoint", async_save, crc_check, redundant, enc_mode, kwargs)
    if not arguments.flag("save_checkpoint", "integrated_save", integrated_save) and transport().size == 1:
        without_effect("save_checkpoint(integrated_save=False)", "parameters are whole on one device")
    if most is not None and format != "safetensors":
        raise ValueError("save_checkpoint: max_shard_size is for format='safetensors'; ckpt files are always whole")
    arguments.optional("save_checkpoint", "append_dict", append_dict, dict)
    if choice_func is not None:
        arguments.function("save_checkpoint", "choice_func", choice_func, "a function of a name or None")
    # A name such as "net_ckpt" is taken as it is.
    if not path.endswith("ckpt" if format == "ckpt" else "." + format):
        path += "." + format
    tensors = _collected(save_obj)
    if choice_func is not None:
        tensors = {name: tensor for name, tensor in tensors.items() if choice_func(name)}
    entries: dict[str, Saved] = {name: entry_of(tensor, integrated_save) for name, tensor in tensors.items()}
    for name, value in (append_dict or {}).items():
        entries[name] = _appended(name, value)
    _background.raise_failure()
    write = _FORMATS[format][1]
    if most is not None:
        write = functools.partial(write_shards, most=byte_count(most))
    if enc_key is not None:
        write = functools.partial(write_ckpt, key=enc_key, mode=enc_mode)
    if async_save:
        copies = {name: _copied(entry) for name, entry in entries.items()}
        _background.submit(lambda: write(path, copies, checksum=crc_check))
    else:
        _background.wait()
        order = list(entries)
        if format == "safetensors":
            order = safetensors_order(entries) if most is None else shards_order(entries, byte_count(most))
        written_together(lambda: write(path, entries, checksum=crc_check), entries, order)


def _copied(entry: Saved) -> Entry:
    if isinstance(entry, str):
        return entry
    return entry.copy() if isinstance(entry, (np.ndarray, np.generic)) else entry.array()


def load_checkpoint(
    ckpt_file_name: Any,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: bytes | None = None,
    dec_mode: Any = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, Any]:
    """Load a checkpoint.

    Files may come from Mycel or MindSpore; nothing in them is executed.

    Args:
        ckpt_file_name (str | os.PathLike[str]): The file; for a checkpoint in several safetensors
            files the index or the folder (`mycel.train.ShardedCheckpoint` reads such a checkpoint
            tensor by tensor).
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
        crc_check (bool): Whether the checksum is compared, and a file without one refused. Default:
            False.
        remove_redundancy (bool): As in `load_param_into_net`. Default: False.
        format (str): "ckpt" or "safetensors". Default: "ckpt".

    Returns:
        dict[str, Any]: Parameters (and strings) by name.

    Raises:
        ValueError: For a missing, damaged or empty file (a CheckpointError, with the file and the
            entry in its message).

    Examples:
        >>> import mycel as ms, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.ckpt"
        >>> ms.save_checkpoint({"w": ms.Parameter(1.0), "b": ms.Parameter(2.0)}, path)
        >>> ms.load_checkpoint(path, specify_prefix="w")
        {'w': Parameter (name=w, shape=(), dtype=Float32, requires_grad=True)}
    """
    arguments.flag("load_checkpoint", "remove_redundancy", remove_redundancy, error=ValueError)
    wanted = _wanted(
        _prefixes(specify_prefix, "specify_prefix"), _prefixes(filter_prefix, "filter_prefix"), choice_func
    )
    entries = entries_of(ckpt_file_name, format, wanted, crc_check, dec_key, dec_mode)
    loaded = {name: entry if isinstance(entry, str) else parameter_of(name, entry) for name, entry in entries.items()}
    if net is not None:
        load_param_into_net(net, loaded, strict_load, remove_redundancy)
    return loaded


def entries_of(
    ckpt_file_name: Any,
    format: Any,
    wanted: Callable[[str], bool],
    crc_check: bool,
    dec_key: bytes | None,
    dec_mode: Any,
    stored: bool = False,
) -> Mapping[str, Entry | StoredValues]:
    """Return the entries of a checkpoint whose names are `wanted`.

    `ckpt_file_name`, `format`, `crc_check`, `dec_key` and `dec_mode` are those of
    `load_checkpoint`, and so are the errors.

    They are arrays, or where a rank may want a part of them, or if `stored`, values in the file.
    """
    path = _named(ckpt_file_name, "load_checkpoint")
    _check_format(format, "load_checkpoint")
    if dec_key is not None:
        _check_encryption(dec_key, dec_mode, format, "load_checkpoint", "dec")
    index = index_of(path) if format == "safetensors" else None
    if not path.endswith(format) and index is None:
        raise ValueError(
            f"load_checkpoint: {path!r} does not end in '{format}'; give its type as format='ckpt' or 'safetensors'"
        )
    _background.wait()
    _background.raise_failure()
    if not os.path.isfile(index or path):
        raise CheckpointError(f"load_checkpoint: there is no file {path!r}")
    entries: Mapping[str, Entry | StoredValues]
    if dec_key is not None:
        entries = read_ckpt(path, wanted=wanted, verify=crc_check, key=dec_key, mode=dec_mode)
    elif is_parallel() or stored:
        # Each rank reads its part of a parameter, once it is known which that is.
        entries = stored_shards(index, wanted, crc_check) if index else STORED[format](path, wanted, crc_check)
    elif index:
        entries = read_shards(index, wanted, crc_check)
    else:
        entries = _FORMATS[format][0](path, wanted=wanted, verify=crc_check)
    if not entries:
        raise CheckpointError(
            f"load_checkpoint: nothing to load in {path!r}: it is empty, or the choice by name drops all of it"
        )
    return entries


def load_param_into_net(
    net: Cell, parameter_dict: Mapping[str, Any], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Put the values of a loaded checkpoint into the parameters of a network that have the same
    names.

    Unless `strict_load` is given, floating types are converted into each other, as are int32 and
    int64, with a logged warning; and if no name fits at all, a prefix that all names have
    ("network.") is removed. (MindSpore removes prefixes even if some names fit, by which
    "moments.w" may become "w"; here such names are reported.)

    Args:
        net (Cell): The network; trailing dimensions of size 1 may be missing in it.
        parameter_dict (Mapping[str, Any]): The values by name.
        strict_load (bool): Whether types and names have to be the same. Default: False.
        remove_redundancy (bool): Has no effect. Default: False.

    Returns:
        tuple[list[str], list[str]]: The names in `net` that were not loaded and the names in
            `parameter_dict` that were not used.

    Raises:
        TypeError: For arguments of other types.
        RuntimeError: For shapes or types that do not fit; the network is unchanged then.

    Examples:
        >>> import mycel as ms
        >>> cell = ms.nn.Cell()
        >>> cell.w = ms.Parameter(ms.Tensor([1.0, 2.0]))
        >>> loaded = {"w": ms.Parameter(ms.Tensor([3.0, 4.0])), "epoch": ms.Parameter(7)}
        >>> ms.load_param_into_net(cell, loaded)
        ([], ['epoch'])
        >>> cell.w.asnumpy()
        array([3., 4.], dtype=float32)
    """
    arguments.instance("load_param_into_net", "net", net, Cell)
    if isinstance(parameter_dict, _LaterParameters):
        parameter_dict = parameter_dict.result()
    lazy = parameter_dict if isinstance(parameter_dict, ShardedCheckpoint) else None
    arguments.mapping("load_param_into_net", "parameter_dict", parameter_dict)
    arguments.flag("load_param_into_net", "strict_load", strict_load)
    arguments.flag("load_param_into_net", "remove_redundancy", remove_redundancy, error=ValueError)
    for name, value in () if lazy is not None else parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, (Tensor, str)):
            raise TypeError(
                f"load_param_into_net: parameter_dict takes names to parameters, not {name!r} to {type(value).__name__}"
            )
    own = _named_parameters(net)
    tensors = list(lazy) if lazy is not None else [n for n, v in parameter_dict.items() if isinstance(v, Tensor)]
    known = set(tensors)
    source = {name: name for name in own if name in known}
    if not source and not strict_load:
        source = _under_prefix(own, tensors)
    values = {
        name: fitted(own[name], lazy.stored(found) if lazy is not None else parameter_dict[found], strict_load)
        for name, found in source.items()
    }
    for name, value in values.items():
        if isinstance(value, StoredValues):
            take_values(own[name], value)
        elif value.shape != tuple(own[name].shape):
            put_part(own[name], value)
        else:
            own[name].set_data(Tensor.from_numpy(value))
    missing = [name for name in own if name not in source]
    if missing:
        logger.warning(
            "load_param_into_net: %d of %d parameters of the network are not in the checkpoint: %s",
            len(missing),
            len(own),
            ", ".join(missing[:20]) + (", ..." if len(missing) > 20 else ""),
        )
    used = set(source.values())
    return missing, [name for name in parameter_dict if name not in used]


class _LaterParameters(Mapping[str, Any]):
    """Parameters that are being loaded; access to them waits."""

    def __init__(self, future: Future[dict[str, Any]]) -> None:
        self._future = future

    def result(self) -> dict[str, Any]:
        """Return the loaded parameters; raises what loading raised."""
        return self._future.result()

    def __getitem__(self, name: str) -> Any:
        return self.result()[name]

    def __iter__(self) -> Any:
        return iter(self.result())

    def __len__(self) -> int:
        return len(self.result())


def load_checkpoint_async(
    ckpt_file_name: Any,
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: Any = None,
    dec_key: bytes | None = None,
    dec_mode: Any = "AES-GCM",
    specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None,
) -> _LaterParameters:
    """Load a checkpoint in a background thread.

    Args:
        ckpt_file_name (str | os.PathLike[str]): The file; for a checkpoint in several safetensors
            files the index or the folder (`mycel.train.ShardedCheckpoint` reads such a checkpoint
            tensor by tensor).
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
        Mapping[str, Any]: Parameters by name: waits for them at the first access, or in its
            `result()`; errors of loading are raised there.
    """
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(1, "mycel-load")
    future = executor.submit(
        load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func
    )
    executor.shutdown(wait=False)
    return _LaterParameters(future)


def async_ckpt_thread_status() -> bool:
    """Return whether asynchronous saves are still being written."""
    return _background.busy()


def finish_async_saves() -> None:
    """Wait until every asynchronous save is written.

    Raises RuntimeError if one failed.
    """
    _background.wait()
    _background.raise_failure()


def after_async_saves(work: Callable[[], None]) -> None:
    """Run `work` once the present asynchronous saves are written: now if there are none, else in
    their thread.
    """
    if _background.busy():
        _background.submit(work)
    else:
        work()


class _Background:
    """The thread that writes asynchronous saves, started with the first of them."""

    def __init__(self) -> None:
        self._changed = locks.condition()
        self._executor: ThreadPoolExecutor | None = None
        self._pending = 0
        self._failure: Exception | None = None

    def submit(self, work: Callable[[], None]) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with self._changed:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, "mycel-save")
            self._executor.submit(self._run, work)
            self._pending += 1

    def _run(self, work: Callable[[], None]) -> None:
        failure: Exception | None = None
        try:
            work()
        except Exception as error:
            failure = error
            logger.error("save_checkpoint: an asynchronous save failed: %s", error)
        with self._changed:
            self._pending -= 1
            self._failure = failure or self._failure
            self._changed.notify_all()

    def busy(self) -> bool:
        with self._changed:
            return self._pending > 0

    def wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._pending == 0)

    def raise_failure(self) -> None:
        with self._changed:
            failure, self._failure = self._failure, None
        if failure is not None:
            raise RuntimeError(f"an earlier asynchronous save_checkpoint failed: {failure}") from failure


_background = _Background()


@locks.in_child
def _in_child() -> None:
    # What was being saved is the parent's.
    _background._executor, _background._pending, _background._failure = None, 0, None


def _named(path: Any, function: str) -> str:
    return os.fsdecode(arguments.path(function, "ckpt_file_name", path))


def _check_format(format: Any, function: str) -> None:
    if not isinstance(format, str) or format not in _FORMATS:
        raise ValueError(f"{function}: format must be 'ckpt' or 'safetensors', not {format!r}")


def _check_encryption(key: Any, mode: Any, format: str, function: str, prefix: str) -> None:
    check_key(key, mode, function, prefix)
    if format != "ckpt":
        raise ValueError(f"{function}: {prefix}_key goes with format='ckpt'; safetensors files are not encrypted")


def _named_parameters(cell: Cell) -> dict[str, Parameter]:
    """Return parameters by their own names, which a wrapping cell does not change.

    If names are missing or not distinct, they are returned by their paths.
    """
    found = list(cell.parameters_and_names())
    named = {(p.name if p.has_name else path): p for path, p in found}
    return named if len(named) == len(found) else dict(found)


def _unique(named: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    seen: dict[str, Any] = {}
    for name, parameter in named:
        if seen.setdefault(name, parameter) is not parameter:
            raise ValueError(f"two parameters have the name {name!r}; rename one of them (Parameter(..., name=...))")
        yield name, parameter


def _collected(save_obj: Any) -> dict[str, Tensor]:
    if isinstance(save_obj, Cell):
        return dict(_named_parameters(save_obj))
    if isinstance(save_obj, Mapping):
        named = list(save_obj.items())
    elif isinstance(save_obj, (list, tuple)):
        named = []
        for item in save_obj:
            if isinstance(item, Parameter):
                named.append((item.name, item))
            elif isinstance(item, Mapping) and {"name", "data"} <= set(item):
                named.append((item["name"], item["data"]))
            else:
                raise TypeError(
                    f"save_checkpoint: a list holds parameters or dicts with 'name' and 'data', not {item!r}"
                )
    else:
        raise TypeError(f"save_checkpoint: save_obj must be a Cell, a list or a dict, not {type(save_obj).__name__}")
    for name, value in named:
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise TypeError(
                f"save_checkpoint: save_obj takes names to parameters, not {name!r} to {type(value).__name__}; "
                "numbers and strings go into append_dict"
            )
    return dict(_unique(named))


def _appended(name: Any, value: Any) -> Entry:
    """Return Python numbers as MindSpore stores them: int64, float32 and bool scalars."""
    arguments.text("save_checkpoint", "the names in append_dict", name, what="strings")
    if isinstance(value, str):
        return value
    if hasattr(value, "get_state") and not isinstance(value, Tensor):
        value = value.get_state()
    if isinstance(value, Tensor):
        return value.asnumpy()
    if isinstance(value, (bool, np.bool_)):
        return np.array(value, np.bool_)
    if isinstance(value, (int, np.integer)):
        if not -(2**63) <= value < 2**63:
            raise ValueError(
                f"save_checkpoint: append_dict[{name!r}] = {value} does not fit into 64 bits; save it as a string"
            )
        return np.array(value, np.int64)
    if isinstance(value, (float, np.floating)):
        return np.array(value, np.float32)
    raise TypeError(
        f"save_checkpoint: append_dict[{name!r}] is of type {type(value).__name__}; it takes int, float, bool, str, "
        "Tensor, "
        "Parameter and Generator"
    )


def _prefixes(given: Any, title: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    prefixes = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple)) else None
    if prefixes is None or not all(isinstance(prefix, str) for prefix in prefixes):
        raise TypeError(f"load_checkpoint: {title} must be a string, or a list or tuple of them, not {given!r}")
    if not prefixes or not all(prefixes):
        raise ValueError(f"load_checkpoint: {title} must be a string that is not empty, or several, not {given!r}")
    return prefixes


def _wanted(
    keep: tuple[str, ...] | None, drop: tuple[str, ...] | None, choice: Callable[[str], bool] | None
) -> Callable[[str], bool]:
    if choice is not None and not callable(choice):
        raise arguments.wrong_type("load_checkpoint", "choice_func", "a function of a name or None", choice, ValueError)

    def wanted(name: str) -> bool:
        return (
            (keep is None or name.startswith(keep))
            and not (drop is not None and name.startswith(drop))
            and (choice is None or bool(choice(name)))
        )

    return wanted


def _under_prefix(own: Mapping[str, Any], loaded: Iterable[str]) -> dict[str, str]:
    """Return the map from the names of `own` to those of `loaded` under the prefix that fits most
    of them.

    It is empty unless there is one such prefix.
    """
    by_prefix: dict[str, dict[str, str]] = {}
    for found in loaded:
        parts = found.split(".")
        for cut in range(1, len(parts)):
            name = ".".join(parts[cut:])
            if name in own:
                by_prefix.setdefault(".".join(parts[:cut]) + ".", {})[name] = found
    most = max((len(names) for names in by_prefix.values()), default=0)
    best = [prefix for prefix, names in by_prefix.items() if len(names) == most]
    if len(best) != 1:
        return {}
    logger.warning("load_param_into_net: the prefix %r was taken off the checkpoint's names", best[0])
    return by_prefix[best[0]]

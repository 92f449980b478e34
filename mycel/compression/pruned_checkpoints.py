"""Checkpoints of pruned networks, which also record what was removed."""

from __future__ import annotations

import json
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel.compression.channel_pruning import ChannelReport
from mycel.compression.channel_removal import Removed, apply_removed
from mycel.compression.cost import Cost
from mycel.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = ["load_pruned", "save_pruned"]

_ENTRY = "mycel.pruned"


def save_pruned(net: Cell, file_name: Any) -> None:
    """Write a Cell that `prune_channels` gave, perhaps trained since, as a checkpoint.

    What was removed is kept with it. Raises ValueError for other networks; one of ``form="graph"``
    is written by `export`.

    >>> import mycel as ms, pathlib, tempfile
    >>> from mycel.compression import load_pruned, prune_channels, save_pruned
    >>> def network():
    ...     return ms.nn.SequentialCell(ms.nn.Dense(4, 6), ms.nn.ReLU(), ms.nn.Dense(6, 2))
    >>> small = prune_channels(network(), ms.ops.ones((1, 4)), ratio=0.5)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.ckpt"
    >>> save_pruned(small, path)
    >>> again = load_pruned(network(), path)
    >>> x = ms.ops.ones((1, 4))
    >>> again[0].weight.shape, bool((again(x) == small(x)).all())
    ((3, 4), True)
    """
    arguments.instance("save_pruned", "net", net, Cell, "a Cell")
    report = getattr(net, "pruned", None)
    if not isinstance(report, ChannelReport) or hasattr(net, "model"):
        raise ValueError("save_pruned: the network must be a Cell that prune_channels gave; export writes graphs")
    costs = {word: [c.macs, c.parameters, c.bytes] for word, c in (("before", report.before), ("after", report.after))}
    content = {"removed": report.removed, "groups": report.groups, **costs}
    save_checkpoint(net, file_name, append_dict={_ENTRY: json.dumps(content)})


def load_pruned(net: Cell, file_name: Any) -> Cell:
    """Return `net`, which is the network as it was before, with what a file of `save_pruned` holds.

    Layers become smaller in `net` itself. Raises ValueError for files that are not of
    `save_pruned`, and where the network is another one; then `net` stays as it was.
    """
    arguments.instance("load_pruned", "net", net, Cell, "a Cell")
    values = load_checkpoint(file_name)
    text = values.pop(_ENTRY, None)
    if not isinstance(text, str):
        raise ValueError(f"load_pruned: {file_name} does not say what was removed; load_checkpoint reads it")
    try:
        content = json.loads(text)
        removed = _removed(content["removed"])
        groups = [(tuple(names), int(of), int(kept)) for names, of, kept in content["groups"]]
        before, after = ([int(n) for n in content[word]] for word in ("before", "after"))
        costs = Cost(before[0], before[1], before[2]), Cost(after[0], after[1], after[2])
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"load_pruned: what {file_name} says of pruning is damaged") from error
    known = {p.name: p for p in net.get_parameters()}
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"load_pruned: the file has {name!r}, which is no parameter of {type(net).__name__}")
        shape = list(known[name].shape)
        for axis, positions in removed.get(name, {}).items():
            if axis >= len(shape):
                raise ValueError(f"load_pruned: {name} of shape {tuple(known[name].shape)} has no axis {axis}")
            shape[axis] -= len(positions)
        if tuple(shape) != tuple(value.shape):
            raise ValueError(
                f"load_pruned: {name} is {tuple(value.shape)} in the file, and {tuple(known[name].shape)} pruned is "
                f"{tuple(shape)}; build the network that was pruned"
            )
    missing = set(known) - set(values)
    if missing:
        raise ValueError(f"load_pruned: the file lacks {', '.join(sorted(missing))}")
    apply_removed(net, removed)
    load_param_into_net(net, values)
    net.pruned = ChannelReport(removed, *costs, groups)
    return net


def _removed(content: Any) -> Removed:
    made: Removed = {}
    for name, axes in content.items():
        made[name] = {int(axis): sorted({int(p) for p in positions}) for axis, positions in axes.items()}
        if any(axis < 0 or not places or places[0] < 0 for axis, places in made[name].items()):
            raise ValueError("positions must not be negative")
    return made

"""`prune_channels`: structured pruning of the least important channels, units and heads.

The network is staged outside of training, and `channel_dependences` finds what can be removed
together: channels, in groups of those that touch the same parameters. Channels are ranked by the
importance of all parameters that go with them, as a share of the mean of their group (Fang et al.,
2023), and the least ones are removed until a share or a budget is met. The result computes what the
network with those parameters at zero computes; that is checked on the example inputs before it is
given.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.symbols import Symbol
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError, Unsupported
from mycel._src.staging.compiled.jit import jit
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.cells.eval_mode import outside_of_training
from mycel._src.tensors.core.tensor import Tensor
from mycel.compression.channel_dependences import Dependences, dependences
from mycel.compression.channel_removal import Removed, apply_removed, mask_removed, removed_positions, shrunk
from mycel.compression.cost import Cost, cost_of_graph, staged
from mycel.compression.weight_pruning import masked_layers
from mycel.formats.exporting import LoadedGraph, model_of

__all__ = ["ChannelReport", "Structure", "prune_channels"]

Array = np.ndarray[Any, Any]
Importance = str | Mapping[str, Any]
_MEASURES = ("l1", "l2")
_BUDGETS = ("ratio", "macs", "parameters", "latency")
_STEPS = 24
_TIMED_STEPS = 6
_RUNS = 7
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Group:
    """Channels that touch the same axes of the same parameters: `members` are (name, axis)
    pairs.
    """

    members: tuple[tuple[str, int], ...]
    roots: Array
    importance: Array


@dataclass
class ChannelReport:
    """What was removed from a network.

    Args:
        removed (dict[str, dict[int, list[int]]]): The positions by the name of the parameter and
            the number of the axis.
        before (Cost): The costs before.
        after (Cost): The costs after.
        groups (list[tuple[tuple[str, ...], int, int]]): What shrank together as (parameters,
            channels before, channels after).
        fixed (dict[tuple[str, int], str]): Why not, by axis of each parameter that could not
            shrink.
        speed (float | None): How many times as fast the network became where a latency was asked
            for, measured on the example inputs, else None. Default: None.
    """

    removed: Removed
    before: Cost
    after: Cost
    groups: list[tuple[tuple[str, ...], int, int]] = field(default_factory=list)
    fixed: dict[tuple[str, int], str] = field(default_factory=dict)
    speed: float | None = None


class Structure:
    """What of a network can be removed together: `groups` of channels, and `fixed`, the reasons why
    other axes cannot shrink.

    `net` is a Cell, `inputs` are example arguments; the first axes of these are sizes of batches
    that stay as they are. `exclude` names layers, or parameters, whose results keep their size.
    Raises CompileError where the network is not one graph.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(4, 6), ms.nn.ReLU(), ms.nn.Dense(6, 2))
    >>> found = Structure(net, (ms.ops.ones((1, 4)),))
    >>> [(group.members, len(group.roots)) for group in found.groups]
    [((('0.weight', 0), ('0.bias', 0), ('2.weight', 1)), 6)]
    """

    def __init__(self, net: Cell, inputs: Sequence[Any], exclude: Sequence[str] = ()) -> None:
        self.net, self.inputs = net, tuple(inputs)
        self.model = staged(net, inputs)
        given = len(self.model.graph.inputs) - len(self.model.states)
        pairs = list(zip(self.model.graph.inputs[given:], self.model.states))
        self.names: dict[Node, str] = {n: s.name for n, s in pairs if s.kind == "parameter"}
        self.arrays = {s.name: np.asarray(s.value) for _, s in pairs if s.kind == "parameter"}
        if len(set(self.names.values())) < len(self.names):
            raise ValueError("prune_channels: parameters have the same names; call update_parameters_name first")
        self.found: Dependences = dependences(self.model.graph, list(self.names))
        self._exclude(exclude)
        self.groups, self.fixed = self._sorted()

    def _exclude(self, exclude: Sequence[str]) -> None:
        for word in exclude:
            named = [n for n, name in self.names.items() if name == word or name.startswith(f"{word}.")]
            if not named:
                raise ValueError(f"prune_channels: exclude has {word!r}, and no layer or parameter has that name")
            for node in named:
                axis = self.found.of(node)[0] if node.type.rank else None
                if axis is not None:
                    self.found.channels.lock(axis.channels, "it is excluded")

    def _sorted(self) -> tuple[list[Group], dict[tuple[str, int], str]]:
        """Return groups without importance, and what is fixed."""
        touched: dict[int, list[tuple[str, int, int]]] = {}
        fixed: dict[tuple[str, int], str] = {}
        channels = self.found.channels
        for node, name in self.names.items():
            for k, axis in enumerate(self.found.of(node)):
                if axis is None:
                    continue
                locked = channels.locked(axis.channels)
                if locked.all():
                    fixed[name, k] = channels.reason(axis.channels) or ""
                roots, counts = np.unique(channels.roots(axis.channels[~locked]), return_counts=True)
                for root, count in zip(roots.tolist(), counts.tolist()):
                    touched.setdefault(root, []).append((name, k, count))
        alike: dict[tuple[tuple[str, int, int], ...], list[int]] = {}
        for root, entries in touched.items():
            alike.setdefault(tuple(entries), []).append(root)
        groups = []
        for key, own in alike.items():
            members = tuple([(name, k) for name, k, _ in key])
            groups.append(Group(members, np.sort(np.array(own)), np.zeros(len(own))))
        return groups, fixed

    def ranked(self, importance: Importance) -> list[Group]:
        """Return the groups with the importance of each channel, as a share of the mean of its
        group.

        `importance` is "l1", "l2", or values for each element of parameters by name.
        """
        elements = self._elements(importance)
        index = {name: node for node, name in self.names.items()}
        made = []
        for group in self.groups:
            total = np.zeros(len(group.roots))
            for name, k in group.members:
                if name not in elements:
                    continue
                axis = self.found.of(index[name])[k]
                assert axis is not None
                values = elements[name]
                along = values.sum(tuple(a for a in range(values.ndim) if a != k))
                places = np.searchsorted(group.roots, self.found.channels.roots(axis.channels))
                inside = np.isin(self.found.channels.roots(axis.channels), group.roots)
                np.add.at(total, places[inside], along[inside])
            if importance == "l2":
                total = np.sqrt(total)
            mean = total.mean()
            made.append(Group(group.members, group.roots, total / mean if mean > 0 else total))
        return made

    def _elements(self, importance: Importance) -> dict[str, Array]:
        if isinstance(importance, str):
            arguments.one_of("prune_channels", "importance", importance, _MEASURES)
            # Weights count; biases and factors of normalisations have other scales.
            weights = {n: a.astype(np.float64) for n, a in self.arrays.items() if a.ndim > 1}
            for layer in masked_layers(self.net).values():
                # What is left of a weight counts, not its mask.
                weights[layer.layer.weight.name] = layer.weight().asnumpy().astype(np.float64)
                for beside in (layer.mask, layer.scores):
                    weights.pop("" if beside is None else beside.name, None)
            return {n: np.abs(a) if importance == "l1" else a * a for n, a in weights.items()}
        made = {}
        for name, values in importance.items():
            if name not in self.arrays:
                raise ValueError(
                    f"prune_channels: importance has {name!r}, which is no parameter that the network reads"
                )
            array = np.asarray(values.asnumpy() if isinstance(values, Tensor) else values, np.float64)
            if array.shape != self.arrays[name].shape or not np.isfinite(array).all():
                raise ValueError(
                    f"prune_channels: importance of {name} must be finite, of shape {self.arrays[name].shape}, "
                    f"not {array.shape}"
                )
            made[name] = array
        return made


@dataclass(frozen=True)
class Choice:
    """How many channels may go; the fields are arguments of `prune_channels`."""

    scope: str
    round_to: int
    at_most: float

    def removed(self, groups: Sequence[Group], share: float) -> Array:
        """Return the roots of the least important `share` of the channels."""
        if self.scope == "group":
            counts = [int(share * len(g.roots) + 1e-9) for g in groups]
        else:
            everything = np.concatenate([g.importance for g in groups])
            number = np.concatenate([np.full(len(g.roots), k) for k, g in enumerate(groups)])
            least = np.argsort(everything, kind="stable")[: int(share * len(everything) + 1e-9)]
            counts = np.bincount(number[least], minlength=len(groups)).tolist()
        gone = []
        for group, count in zip(groups, counts):
            size = len(group.roots)
            kept = max(size - count, size - int(self.at_most * size + 1e-9), 1)
            kept = min(-(-kept // self.round_to) * self.round_to, size)
            gone.append(group.roots[np.argsort(group.importance, kind="stable")[: size - kept]])
        return np.concatenate(gone) if gone else np.zeros(0, np.int64)


def prune_channels(
    net: Cell,
    *inputs: Any,
    ratio: float | None = None,
    macs: float | None = None,
    parameters: float | None = None,
    latency: float | None = None,
    importance: Importance = "l1",
    scope: str = "global",
    round_to: int = 1,
    at_most: float = 0.9,
    exclude: Sequence[str] = (),
    form: str = "cell",
) -> Cell:
    """Return a network without its least important channels, units and heads.

    Args:
        net (Cell): The network, which stays as it is.
        *inputs (Tensor): Example arguments of the network, by which it is staged, and on which the
            result is compared with `net` with the same parameters at zero.
        ratio (float | None): The share of channels to remove; one of the four is given. Default:
            None.
        macs (float | None): The share of products that may stay, between 0 and 1. Default: None.
        parameters (float | None): The share of parameters that may stay. Default: None.
        latency (float | None): The share of the time of a compiled call that may stay. Default:
            None.
        importance (Importance): "l1" or "l2" of the weights, or values for each element of
            parameters by name, as `taylor_importance` gives. Default: "l1".
        scope (str): "global", or "group": the same share of each group of channels. Default:
            "global".
        round_to (int): The number of channels left in a group is a multiple of it, or all. Default:
            1.
        at_most (float): The largest share of a group that may go. Default: 0.9.
        exclude (Sequence[str]): Names of layers or parameters whose results keep their size.
            Default: ().
        form (str): "cell" for a copy of the Cell with smaller layers, or "graph" for the graph
            outside of training, where sizes that the program writes as numbers are changed too.
            Default: "cell".

    Returns:
        Cell: The smaller network, which has a `pruned`, a `ChannelReport`.

    Raises:
        ValueError: If the budget cannot be met or nothing can be removed.
        Unsupported: If the Cell's program has sizes of its own.
        CompileError: If the network is not one graph.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import prune_channels
        >>> net = ms.nn.SequentialCell(ms.nn.Conv2d(1, 8, 3), ms.nn.Flatten(), ms.nn.Dense(128, 2))
        >>> small = prune_channels(net, ms.ops.ones((1, 1, 4, 4)), ratio=0.5)
        >>> small[0].weight.shape, small[2].weight.shape, small.pruned.after.macs
        ((4, 1, 3, 3), (2, 64), 704)
    """
    budget, wanted = _checked(net, inputs, (ratio, macs, parameters, latency), scope, round_to, at_most, form)
    structure = Structure(net, inputs, exclude)
    groups = structure.ranked(importance)
    before = cost_of_graph(structure.model)
    if not groups:
        reasons = "; ".join(sorted(set(structure.fixed.values()))) or "it reads no parameters"
        raise ValueError(f"prune_channels: nothing of {type(net).__name__} can be removed: {reasons}")
    choice = Choice(scope, round_to, at_most)
    roots = _within(structure, groups, choice, budget, wanted, before)
    if not len(roots):
        sizes = ", ".join(f"{len(g.roots)} of {g.members[0][0]}" for g in groups)
        raise ValueError(
            f"prune_channels: {budget}={wanted:g} with round_to={round_to} and at_most={at_most:g} removes nothing of "
            f"the groups of channels: {sizes}"
        )
    small = shrunk(structure.model, structure.found, roots)
    report = ChannelReport(
        removed_positions(structure.found, structure.names, roots), before, cost_of_graph(small), fixed=structure.fixed
    )
    for group in groups:
        gone = int(np.isin(group.roots, roots).sum())
        report.groups.append((tuple(n for n, _ in group.members), len(group.roots), len(group.roots) - gone))
    masked = copy.deepcopy(net)
    mask_removed(masked, report.removed)
    expected = _values(masked, inputs)
    made: Cell = _graph(net, report.removed, inputs) if form == "graph" else _smaller(net, report.removed, inputs)
    _compare(_values(made, inputs), expected, form)
    if budget == "latency":
        report.speed = _seconds(net, inputs) / _seconds(made, inputs)
    made.pruned = report
    return made


def _checked(
    net: Any, inputs: Sequence[Any], shares: Sequence[Any], scope: str, round_to: int, at_most: float, form: str
) -> tuple[str, float]:
    """Return which budget is asked for and its share, of arguments that mean something.

    `shares` are those of `_BUDGETS`; the others are arguments of `prune_channels`.
    """
    owner = "prune_channels"
    arguments.instance(owner, "net", net, Cell, "a Cell")
    if not inputs:
        raise TypeError(f"{owner}: give example inputs after the network")
    given = [(name, share) for name, share in zip(_BUDGETS, shares) if share is not None]
    if len(given) != 1:
        raise ValueError(f"{owner}: give one of {', '.join(_BUDGETS)}, not {[name for name, _ in given]}")
    name, share = given[0]
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise ValueError(f"{owner}: {name} must be a share between 0 and 1, not {share!r}")
    arguments.one_of(owner, "scope", scope, ("global", "group"))
    arguments.one_of(owner, "form", form, ("cell", "graph"))
    arguments.integer(owner, "round_to", round_to, 1)
    if not isinstance(at_most, (int, float)) or not 0 < at_most <= 1:
        raise ValueError(f"{owner}: at_most must be above 0 and at most 1, not {at_most!r}")
    return name, float(share)


def _within(
    structure: Structure, groups: Sequence[Group], choice: Choice, budget: str, wanted: float, before: Cost
) -> Array:
    """Return the roots to remove: the fewest with which the budget is met.

    `wanted` is the share of the `budget` and `before` the cost of the whole network.
    """
    if budget == "ratio":
        return choice.removed(groups, wanted)

    def spent(share: float) -> float:
        gone = choice.removed(groups, share)
        small = shrunk(structure.model, structure.found, gone, values=budget == "latency")
        if budget == "latency":
            return _seconds(LoadedGraph(small), structure.inputs) / whole
        after = cost_of_graph(small)
        return (after.macs if budget == "macs" else after.parameters) / whole

    whole = float(before.macs if budget == "macs" else before.parameters)
    if budget == "latency":
        whole = _seconds(LoadedGraph(structure.model), structure.inputs)
    least = spent(1.0)
    if least > wanted:
        raise ValueError(
            f"prune_channels: {budget} cannot go to {wanted:g} of what it was, but to {least:.3g}; ask for that, or "
            "raise at_most"
        )
    low, high = 0.0, 1.0
    for _ in range(_TIMED_STEPS if budget == "latency" else _STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= wanted else (middle, high)
    return choice.removed(groups, high)


def _smaller(net: Cell, removed: Removed, inputs: Sequence[Any]) -> Cell:
    """Return a copy of a Cell with smaller layers, which can be staged."""
    made: Cell = copy.deepcopy(net)
    apply_removed(made, removed)
    try:
        read = {s.name for s in staged(made, inputs).states}
        if any(p.name not in read for p in net.get_parameters()):
            # What only training computes has to follow as well.
            model_of(copy.deepcopy(made).set_train(), inputs)
    except (CompileError, ValueError, TypeError) as error:
        raise Unsupported(
            f"prune_channels: {type(net).__name__} has sizes of its own, which its smaller layers do not meet "
            f"({error}); "
            "take sizes from tensors (x.shape, -1) in construct, exclude these layers, or ask for form='graph'"
        ) from error
    return made


def _graph(net: Cell, removed: Removed, inputs: Sequence[Any]) -> LoadedGraph:
    """Return the graph of what is left, with open sizes of batches where inputs share theirs."""
    first = {t.shape[0] for t in inputs if isinstance(t, Tensor) and t.ndim}
    batch = Symbol(unique=True)
    examples = [
        Tensor(shape=[batch, *t.shape[1:]], dtype=t.dtype)
        if len(first) == 1 and isinstance(t, Tensor) and t.ndim
        else t
        for t in inputs
    ]
    whole = Structure(net, examples)
    gone = []
    for node, name in whole.names.items():
        for axis, positions in removed.get(name, {}).items():
            own = whole.found.of(node)[axis]
            if own is None or whole.found.channels.locked(own.channels[positions]).any():
                raise Unsupported(
                    f"prune_channels: with an open size of batches {name} does not shrink; exclude its layer"
                )
            gone.append(whole.found.channels.roots(own.channels[positions]))
    return LoadedGraph(shrunk(whole.model, whole.found, np.unique(np.concatenate(gone)) if gone else np.zeros(0, int)))


def _values(net: Cell, inputs: Sequence[Any]) -> list[Array]:
    with outside_of_training(net):
        found = jit(lambda *args: net(*args))(*inputs)
    return [np.asarray(t.asnumpy()) for t in _leaves(found)]


def _leaves(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for part in value for t in _leaves(part)] if isinstance(value, (tuple, list)) else []


def _compare(found: Sequence[Array], expected: Sequence[Array], form: str) -> None:
    """Raise Unsupported where a network does not compute what the masked one does."""
    for new, old in zip(found, expected):
        scale = max(float(np.abs(old).max(initial=0)), 1.0)
        if new.shape != old.shape or not np.allclose(
            new, old, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True
        ):
            raise Unsupported(
                "prune_channels: the smaller network does not compute what the network with these parameters at zero "
                "does, as its program reads sizes of its layers; exclude those layers"
                + ("" if form == "graph" else ", or ask for form='graph'")
            )


def _seconds(net: Cell, inputs: Sequence[Any]) -> float:
    """Return the least time of a compiled call."""
    net.set_train(False)
    compiled: Callable[..., Any] = jit(lambda *args: net(*args))
    times = []
    for _ in range(_RUNS + 2):
        start = time.perf_counter()
        for value in _leaves(compiled(*inputs)):
            value.asnumpy()
        times.append(time.perf_counter() - start)
    return min(times[2:])

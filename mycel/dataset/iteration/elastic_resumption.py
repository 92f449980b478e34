"""Resumption within an epoch, also on another number of shards.

A position in an epoch is one for all shards. They take rows of one order, the same number of each
in a step. So what is done of a pass over the source is told by *stretches*: a number of shards and
the rows that each of them took, one after the other. `remaining_rows.undone` says which rows of an
order they leave; the next stretch deals these out among its own shards. Invariants:

* After any stretches, all rows of the order are done once or are left once. Where shards are made
  equally long by rows that repeat, those come at the end of an epoch only.
* A stretch of as many shards as there are now continues: the same rows, in the same batches, with
  the same random numbers as without a stop.

Rows of a step are known where every node gives a row for each row, or a batch for so many: `map`,
`project`, `rename`, `batch` with a number, `padded_batch` and `device_que` on a source with shards.
Besides, these say themselves what they have read (`Node._spot`):

* `repeat`: the pass, and the stretches in it. A step may have rows of two passes.
* `skip`: what it leaves out of an epoch is done when the epoch begins.
* `take`: an epoch has the rows that it had when it began. So `left` keeps how many rows of the
  source all shards together would still take, which others divide among themselves.
* `shuffle` right above the source, with a seed: all shards draw alike, so which rows of their own
  they have given is simulated.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from mycel.dataset import config
from mycel.dataset.execution.pass_context import FRESH, Begun
from mycel.dataset.iteration import iterator_seeds as passes
from mycel.dataset.nodes.cached_rows import by_number
from mycel.dataset.nodes.node import Node

KEYS = ("seed", "seeded", "epoch", "step")
# What may be there besides: the shards, and how many iterators went before this one.
_ALSO = {"shards", "before"}
# What positions have where nodes are between that are not row for row: the pass, the rows that each
# `take` has left, where the last stretch began, and the rows of its steps.
_MORE = ("pass", "left", "began", "rows")


class Shards(NamedTuple):
    """How a dataset takes its rows: the number of shards, the source, the nodes above it up to the
    dataset, and whether all of these are row for row.
    """

    number: int
    source: Any
    nodes: list[Any]
    is_plain: bool

    @property
    def rows_of_step(self) -> int:
        """How many rows of the source are in one row of the dataset."""
        return int(self.nodes[-1]._unit()) if self.nodes else 1

    def steps(self, begun: Begun) -> int:
        """Return how many rows of the dataset are left of an epoch that goes on."""
        return int((self.nodes[-1] if self.nodes else self.source)._rest(begun))

    @property
    def takes(self) -> list[Any]:
        """The nodes that take the first rows only, from the source up."""
        return [node for below, node in zip([self.source, *self.nodes], self.nodes) if node._takes > below._takes]


def _source_of(dataset: Node) -> Any:
    while len(dataset.children) == 1:
        dataset = dataset.children[0]
    return dataset


def shards_of(dataset: Node) -> Shards | None:
    """Return how a dataset takes its rows, or None where it has no shards.

    Raises ValueError where the rows of a step are not known.
    """
    if not dataset.is_sharded():
        return None
    at, nodes, is_plain = dataset, [], True
    while at.children:
        knows = at.row_for_row() or at._knows_spots
        if not knows or config.get_error_samples_mode() is config.ErrorSamplesMode.SKIP:
            raise ValueError(f"it is not known which rows of the source a row of {at.words()} has been made of")
        if at.cache is not None and by_number(at) is None:
            # The rest of an epoch would be kept as a whole one.
            raise ValueError(
                f"the cache of {at.words()} keeps rows by their places in an epoch; put it on a map right above "
                "the source"
            )
        is_plain = is_plain and at.row_for_row()
        nodes.append(at)
        at = at.children[0]
    sampler = getattr(at, "sampler", None)
    if getattr(sampler, "whole_files", 0):
        raise ValueError(f"{at.words()} divides its files among the shards as a whole; pass shard_equal_rows=True")
    shards = None if sampler is None else sampler.shards()
    if shards is None:
        raise ValueError(f"{at.words()} divides its rows in another way than by row")
    nodes.reverse()
    _check_shuffles(nodes, sampler)
    return Shards(shards[0], at, nodes, is_plain)


def _check_shuffles(nodes: Sequence[Any], sampler: Any) -> None:
    shuffles = [place for place, node in enumerate(nodes) if node.words() == "shuffle"]
    below = nodes[: shuffles[-1]] if shuffles else []
    if any(not node.row_for_row() or node.rows_of_one > 1 or hasattr(node, "drop_remainder") for node in below):
        raise ValueError(
            "it is not known which rows of the source a row of shuffle has been made of, unless it is below repeat, "
            "take, skip, batch and other shuffles"
        )
    if shuffles and sampler.offset >= 0:
        raise ValueError("shards of different lengths, as those of a sampler with an offset, are not shuffled alike")


def saved(dataset: Node, state: dict[str, Any], begun: Begun) -> dict[str, Any]:
    """Return the state of an iterator with what other numbers of shards have to know.

    `state` has the `KEYS`; `begun` is where its epoch began.
    """
    try:
        shards = shards_of(dataset)
    except ValueError:
        number = _number_of(dataset)
        return state if number is None else {**state, "shards": number}
    if shards is None:
        return state
    if shards.is_plain:
        own = [shards.number, state["step"] * shards.rows_of_step]
        return {**state, "shards": [list(stretch) for stretch in begun.stretches] + [own]}
    spot = dataset._spot(begun, state["step"])
    if spot.shuffled and not state["seeded"]:
        return {**state, "shards": shards.number}
    before = [list(stretch) for stretch in begun.stretches] if spot.goes_on else []
    return {
        **state,
        "shards": [*before, [shards.number, spot.rows, *spot.shuffled]],
        "pass": spot.number,
        "left": [rows * shards.number for rows in spot.left],
        "began": [begun.number, [list(stretch) for stretch in begun.stretches], list(begun.left)],
        "rows": shards.rows_of_step,
    }


def _number_of(dataset: Node) -> int | None:
    sampler = getattr(_source_of(dataset), "sampler", None)
    whole = int(getattr(sampler, "whole_files", 0))
    if whole:
        return whole
    shards = None if sampler is None else sampler.shards()
    return None if shards is None else int(shards[0])


class Position(NamedTuple):
    """Where an iterator is: the epoch, where that began, and the steps since."""

    epoch: int
    begun: Begun
    step: int


def checked(where: str, state: Any) -> dict[str, Any]:
    """Return a state; raise ValueError, in the name of `where`, for what is none."""
    more = {*_ALSO, *_MORE} if isinstance(state, dict) and "pass" in state else _ALSO
    if not isinstance(state, dict) or set(state) - more != set(KEYS):
        found = sorted(state) if isinstance(state, dict) else repr(state)
        raise ValueError(f"{where}: the state must have the keys {sorted(KEYS)}, not {found}")
    for key in (*KEYS[:1], *KEYS[2:], *(["before"] if "before" in state else [])):
        if isinstance(state[key], bool) or not isinstance(state[key], int) or state[key] < 0:
            raise ValueError(f"{where}: {key} must be a count, not {state[key]!r}")
    shards = state.get("shards", 1)
    stretches = shards if isinstance(shards, list) else [[shards, 0]]
    for stretch in stretches or [[]]:
        if not _is_stretch(stretch):
            raise ValueError(f"{where}: shards must be pairs of a number of shards and of the rows of each: {shards!r}")
    if "pass" in state:
        _check_more(where, state)
    return state


def _are_counts(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(type(number) is int and number >= 0 for number in values)


def _is_stretch(values: Any) -> bool:
    return _are_counts(values) and len(values) in (2, 4) and values[0] > 0 and 0 not in values[2:3]


def _check_more(where: str, state: dict[str, Any]) -> None:
    missing = [key for key in _MORE if key not in state]
    if missing or not isinstance(state.get("shards"), list):
        raise ValueError(f"{where}: with the key 'pass' go {', '.join(map(repr, _MORE))} and a list of shards")
    began = state["began"]
    fits = isinstance(began, (list, tuple)) and len(began) == 3 and isinstance(began[1], (list, tuple))
    fits = fits and _are_counts(began[2]) and _are_counts([began[0], state["pass"], state["rows"]])
    fits = fits and all(map(_is_stretch, began[1]))
    if not fits or not _are_counts(state["left"]) or len(began[2]) not in (0, len(state["left"])) or not state["rows"]:
        raise ValueError(f"{where}: this is no position: {state!r:.200}")


def position(where: str, dataset: Node, state: dict[str, Any]) -> Position:
    """Return where a dataset goes on that may have another number of shards.

    `where` is named in messages; `state` is what `checked` returned. Raises ValueError where the
    number of shards is another one, and it is not known which rows are done.
    """
    here = Position(state["epoch"], FRESH, state["step"])
    if "shards" not in state:
        return here
    given = state["shards"]
    old = given if isinstance(given, int) else given[-1][0]
    try:
        shards = shards_of(dataset)
    except ValueError as error:
        number = _number_of(dataset)
        if number == old and (isinstance(given, int) or len(given) == 1):
            return here
        raise ValueError(f"{where}: from {old} shards to {number}: {error}") from None
    if shards is None:
        raise ValueError(
            f"{where}: the position is that of {old} shards, and this dataset has none; give its source num_shards and "
            "shard_id, for one rank 1 and 0"
        )
    if isinstance(given, int):
        if given == shards.number:
            return here
        raise ValueError(
            f"{where}: from {given} shards to {shards.number}: where the position was saved, it was not known which "
            "rows of the source had been read; a shuffle needs a seed (config.set_seed)"
        )
    stretches = [tuple(map(int, stretch)) for stretch in given]
    if "pass" in state:
        return _between(where, shards, state, stretches)
    if not shards.is_plain:
        return _between(where, shards, {**state, "pass": 0, "left": [], "began": [0, [], []], "rows": 0}, stretches)
    step = 0
    if stretches[-1][0] == shards.number and stretches[-1][1] % shards.rows_of_step == 0:
        step = stretches.pop()[1] // shards.rows_of_step
    return _gone_on(shards, state["epoch"], Begun(0, tuple(stretch for stretch in stretches if stretch[1])), step)


def _between(where: str, shards: Shards, state: dict[str, Any], stretches: list[tuple[int, ...]]) -> Position:
    """Return where a dataset goes on where the position has a pass, or the dataset several."""
    if stretches[-1][0] == shards.number and state["rows"] == shards.rows_of_step:
        number, before, left = state["began"]
        begun = Begun(number, tuple(tuple(map(int, stretch)) for stretch in before), tuple(left))
        _check_passes(where, shards, begun, len(left))
        return _gone_on(shards, state["epoch"], begun, state["step"])
    done = tuple(stretch for stretch in stretches if stretch[1])
    if not done and not state["pass"]:
        return Position(state["epoch"], FRESH, 0)
    _check_passes(where, shards, Begun(state["pass"]), len(state["left"]))
    # What is below a `take` gives its rows to so many shards now.
    left = [-(-rows // (take._unit() * shards.number)) for rows, take in zip(state["left"], shards.takes)]
    return _gone_on(shards, state["epoch"], Begun(state["pass"], done, tuple(left)), 0)


def _check_passes(where: str, shards: Shards, begun: Begun, takes: int) -> None:
    passes, own = shards.nodes[-1]._passes() if shards.nodes else 1, len(shards.takes)
    if begun.number >= passes or begun != FRESH and takes != own:
        raise ValueError(
            f"{where}: the position is that of a dataset with other operations: in pass {begun.number} of its source, "
            f"with {takes} times take; here are {passes} passes, and {own} times take"
        )


def _gone_on(shards: Shards, epoch: int, begun: Begun, step: int) -> Position:
    if begun != FRESH and shards.steps(begun) <= step:
        return Position(epoch + 1, FRESH, 0)
    return Position(epoch, begun, step)


def begun(dataset: Node, given: Any) -> tuple[dict[str, Any], int]:
    """Return a state, and after how many rows of the dataset iterators begin there.

    What other numbers of shards have done of the epoch counts as rows of its beginning. Raises
    ValueError as `position` does.
    """
    where = "set_init_state"
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise ValueError(f"{where}: the position must be a state, or one as JSON, not {given!r:.80}") from error
    state = checked(where, given)
    found = position(where, dataset, state)
    size = dataset.get_dataset_size()
    if found.begun == FRESH:
        return state, found.epoch * size + found.step
    shards = shards_of(dataset)
    assert shards is not None
    return state, (found.epoch + 1) * size - shards.steps(found.begun) + found.step


def state_at(dataset: Node, step: int) -> dict[str, Any]:
    """Return the state after `step` rows of a dataset; see `Dataset.state_at`."""
    size, begin = max(1, dataset.get_dataset_size()), dataset.get_init_step()
    epoch, here = divmod(step, size)
    (seed, before), seeded = passes.of_training(dataset), config.is_seeded()
    start = FRESH
    if dataset._init_state is not None:
        found = position("state_at", dataset, dataset._init_state)
        if step < begin:
            raise ValueError(f"state_at: step {step} is before {begin}, where set_init_state begins")
        if dataset._init_state["seeded"]:
            seed, seeded, before = dataset._init_state["seed"], True, dataset._init_state.get("before", 0)
        if epoch == found.epoch and found.begun != FRESH:
            start, here = found.begun, step - begin + found.step
    state = {"seed": seed, "seeded": int(seeded), "epoch": epoch, "step": here}
    return saved(dataset, passes.with_number(state, before), start)

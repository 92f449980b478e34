"""Positions in an epoch that all shards share, so that other numbers of shards can go on there.

Shards take rows of one order, the same number of each in a step. So what is done of an epoch is
told by *stretches*: pairs of a number of shards and of the rows that each of them took, one after
the other. `left` says which rows of an order a stretch leaves, in which order; the next stretch
deals these out among its own shards. Invariants:

* After any stretches, all rows of the order are done once or are left once. Where shards are made
  equally long by rows that repeat, those come at the end of an epoch only.
* A stretch of as many shards as there are now continues: the same rows, in the same batches, with
  the same random numbers as without a stop.

Rows of a step are known where every node gives a row for each row, or a batch for so many: `map`,
`project`, `rename`, `batch` with a number, `padded_batch` and `device_que` on a source with shards.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from mycel.dataset import config
from mycel.dataset.node import Node
from mycel.dataset.run import Stretch

KEYS = ("seed", "seeded", "epoch", "step")


class Shards(NamedTuple):
    """How a dataset takes its rows: the number of shards, the source, and the batches above it,
    each with its size and whether an incomplete one is dropped, from the source up.
    """

    number: int
    source: Any
    batches: list[tuple[int, bool]]

    @property
    def rows_of_step(self) -> int:
        """How many rows of the source are in one row of the dataset."""
        return int(np.prod([size for size, _ in self.batches], dtype=np.int64))

    def steps(self, stretches: Sequence[Stretch]) -> int:
        """Return how many rows of the dataset are left after stretches of an epoch."""
        rows: int = self.source.sampler.length_after(self.source._total(), stretches)
        for size, drops in self.batches:
            rows = rows // size if drops else -(-rows // size)
        return rows


def _source_of(dataset: Node) -> Any:
    while len(dataset.children) == 1:
        dataset = dataset.children[0]
    return dataset


def shards_of(dataset: Node) -> Optional[Shards]:
    """Return how a dataset takes its rows, or None where it has no shards.

    Raises ValueError where the rows of a step are not known.
    """
    if not dataset.is_sharded():
        return None
    at, batches = dataset, []
    while at.children:
        if not at.row_for_row() or config.get_error_samples_mode() is config.ErrorSamplesMode.SKIP:
            raise ValueError(f"it is not known which rows of the source a row of {at.words()} has been made of")
        if at.rows_of_one > 1 or hasattr(at, "drop_remainder"):
            batches.append((at.rows_of_one, bool(getattr(at, "drop_remainder", False))))
        at = at.children[0]
    sampler = getattr(at, "sampler", None)
    shards = None if sampler is None else sampler.shards()
    if shards is None:
        raise ValueError(f"{at.words()} divides its rows in another way than by row")
    return Shards(shards[0], at, batches[::-1])


def saved(dataset: Node, state: dict[str, Any], stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Return the state of an iterator with what other numbers of shards have to know.

    `state` has the `KEYS`; `stretches` are those before the steps of this one.
    """
    try:
        shards = shards_of(dataset)
    except ValueError:
        number = _number_of(dataset)
        return state if number is None else {**state, "shards": number}
    if shards is None:
        return state
    own = [shards.number, state["step"] * shards.rows_of_step]
    return {**state, "shards": [list(stretch) for stretch in stretches] + [own]}


def _number_of(dataset: Node) -> Optional[int]:
    sampler = getattr(_source_of(dataset), "sampler", None)
    shards = None if sampler is None else sampler.shards()
    return None if shards is None else int(shards[0])


class Position(NamedTuple):
    """Where an iterator is: the epoch, its stretches before, and the steps since."""

    epoch: int
    stretches: tuple[Stretch, ...]
    step: int


def checked(where: str, state: Any) -> dict[str, Any]:
    """Return a state; raise ValueError, in the name of `where`, for what is none."""
    if not isinstance(state, dict) or set(state) - {"shards"} != set(KEYS):
        found = sorted(state) if isinstance(state, dict) else repr(state)
        raise ValueError(f"{where}: expected the keys {sorted(KEYS)}, got {found}")
    for key in KEYS[:1] + KEYS[2:]:
        if isinstance(state[key], bool) or not isinstance(state[key], int) or state[key] < 0:
            raise ValueError(f"{where}: {key} must be a count, got {state[key]!r}")
    shards = state.get("shards", 1)
    stretches = shards if isinstance(shards, list) else [[shards, 0]]
    for stretch in stretches or [[]]:
        numbers = isinstance(stretch, (list, tuple)) and all(type(number) is int for number in stretch)
        if not numbers or len(stretch) != 2 or stretch[0] < 1 or stretch[1] < 0:
            raise ValueError(f"{where}: shards must be pairs of a number of shards and of the rows of each: {shards!r}")
    return state


def position(where: str, dataset: Node, state: dict[str, Any]) -> Position:
    """Return where a dataset goes on that may have another number of shards.

    `where` is named in messages; `state` is what `checked` returned. Raises ValueError where the
    number of shards is another one, and it is not known which rows are done.
    """
    here = Position(state["epoch"], (), state["step"])
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
            "rows of the source had been read"
        )
    stretches = [(int(count), int(rows)) for count, rows in given]
    step = 0
    if stretches[-1][0] == shards.number and stretches[-1][1] % shards.rows_of_step == 0:
        step = stretches.pop()[1] // shards.rows_of_step
    before = tuple(stretch for stretch in stretches if stretch[1])
    if before and shards.steps(before) <= step:
        return Position(state["epoch"] + 1, (), 0)
    return Position(state["epoch"], before, step)


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
            raise ValueError(f"{where}: expected a position, or one as JSON, got {given!r:.80}") from error
    state = checked(where, given)
    found = position(where, dataset, state)
    size = dataset.get_dataset_size()
    if not found.stretches:
        return state, found.epoch * size + found.step
    shards = shards_of(dataset)
    assert shards is not None
    return state, (found.epoch + 1) * size - shards.steps(found.stretches) + found.step


def state_at(dataset: Node, step: int) -> dict[str, Any]:
    """Return the state after `step` rows of a dataset; see `Dataset.state_at`."""
    size, begin = max(1, dataset.get_dataset_size()), dataset.get_init_step()
    epoch, here = divmod(step, size)
    seed, seeded = config.get_seed(), config.is_seeded()
    stretches: tuple[Stretch, ...] = ()
    if dataset._init_state is not None:
        found = position("state_at", dataset, dataset._init_state)
        if step < begin:
            raise ValueError(f"state_at: step {step} is before {begin}, where set_init_state begins")
        if dataset._init_state["seeded"]:
            seed, seeded = dataset._init_state["seed"], True
        if epoch == found.epoch and found.stretches:
            stretches, here = found.stretches, step - begin + found.step
    state = {"seed": seed, "seeded": int(seeded), "epoch": epoch, "step": here}
    return saved(dataset, state, stretches)

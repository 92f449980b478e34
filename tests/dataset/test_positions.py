"""Positions that shards share: every row once, whatever number of shards goes on, and when."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import positions

ROWS = 101


def part(shards: int, shard: int, batch: int = 1, **options: Any) -> Any:
    if "sampler" in options:
        data = ds.NumpySlicesDataset(np.arange(ROWS), sampler=options["sampler"](shards, shard))
    else:
        data = ds.NumpySlicesDataset(np.arange(ROWS), num_shards=shards, shard_id=shard, **options)
    return data.map(lambda x: x + 0).batch(batch)


def taken(iterators: list[Any], steps: int | None) -> list[list[int]]:
    """Take steps of an epoch, or all of it: the rows of each step of all shards."""
    found: dict[int, list[int]] = {}
    for iterator in iterators:
        for step, (rows,) in enumerate(itertools.islice(iterator, steps)):
            found.setdefault(step, []).extend(rows.tolist())
    return list(found.values())


def begun(shards: int, state: Any, **options: Any) -> list[Any]:
    made = [part(shards, n, **options).create_tuple_iterator(output_numpy=True) for n in range(shards)]
    for iterator in made:
        if state is not None:
            iterator.load_state_dict(state)
    return made


ORDERS: dict[str, dict[str, Any]] = {
    "shuffled": {"shuffle": True},
    "in order": {"shuffle": False},
    "uneven": {"sampler": lambda n, i: ds.DistributedSampler(n, i, shuffle=True, offset=0)},
}


@pytest.mark.parametrize("order", sorted(ORDERS))
@pytest.mark.parametrize("seeded", [True, False])
def test_every_row_once_over_changes(order: str, seeded: bool) -> None:
    if seeded:
        ds.config.set_seed(9)
    random = np.random.default_rng(4)
    for trial in range(12):
        counts = [4, 2, 3] if trial < 3 else random.integers(1, 6, 3).tolist()
        batches = [3, 3, 3] if trial < 3 else random.integers(1, 5, 3).tolist()
        state, found = None, []
        for number, (shards, batch) in enumerate(zip(counts, batches)):
            iterators = begun(shards, state, batch=batch, **ORDERS[order])
            # Some stop within an epoch, and the last goes to its end.
            steps = None if number == 2 else int(random.integers(0, ROWS // (4 * shards * batch)))
            found += [row for step in taken(iterators, steps) for row in step]
            state = iterators[0].state_dict()
            json.dumps(state)
            assert all({**iterator.state_dict(), "seed": state["seed"]} == state for iterator in iterators)
            for iterator in iterators:
                iterator.stop()
        times = Counter(found)
        assert set(times) == set(range(ROWS))
        repeated = sum(times.values()) - ROWS
        assert repeated == 0 if order == "uneven" else repeated < counts[-1], (counts, batches)


def test_as_many_shards_go_on_with_the_same_batches_and_numbers() -> None:
    ds.config.set_seed(3)

    def data(shard: int) -> Any:
        rows = ds.NumpySlicesDataset(np.arange(50.0), num_shards=3, shard_id=shard)
        return rows.map(lambda x: x + np.random.rand()).batch(4)

    for shard in range(3):
        whole = data(shard).create_tuple_iterator(num_epochs=2, output_numpy=True)
        everything = [rows.tolist() for _ in range(2) for (rows,) in whole]
        for place in range(len(everything)):
            first = data(shard).create_tuple_iterator(num_epochs=2, output_numpy=True)
            rows = itertools.chain(first, first)
            for _ in range(place):
                next(rows)
            again = data(shard)
            again.set_init_state(json.dumps(first.state_dict()))
            iterator = again.create_tuple_iterator(num_epochs=2, output_numpy=True)
            rest: list[Any] = []
            while len(rest) < len(everything) - place:
                rest += [rows.tolist() for (rows,) in iterator]
            assert rest == everything[place:]
            first.stop()


def test_the_epoch_after_a_change_is_whole_and_numbers_differ() -> None:
    ds.config.set_seed(3)

    def data(shards: int, shard: int) -> Any:
        rows = ds.NumpySlicesDataset(np.zeros(24), num_shards=shards, shard_id=shard)
        return rows.map(lambda x: x + np.random.rand()).batch(2)

    first = data(4, 0).create_tuple_iterator(num_epochs=2, output_numpy=True)
    before = [next(first)[0].tolist() for _ in range(2)]
    after = data(2, 0)
    after.set_init_state(first.state_dict())
    assert after.get_init_step() == 6 - 2
    iterator = after.create_tuple_iterator(num_epochs=2, output_numpy=True)
    rest = [rows.tolist() for (rows,) in iterator]
    assert len(rest) == 2 and not {x for rows in rest for x in rows} & {x for rows in before for x in rows}
    untouched = data(2, 0).create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert len(list(untouched)) == 6
    assert [rows.tolist() for (rows,) in iterator] == [rows.tolist() for (rows,) in untouched]
    # The position within the rest is one as well, for any number of shards.
    again = after.create_tuple_iterator(num_epochs=2, output_numpy=True)
    next(again)
    state = again.state_dict()
    assert state["shards"] == [[4, 4], [2, 2]] == after.state_at(5)["shards"]
    assert after.state_at(5) == state and after.state_at(6)["shards"] == [[2, 0]]
    third = data(3, 2)
    third.set_init_state(state)
    assert len(list(third.create_tuple_iterator(num_epochs=1, output_numpy=True))) == 1
    first.stop(), again.stop()


def test_text_files_deal_consecutive_rows(tmp_path: Any) -> None:
    for number, count in enumerate((13, 1, 17)):
        lines = "".join(f"{number}-{line}\n" for line in range(count))
        (tmp_path / f"{number}.txt").write_text(lines)

    def data(shards: int, shard: int, shuffle: Any) -> Any:
        name = str(tmp_path / "*.txt")
        return ds.TextFileDataset(name, shuffle=shuffle, num_shards=shards, shard_id=shard).batch(2)

    for shuffle, counts in itertools.product((False, True, ds.Shuffle.INFILE), ((4, 2, 3), (1, 3, 2), (2, 5, 1))):
        state, found = None, []
        for number, shards in enumerate(counts):
            states = []
            for shard in range(shards):
                made = data(shards, shard, shuffle).create_tuple_iterator(output_numpy=True)
                if state is not None:
                    made.load_state_dict(state)
                rows = itertools.islice(made, None if number == 2 else 2)
                found += [str(line) for (lines,) in rows for line in lines]
                states.append(made.state_dict())
                made.stop()
            state = states[0]
        times = Counter(found)
        assert len(times) == 31 and sum(times.values()) - 31 < counts[-1]


def test_orders_of_sources_below_shards_are_common_without_a_seed() -> None:
    def rows(shard: int) -> list[int]:
        sampler = ds.DistributedSampler(2, shard, shuffle=False)
        sampler.add_child(ds.RandomSampler())
        data = ds.NumpySlicesDataset(np.arange(40), sampler=sampler)
        return [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]

    assert sorted(rows(0) + rows(1)) == list(range(40))


def test_what_is_refused() -> None:
    state = part(4, 0).state_at(3)
    assert state["shards"] == [[4, 3]]
    for data, words in (
        (part(2, 0).filter(lambda x: True, ["column_0"]), "a row of filter"),
        (part(2, 0).repeat(2), "a row of repeat"),
        (part(2, 0).shuffle(4), "a row of shuffle"),
        (part(2, 0).take(5), "a row of take"),
        (part(2, 0).batch(lambda info: 2), "a row of batch"),
    ):
        with pytest.raises(ValueError, match=f"set_init_state: from 4 shards to 2: it is not known .* {words}"):
            data.set_init_state(state)
        kept = data.state_at(1)
        assert kept["shards"] == 2
        data.set_init_state(kept)
        with pytest.raises(ValueError, match="from 2 shards to 3: where the position was saved"):
            part(3, 0).set_init_state(kept)
    with pytest.raises(ValueError, match="this dataset has none; give its source num_shards"):
        ds.NumpySlicesDataset(np.arange(4)).set_init_state(state)
    few = ds.NumpySlicesDataset(np.arange(40), num_shards=2, shard_id=0, num_samples=3)
    with pytest.raises(ValueError, match="NumpySlicesDataset divides its rows in another way"):
        few.set_init_state(state)
    for wrong in ({}, "x", "[1]", 3, {**state, "shards": [[0, 1]]}, {**state, "shards": []}, {**state, "step": -1}):
        with pytest.raises(ValueError, match="set_init_state: "):
            part(2, 0).set_init_state(wrong)
    later = part(2, 0)
    later.set_init_state(state)
    with pytest.raises(ValueError, match="step 1 is before"):
        later.state_at(1)
    with pytest.raises(ValueError, match="of initial_epoch, cannot be left out"):
        later.create_tuple_iterator().begin_after(5)
    later.reset()
    assert later.get_init_step() == 0 and later.state_at(0)["shards"] == [[2, 0]]


def test_rows_of_a_step() -> None:
    found = positions.shards_of(part(3, 1, batch=4).project(["column_0"]).batch(2, drop_remainder=True))
    assert found is not None and (found.number, found.rows_of_step) == (3, 8)
    # 34 rows each make 9 batches of up to 4, and 4 of two of these.
    assert found.steps(()) == 4
    assert positions.shards_of(ds.NumpySlicesDataset([1, 2]).batch(2)) is None

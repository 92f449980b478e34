"""Positions that shards share: every row once, whatever number of shards goes on, and when."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.execution.pass_context import FRESH
from mycel.dataset.iteration import elastic_resumption
from tests.tfrecords import write

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


@pytest.mark.parametrize("shuffle", [False, True, ds.Shuffle.INFILE, ds.Shuffle.PARTIAL])
def test_files_are_shuffled_alike_by_all_numbers_of_shards(tmp_path: Any, shuffle: Any) -> None:
    ds.config.set_seed(3)
    names = []
    for start, end in ((0, 40), (40, 41), (41, ROWS)):
        names.append(str(tmp_path / f"{start}.txt"))
        (tmp_path / f"{start}.txt").write_text("".join(f"{n}\n" for n in range(start, end)))

    def data(shards: int, shard: int) -> Any:
        return ds.TextFileDataset(names, shuffle=shuffle, num_shards=shards, shard_id=shard).shuffle(7)

    for counts, steps in (((3, 2, 5), 9), ((1, 4, 2), 11), ((5, 3, 1), 4)):
        found: Counter[int] = Counter()
        state = None
        for shards, most in zip(counts, (steps, steps, None)):
            for shard in range(shards):
                iterator = data(shards, shard).create_tuple_iterator(num_epochs=1, output_numpy=True)
                if state is not None:
                    iterator.load_state_dict(state)
                found.update(int(line) for (line,) in itertools.islice(iterator, most))
                after = iterator.state_dict()
            state = after
        # The last shards may repeat rows, so that all are equally long.
        assert set(found) == set(range(ROWS)) and sum(found.values()) < ROWS + sum(counts)


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
        (part(2, 0).repeat(2).shuffle(4), "a row of shuffle"),
        (part(2, 0).take(5).shuffle(4), "a row of shuffle"),
        (part(2, 0, batch=2).shuffle(4), "a row of shuffle"),
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
    found = elastic_resumption.shards_of(part(3, 1, batch=4).project(["column_0"]).batch(2, drop_remainder=True))
    assert found is not None and (found.number, found.rows_of_step) == (3, 8)
    # 34 rows each make 9 batches of up to 4, and 4 of two of these.
    assert found.steps(FRESH) == 4
    assert elastic_resumption.shards_of(ds.NumpySlicesDataset([1, 2]).batch(2)) is None


# Operations that are not row for row, with numbers that depend on the shards where their rows do.
Chain = list[tuple[str, int]]


def chained(shards: int, shard: int, chain: Chain, batch: int, source: Any = None) -> Any:
    data = ds.NumpySlicesDataset(np.arange(ROWS), num_shards=shards, shard_id=shard) if source is None else source
    data = data.map(lambda x: x + 0)
    for name, number in chain:
        data = data.batch(batch) if name == "batch" else getattr(data, name)(number)
    return data


def epoch_of(datasets: list[Any], state: Any, steps: int | None) -> tuple[list[int], Any, list[int]]:
    """Return the rows of steps of an epoch, where all of the shards are then, and their steps."""
    found: list[int] = []
    states, counts = [], []
    for data in datasets:
        iterator = data.create_tuple_iterator(output_numpy=True)
        if state is not None:
            iterator.load_state_dict(state)
        rows = [np.asarray(x).reshape(-1).tolist() for (x,) in itertools.islice(iterator, steps)]
        found += [value for row in rows for value in row]
        states.append(iterator.state_dict())
        counts.append(len(rows))
        iterator.stop()
    assert all(other == states[0] for other in states)
    return found, json.loads(json.dumps(states[0])), counts


CHAINS: list[Chain] = [
    [("repeat", 3)],
    [("repeat", 2), ("batch", 0)],
    [("batch", 0), ("repeat", 3)],
    [("skip", 4)],
    [("take", 24), ("batch", 0)],
    [("skip", 3), ("take", 11), ("repeat", 2)],
    [("repeat", 2), ("skip", 5), ("take", 30), ("repeat", 2)],
    [("repeat", 3), ("batch", 0), ("skip", 2), ("take", 9)],
    [("shuffle", 7)],
    [("shuffle", 200), ("repeat", 2), ("batch", 0)],
    [("shuffle", 5), ("skip", 2), ("batch", 0), ("repeat", 2)],
]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "-".join(name for name, _ in chain))
def test_every_row_of_the_epoch_after_changes_between(chain: Chain) -> None:
    ds.config.set_seed(6)
    random = np.random.default_rng(len(str(chain)))
    for _ in range(8):
        counts, batches = random.integers(1, 6, 3).tolist(), random.integers(1, 5, 3).tolist()
        made = [
            [chained(shards, shard, chain, batch) for shard in range(shards)] for shards, batch in zip(counts, batches)
        ]
        whole, _, steps = epoch_of(made[0], None, None)
        wanted = Counter(whole)
        stops = [int(random.integers(1, steps[0] + 1)), int(random.integers(0, 6)), None]
        state, found, over = None, Counter[int](), False
        for datasets, stop in zip(made, stops):
            rows, state, _ = epoch_of(datasets, state, stop)
            found += Counter(rows)
            # The one before may have come to the end of the epoch.
            over = state["epoch"] > (stop is None)
            if over:
                break
        if over:
            continue
        names = [name for name, _ in chain]
        passes = int(np.prod([number for name, number in chain if name == "repeat"], dtype=int))
        # Shards are made equally long by rows that repeat, and so are steps of another size.
        rounded = sum(passes * shards * batch for shards, batch in zip(counts, batches))
        if not {"skip", "take"} & set(names):
            assert not Counter({row: passes for row in wanted}) - found, (counts, batches, stops)
        if "take" not in names or names[-1] != "repeat":
            # Later passes of a `take` in a `repeat` are those of the shards that begin them.
            lost, extra = sum((wanted - found).values()), sum((found - wanted).values())
            assert lost <= rounded and extra <= rounded, (counts, batches, stops)
        assert max(found.values()) <= passes + 3, (counts, batches, stops)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "-".join(name for name, _ in chain))
def test_a_row_of_the_epoch_comes_once_where_all_divides(chain: Chain) -> None:
    """Where steps have the same rows with all numbers of shards, nothing is rounded."""
    ds.config.set_seed(8)
    for first, counts in itertools.product((0, 1, 3), ((4, 2, 1), (1, 2, 4), (2, 4, 2))):
        made, stops = [], []
        for shards, steps in zip(counts, (first, 1, None)):
            here, batched = [], False
            for name, number in chain:
                batched = batched or name == "batch"
                scaled = name in ("skip", "take") and not batched
                here.append((name, number * 4 // shards if scaled else number))
            stops.append(steps if steps is None or batched else steps * 4 // shards)
            source = lambda shard, n=shards: ds.NumpySlicesDataset(np.arange(96), num_shards=n, shard_id=shard)
            made.append([chained(shards, i, here, 12 // shards, source(i)) for i in range(shards)])
        whole, _, _ = epoch_of(made[0], None, None)
        # As the first iterators.
        ds.config.set_seed(8)
        state, found = None, []
        for datasets, stop in zip(made, stops):
            rows, state, counted = epoch_of(datasets, state, stop)
            assert len(set(counted)) == 1 and (stop is None or state["epoch"] == 0)
            found += rows
        if ("shuffle", 5) in chain:
            # Which rows are left out follows from the shuffle of whoever begins.
            assert len(found) == len(whole) and max(Counter(found).values()) <= 2
        else:
            assert Counter(found) == Counter(whole), (first, counts)


def test_as_many_shards_go_on_exactly_behind_all_of_them() -> None:
    ds.config.set_seed(5)
    for chain in CHAINS:
        noisy = lambda shard, chain=chain: chained(3, shard, chain, 4).map(lambda a: a + np.random.rand())
        whole = noisy(1).create_tuple_iterator(num_epochs=2, output_numpy=True)
        rows = [x.tolist() for _ in range(2) for (x,) in whole]
        size = len(rows) // 2
        for place in {0, 1, size // 2, size - 1, size + 1}:
            again = noisy(1)
            again.set_init_state(again.state_at(place))
            iterator = again.create_tuple_iterator(num_epochs=2, output_numpy=True)
            rest: list[Any] = []
            while len(rest) < len(rows) - place:
                rest += [x.tolist() for (x,) in iterator]
            assert rest == rows[place:], (chain, place)


def test_random_numbers_after_a_change_are_a_function_of_the_position() -> None:
    """Whoever makes the rows, and however often the epoch was gone on with from there."""
    ds.config.set_seed(5)

    def data(shards: int, shard: int, workers: int) -> Any:
        rows = ds.NumpySlicesDataset(np.zeros(60), num_shards=shards, shard_id=shard)
        return rows.map(lambda x: x + np.random.rand(), num_parallel_workers=workers).repeat(2).batch(2)

    begun = data(4, 0, 1).create_tuple_iterator(output_numpy=True)
    before = {x for _ in range(9) for x in next(begun)[0].tolist()}
    state = begun.state_dict()
    begun.stop()
    found = []
    for workers in (1, 2, 8):
        again = data(3, 1, workers).create_tuple_iterator(num_epochs=1, output_numpy=True)
        again.load_state_dict(state)
        found.append([x.tolist() for (x,) in again])
    assert found[0] == found[1] == found[2] and not before & {x for rows in found[0] for x in rows}
    # The pass after the one that was gone on with draws as in a run that nobody disturbed.
    whole = data(3, 1, 1).create_tuple_iterator(num_epochs=1, output_numpy=True)
    values = [x for (rows,) in whole for x in rows.tolist()]
    assert not {x for rows in found[0] for x in rows} & set(values[:20])
    part = data(4, 0, 1).create_tuple_iterator(output_numpy=True)
    for _ in range(4):
        next(part)
    first = data(3, 1, 1)
    first.set_init_state(part.state_dict())
    part.stop()
    rows = [x for (rows,) in first.create_tuple_iterator(num_epochs=1, output_numpy=True) for x in rows.tolist()]
    assert rows[-20:] == values[-20:] and not set(rows[:-20]) & set(values)


def test_shuffles_without_a_seed_and_of_uneven_shards_are_refused() -> None:
    shuffled = lambda n: ds.NumpySlicesDataset(np.arange(ROWS), num_shards=n, shard_id=0).shuffle(5)
    state = shuffled(4).create_tuple_iterator().state_dict()
    with pytest.raises(ValueError, match="a shuffle needs a seed"):
        shuffled(2).set_init_state({**{key: state[key] for key in elastic_resumption.KEYS}, "seeded": 0, "shards": 4})
    assert state["seeded"] or state["shards"] == 4
    uneven = ds.NumpySlicesDataset(np.arange(ROWS), sampler=ds.DistributedSampler(2, 0, offset=0)).shuffle(4)
    with pytest.raises(ValueError, match="different lengths"):
        uneven.set_init_state(part(4, 0).state_at(3))


def test_positions_of_other_operations_are_refused() -> None:
    ds.config.set_seed(1)
    state = part(4, 0).repeat(3).take(60).state_at(55)
    assert state["pass"] == 2 and len(state["left"]) == 1
    for data in (part(2, 0), part(2, 0).repeat(3), part(2, 0).repeat(2).take(60)):
        with pytest.raises(ValueError, match="a dataset with other operations: in pass 2"):
            data.set_init_state(state)
    good = part(2, 0).repeat(3).take(60)
    good.set_init_state(state)
    for wrong in (
        {**state, "left": [-1]},
        {**state, "began": [0, [], "x"]},
        {**state, "began": [0, [[2]], []]},
        {**state, "rows": 0},
        {key: value for key, value in state.items() if key != "began"},
        {**state, "shards": 4},
        {**state, "shards": [[4, 3, 0, 1]]},
    ):
        with pytest.raises(ValueError, match="set_init_state: "):
            good.set_init_state(wrong)


def test_whole_files_cannot_change_ranks(tmp_path: Any) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.tfrecord", [{"n": [10 * number + row]} for row in range(6)])
    names = str(tmp_path / "*.tfrecord")
    data = lambda n, i, **more: ds.TFRecordDataset(names, shuffle=False, num_shards=n, shard_id=i, **more)
    state = data(4, 1).state_at(2)
    assert state["shards"] == 4 and data(4, 1).is_sharded()
    same = data(4, 1)
    same.set_init_state(state)
    assert [int(n[0]) for (n,) in same.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [12, 13, 14, 15]
    with pytest.raises(ValueError, match="from 4 shards to 2: TFRecordDataset divides its files among the shards"):
        data(2, 0).set_init_state(state)
    with pytest.raises(ValueError, match="this dataset has none"):
        ds.TFRecordDataset(names, shuffle=False).set_init_state(state)
    rows = data(2, 0, shard_equal_rows=True)
    rows.set_init_state(data(4, 0, shard_equal_rows=True).state_at(2))
    assert len(list(rows.create_tuple_iterator(num_epochs=1))) == 8

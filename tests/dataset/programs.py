"""Random pipelines, and a model of them: lists of rows in plain Python.

A program is a source and steps, each a name with its numbers, drawn from a seed. `build` makes the
dataset, with workers of its own choice of random; `model` says which rows it has. Where steps draw
random numbers there is no model: what is expected is then what the pipeline without workers gives.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import mycel.dataset as ds
from mycel.dataset import transforms

ROWS = 13
Row = dict[str, np.ndarray[Any, Any]]
Step = tuple[str, tuple[int, ...]]
MOST = 300


class Invalid(Exception):
    """A program that no pipeline could run."""


def row_of(number: int) -> Row:
    """Return a row of the sources: a number, and one to three of them."""
    return {"a": np.array(number, np.int64), "b": (np.arange(1 + number % 3) + 0.5 * number).astype(np.float32)}


class Numbers:
    """Rows that are read by number."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        if not 0 <= number < ROWS:
            raise IndexError(number)
        return tuple(row_of(int(number)).values())


def stream() -> Any:
    """Yield the rows one after the other."""
    for number in range(ROWS):
        yield tuple(row_of(number).values())


def _first(x: Any) -> int:
    return int(np.asarray(x).reshape(-1)[0]) if np.size(x) else 0


def _keeps(a: Any, by: int) -> bool:
    return _first(a) % by != 0


def _several(a: Any) -> list[int]:
    return [100 * _first(a) + k for k in range(_first(a) % 4)]


def _flat(a: Any, b: Any) -> Any:
    made = _several(a)
    data = ds.NumpySlicesDataset({"a": np.array(made or [0], np.int64)}, shuffle=False)
    return data if made else data.skip(1)


def _size(info: Any) -> int:
    return int(info.get_batch_num()) % 3 + 1


def _stacked(rows: list[Row], pads: bool) -> Row:
    made: Row = {}
    for name in rows[0]:
        parts = [row[name] for row in rows]
        if pads and parts[0].ndim and len({part.ndim for part in parts}) == 1:
            shape = [max(sizes) for sizes in zip(*(part.shape for part in parts))]
            parts = [np.pad(p, [(0, n - m) for n, m in zip(shape, p.shape)]) for p in parts]
        if len({(part.shape, part.dtype) for part in parts}) > 1:
            raise Invalid
        made[name] = np.stack(parts)
    return made


def _batches(rows: list[Row], size: Callable[[int], int], drops: bool, pads: bool) -> list[Row]:
    made: list[Row] = []
    start = 0
    while start < len(rows):
        count = size(len(made))
        group = rows[start : start + count]
        if len(group) < count and drops:
            break
        made.append(_stacked(group, pads))
        start += count
    return made


def _buckets(rows: list[Row]) -> list[Row]:
    made: list[Row] = []
    buckets: list[list[Row]] = [[], [], []]
    sizes = [2, 1, 3]
    for row in rows:
        place = int(np.searchsorted([3, 9], _first(row["a"]) % 12, side="right"))
        buckets[place].append(row)
        if len(buckets[place]) == sizes[place]:
            made.append(_stacked(buckets[place], True))
            buckets[place] = []
    return made + [_stacked(left, True) for left in buckets if left]


def _joined(one: Row, two: Row) -> Row:
    return {**one, **{name + "2": value for name, value in two.items()}}


def modelled(rows: list[Row], step: Step) -> list[Row]:
    """Return the rows that a step makes of rows; Invalid where it cannot be."""
    name, (n, m) = step[0], (*step[1], 0, 0)[:2]
    if name == "map":
        return [{**row, "a": row["a"] * 2 + n} for row in rows]
    if name == "cast":
        return [{**row, "a": row["a"].astype(np.float64)} for row in rows]
    if name == "grow":
        return [{"c": row["a"] + n, "d": row["a"] - n, **{k: v for k, v in row.items() if k != "a"}} for row in rows]
    if name == "filter":
        return [row for row in rows if _keeps(row["a"], n)]
    if name == "flat_map":
        return [{"a": np.array(number, np.int64)} for row in rows for number in _several(row["a"])]
    if name == "project":
        return [{"a": row["a"]} for row in rows]
    if name == "rename":
        return [{("e" if k == "a" else k): v for k, v in row.items()} for row in rows]
    if name == "back":
        return [{"a" if k in "cde" and k == next(iter(row)) else k: v for k, v in row.items()} for row in rows]
    if name == "repeat":
        return rows * n
    if name == "skip":
        return rows[n:]
    if name == "take":
        return rows[:n]
    if name == "zip":
        return [_joined(one, row_of(two)) for one, two in zip(rows, range(ROWS - n))]
    if name == "concat":
        return rows + [row_of(number) for number in range(n)]
    if name == "split":
        return rows[n:] if m % 2 else rows[:n]
    if name == "shard":
        return rows[m % n :: n]
    if name == "bucket":
        return _buckets(rows)
    if name == "batch":
        return _batches(rows, lambda _: n, bool(m % 2), False)
    if name == "padded":
        return _batches(rows, lambda _: n, bool(m % 2), True)
    if name == "sized":
        return _batches(rows, lambda number: number % 3 + 1, False, False)
    if name == "per_batch":
        made = _batches(rows, lambda _: n, False, False)
        return [{**row, "a": row["a"] + number} for number, row in enumerate(made)]
    raise AssertionError(name)


def applied(data: Any, step: Step, choose: random.Random, processes: bool, cache: Any = None) -> Any:
    """Return a dataset with a step.

    * `data`, `step`: the dataset, and the step.
    * `choose`, `processes`, `cache`: those of `build`; the cache keeps the rows of this step.
    """
    name, (n, m) = step[0], (*step[1], 0, 0)[:2]
    kept = {} if cache is None else {"cache": cache}
    workers = choose.choice([None, 1, 2, 8])
    apart = processes and choose.random() < 0.4
    if name == "map":
        return data.map(lambda a: a * 2 + n, "a", num_parallel_workers=workers, python_multiprocessing=apart, **kept)
    if name == "cast":
        return data.map(transforms.TypeCast(np.float64), "a", num_parallel_workers=workers, offload=True, **kept)
    if name == "random":
        draw = lambda a: a + np.random.randint(0, 1000)
        return data.map(draw, "a", num_parallel_workers=workers, python_multiprocessing=apart)
    if name == "grow":
        return data.map(
            lambda a: (a + n, a - n),
            ["a"],
            ["c", "d"],
            num_parallel_workers=workers,
            python_multiprocessing=apart,
            **kept,
        )
    if name == "filter":
        return data.filter(lambda a: _keeps(a, n), "a", num_parallel_workers=workers)
    if name == "flat_map":
        return data.project(["a", "b"]).flat_map(_flat)
    if name == "project":
        return data.project("a")
    if name == "rename":
        return data.rename("a", "e")
    if name == "back":
        return data.rename(data.get_col_names()[0], "a")
    if name in ("repeat", "skip", "take", "shuffle"):
        return getattr(data, name)(n)
    if name == "zip":
        other = ds.GeneratorDataset(Numbers(), ["a2", "b2"], shuffle=False, num_parallel_workers=workers or 1)
        return data.zip(other.take(ROWS - n))
    if name == "concat":
        other = ds.GeneratorDataset(stream, ["a", "b"])
        return data + other.take(n)
    if name == "split":
        size = data.get_dataset_size()
        return data.split([n, size - n], randomize=False)[m % 2]
    if name == "shard":
        data.use_sampler(ds.DistributedSampler(n, m % n, shuffle=False))
        return data
    if name == "bucket":
        length = lambda a: _first(a) % 12
        return data.bucket_batch_by_length(
            ["a"],
            [3, 9],
            [2, 1, 3],
            element_length_function=length,
            pad_info={column: (None, 0) for column in data.get_col_names()},
        )
    if name == "batch":
        return data.batch(n, bool(m % 2), num_parallel_workers=workers)
    if name == "padded":
        pads = {column: (None, 0) for column in data.get_col_names()}
        return data.padded_batch(n, bool(m % 2), num_parallel_workers=workers, pad_info=pads if m else None)
    if name == "sized":
        return data.batch(_size)
    assert name == "per_batch", name
    return data.batch(
        n,
        num_parallel_workers=workers,
        per_batch_map=lambda a, info: (np.stack(a) + info.get_batch_num(),),
        input_columns=["a"],
        python_multiprocessing=apart,
    )


SOURCES = ("numbers", "stream", "arrays", "subset", "sequence", "distributed", "shuffled")
STEPS: dict[str, Callable[[random.Random], tuple[int, ...]]] = {
    "map": lambda r: (r.randint(0, 5),),
    "random": lambda r: (),
    "cast": lambda r: (),
    "grow": lambda r: (r.randint(1, 5),),
    "filter": lambda r: (r.randint(2, 3),),
    "flat_map": lambda r: (),
    "project": lambda r: (),
    "rename": lambda r: (),
    "back": lambda r: (),
    "repeat": lambda r: (r.randint(1, 3),),
    "shuffle": lambda r: (r.randint(2, 9),),
    "skip": lambda r: (r.randint(0, 4),),
    "take": lambda r: (r.randint(1, 9),),
    "zip": lambda r: (r.randint(0, 4),),
    "concat": lambda r: (r.randint(1, 5),),
    "split": lambda r: (r.randint(1, 5), r.randint(0, 1)),
    "shard": lambda r: (r.randint(2, 3), r.randint(0, 2)),
    "bucket": lambda r: (),
    "batch": lambda r: (r.randint(1, 5), r.randint(0, 1)),
    "padded": lambda r: (r.randint(1, 5), r.randint(0, 1)),
    "sized": lambda r: (),
    "per_batch": lambda r: (r.randint(1, 4),),
}
DRAWING = {"random", "shuffle", "shuffled"}


def _order(source: str) -> list[int]:
    return {"subset": [5, 2, 2, 11, 0], "sequence": [3, 4, 5, 6, 7, 8], "distributed": [*range(1, ROWS, 3)]}.get(
        source, [*range(ROWS)]
    )


def sourced(source: str, choose: random.Random, processes: bool) -> Any:
    """Return the dataset of a source."""
    if source == "stream":
        return ds.GeneratorDataset(stream, ["a", "b"])
    if source == "arrays":
        data = ds.NumpySlicesDataset({"a": np.arange(ROWS)}, shuffle=False)
        return data.map(lambda a: tuple(row_of(int(a)).values()), "a", ["a", "b"])
    samplers: dict[str, Any] = {
        "subset": lambda: {"sampler": ds.SubsetSampler(_order(source))},
        "sequence": lambda: {"sampler": ds.SequentialSampler(3, 6)},
        "distributed": lambda: {"sampler": ds.DistributedSampler(3, 1, shuffle=False, num_samples=4)},
        "shuffled": lambda: {"shuffle": True},
    }
    options = samplers.get(source, lambda: {"shuffle": False})()
    workers, apart = choose.choice([1, 2, 8]), processes and choose.random() < 0.5
    return ds.GeneratorDataset(
        Numbers(), ["a", "b"], num_parallel_workers=workers, python_multiprocessing=apart, **options
    )


class Program:
    """A source and steps, drawn from a seed, with what is expected where there is a model."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.seed = seed
        self.source = draw.choice(SOURCES)
        self.steps: list[Step] = []
        self.rows: list[Row] | None = [row_of(number) for number in _order(self.source)]
        # The model of the program without what it draws, which says what fits.
        rows = self.rows
        self.drawing = self.source in DRAWING
        for _ in range(draw.randint(1, 6)):
            found = self._next(draw, rows)
            if found is not None:
                step, rows = found
                self.steps.append(step)
                self.drawing = self.drawing or step[0] in DRAWING
        self.rows = None if self.drawing else rows

    def _next(self, draw: random.Random, rows: list[Row]) -> tuple[Step, list[Row]] | None:
        name = draw.choice([*STEPS])
        step = name, STEPS[name](draw)
        columns = [*rows[0]]
        needs = {"grow": "a", "rename": "a", "flat_map": "ab", "concat": "ab", "zip": "ab"}.get(name, "a")
        if name != "back" and not set(needs) <= set(columns):
            return None
        if name in ("grow",) and {"c", "d"} & set(columns) or name == "rename" and "e" in columns:
            return None
        if name == "back" and ("a" in columns or columns[0] not in "cde"):
            return None
        if name == "zip" and {"a2", "b2"} & set(columns):
            return None
        if name == "concat" and (columns != ["a", "b"] or rows[0]["a"].ndim or rows[0]["a"].dtype != np.int64):
            return None
        if name == "shard" and (not self.steps or self.steps[-1][0] != "concat"):
            return None
        if name == "split" and (step[1][0] >= len(rows) or self._varies()):
            return None
        # Which rows are joined is not known where they are drawn.
        joins = {"batch", "padded", "sized", "per_batch", "bucket", "filter", "flat_map"}
        if (
            self.drawing
            and name in joins
            and (name == "flat_map" or "b" in columns and name not in ("padded", "filter"))
        ):
            return None
        try:
            made = rows if name in ("random", "shuffle") else modelled(rows, step)
        except Invalid:
            return None
        return None if not made or len(made) > MOST else (step, made)

    def _varies(self) -> bool:
        """Return whether the number of rows depends on what is drawn."""
        return self.drawing and any(name in ("filter", "flat_map", "bucket") for name, _ in self.steps)

    def build(self, choose: random.Random, processes: bool, waits: int | None = None, cache: Any = None) -> Any:
        """Return the dataset.

        * `choose`: decides on workers.
        * `processes`: whether they may be processes.
        * `waits`: after how many steps rows wait for the consumer; None: nowhere.
        * `cache`: where the rows of some steps are kept, or None.
        """
        data = sourced(self.source, choose, processes)
        below = [self.source]
        for place, step in enumerate(self.steps):
            data = data.sync_wait("go") if place == waits else data
            # What is drawn below a cache would be the same in every epoch.
            keeps = cache is not None and step[0] in ("map", "cast", "grow") and not DRAWING & set(below)
            data = applied(data, step, choose, processes, cache if keeps and choose.random() < 0.6 else None)
            below.append(step[0])
        return data.sync_wait("go") if waits == len(self.steps) else data

    def __repr__(self) -> str:
        return f"Program({self.seed}): {self.source} {self.steps}"


def plain(row: Any) -> Any:
    """Return a row as lists that can be compared, with shapes and types."""
    return [[np.asarray(x).dtype.str, np.asarray(x).shape, np.asarray(x).tolist()] for x in row]


def rows_of(data: Any, epochs: int, state: dict[str, int] | None = None, seen: Any = None) -> list[list[Any]]:
    """Return the rows of each epoch.

    * `data`, `epochs`: the dataset, and how many.
    * `state`: where to begin; None: at the first row.
    * `seen`: called with the number of rows so far.
    """
    # The first iterator since the seed was set.
    ds.config.set_seed(ds.config.get_seed())
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    if state is not None:
        iterator.load_state_dict({**iterator.state_dict(), **state})
    found: list[list[Any]] = []
    count = 0
    try:
        for _ in range(state["epoch"] if state else 0, epochs):
            found.append([])
            for row in iterator:
                found[-1].append(plain(row))
                count += 1
                if data.is_synced:
                    data.sync_update("go")
                if seen is not None:
                    seen(count)
    finally:
        iterator.stop()
    return found

"""Draw chains of dataset operations and ask MindSpore what they give.

    python tests/dataset/ask_chains.py FIRST LAST > tests/dataset/values/chains.json

It runs with an interpreter that has MindSpore 2.10. Most steps fit the columns that there are.
"""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import random
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from chains import ROWS, answers, build


def draw_sampler(r: random.Random, depth: int = 0) -> Any:
    child = draw_sampler(r, depth + 1) if depth < 2 and r.random() < 0.3 else None
    count = r.choice([None, None, None, 0, 1, 2, 3, 20])
    kind = r.choice(["SequentialSampler", "SubsetSampler", "DistributedSampler", "Distributed offset"])
    if kind == "SequentialSampler":
        return [kind, [r.choice([None, 0, 1, 1, 2, 9]), count], child]
    if kind == "SubsetSampler":
        return [kind, [[r.randrange(ROWS if child is None else 3) for _ in range(r.randint(1, 5))], count], child]
    shards = r.randint(1, 4)
    offset = [-1] if kind == "DistributedSampler" else [r.randint(0, shards)]
    return ["DistributedSampler", [shards, r.randrange(shards), False, count, *offset], child]


def draw_source(r: random.Random, prefix: str = "") -> Any:
    name = r.choice(["slices", "dictionary", "pairs", "pairs", "ragged", "stream", "texts"])
    options: dict[str, Any] = {"prefix": prefix} if prefix else {}
    if name == "stream":
        if r.random() < 0.3:
            options["num_samples"] = r.choice([0, 1, 4, 99])
        return [name, options]
    kind = r.random()
    if kind < 0.2:
        options["sampler"] = draw_sampler(r)
    elif kind < 0.3:
        options["num_samples"] = r.choice([0, 1, 4, 99])
    elif kind < 0.4:
        shards = r.randint(1, 3)
        options.update(num_shards=shards, shard_id=r.randrange(shards))
    elif kind < 0.45:
        options["sampler"] = [r.randrange(ROWS) for _ in range(4)]
    return [name, options]


def some(r: random.Random, columns: list[str], least: int = 1) -> list[str]:
    if r.random() < 0.01:
        return [*columns[:1], "missing"]
    return r.sample(columns, r.randint(min(least, len(columns)), len(columns)))


def draw_map(r: random.Random, columns: list[str]) -> Any:
    options: dict[str, Any] = {}
    chosen = columns[:1]
    if r.random() < 0.8:
        chosen = options["input_columns"] = some(r, columns)
    first = r.choice(
        ["same", "first", "double", "grow", "total", "number", "real", "word", "flag", "list", "bytes", "half"]
        + [
            "keys",
            "key",
            ["TypeCast", "float64"],
            ["TypeCast", "int32"],
            ["Fill", 3],
            ["PadEnd", [4], -1],
            ["Duplicate"],
        ]
        + [["Slice", 0], ["OneHot", 80], ["Unique"], ["Concatenate"]]
    )
    options["operations"] = [first] + r.choice([[], [], ["same"], ["first"], [["TypeCast", "float32"]]])
    several = {"same": len(chosen), "double": len(chosen), "grow": 2, "Duplicate": 2, "Unique": 3}
    made = several.get(first if isinstance(first, str) else first[0], 1)
    if options["operations"][-1] == "first":
        made = 1
    if made > 1 and len(options["operations"]) > 1 and isinstance(options["operations"][1], list):
        options["operations"].pop()
    count = made if made != len(chosen) else r.choice([None, None, made])
    count = r.choice([1, 2, 3]) if r.random() < 0.05 else count
    if count is not None:
        options["output_columns"] = r.sample([*chosen, "p", "q", "r", "s"], min(count, 3))
    if r.random() < 0.1:
        options["num_parallel_workers"] = 2
    return ["map", options]


def draw_batch(r: random.Random, columns: list[str]) -> Any:
    options: dict[str, Any] = {"batch_size": r.choice([1, 2, 3, 3, 10, "size"])}
    if r.random() < 0.4:
        options["drop_remainder"] = True
    if r.random() < 0.4:
        options["per_batch_map"] = r.choice(["by_batch", "by_batch", "summed", "whole", "held"])
        chosen = columns
        if r.random() < 0.7:
            chosen = options["input_columns"] = some(r, columns)
        made = {"summed": 1, "held": 1, "whole": len(chosen), "by_batch": max(2, len(chosen))}[options["per_batch_map"]]
        if r.random() < 0.3 or made != len(chosen):
            options["output_columns"] = r.sample([*chosen, "m", "n", "o"], min(made, 3))
    return ["batch", options]


def draw_padding(r: random.Random, columns: list[str]) -> Any:
    pad = {}
    for name in some(r, columns):
        pad[name] = r.choice([None, [None, None], [None, 5], [None, -1], [[4], 7], [[None], -1], [[3, 3], 1]])
    return r.choice([None, None, pad])


def draw_step(r: random.Random, columns: list[str]) -> Any:
    kind = r.choice(
        "map map map batch batch padded bucket repeat take take skip skip filter project rename zip concat split "
        "apply add use_sampler".split()
    )
    if kind == "map":
        return draw_map(r, columns)
    if kind == "batch":
        return draw_batch(r, columns)
    if kind == "padded":
        return [
            "padded_batch",
            {
                "batch_size": r.choice([1, 2, 3]),
                "drop_remainder": r.random() < 0.3,
                "pad_info": draw_padding(r, columns),
            },
        ]
    if kind == "bucket":
        options = {
            "column_names": some(r, columns)[:1],
            "bucket_boundaries": r.choice([[2], [1, 3], [2, 3], [5]]),
            "pad_info": draw_padding(r, columns),
            "drop_remainder": r.random() < 0.3,
            "pad_to_bucket_boundary": r.random() < 0.3,
        }
        options["bucket_batch_sizes"] = [r.randint(1, 3) for _ in range(len(options["bucket_boundaries"]) + 1)]
        if r.random() < 0.5:
            options["element_length_function"] = r.choice(["length", "number"])
        return ["bucket_batch_by_length", options]
    if kind == "repeat":
        return [kind, {"count": r.choice([1, 2, 2, 2, 3, 3, -1])}]
    if kind == "take":
        return [kind, {"count": r.choice([1, 2, 3, 4, 5, 50, -1])}]
    if kind == "skip":
        return [kind, {"count": r.choice([0, 1, 1, 2, 3, 50])}]
    if kind == "filter":
        options = {"predicate": r.choice(["even", "even", "small", "none", "number"])}
        if r.random() < 0.8:
            options["input_columns"] = some(r, columns)
        return [kind, options]
    if kind == "project":
        return [kind, {"columns": some(r, columns)}]
    if kind == "rename":
        old = some(r, columns)
        return [kind, {"input_columns": old, "output_columns": r.sample(["x", "y", "z", "w", "a", "b"], len(old))}]
    if kind == "zip":
        return [kind, {"other": draw_source(r, r.choice("zyxwvuts"))}]
    if kind in ("concat", "add"):
        # A fitting one if it can be.
        name = r.choice(["slices", "dictionary", "pairs", "stream"])
        return [kind, {"other": [name, {"num_samples": 3} if r.random() < 0.2 else {}]}]
    if kind == "split":
        sizes = r.choice([[0.5, 0.5], [0.3, 0.7], [3, 4], [2, 2, 3], [0.2, 0.8], [0.4, 0.6]])
        return [kind, {"sizes": sizes, "part": r.randrange(len(sizes))}]
    if kind == "use_sampler":
        return [kind, {"sampler": draw_sampler(r)}]
    return ["apply", {"function": r.choice(["pairs", "start"])}]


def draw(ds: Any, seed: int) -> dict[str, Any]:
    r = random.Random(seed)
    program: dict[str, Any] = {"source": draw_source(r), "steps": [], "epochs": r.choice([1, 1, 2])}
    for place in range(r.randint(0, 5)):
        try:
            columns = build(ds, program).get_col_names()
        except Exception:
            return program
        chosen = draw_step(r, columns)
        while (
            (chosen[0] == "use_sampler" and place)
            or (chosen[0] in ("concat", "add") and columns != ["a", "b"])
            or (chosen[0] == "split" and not program["source"][0] != "stream")
        ):
            chosen = draw_step(r, columns)
        program["steps"].append(chosen)
    return program


def asked(ds: Any, seed: int) -> Any:
    """Return a program and its answers, drawn and run in a child process; None where it hangs."""
    reading, writing = multiprocessing.Pipe(False)

    def work() -> None:
        program = draw(ds, seed)
        writing.send([program, answers(ds, program)])

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    found = reading.recv() if reading.poll(10) else None
    child.kill()
    child.join()
    return found


def is_kept(program: dict[str, Any], found: dict[str, Any]) -> bool:
    """Return whether the answers are those of a program that MindSpore runs as it is documented."""
    if "build" in found or any(isinstance(row, str) and row[0] == "!" for row in found["rows"]):
        return False
    for operation, options in program["steps"]:
        # The length of a column that has no axis is whatever lies in memory.
        if operation == "bucket_batch_by_length" and "element_length_function" not in options:
            return "a" in options["column_names"][0] and program["source"][0] != "texts"
    return True


if __name__ == "__main__":
    import mindspore
    import mindspore.dataset

    mindspore.set_seed(1)
    first, last = map(int, sys.argv[1:])
    drawn = [asked(mindspore.dataset, seed) for seed in range(first, last)]
    lines = [json.dumps(pair, separators=(",", ":")) for pair in drawn if pair and is_kept(*pair)]
    print("[\n" + ",\n".join(lines) + "\n]")

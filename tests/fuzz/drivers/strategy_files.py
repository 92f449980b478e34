"""Strategy files as messages and as JSON, layouts made of them, and files of groups."""

from __future__ import annotations

import functools
import json
import random as random_module
import tempfile
from pathlib import Path

import mycel as ms
from mycel.train.strategies import Dims, ParallelLayouts, build_searched_strategy, layouts_of, write_strategy
from tests.fuzz.drivers._damage import clear, damage
from tests.fuzz.drivers._messages import mutated
from tests.fuzz.drivers._objects import changed

CORPUS = 150
MEMORY = 1 << 30
_LAYOUTS = {
    "weight": ParallelLayouts([Dims([2, 4])], [Dims([1, -1])], opt_weight_shard_size=-1),
    "1-bias": ParallelLayouts([Dims([2, 4])], [Dims([0])], [Dims([])], [Dims([])], 0, 2, 2),
    "n": ParallelLayouts([Dims([2, 4])], [Dims([0]), Dims([1])]),
}
_JSON = {
    "current_stage": 1,
    "parallel_strategy_item": {"a": {"stage": 0, "strategy": [[1, 2]]}},
    "parallel_layout_item": {
        "w": {"dev_matrix": [2, 4], "tensor_map": [[1], [-1]], "field": 0, "opt_weight_shard_size": 2}
    },
}


@functools.cache
def sound() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.ckpt")
        write_strategy(path, _LAYOUTS)
        return path.read_bytes()


def case(random: random_module.Random) -> tuple[str, bytes]:
    kind = random.choice(("a.ckpt", "a.ckpt", "a.json", "group.pb"))
    if kind == "a.json":
        content = json.dumps(_JSON if random.random() < 0.5 else changed(random, _JSON)).encode()
        return kind, content if random.random() < 0.3 else damage(random, content)
    content = sound()
    if random.random() < 0.7:
        for _ in range(random.randint(1, 3)):
            content = mutated(random, content)
    if random.random() < 0.5:
        content = damage(random, content)
    return kind, content


def run(case: tuple[str, bytes]) -> None:
    name, content = case
    Path(name).write_bytes(content)
    if name == "group.pb":
        assert all(isinstance(n, int) for n in ms.restore_group_info_list(name))
        return
    build_searched_strategy(name)
    layouts = layouts_of(name)
    assert layouts is not None
    for layout in layouts.values():
        layout.place(layout.count - 1), layout.cuts()
    if next(iter(layouts.values())).count < 4096:
        ms.rank_list_for_transform(0, None, name)


def judge(error: BaseException, case: tuple[str, bytes]) -> str:
    return clear(
        error,
        (case[0], "parameter ", "stages of", "pipeline stages", "restore_group_info_list", "rank_list_for_transform"),
    )

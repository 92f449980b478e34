"""Safetensors, single and divided among files with an index: damaged bytes, and headers that say
something else.
"""

from __future__ import annotations

import functools
import json
import random as random_module
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import mycel as ms
from mycel.train.checkpoint_format import read_safetensors
from mycel.train.sharded_checkpoint import ShardedCheckpoint
from tests.fuzz.drivers._damage import clear, damage
from tests.fuzz.drivers._objects import changed

CORPUS = 150
MEMORY = 1 << 30
INDEX = "a.safetensors.index.json"
Files = dict[str, bytes]


@functools.cache
def sound(divided: bool) -> Files:
    entries = [
        {"name": "weight", "data": ms.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))},
        {"name": "n", "data": ms.Tensor(np.array(7, np.int64))},
        {"name": "b", "data": ms.Tensor(np.array([True, False]))},
        {"name": "f8", "data": ms.Tensor(np.ones(5, np.float32)).astype(ms.bfloat16)},
    ]
    with tempfile.TemporaryDirectory() as folder:
        more: dict[str, Any] = {"max_shard_size": 30} if divided else {}
        ms.save_checkpoint(entries, str(Path(folder, "a.safetensors")), format="safetensors", crc_check=True, **more)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def case(random: random_module.Random) -> Files:
    files = dict(sound(random.random() < 0.5))
    for _ in range(random.randint(1, 2)):
        name = random.choice(sorted(files))
        content = files[name]
        try:
            if random.random() < 0.5:
                files[name] = damage(random, content)
            elif name == INDEX:
                files[name] = json.dumps(changed(random, json.loads(content))).encode()
            else:
                length = int.from_bytes(content[:8], "little")
                header = json.dumps(changed(random, json.loads(content[8 : 8 + length]))).encode()
                files[name] = len(header).to_bytes(8, "little") + header + content[8 + length :]
        except (ValueError, RecursionError):
            # It was damaged before.
            continue
    return files


def run(case: Files) -> None:
    for path in Path(".").iterdir():
        path.unlink()
    for name, content in case.items():
        Path(name).write_bytes(content)
    size = sum(map(len, case.values()))
    failure: Any = None
    single = "a.safetensors" in case
    readers = [
        lambda: dict(ShardedCheckpoint("a.safetensors" if single else INDEX).arrays()),
        lambda: {
            name: p.asnumpy()
            for name, p in ms.load_checkpoint("a.safetensors" if single else INDEX, format="safetensors").items()
        },
    ]
    if single:
        readers += [lambda: read_safetensors("a.safetensors"), lambda: read_safetensors("a.safetensors", verify=True)]
    for reader in readers:
        try:
            found = reader()
        except Exception as error:
            if clear(error, NAMES):
                raise
            failure = error
        else:
            assert sum(np.asarray(a).nbytes for a in found.values()) <= 2 * size + 64
    if failure is not None:
        raise failure


NAMES = ("a.safetensors", "a-0000", "load_checkpoint")


def judge(error: BaseException, case: Files) -> str:
    return clear(error, NAMES)


def describe(case: Files) -> str:
    return repr({name: content for name, content in case.items() if content not in sound(True).values()})

"""Files of the compile cache: objects, programs and notes that were damaged.

None is used, and what is compiled instead is right.
"""

from __future__ import annotations

import os
import random as random_module
import shutil
from typing import Any

import numpy as np

import mycel as ms
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.settings import config
from tests.fuzz.drivers._damage import damage

CORPUS = 60
_sound: dict[str, bytes] = {}


def _network(x: Any, y: Any) -> Any:
    for k in range(6):
        x = ms.ops.tanh(x @ y + k) * 0.5 - x.mean(1, keep_dims=True)
    return x.sum(0), x


def _arguments() -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    return ms.Tensor(draw.normal(size=(8, 8)).astype(np.float32)), ms.Tensor(
        draw.normal(size=(8, 8)).astype(np.float32)
    )


def _run() -> list[Any]:
    return [t.asnumpy().copy() for t in ms.jit(_network)(*_arguments())]


def setup() -> None:
    os.environ["MYCEL_CACHE"] = os.path.abspath("cache")
    _run()
    code_cache.write_note("machine-0.json", "{}")
    folder = config.cache_directory()
    _sound.update({str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    _sound["expected"] = np.concatenate([a.ravel() for a in _run()]).tobytes()


def case(random: random_module.Random) -> tuple[int, int]:
    return random.randrange(1 << 30), random.randrange(20)


def run(case: tuple[int, int]) -> None:
    random = random_module.Random(case[0])
    folder = config.cache_directory()
    shutil.rmtree(folder, ignore_errors=True)
    names = sorted(name for name in _sound if name != "expected")
    chosen = set(random.sample(names, random.randint(1, len(names))))
    harmed = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = _sound[name]
        if name in chosen:
            content = _sound[random.choice(names)] if random.random() < 0.2 else damage(random, content)
            if content != _sound[name]:
                harmed.append(path)
        path.write_bytes(content)
        path.chmod(0o600)
    for path in harmed:
        if len(path.name) == 64:
            assert code_cache.read(path.parent.parent.name, path.name) is None, f"the damaged file {path} is used"
    if case[1] == 0:
        found = np.concatenate([a.ravel() for a in _run()]).tobytes()
        assert found == _sound["expected"], "what was compiled anew gives other numbers"
    code_cache.read_note("machine-0.json")
    assert code_cache.trim(1) >= 0 and not [entry for entry in code_cache.entries() if entry.bytes > 1 << 20]


def judge(error: BaseException, case: tuple[int, int]) -> str:
    return f"{type(error).__name__} although the cache is never in the way"

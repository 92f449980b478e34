"""Modules under the paths that they had before: pickles and programs name them."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation import earlier_paths

PACKAGE = Path(ms.__file__).parent
MODULES = [
    ".".join([room, *file.relative_to(PACKAGE / "_src" / home.replace(".", "/")).with_suffix("").parts])
    for room, home in sorted(earlier_paths.ROOMS.items())
    for file in sorted((PACKAGE / "_src" / home.replace(".", "/")).glob("*.py"))
    if file.stem != "__init__"
]


@pytest.mark.parametrize("room", sorted(earlier_paths.ROOMS))
def test_every_module_is_the_same_under_both_names(room: str) -> None:
    names = [name for name in MODULES if name.startswith(f"{room}.")]
    assert names
    for name in names:
        _, *inner = name.split(".")
        now = importlib.import_module(".".join(["mycel._src", earlier_paths.ROOMS[room], *inner]))
        before = importlib.import_module(f"mycel.{name}")
        assert before is now and now.__spec__ is not None and now.__spec__.name == now.__name__


def test_renamed_modules_are_the_same_under_both_names() -> None:
    table = earlier_paths.renamed()
    assert len(table) > 300
    for before, now in table.items():
        assert importlib.import_module(before) is importlib.import_module(now)
        assert importlib.util.find_spec(now) is not None and before not in table.values()


def test_what_an_import_found_is_an_attribute_of_its_package() -> None:
    for name in (*[f"mycel.{room}" for room in earlier_paths.ROOMS], *earlier_paths.renamed()):
        found: object = ms
        module = importlib.import_module(name)
        for part in name.split(".")[1:]:
            found = getattr(found, part)
        assert found is module, name


def test_attributes_are_there_after_an_import_statement_alone() -> None:
    program = "import mycel.core.tensor, mycel.base.config as c; import mycel as ms"
    program += "; assert mycel.core.tensor.Tensor is ms.Tensor and mycel.base.config is c"
    program += "; assert not hasattr(ms, 'planner')"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_the_table_is_read_when_a_name_is_not_found_otherwise() -> None:
    program = "import mycel, mycel.core.tensor, mycel.train; from mycel._src.foundation import earlier_paths as paths"
    program += "; assert paths.renamed.cache_info().misses == 0"
    program += "; import mycel.base.config; assert paths.renamed.cache_info().misses == 1"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"mycel\.core\.nothing"):
        importlib.import_module("mycel.core.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"mycel\.nothing"):
        importlib.import_module("mycel.nothing")


def test_pickles_of_earlier_versions_are_read() -> None:
    for value in (ms.Tensor(np.arange(3.0, dtype=np.float32)), ms.Parameter(ms.Tensor([1.0]), name="w")):
        data = pickle.dumps(value, protocol=0)
        earlier = data.replace(b"mycel._src.tensors.core.", b"mycel.core.")
        assert earlier != data and b"_src" not in earlier
        found = pickle.loads(earlier)
        assert type(found) is type(value) and found.asnumpy().tobytes() == value.asnumpy().tobytes()


def test_an_earlier_path_may_be_the_first_import() -> None:
    program = "from mycel.core.tensor import Tensor; import mycel; assert Tensor is mycel.Tensor"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

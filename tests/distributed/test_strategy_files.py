"""Files of operators' strategies: what compiled programs save, and others load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.staging.distributed.strategy_files import load_strategies
from mycel.parallel.auto_parallel import AutoParallel
from mycel.parallel.regions import chosen_strategy

O: Any = ops


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.reset_auto_parallel_context()
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.second = O.MatMul(), O.ReLU(), O.MatMul()

    def construct(self, x: Any, y: Any, z: Any) -> Any:
        return self.second(self.relu(self.first(x, y)), z)


X = [ms.ops.ones((64, 64))] * 3
FIRST, SECOND = "Default/MatMul-op0", "Default/MatMul-op2"


def chosen(mode: str, side: str, path: Path, net: Net) -> dict[str, Any]:
    ms.reset_auto_parallel_context()
    ms.set_auto_parallel_context(parallel_mode=mode, device_num=8)
    ms.parallel.set_op_strategy_config(side, str(path))
    net.compile(*X)
    return chosen_strategy(net)


def test_strategies_are_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "strategies.json"
    net = Net()
    net.first.shard(((4, 2), (2, 1)))
    saved = chosen("semi_auto_parallel", "SAVE", path, net)
    assert saved[FIRST] == [[4, 2], [2, 1]] and load_strategies(str(path)) == saved
    content = json.loads(path.read_text())
    content["parallel_strategy_item"][FIRST]["parallel_strategy"] = [[2, 4], [4, 1]]
    path.write_text(json.dumps(content))
    for mode in ("semi_auto_parallel", "auto_parallel"):
        assert chosen(mode, "LOAD", path, Net())[FIRST] == [[2, 4], [4, 1]]
    net = Net()
    net.first.shard(((8, 1), (1, 1)))
    assert chosen("semi_auto_parallel", "LOAD", path, net)[FIRST] == [[8, 1], [1, 1]]


def test_what_a_search_finds_is_saved(tmp_path: Path) -> None:
    found = chosen("auto_parallel", "SAVE", tmp_path / "found.json", Net())
    assert load_strategies(str(tmp_path / "found.json")) == found and len(found) == 3
    again = chosen("auto_parallel", "LOAD", tmp_path / "found.json", Net())
    assert again[FIRST] == found[FIRST] and again[SECOND] == found[SECOND]


def test_networks_of_their_own_settings(tmp_path: Path) -> None:
    ms.set_auto_parallel_context(device_num=8)
    net = AutoParallel(Net())
    net.save_operator_strategy_file(str(tmp_path / "own.json"))
    net.compile(*X)
    assert net.parameter_layout_dict == {}
    assert list(load_strategies(str(tmp_path / "own.json"))) == [
        "Default/network-Net/MatMul-op0",
        "Default/network-Net/ReLU-op1",
        "Default/network-Net/MatMul-op2",
    ]


@pytest.mark.parametrize(
    ("cuts", "words"),
    [
        ([[3, 4], [4, 1]], r"\(3, 4\) of the file.* 12 parts, and there are 8 devices"),
        ([[2, 4]], "the file has 1 entries, and there are 2 inputs"),
        ([[2, 4], [2, 1]], "is cut into 2 parts, and what it is"),
    ],
)
def test_strategies_that_do_not_fit(tmp_path: Path, cuts: Any, words: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"parallel_strategy_item": {FIRST: {"stage": 0, "parallel_strategy": cuts}}}))
    with pytest.raises(ValueError, match=words) as caught:
        chosen("semi_auto_parallel", "LOAD", path, Net())
    assert FIRST in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not there"):
        chosen("semi_auto_parallel", "LOAD", tmp_path / "none.json", Net())
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="is no file of operators' strategies"):
        chosen("semi_auto_parallel", "LOAD", tmp_path / "other.json", Net())

"""Checkpoints of tensors that ranks have apart: what one layout has saved, every other loads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport import thread_ranks
from mycel._src.foundation.settings.parallel_settings import ParallelSettings
from mycel._src.staging.distributed import Layouts, distribute
from mycel._src.staging.distributed.sharded_tensors import held
from mycel.train.parameter_slices import write_layouts

_making = threading.Lock()
_random = np.random.default_rng(0)
BATCHES = [(_random.normal(size=(12, 5)).astype("f4"), _random.normal(size=(12, 4)).astype("f4")) for _ in range(6)]
SPECS = {"first.weight": ("tp",), "first.bias": ("tp",), "second.weight": (None, "tp")}


class Net(nn.Cell):
    """Two layers; the sizes of some parameters do not divide by 2 or by 3."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(5, 8, activation="tanh"), nn.Dense(8, 4)

    def construct(self, x: Any) -> Any:
        return self.second(self.first(x))


def everything(p: Any) -> Any:
    return ("dp",) if p.ndim else None


def states(p: Any) -> Any:
    return ("dp",) if p.name.startswith("moment") else None


ROWS = [("dp",), ("dp",)]
WAYS: dict[str, tuple[int, Callable[[], Any]]] = {
    "one": (1, lambda: None),
    "data": (2, lambda: Layouts(Mesh((2,), ("dp",)), ROWS)),
    "zero1": (4, lambda: Layouts(Mesh((4,), ("dp",)), ROWS, states)),
    "zero3": (2, lambda: Layouts(Mesh((2,), ("dp",)), ROWS, everything)),
    "operators": (2, lambda: Layouts(Mesh((2,), ("tp",)), [], SPECS)),
    "both": (4, lambda: Layouts(Mesh((2, 2), ("dp", "tp")), ROWS, SPECS)),
    "uneven": (3, lambda: Layouts(Mesh((3,), ("dp",)), ROWS, everything)),
}


def made(way: str, seed: int = 3) -> tuple[nn.Cell, Callable[..., Any]]:
    """A training network, and its step in a way to divide it."""
    with _making:
        ms.set_seed(seed)
        np.random.seed(seed)
        net = Net()
        cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-2))
    given = WAYS[way][1]()
    return cell, ms.jit(cell) if given is None else distribute(cell, given)


def run(step: Callable[..., Any], first: int, last: int) -> list[float]:
    return [float(step(*map(ms.Tensor, batch))) for batch in BATCHES[first:last]]


def values(cell: nn.Cell) -> dict[str, np.ndarray]:
    return {p.name: p.asnumpy().copy() for p in cell.get_parameters()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A folder with the checkpoint of each way after three steps, and the losses of one device."""
    folder = tmp_path_factory.mktemp("saved")
    for way, (count, _) in WAYS.items():

        def rank(own: int, way: str = way) -> None:
            cell, step = made(way)
            run(step, 0, 3)
            apart = [p for p in cell.get_parameters() if held(p) is not None]
            assert bool(apart) == (way not in ("one", "data"))
            (folder / f"rank_{own}").mkdir(exist_ok=True)
            ms.save_checkpoint(cell, folder / f"rank_{own}" / f"{way}.ckpt", append_dict={"step": 3})
            ms.save_checkpoint(cell, folder / f"{way}.safetensors", format="safetensors")
            ms.save_checkpoint(cell, folder / f"rank_{own}" / f"{way}.parts.ckpt", integrated_save=False)
            assert all(held(p) is not None for p in apart), "what is saved stays divided"
            for p in cell.get_parameters():
                np.save(folder / f"{way}.{own}.{p.name}.npy", p.asnumpy())

        thread_ranks.run(count, rank)
    return folder, run(made("one")[1], 0, 6)


@pytest.mark.parametrize("way", WAYS)
def test_every_layout_loads_every_other(way: str, saved: tuple[Path, list[float]]) -> None:
    folder, losses = saved

    def rank(own: int) -> None:
        cell, step = made(way, 4)
        run(step, 0, 1)
        for source, (count, _) in WAYS.items():
            for path in (folder / f"rank_{own % count}" / f"{source}.ckpt", folder / f"{source}.safetensors"):
                loaded = ms.load_checkpoint(path, format=path.suffix[1:])
                assert path.suffix != ".ckpt" or int(loaded.pop("step")) == 3
                assert ms.load_param_into_net(cell, loaded, strict_load=True) == ([], [])
                for name, value in values(cell).items():
                    np.testing.assert_array_equal(value, np.load(folder / f"{source}.{own % count}.{name}.npy"))
            np.testing.assert_allclose(run(step, 3, 6), losses[3:], rtol=1e-5, err_msg=source)

    thread_ranks.run(WAYS[way][0], rank)


def strategy_file(way: str, path: Path) -> dict[str, Any]:
    """Write the strategy of a way to divide; the layouts by name."""
    count = WAYS[way][0]

    def rank(own: int) -> Any:
        cell, step = made(way)
        divided = step.divided(*map(ms.Tensor, BATCHES[0])) if way != "one" else None
        if own or divided is None:
            return None
        captured = divided.version.tensors
        layouts = dict(zip([t.name for t in captured], divided.made.inputs[2:]))
        parameters = {p.name: (p, layouts[p.name]) for p in captured if p.ndim}
        settings = ParallelSettings(strategy_ckpt_save_file=str(path))
        write_layouts(settings, parameters, divided.layouts.mesh)
        return layouts

    return thread_ranks.run(count, rank)[0]


@pytest.mark.parametrize("way", ["zero1", "zero3", "operators", "both", "uneven"])
def test_parts_are_joined_by_their_strategy(way: str, saved: tuple[Path, list[float]], tmp_path: Path) -> None:
    folder, _ = saved
    count = WAYS[way][0]
    strategy_file(way, tmp_path / "strategy.ckpt")
    strategy = ms.build_searched_strategy(str(tmp_path / "strategy.ckpt"))
    parts = [ms.load_checkpoint(folder / f"rank_{k}" / f"{way}.parts.ckpt") for k in range(count)]
    wanted = ms.load_checkpoint(folder / f"{way}.safetensors", format="safetensors")
    # Unequal parts are saved whole.
    cut = any(p.shape != wanted[name].shape for name, p in parts[0].items())
    assert cut == (way != "uneven")
    for name, value in wanted.items():
        joined = parts[0][name]
        if name in strategy:
            joined = ms.merge_sliced_parameter([p[name] for p in parts], strategy)
        np.testing.assert_array_equal(joined.asnumpy(), value.asnumpy(), err_msg=name)
    if way == "both":
        assert ms.rank_list_for_transform(0, str(tmp_path / "strategy.ckpt")) == [1, 0]
        assert strategy["first.weight"].tensor_map[0].dim == [0, -1]


@pytest.mark.parametrize("source, target", [("both", "one"), ("zero3", "both"), ("operators", "zero1")])
def test_parts_are_cut_anew_as_files(source: str, target: str, saved: tuple[Path, list[float]], tmp_path: Path) -> None:
    folder, _ = saved
    for k in range(WAYS[source][0]):
        (tmp_path / "from" / f"rank_{k}").mkdir(parents=True)
        (tmp_path / "from" / f"rank_{k}" / "net.ckpt").write_bytes(
            (folder / f"rank_{k}" / f"{source}.parts.ckpt").read_bytes()
        )
    strategy_file(source, tmp_path / "source.ckpt")
    layouts = {} if target == "one" else strategy_file(target, tmp_path / "target.ckpt")
    goal = None if target == "one" else str(tmp_path / "target.ckpt")
    ms.transform_checkpoints(str(tmp_path / "from"), str(tmp_path / "to"), "net", str(tmp_path / "source.ckpt"), goal)
    wanted = ms.load_checkpoint(folder / f"{source}.safetensors", format="safetensors")

    def rank(own: int) -> None:
        cell, step = made(target, 4)
        run(step, 0, 1)
        loaded = ms.load_checkpoint(tmp_path / "to" / f"rank_{own}" / f"net{own}.ckpt")
        cut = [n for n, s in layouts.items() if s.parts]
        assert bool(cut) == (target != "one") and all(loaded[n].shape != wanted[n].shape for n in cut)
        assert ms.load_param_into_net(cell, loaded) == ([], [])
        assert all(held(p) is not None for p in cell.get_parameters() if p.name in cut)
        for name, value in values(cell).items():
            np.testing.assert_array_equal(value, wanted[name].asnumpy(), err_msg=name)

    thread_ranks.run(WAYS[target][0], rank)

"""Programs on several processes compute what they compute on one: `Model` in every mode, the dense
network of the slides, and programs as they are written for MindSpore.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import compat
from tests.parallel.launched import Several, launched

pytestmark = pytest.mark.skipif(os.name != "posix", reason="ranks need a POSIX system")

PROGRAMS = Path(__file__).parent / "programs"
COMPARE = Path(__file__).parent / "compare.py"


@pytest.fixture(autouse=True)
def mindspore() -> Iterator[None]:
    before = ms.get_context("mode")
    compat.install()
    yield
    compat.uninstall()
    ms.reset_auto_parallel_context()
    ms.set_context(mode=before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs write, each in a folder for several ranks and one for one process."""
    made = tmp_path_factory.mktemp("programs")
    for name in ("lenet", "products", "functions", "pipeline", "states"):
        for part in ("several", "one"):
            (made / name / part).mkdir(parents=True)
    return made


@pytest.fixture(scope="module")
def on_two(folders: Path) -> Several:
    features = ("sink overflow,clipped,fit", "data,semi data,semi full,optimizer")
    return Several(
        2,
        {
            "features": (PROGRAMS / "model.py", *features),
            "networks": (COMPARE, "--tasks", "lenet,autoencoder", "--steps", 3),
            "lenet": (PROGRAMS / "lenet_data_parallel.py", folders / "lenet" / "several"),
            "functions": (PROGRAMS / "functional_data_parallel.py", folders / "functions" / "several"),
        },
    )


@pytest.fixture(scope="module")
def on_four(folders: Path) -> Several:
    ways = "both,zero2,pipeline-interleaved"
    return Several(
        4,
        {
            "networks": (COMPARE, "--tasks", "experts", "--ways", ways, "--steps", 2),
            "slides": (PROGRAMS / "dense_net.py",),
            "products": (PROGRAMS / "matmul_semi_auto.py", folders / "products" / "several"),
            "pipeline": (PROGRAMS / "pipeline_new_interface.py", folders / "pipeline" / "several"),
            "states": (PROGRAMS / "optimizer_parallel.py", folders / "states" / "several"),
        },
    )


def alone(name: str, folder: Path) -> None:
    runpy.run_path(str(PROGRAMS / name))["main"](str(folder))


def same(path: Path, other: Path, near: float) -> None:
    found, wanted = ms.load_checkpoint(str(path)), ms.load_checkpoint(str(other))
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name].asnumpy(), value.asnumpy(), atol=near, err_msg=name)


def test_features_of_model_in_every_mode(on_two: Several) -> None:
    assert on_two["features"].count(" agrees") == 24


def test_networks_in_every_way(on_two: Several) -> None:
    assert on_two["networks"].count(" agrees") == 24, on_two["networks"]


def test_data_and_operators_and_stages_on_four_ranks(on_four: Several) -> None:
    assert on_four["networks"].count(" agrees") == 3, on_four["networks"]


def test_the_dense_network_of_the_slides(on_four: Several) -> None:
    assert on_four["slides"].count(" agrees") == 8


def test_lenet_by_data_parallelism(on_two: Several, folders: Path) -> None:
    assert on_two["lenet"]
    two, one = folders / "lenet" / "several", folders / "lenet" / "one"
    alone("lenet_data_parallel.py", one)
    for rank in (0, 1):
        same(two / f"ckpt_{rank}" / "lenet-2_4.ckpt", one / "ckpt_0" / "lenet-2_4.ckpt", 1e-6)


def test_products_with_strategies_and_their_parts(on_four: Several, folders: Path, tmp_path: Path) -> None:
    assert on_four["products"]
    four, one = folders / "products" / "several", folders / "products" / "one"
    alone("matmul_semi_auto.py", one)
    np.testing.assert_allclose(np.load(four / "losses.npy"), np.load(one / "losses.npy"), rtol=1e-5)
    for rank in range(4):
        same(four / f"whole_{rank}" / "whole-2_4.ckpt", one / "whole_0" / "whole-2_4.ckpt", 5e-5)
    strategy = str(four / "strategy" / "strategy_0.ckpt")
    layouts = ms.build_searched_strategy(strategy)
    assert layouts["weight1"].tensor_map[0].dim != [-1, -1] and "moment1.weight2" in layouts
    own = ms.load_checkpoint(str(four / "rank_1" / "parts-2_4.ckpt"))
    assert own["weight1"].shape == (16, 16) and own["moment1.weight2"].shape == (16, 8)
    ms.transform_checkpoints(str(four), str(tmp_path / "to"), "net", strategy, None)
    joined = ms.load_checkpoint(str(tmp_path / "to" / "rank_0" / "net0.ckpt"))
    for name, value in ms.load_checkpoint(str(four / "whole_0" / "whole-2_4.ckpt")).items():
        np.testing.assert_array_equal(joined[name].asnumpy(), value.asnumpy(), err_msg=name)
    net = ms.nn.Cell()
    for name, value in joined.items():
        net.insert_param_to_cell(name, ms.Parameter(ms.ops.zeros_like(value), name=name), False)
    files = [str(four / f"rank_{k}" / "parts-2_4.ckpt") for k in range(4)]
    ms.load_distributed_checkpoint(net, files, None, strategy)
    for p in net.get_parameters():
        np.testing.assert_array_equal(p.asnumpy(), joined[p.name].asnumpy(), err_msg=p.name)


def test_one_rank_that_joins_alone_is_named(tmp_path: Path) -> None:
    found = launched(2, "--standstill", 2, PROGRAMS / "joins_alone.py", tmp_path / "never.ckpt")
    assert found.returncode, found.stdout + found.stderr
    error = found.stderr
    lines = (PROGRAMS / "joins_alone.py").read_text(encoding="utf-8").splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "save_checkpoint" in text)
    assert "rank 1 stands still" in error and f"joins_alone.py:{line} (in" in error, error


def test_gradients_of_functions_by_a_reducer_and_by_a_wrapper(on_two: Several, folders: Path) -> None:
    assert on_two["functions"]
    two, one = folders / "functions" / "several", folders / "functions" / "one"
    alone("functional_data_parallel.py", one)
    for name in ("reducer", "wrapper"):
        for rank in (0, 1):
            same(two / f"{name}_{rank}.ckpt", one / f"{name}_0.ckpt", 1e-6)


def test_a_pipeline_by_auto_parallel(on_four: Several, folders: Path) -> None:
    assert on_four["pipeline"]
    four, one = folders / "pipeline" / "several", folders / "pipeline" / "one"
    alone("pipeline_new_interface.py", one)
    np.testing.assert_allclose(np.load(four / "losses.npy"), np.load(one / "losses.npy"), rtol=1e-5)
    for rank in range(4):
        same(four / f"whole_{rank}.ckpt", one / "whole_0.ckpt", 1e-5)


def test_states_in_parts_are_saved_and_loaded_for_inference(on_four: Several, folders: Path) -> None:
    assert on_four["states"].count(" predicts (8, 4)") == 4
    four, one = folders / "states" / "several", folders / "states" / "one"
    alone("optimizer_parallel.py", one)
    np.testing.assert_allclose(np.load(four / "predicted.npy"), np.load(one / "predicted.npy"), rtol=1e-4, atol=1e-5)
    own = ms.load_checkpoint(str(four / "rank_1" / "parts-2_4.ckpt"))
    assert own["blocks.0.fc1_weight"].shape == (4, 32) and own["head.weight"].shape == (1, 16)

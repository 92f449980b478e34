"""Loss landscapes against a loss whose value is known everywhere: the mean squared error of a
linear network, computed in float64.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn, train
from mycel.train.callback import landscape
from tests.train.test_summary import only_file, read_events

CHECKED = {"train.SummaryLandscape": "the loss in NumPy"}

rng = np.random.default_rng(12)
X, Y = rng.normal(size=(24, 3)).astype(np.float32), rng.normal(size=(24, 2)).astype(np.float32)


def data() -> Any:
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(6)


def known_loss(parameters: dict[str, Any], rows: int = 24) -> float:
    error = X[:rows] @ parameters["weight"].astype(np.float64).T + parameters["bias"] - Y[:rows]
    return float((error**2).mean())


def trained(folder: Path, unit: str, intervals: Any, **options: Any) -> None:
    ms.set_seed(4)
    net = nn.Dense(3, 2)
    collected = {"collect_landscape": {"unit": unit, "intervals": intervals, **options}}
    model = train.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    model.train(
        6, data(), train.SummaryCollector(str(folder), collect_specified_data=collected, keep_default_action=False)
    )


def untrained() -> Any:
    net = nn.Dense(3, 2)
    return train.Model(net, nn.MSELoss(), metrics={"Loss": train.Loss()}), net, data(), {"Loss": train.Loss()}


@pytest.mark.parametrize("unit, interval", [("epoch", [1, 2, 4, 6]), ("step", [2, 3, 5, 8, 20])])
@pytest.mark.parametrize("size", [3, 6])
def test_landscapes(tmp_path: Path, unit: str, interval: list[int], size: int) -> None:
    trained(tmp_path / "run", unit, [interval], landscape_size=40)
    files = [tmp_path / "run" / "ckpt_dir" / f"{unit}_{n}.ckpt" for n in interval]
    kept = [{n: p.asnumpy() for n, p in ms.load_checkpoint(f).items()} for f in files]
    ms.set_seed(9)
    maker = train.SummaryLandscape(tmp_path / "run")
    maker.gen_landscapes_with_multi_process(untrained, {"landscape_size": size}, [0, 1], tmp_path / "out")
    found: dict[str, Any] = {}
    for _, values in read_events(only_file(str(tmp_path / "out"))):
        found.update(values)
    path_title, result_title = f"landscape_{[interval[0], interval[-1]]}", f"landscape_{[interval[-1]]}"
    assert {f"{t}/{n}" for t in (path_title, result_title) for n in ("x", "y", "z", "path", "picture")} <= set(found)

    model, net, dataset, _ = untrained()
    loss = landscape._LossAt(model, net, dataset, 2048)
    shown = landscape.along_path(kept, loss, size)
    names, origin = ["weight", "bias"], kept[-1]
    flat = lambda p: np.concatenate([p[n].astype(np.float64).ravel() for n in names])
    moved = np.stack([flat(p) - flat(origin) for p in kept])
    # The plane is the one that lies nearest to the path, as far as the parts' norms allow.
    np.testing.assert_allclose(shown.path[-1], [0, 0, known_loss(origin)], rtol=1e-5, atol=1e-9)
    u = np.linalg.svd(moved[:-1], full_matrices=False)[2][:2]
    for direction, leading in zip(_planes(kept, size, shown), u):
        for start, name in ((0, "weight"), (6, "bias")):
            part = slice(start, start + origin[name].size)
            assert np.linalg.norm(direction[part]) == pytest.approx(np.linalg.norm(origin[name]), rel=1e-6)
            cosine = direction[part] @ leading[part] / np.linalg.norm(direction[part]) / np.linalg.norm(leading[part])
            assert abs(cosine) == pytest.approx(1, rel=1e-6)
    directions = _planes(kept, size, shown)
    for k, b in enumerate(shown.y):
        for j, a in enumerate(shown.x):
            place = flat(origin) + a * directions[0] + b * directions[1]
            there = {"weight": place[:6].reshape(2, 3), "bias": place[6:]}
            assert shown.z[k, j] == pytest.approx(known_loss(there), rel=1e-4)
    for along, axis in ((shown.path[:, 0], shown.x), (shown.path[:, 1], shown.y)):
        margin = 0.2 * (along.max() - along.min())
        np.testing.assert_allclose([axis[0], axis[-1]], [along.min() - margin, along.max() + margin])
    assert shown.path[0, 0] > 0


def _planes(kept: Any, size: int, shown: Any) -> list[Any]:
    """The directions, found from the losses' places: moves to (1, 0) and (0, 1) as the network sees
    them.
    """
    seen: list[Any] = []

    class Probe:
        def at(self, origin: Any, names: Any, move: Any) -> float:
            return 0.0

        def on_grid(self, origin: Any, names: Any, v: Any, w: Any, x: Any, y: Any) -> Any:
            seen.extend([v, w])
            return np.zeros((len(y), len(x)))

    landscape.along_path(kept, Probe(), size)
    return seen


def test_random_directions() -> None:
    origin = {
        "weight": rng.normal(size=(2, 3)).astype(np.float32),
        "bias": np.zeros(2, np.float32),
        "gamma": np.ones(3, np.float32),
    }
    model, net, dataset, _ = untrained()
    ms.set_seed(1)
    first = landscape.around(origin, landscape._LossAt(model, net, dataset, 12), 5)
    ms.set_seed(1)
    again = landscape.around(origin, landscape._LossAt(model, net, dataset, 12), 5)
    np.testing.assert_array_equal(first.z, again.z)
    np.testing.assert_array_equal(first.x, np.linspace(-1, 1, 5))
    # Half the samples were asked for.
    assert first.z[2, 2] == pytest.approx(known_loss(origin, 12), rel=1e-5)
    assert first.path[0, 2] == first.z[2, 2]
    # A quadratic function on every line of the plane.
    third = np.diff(first.z, 3, axis=0), np.diff(first.z, 3, axis=1)
    assert max(np.abs(t).max() for t in third) < 1e-4 * np.abs(first.z).max()


def test_files_and_refusals(tmp_path: Path) -> None:
    trained(tmp_path, "epoch", [[1, 2, 3], [4, 5, 6]], create_landscape={"train": False})
    known = json.loads((tmp_path / "ckpt_dir" / "train_metadata.json").read_text())
    assert known["epoch_group"] == {"0": [1, 2, 3], "1": [4, 5, 6]}
    assert (known["step_per_epoch"], known["unit"], known["num_samples"]) == (4, "epoch", 2048)
    assert known["create_landscape"] == {"train": False, "result": True}
    maker = train.SummaryLandscape(tmp_path)
    for given, error, text in (
        ({"landscape_size": 2}, ValueError, "at least 3 and at most 256, not 2"),
        ({"size": 2}, ValueError, "has 'size'; known"),
        ({"num_samples": 1.5}, TypeError, "num_samples must be an int"),
        ({"unit": "year"}, ValueError, "unit must be"),
        ({"create_landscape": {"all": True}}, ValueError, "create_landscape maps"),
        ({"intervals": [[1, 2]]}, ValueError, "three or more"),
        ({"create_landscape": {"train": True}, "intervals": [[1, 2, 9]]}, ValueError, "epoch 9 were not saved"),
    ):
        with pytest.raises(error, match=text):
            maker.gen_landscapes_with_multi_process(untrained, given, output=tmp_path / "out")
    with pytest.raises(TypeError, match="device_ids must be a list"):
        maker.gen_landscapes_with_multi_process(untrained, device_ids=0)
    net = nn.Dense(3, 2)
    training = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
    with pytest.raises(ValueError, match="must have no optimizer"):
        maker.gen_landscapes_with_multi_process(lambda: (training, net, data(), {}), output=tmp_path / "out")
    maker.clean_ckpt()
    assert not os.path.exists(tmp_path / "ckpt_dir")
    with pytest.raises(FileNotFoundError, match="train with SummaryCollector"):
        maker.gen_landscapes_with_multi_process(untrained)
    with pytest.raises(ValueError, match="wants intervals"):
        train.SummaryCollector(str(tmp_path), collect_specified_data={"collect_landscape": {"unit": "step"}})

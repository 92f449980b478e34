"""Checkpoints of the best epochs: which files stay, against a sort of the values."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel.train import CheckpointConfig, LambdaCallback, Model, ModelCheckpoint

from .support import Batches


class Step(ms.nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(0.0), name="w")

    def construct(self, x, y):
        self.w += 1.0
        return self.w * 0.0


def told(values: list[Any], name: str = "accuracy") -> LambdaCallback:
    """A callback that gives the epochs these results of a validation."""

    def tell(context) -> None:
        params = context.original_args()
        value = values[params.cur_epoch_num - 1]
        params["eval_results"] = params["metrics"] = None if value is None else {name: value}

    return LambdaCallback(on_train_epoch_end=tell)


def epochs_of(folder: Any) -> list[int]:
    return sorted(int(re.fullmatch(r"net-(\d+)_\d+\.\w+", name)[1]) for name in os.listdir(folder))


def best_of(values: list[Any], most: int, falls: bool) -> list[int]:
    """The epochs with the best values: numbers only, of equal ones the earlier."""
    numbered = [(v if falls else -v, k) for k, v in enumerate(values, 1) if v is not None and not math.isnan(v)]
    return sorted(k for _, k in sorted(numbered)[:most])


nan = math.nan
SERIES = {
    "rises": [1.0, 2.0, 3.0, 4.0],
    "falls": [4.0, 3.0, 2.0, 1.0],
    "equal": [1.0, 1.0, 1.0],
    "equal later": [2.0, 1.0, 2.0, 1.0, 2.0],
    "nan": [nan, 1.0, nan, 2.0],
    "nan only": [nan, nan],
    "infinite": [math.inf, -math.inf, 0.0],
    "not validated": [None, 1.0, None, 3.0, 2.0],
}
SERIES.update((f"random {k}", np.random.default_rng(k).integers(0, 6, 7).astype(float).tolist()) for k in range(4))


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("name", ["accuracy", "eval_loss"])
@pytest.mark.parametrize("series", SERIES)
def test_the_best_files_stay(series: str, name: str, most: int, tmp_path) -> None:
    values = SERIES[series]
    save = ModelCheckpoint("net", str(tmp_path), monitor=name, save_best=most)
    Model(Step()).train(len(values), Batches(), [told(values, name), save], progress=False)
    expected = best_of(values, most, name == "eval_loss")
    assert epochs_of(tmp_path) == expected
    if expected:
        (first,) = best_of(values, 1, name == "eval_loss")
        assert os.path.basename(save.best_ckpt_file_name).startswith(f"net-{first}_")
        held = ms.load_checkpoint(save.best_ckpt_file_name)
        assert float(held["w"]) == first * Batches().get_dataset_size()
    else:
        assert save.best_ckpt_file_name == ""


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_run_that_goes_on_keeps_the_best_of_all(format: str, stop: int, tmp_path) -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 0.5]
    config = CheckpointConfig(format=format)
    for begin, end in ((0, stop), (stop, 6)):
        save = ModelCheckpoint("net", str(tmp_path), config, monitor="accuracy", mode="min", save_best=2)
        model = Model(Step())
        model.train(end, Batches(), [told(values), save], initial_epoch=begin, progress=False)
    assert epochs_of(tmp_path) == best_of(values, 2, True)
    assert os.path.basename(save.best_ckpt_file_name).startswith("net-6_")


def test_another_run_touches_no_files(tmp_path) -> None:
    for _ in range(2):
        save = ModelCheckpoint("net", str(tmp_path), monitor="accuracy")
        Model(Step()).train(2, Batches(), [told([1.0, 2.0]), save], progress=False)
    assert sorted(name.partition("-")[0] for name in os.listdir(tmp_path)) == ["net", "net_1"]


def test_the_loss_of_a_training_can_be_watched(tmp_path) -> None:
    save = ModelCheckpoint("net", str(tmp_path), monitor="loss", save_best=2)
    Model(Step()).train(3, Batches(), save, progress=False)
    assert epochs_of(tmp_path) == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"save_best": 2}, "save_best wants monitor"),
        ({"monitor": "loss", "save_best": 0}, "save_best must be"),
        ({"monitor": "loss", "save_best": 1.5}, "save_best must be"),
        ({"monitor": 3}, "monitor must be"),
        ({"monitor": "loss", "mode": "up"}, "mode must be"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"ModelCheckpoint: {message}"):
        ModelCheckpoint("net", **options)

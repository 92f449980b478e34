"""The end of a pipeline in the compiled step: `map(offload=True)` and `set_auto_offload`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel.dataset import config, offloading, transforms, vision
from mycel.train import Model


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    config.set_auto_offload(False)
    ms.set_context(mode=ms.GRAPH_MODE)


MEAN, STD = [121.0, 115.0, 100.0], [70.0, 68.0, 71.0]
CHAINS: dict[str, list[Any]] = {
    "all": [
        vision.RandomCrop((6, 5)),
        vision.RandomHorizontalFlip(0.5),
        vision.Normalize(MEAN, STD),
        vision.HWC2CHW(),
        transforms.TypeCast(np.float32),
    ],
    "flip between": [vision.Rescale(1 / 255, 0.25), vision.RandomVerticalFlip(0.5), vision.HWC2CHW()],
    "after": [vision.HWC2CHW(), vision.Normalize(MEAN, STD, is_hwc=False), vision.ToType(np.float64)],
    "rescale": [vision.Rescale(0.1, 0.0), vision.Rescale(3.0, -1.0)],
    "flip of columns": [
        vision.HWC2CHW(),
        vision.Rescale(1 / 255, 0.0),
        vision.RandomVerticalFlip(0.5),
        vision.Rescale(2.0, 1.0),
    ],
    "whole": [vision.Resize((4, 4)), transforms.TypeCast(np.int32)],
}


def images(chain: list[Any], offload: bool | None, count: int = 6, workers: int = 1) -> ds.Dataset:
    pictures = np.random.default_rng(4).integers(0, 256, (count, 8, 7, 3)).astype(np.uint8)
    data = ds.NumpySlicesDataset({"image": pictures, "label": np.arange(count, dtype=np.int32)}, shuffle=True)
    data = data.map(chain, "image", offload=offload, num_parallel_workers=workers)
    return data.map(transforms.TypeCast(np.float32), "label", offload=offload).batch(2).repeat(2)


def values(split: offloading.Split, compiled: bool) -> list[list[Any]]:
    """Return the columns that a network would see."""

    class Same(nn.Cell):
        def construct(self, *columns: Any) -> Any:
            return columns

    front: Any = split.before(Same())
    front = ms.jit(front) if compiled else front
    rows = split.dataset.create_tuple_iterator(num_epochs=1)
    return [[column.asnumpy() for column in front(*row)] for row in rows]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("workers, compiled", [(1, False), (2, True)])
def test_the_step_sees_the_values_of_the_pipeline(name: str, workers: int, compiled: bool) -> None:
    config.set_seed(11)
    wanted = list(images(CHAINS[name], False).create_tuple_iterator(num_epochs=1, output_numpy=True))
    config.set_seed(11)
    split = offloading.split(images(CHAINS[name], True, workers=workers))
    assert split is not None and [bool(steps) for steps in split.steps] == [True, True]
    for found, batch in zip(values(split, compiled), wanted, strict=True):
        for a, b in zip(found, batch, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(a, b)
    row = next(split.dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert row[0].dtype == np.uint8 and row[1].dtype == np.int32


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.zeros((3, 1, 1), np.float32)), name="w")

    def construct(self, image: Any, label: Any) -> Any:
        return ((self.w * image).sum((1, 2, 3)) - label).abs().mean()


def trained(offload: bool | None, sinks: bool) -> np.ndarray[Any, Any]:
    config.set_seed(2)
    net = Net()
    data = images([vision.RandomHorizontalFlip(0.5), vision.Normalize(MEAN, STD), vision.HWC2CHW()], offload)
    Model(net, optimizer=nn.SGD(net.trainable_params(), 0.01)).train(2, data, dataset_sink_mode=sinks)
    assert [p.name for p in net.get_parameters()] == ["w"]
    return net.w.asnumpy().copy()


@pytest.mark.parametrize("sinks", [False, True])
def test_a_model_learns_the_same(sinks: bool) -> None:
    wanted = trained(False, sinks)
    np.testing.assert_allclose(trained(True, sinks), wanted, rtol=1e-5, atol=1e-7)
    config.set_auto_offload(True)
    np.testing.assert_allclose(trained(None, sinks), wanted, rtol=1e-5, atol=1e-7)
    assert wanted.any()


@pytest.mark.parametrize("sinks", [False, True])
def test_a_model_evaluates_the_same(sinks: bool) -> None:
    seen: list[Any] = []

    class Seeing(ms.train.Callback):
        def on_eval_step_end(self, run_context: Any) -> None:
            seen.append(run_context.original_args().eval_dataset_element[0].dtype)

    results = []
    for offload in (False, True):
        config.set_seed(2)
        data = images([vision.Normalize(MEAN, STD), vision.HWC2CHW()], offload)
        net = Net()
        net.w.set_data(ms.Tensor(np.array([1.0, 2.0, 3.0], np.float32).reshape(3, 1, 1)))
        model = Model(net, eval_network=net, metrics={"loss"}, eval_indexes=None)
        model._metrics["loss"].clear()
        results.append([model.eval(data, dataset_sink_mode=sinks)["loss"] for _ in range(2)])
        model.eval(data, callbacks=Seeing())
    assert results[0] == pytest.approx(results[1]) and results[0][0] > 0
    assert seen[0] == ms.float32 and seen[-1] == ms.uint8


def test_flips_of_other_axes_keep_what_is_before_them() -> None:
    """After the channels have become the first axis a flip is of another axis of the image."""
    flip = vision.RandomHorizontalFlip(1.0)
    for chain in (
        [vision.HWC2CHW(), flip],
        [vision.Rescale(0.5, 0.0), vision.HWC2CHW(), flip],
        [vision.HWC2CHW(), vision.Normalize(MEAN, STD, is_hwc=False), vision.RandomVerticalFlip(1.0)],
    ):
        data = ds.NumpySlicesDataset(np.zeros((2, 4, 5, 3), np.uint8), ["x"]).map(chain, "x", offload=True).batch(2)
        assert offloading.split(data) is None


def test_what_cannot_leave_stays_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(offloading, "no_effect", lambda *about: said.append(about[-1]))
    normalise = vision.Normalize(MEAN, STD)
    assert offloading.split(images([normalise], False)) is None and not said
    pictures = ds.NumpySlicesDataset({"image": np.zeros((4, 8, 8, 3), np.uint8)})
    assert offloading.split(pictures.map(normalise, "image", offload=True)) is None
    assert offloading.split(pictures.map(lambda x: x, "image", offload=True).batch(2)) is None
    wide = ds.NumpySlicesDataset({"image": np.zeros((4, 8, 8, 3), np.int64)})
    assert offloading.split(wide.map(normalise, "image", offload=True).batch(2)) is None
    assert [words.split()[0] for words in said] == ["its", "no", "column"]
    # A function of the user's after it keeps the operations before it.
    after = pictures.map(normalise, "image", offload=True).map(lambda x: x, "image").batch(2)
    assert offloading.split(after) is None
    with pytest.raises(TypeError, match="offload must be a bool"):
        pictures.map(normalise, "image", offload=1)

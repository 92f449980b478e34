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


@pytest.mark.parametrize("kind", ["function", "compiled", "cell", "configured"])
@pytest.mark.parametrize("sink_size", [1, 4])
def test_sinks_of_functions_take_the_end_of_the_pipeline(kind: str, sink_size: int) -> None:
    def learned(offload: bool) -> tuple[Any, list[Any]]:
        config.set_seed(2)
        net = Net()
        optimizer = nn.SGD(net.trainable_params(), 0.01)
        seen: list[Any] = []

        def step(image: Any, label: Any) -> Any:
            loss, grads = ms.value_and_grad(net, None, optimizer.parameters)(image, label)
            optimizer(grads)
            return loss, image

        fn: Any = step
        if kind == "compiled":
            fn = ms.jit(step, fullgraph=True)
        elif kind == "cell":
            fn = nn.TrainOneStepCell(net, optimizer)
        data = images([vision.RandomHorizontalFlip(0.5), vision.Normalize(MEAN, STD), vision.HWC2CHW()], offload)
        sink = ms.data_sink(fn, data, sink_size, **({"jit_config": ms.JitConfig()} if kind == "configured" else {}))
        assert sink.__name__ in ("step", "TrainOneStepCell") or kind == "cell"
        for _ in range(8 // sink_size):
            seen.append(sink())
        row = next(iter(sink.dataset.create_tuple_iterator(num_epochs=1)))
        assert (row[0].dtype == ms.uint8) is offload
        sink.close()
        return net.w.asnumpy().copy(), seen

    (wanted, before), (found, after) = learned(False), learned(True)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    assert wanted.any()
    if kind != "cell":
        for (_, x), (_, y) in zip(before, after):
            np.testing.assert_array_equal(x.asnumpy(), y.asnumpy())


def test_a_helper_that_sinks_takes_the_end_of_the_pipeline() -> None:
    def given(offload: bool, connects: bool = True) -> list[Any]:
        config.set_seed(2)

        class Same(nn.Cell):
            def construct(self, image: Any, label: Any) -> Any:
                return image, label

        data = images([vision.RandomHorizontalFlip(0.5), vision.Normalize(MEAN, STD), vision.HWC2CHW()], offload)
        helper = ms.DatasetHelper(data, epoch_num=2)
        net = ms.connect_network_with_dataset(Same(), helper) if connects else helper.next_batch
        assert (helper._queue._first_row()[0].dtype == np.uint8) is (offload and connects)
        found = [[column.asnumpy() for column in net()] for _ in range(2) for _ in helper]
        assert not offload or helper.get_send_info()[0][0] >= 12
        helper.release()
        return found

    wanted = given(False)
    assert len(wanted) == 12
    for found in (given(True), given(True, connects=False)):
        for a, b in zip(found, wanted, strict=True):
            for x, y in zip(a, b, strict=True):
                assert x.dtype == y.dtype
                np.testing.assert_array_equal(x, y)


def test_where_a_sink_cannot_take_it_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(offloading, "no_effect", lambda *about: said.append(about[-1]))
    data = images([vision.Normalize(MEAN, STD), vision.HWC2CHW()], True)
    signature = (ms.Tensor(shape=(None, 3, 8, 7), dtype=ms.float32), ms.Tensor(shape=(None,), dtype=ms.float32))
    sink = ms.data_sink(lambda x, y: x.sum() + y.sum(), data, input_signature=signature)
    assert sink.dataset is data and np.isfinite(float(sink()))
    sink.close()
    queue = data.device_que()
    sink = ms.data_sink(lambda x, y: x.dtype == ms.float32, queue)
    assert bool(sink())
    sink.close()
    assert [words.split()[0] for words in said] == ["input_signature", "a"]

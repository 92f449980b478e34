"""Iterators over one dataset, one for each epoch: each goes on, and the program repeats itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn, train
from mycel.dataset import vision

IMAGES = np.arange(8 * 6 * 6 * 3, dtype=np.uint8).reshape(8, 6, 6, 3)


class Source:
    def __init__(self, draw: Callable[[], float]) -> None:
        self.draw = draw

    def __len__(self) -> int:
        return 8

    def __getitem__(self, number: int) -> Any:
        return (np.float64(self.draw()),)


def by_numpy() -> float:
    return np.random.rand()


def by_random() -> float:
    return random.random()


def generated() -> Any:
    for _ in range(8):
        yield (np.float64(np.random.rand()),)


class Chosen(ds.Sampler):
    def __iter__(self) -> Any:
        yield from map(int, np.random.permutation(8))


def drawn(x: Any) -> Any:
    return np.float64(np.random.rand() + random.random())


def numbers(shuffle: bool = False, **options: Any) -> Any:
    return ds.NumpySlicesDataset(
        np.arange(40), ["x"], **({"shuffle": shuffle} if "sampler" not in options else {}), **options
    )


def images() -> Any:
    return ds.NumpySlicesDataset(IMAGES, ["x"], shuffle=False)


APART = {"num_parallel_workers": 2, "python_multiprocessing": True}
THREADS = {"num_parallel_workers": 2, "python_multiprocessing": False}
PIPELINES: dict[str, Callable[[], Any]] = {
    "source by NumPy": lambda: ds.GeneratorDataset(Source(by_numpy), ["x"], shuffle=False),
    "source by random": lambda: ds.GeneratorDataset(Source(by_random), ["x"], shuffle=False),
    "source in threads": lambda: ds.GeneratorDataset(Source(by_numpy), ["x"], shuffle=False, **THREADS),
    "source in processes": lambda: ds.GeneratorDataset(Source(by_numpy), ["x"], shuffle=False, **APART),
    "generator": lambda: ds.GeneratorDataset(generated, ["x"], shuffle=False),
    "map": lambda: numbers().map(drawn, ["x"]),
    "map in threads": lambda: numbers().map(drawn, ["x"], **THREADS),
    "map in processes": lambda: numbers().map(drawn, ["x"], **APART),
    "batch": lambda: numbers().batch(4, per_batch_map=lambda xs, info: (np.random.rand(len(xs)),)),
    "shuffled source": lambda: numbers(True),
    "shuffle": lambda: numbers().shuffle(40),
    "random sampler": lambda: numbers(sampler=ds.RandomSampler()),
    "with replacement": lambda: numbers(sampler=ds.RandomSampler(replacement=True, num_samples=20)),
    "weighted": lambda: numbers(sampler=ds.WeightedRandomSampler(list(range(1, 41)), 20)),
    "subset": lambda: numbers(sampler=ds.SubsetRandomSampler(list(range(30)))),
    "shards": lambda: numbers(True, num_shards=2, shard_id=1),
    "a sampler of the user's": lambda: ds.NumpySlicesDataset(np.arange(8), ["x"], sampler=Chosen()),
    "crops": lambda: images().map(vision.RandomCrop(2), ["x"]),
    "colours": lambda: images().map([vision.ToPIL(), vision.RandomColorAdjust((0.1, 1.9)), vision.ToTensor()], ["x"]),
    "repeated": lambda: numbers(True).repeat(2),
}


def epoch(data: Any, limit: int = 1000) -> Any:
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return [np.asarray(x).tolist() for _, (x,) in zip(range(limit), iterator)]


@pytest.mark.parametrize("set_seed", [ds.config.set_seed, ms.set_seed], ids=["pipelines", "all"])
@pytest.mark.parametrize("name", PIPELINES)
def test_epochs_differ_and_programs_repeat_themselves(name: str, set_seed: Any) -> None:
    if set_seed is ms.set_seed and "in" in name.split():
        pytest.skip("one of the two ways to set a seed is enough for workers")
    set_seed(3)
    data = PIPELINES[name]()
    first = [epoch(data) for _ in range(3)]
    assert first[0] != first[1] != first[2] != first[0]
    # The dataset itself, and one that is made anew.
    for again in (data, PIPELINES[name]()):
        set_seed(3)
        assert [epoch(again) for _ in range(3)] == first
    # Workers or none, those that are left early, and one row that is only looked at.
    set_seed(3)
    data = PIPELINES[name]()
    assert epoch(data, 1) == first[0][:1]
    assert epoch(data, 3) == first[0][:3] and epoch(data) == first[1]


def test_an_iterator_that_is_resumed_is_followed_by_the_same_ones() -> None:
    ds.config.set_seed(4)
    data = numbers(True).map(drawn, ["x"])
    whole = [epoch(data) for _ in range(4)]
    ds.config.set_seed(4)
    first = numbers(True).map(drawn, ["x"])
    epoch(first), epoch(first)
    iterator = first.create_tuple_iterator(num_epochs=1, output_numpy=True)
    begun = [next(iterator)[0].tolist() for _ in range(5)]
    state = iterator.state_dict()
    # As in another process.
    ds.config.set_seed(4)
    other = numbers(True).map(drawn, ["x"])
    resumed = other.create_tuple_iterator(num_epochs=1, output_numpy=True)
    resumed.load_state_dict(state)
    assert begun + [x.tolist() for (x,) in resumed] == whole[2] and epoch(other) == whole[3]


def test_trainings_one_after_the_other_go_on() -> None:
    seen: list[float] = []

    class Look(train.Callback):
        def on_train_step_end(self, context: Any) -> None:
            seen.append(float(context.original_args().train_dataset_element[0].sum()))

    def run() -> list[float]:
        seen.clear()
        ms.set_seed(5)
        net = nn.Dense(1, 1)
        rows = np.arange(12, dtype=np.float32).reshape(12, 1)
        data = ds.NumpySlicesDataset((rows, rows), ["x", "y"], shuffle=True).batch(3)
        model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.001))
        for _ in range(2):
            model.train(1, data, callbacks=Look())
        return list(seen)

    first = run()
    assert first[:4] != first[4:] and run() == first

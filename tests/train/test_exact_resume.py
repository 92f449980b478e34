"""Everything that a run keeps goes on where it stopped: parameters, optimizer, loss scale, random
numbers, batches and counters, bit for bit, in both modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn, train
from mycel.dataset import config as data_config

rng = np.random.default_rng(2)
X, Y = rng.normal(size=(24, 4)).astype(np.float32), rng.integers(0, 3, 24).astype(np.int32)
STEPS = 4


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"], autouse=True)
def mode(request: Any, monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setitem(data_config._settings, "seed", 11)
    before, state = ms.get_context("mode"), ms.get_rng_state()
    ms.set_context(mode=request.param)
    yield
    ms.set_rng_state(state)
    ms.set_context(mode=before)


def _weighted() -> Any:
    return ds.WeightedRandomSampler([1.0 + 0.1 * i for i in range(24)], 24)


def data(sampler: Any = None) -> Any:
    source = ds.NumpySlicesDataset((X, Y), ["x", "y"], **({"sampler": sampler} if sampler else {"shuffle": True}))
    noisy = source.map(lambda x: x + np.float32(0.01), ["x"])
    return noisy.batch(6)


def parts(scaled: bool) -> Any:
    """A model with state of every kind: dropout, running means, a schedule, moments, and a loss
    scale that moves.
    """
    ms.set_seed(3)
    network = nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(p=0.5), nn.Dense(8, 3))
    schedule = nn.cosine_decay_lr(0.001, 0.02, 3 * STEPS, STEPS, 3)
    optimizer = (
        nn.AdamWeightDecay(network.trainable_params(), schedule)
        if not scaled
        else nn.Adam(network.trainable_params(), schedule)
    )
    manager = {"loss_scale_manager": train.DynamicLossScaleManager(2.0**10, 2, 3)} if scaled else {}
    return train.Model(network, nn.CrossEntropyLoss(), optimizer, metrics={"loss"}, **manager)


def state(model: Any) -> dict[str, bytes]:
    found = {p.name: p.asnumpy().tobytes() for p in model.train_network.get_parameters()}
    return {**found, "random": ms.get_rng_state().asnumpy().tobytes()}


def stop_after(step: int) -> Any:
    def stop(context: Any) -> None:
        if context.original_args().cur_step_num == step:
            context.request_stop()

    return train.LambdaCallback(on_train_step_end=stop)


@pytest.mark.parametrize("sink", [False, True], ids=["steps", "sinks"])
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("sampler", [None, _weighted], ids=["shuffle", "weighted"])
def test_after_an_epoch(tmp_path: Path, scaled: bool, sampler: Any, sink: bool) -> None:
    order = lambda: data(sampler and sampler())
    whole = parts(scaled)
    ms.manual_seed(5)
    whole.train(3, order(), dataset_sink_mode=sink)
    wanted = state(whole)

    first = parts(scaled)
    ms.manual_seed(5)
    info = ["epoch_num", "step_num", {"random": ms.default_generator}]
    config = train.CheckpointConfig(save_checkpoint_steps=STEPS, append_info=info)
    first.train(1, order(), train.ModelCheckpoint("run", str(tmp_path), config), dataset_sink_mode=sink)

    second = parts(scaled)
    ms.manual_seed(99)
    saved = ms.load_checkpoint(tmp_path / f"run-1_{STEPS}.ckpt")
    assert ms.load_param_into_net(second.train_network, saved) == ([], ["epoch_num", "step_num", "random"])
    ms.set_rng_state(saved["random"])
    assert state(second) == state(first)
    places: list[Any] = []
    note = train.LambdaCallback(on_train_step_end=lambda c: places.append(c.original_args().cur_epoch_num))
    second.train(3, order(), note, dataset_sink_mode=sink, initial_epoch=int(saved["epoch_num"]))
    assert places == ([2, 3] if sink else [2] * STEPS + [3] * STEPS)
    found = state(second)
    assert [name for name in wanted if found[name] != wanted[name]] == []


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("step", [1, 6, 8])
def test_within_an_epoch(tmp_path: Path, scaled: bool, step: int) -> None:
    whole = parts(scaled)
    ms.manual_seed(5)
    whole.train(3, data())
    wanted = state(whole)

    first = parts(scaled)
    ms.manual_seed(5)
    info = ["epoch_num", "step_num", {"random": ms.default_generator}]
    config = train.CheckpointConfig(save_checkpoint_steps=100, append_info=info, async_save=True, format="safetensors")
    checkpoint = train.ModelCheckpoint("run", str(tmp_path), config)
    first.train(3, data(), [stop_after(step), checkpoint])

    second = parts(scaled)
    saved = ms.load_checkpoint(checkpoint.latest_ckpt_file_name, format="safetensors")
    ms.load_param_into_net(second.train_network, saved)
    ms.set_rng_state(saved["random"])
    rest = data()
    rest.set_init_step(int(saved["step_num"]))
    second.train(3, rest)
    found = state(second)
    assert [name for name in wanted if found[name] != wanted[name]] == []


def test_the_batches_of_later_epochs_are_those_of_the_whole_run() -> None:
    def rows(**options: Any) -> list[bytes]:
        seen: list[bytes] = []
        note = lambda c: seen.append(c.original_args().train_dataset_element[0].asnumpy().tobytes())
        parts(False).train(4, data(), train.LambdaCallback(on_train_step_begin=note), **options)
        return seen

    whole = rows()
    assert len(set(whole)) == 4 * STEPS
    assert rows(initial_epoch=3) == whole[3 * STEPS :]

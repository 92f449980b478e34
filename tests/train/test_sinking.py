"""Sinks of `Model` and `data_sink`: the bits of training step by step, what callbacks see, ends of
datasets, errors, interrupts and threads.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.dataset.digits import load_digits
from mycel.train import (
    Callback,
    CheckpointConfig,
    LambdaCallback,
    LossMonitor,
    Metric,
    Model,
    ModelCheckpoint,
    TimeMonitor,
    load_checkpoint,
    sinking,
)
from tests.compiled.test_repeated_execution import Noisy
from tests.train.test_background import gone, running

CHECKED = {"data_sink": "the same steps called one by one"}
IMAGES, LABELS = load_digits(size=32)
IMAGES = IMAGES.astype(np.float32).transpose(0, 3, 1, 2) / 255
COUNT = 200


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=mode)
    if running():
        # Going through the objects of all tests takes seconds.
        gc.collect()
    assert gone()


def digits(count: int = COUNT, batch: int = 32, drop: bool = True, shuffle: bool = True) -> Any:
    pairs = (IMAGES[:count], LABELS[:count])
    return ds.NumpySlicesDataset(pairs, ["x", "y"], shuffle=shuffle).batch(batch, drop_remainder=drop)


def parts() -> tuple[Any, Any, Any]:
    """LeNet-5 with dropout, batch normalisation, and learning rates that change with the step."""
    ms.set_seed(11)
    ds.config.set_seed(11)
    net = Noisy()
    rates = nn.exponential_decay_lr(0.05, 0.9, 60, 4, 1)
    return net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), rates, 0.9)


def model() -> Model:
    return Model(*parts(), metrics={"accuracy", "loss"})


def weights(of: Model) -> list[Any]:
    return [p.asnumpy().copy() for p in of.train_network.get_parameters()]


def same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second))


class Losses(Callback):
    """All losses, whether they come alone or as those of a sink."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []
        self.steps: list[int] = []

    def on_train_step_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        every = params.sink_outputs if params.dataset_sink_mode else [params.net_outputs]
        self.values += [float(loss) for loss in every]
        self.steps.append(params.cur_step_num)


@pytest.mark.parametrize("size, drop", [(-1, False), (4, True), (9, False)])
def test_a_sink_trains_as_steps_do_bit_for_bit(size: int, drop: bool) -> None:
    steps = 14 if size == -1 else 8 if size == 4 else 9
    by_hand = model()
    step = by_hand.train_network.set_train(True)
    rows = digits(drop=drop).create_tuple_iterator()
    expected: list[float] = []
    while len(expected) < steps:
        expected += [float(step(x, y)) for (x, y), _ in zip(rows, range(steps - len(expected)))]
    rows.stop()
    sunk, losses = model(), Losses()
    data = digits(drop=drop)
    epochs = steps // (data.get_dataset_size() if size == -1 else size)
    sunk.train(epochs, data, losses, dataset_sink_mode=True, sink_size=size)
    assert len(losses.steps) == epochs and losses.values == expected and len(set(expected)) == steps
    assert same(weights(sunk), weights(by_hand)) and len(weights(sunk)) > 10
    if size == -1:
        plain, seen = model(), Losses()
        plain.train(epochs, digits(drop=drop), seen)
        assert seen.values == losses.values and same(weights(plain), weights(sunk))


def test_how_a_sink_is_cut_changes_nothing(monkeypatch: Any) -> None:
    whole = model()
    whole.train(2, digits(), dataset_sink_mode=True)
    monkeypatch.setattr(sinking, "STRETCH", 0.0)
    cut = model()
    cut.train(2, digits(), dataset_sink_mode=True)
    assert same(weights(whole), weights(cut))


def test_what_callbacks_see_of_sinks(capsys: Any) -> None:
    calls = []

    def note(name: str) -> Any:
        return lambda c: calls.append((name, c.original_args().cur_step_num, c.original_args().get("cur_epoch_num")))

    hooks = ("on_train_begin", "on_train_epoch_begin", "on_train_step_begin", "on_train_step_end")
    names = (*hooks, "on_train_epoch_end", "on_train_end")
    known: dict[str, Any] = {}
    keep = LambdaCallback(on_train_step_end=lambda c: known.update(c.original_args()))
    callbacks = [LambdaCallback(**{n: note(n[9:]) for n in names}), keep, LossMonitor(3), TimeMonitor()]
    model().train(2, digits(), callbacks, dataset_sink_mode=True, sink_size=4)
    expected: list[Any] = [("begin", 0, None)]
    for epoch in (1, 2):
        before, after = 4 * epoch - 4, 4 * epoch
        expected += [("epoch_begin", before, epoch), ("step_begin", after, epoch), ("step_end", after, epoch)]
        expected.append(("epoch_end", after, epoch))
    assert calls == [*expected, ("end", 8, 2)]
    assert known["batch_num"] == 4 and known["epoch_num"] == 2 and known["dataset_sink_mode"] is True
    assert len(known["sink_outputs"]) == 4 and float(known["sink_outputs"][3]) == float(known["net_outputs"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines if "loss is" in line] == ["epoch: 1 step: 3", "epoch: 2 step: 2"]
    assert lines[-2].endswith(f"loss is {float(known['sink_outputs'][1])}") and lines[-1].startswith("Train epoch time")


def test_evaluation_in_sinks_gives_the_same_results() -> None:
    data = digits(drop=False)
    trained = model()
    trained.train(2, data, dataset_sink_mode=True)
    # Iterators over shuffled rows have orders of their own.
    data = digits(drop=False, shuffle=False)
    plain, sunk = trained.eval(data), trained.eval(data, dataset_sink_mode=True)
    assert plain == sunk and plain.keys() == {"accuracy", "loss"} and plain["loss"] > 0
    seen = []
    watch = LambdaCallback(on_eval_step_end=lambda c: seen.append(c.original_args().cur_step_num))
    assert trained.eval(data, watch, dataset_sink_mode=True) == plain and seen == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("sink", [True, False])
def test_metrics_see_what_each_batch_gave_of_a_state_that_changes(sink: bool) -> None:
    class Sees(Metric):
        def clear(self) -> None:
            self.values: list[float] = []

        def update(self, *inputs: Any) -> None:
            time.sleep(0.002)
            self.values.append(float(inputs[0].asnumpy()))

        def eval(self) -> list[float]:
            return self.values

    class Counts(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = ms.Parameter(ms.Tensor(0.0), name="count")

        def construct(self, x: Any) -> Any:
            ops.assign_add(self.count, x.sum())
            return self.count

    judge = Model(Counts(), eval_network=Counts(), metrics={"seen": Sees()})
    assert judge.eval(ones(6), dataset_sink_mode=sink) == {"seen": [1, 2, 3, 4, 5, 6]}


def test_an_error_of_a_metric_is_raised_with_its_lines() -> None:
    class Bad(Metric):
        def clear(self) -> None:
            pass

        def update(self, *inputs: Any) -> None:
            raise ZeroDivisionError("metric")

        def eval(self) -> Any:
            return 0

    judge = Model(Tiny(), eval_network=Tiny(), metrics={"bad": Bad()})
    for sink in (True, False):
        with pytest.raises(ZeroDivisionError, match="metric") as caught:
            judge.eval(ones(6), dataset_sink_mode=sink)
        assert "update" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] and gone()


def test_a_callback_that_fails_counts_more_than_what_was_to_be_done_later(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "mycel")

    def fail(context: Any) -> None:
        context.later([].index, "nothing")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Model(Tiny()).train(1, ones(3), LambdaCallback(on_train_step_end=fail))
    assert any("has failed too: ValueError" in r.getMessage() for r in caplog.records) and gone()


def test_fit_in_sinks_is_fit_step_by_step() -> None:
    results: list[Any] = []
    keep = LambdaCallback(on_train_epoch_end=lambda c: results.append(c.original_args().eval_results))
    first = model()
    first.fit(2, digits(), digits(shuffle=False), callbacks=keep)
    second = model()
    second.fit(
        2, digits(), digits(shuffle=False), 1, keep, dataset_sink_mode=True, valid_dataset_sink_mode=True, sink_size=-1
    )
    assert results[:2] == results[2:] and results[0] != results[1] and same(weights(first), weights(second))


def test_building_compiles_what_training_uses() -> None:
    built = model()
    built.build(digits(), digits(), sink_size=4, epoch=2)
    versions = sum(map(len, built.train_network._compiled().versions.values()))
    built.train(1, digits(), dataset_sink_mode=True)
    assert versions == 1 == sum(map(len, built.train_network._compiled().versions.values()))


def test_sinks_compile_in_pynative_mode_too() -> None:
    compiled = model()
    compiled.train(1, digits(), dataset_sink_mode=True)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    eager = model()
    eager.train(1, digits(), dataset_sink_mode=True)
    assert same(weights(compiled), weights(eager))


class Tiny(nn.Cell):
    """Counts its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.count = ms.Parameter(ms.Tensor(0.0), name="count")

    def construct(self, x: Any) -> Any:
        ops.assign_add(self.count, x.sum() * 0 + 1)
        return self.count * 2


def ones(steps: int) -> Any:
    return ds.NumpySlicesDataset(np.ones(steps, np.float32), ["x"], shuffle=False).batch(1)


def test_the_next_sink_goes_on_where_one_stopped_and_a_resumed_one_ends_where_it_should() -> None:
    seen: list[Any] = []

    class Keep(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x + 0

    data = ds.NumpySlicesDataset(np.arange(5, dtype=np.float32), ["x"], shuffle=False).batch(1)
    keep = LambdaCallback(on_train_step_end=lambda c: seen.append([float(v) for v in c.original_args().sink_outputs]))
    Model(Keep()).train(3, data, keep, dataset_sink_mode=True, sink_size=3)
    assert seen == [[0, 1, 2], [3, 4, 0], [1, 2, 3]]
    seen.clear()
    data.set_init_step(4)
    Model(Keep()).train(3, data, keep, dataset_sink_mode=True, sink_size=3)
    assert seen == [[4, 0], [1, 2, 3]]


def test_an_error_of_the_dataset_is_raised_after_the_steps_before_it_with_the_users_lines() -> None:
    def rows() -> Iterator[Any]:
        for k in range(10):
            if k == 7:
                raise ZeroDivisionError("row seven")
            yield (np.float32(k),)

    class Own:
        def get_dataset_size(self) -> int:
            return 10

        def create_tuple_iterator(self, num_epochs: int = -1) -> Any:
            return iter(rows())

    for sink in (True, False):
        step = Tiny()
        with pytest.raises(ZeroDivisionError, match="row seven") as caught:
            Model(step).train(1, Own(), dataset_sink_mode=sink)
        assert "rows" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert float(step.count) == 7 and gone()
    data = ds.GeneratorDataset(rows, ["x"], shuffle=False).batch(1)
    with pytest.raises(Exception, match="row seven"):
        Model(Tiny()).train(1, data.take(9), dataset_sink_mode=True)
    assert gone()


@pytest.mark.parametrize("sink", [True, False])
def test_an_error_of_a_callback_ends_the_threads_and_what_was_logged_is_written(sink: bool, capsys: Any) -> None:
    def fail(context: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Model(Tiny()).train(2, ones(9), [LossMonitor(), LambdaCallback(on_train_step_end=fail)], sink)
    shown = "".join(f"epoch: 1 step: {k}, loss is {2.0 * k}\n" for k in range(1, 10 if sink else 2))
    assert gone() and capsys.readouterr().out == shown


def test_what_is_done_later_is_done_in_order_before_training_ends() -> None:
    done: list[Any] = []

    class Log(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            params = run_context.original_args()
            run_context.later(
                lambda step, loss: done.append((step, float(loss))), params.cur_step_num, params.net_outputs
            )

    Model(Tiny()).train(1, ones(70), Log())
    assert done == [(k, 2.0 * k) for k in range(1, 71)]

    class Fails(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            run_context.later(done.index, "nothing")

    with pytest.raises(ValueError, match="not in list"):
        Model(Tiny()).train(1, ones(70), Fails())
    assert gone()


def test_a_stop_that_is_asked_for_ends_the_training_after_the_sink() -> None:
    step, ends = Tiny(), []
    stop = LambdaCallback(
        on_train_step_end=lambda c: c.request_stop(), on_train_end=lambda c: ends.append(c.original_args().cur_step_num)
    )
    Model(step).train(5, ones(6), stop, dataset_sink_mode=True, sink_size=4)
    assert float(step.count) == 4 and ends == [4] and gone()


def test_ctrl_c_ends_a_sink_between_steps_and_what_was_done_is_saved(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sinking, "LONGEST", 8)
    pressed: list[int] = []

    class Endless:
        def get_dataset_size(self) -> int:
            return 10**6

        def create_tuple_iterator(self, num_epochs: int = -1) -> Any:
            return self

        def __iter__(self) -> Any:
            for k in range(10**6):
                if k == 20000:
                    pressed.append(k)
                    os.kill(os.getpid(), signal.SIGINT)
                yield (ms.Tensor(1.0),)

    step = Tiny()
    config = CheckpointConfig(save_checkpoint_steps=100, append_info=["step_num"])
    with pytest.raises(KeyboardInterrupt):
        Model(step).train(1, Endless(), ModelCheckpoint("net", str(tmp_path), config), dataset_sink_mode=True)
    assert pressed == [20000] and gone()
    (name,) = os.listdir(tmp_path)
    saved = load_checkpoint(str(tmp_path / name))
    count = int(saved["step_num"].asnumpy())
    assert 0 < count < 10**6 and float(saved["count"]) == count == float(step.count)
    assert name == f"net-1_{count}.ckpt"


def test_a_step_that_is_not_one_graph_runs_step_by_step_and_says_so_once(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "mycel")

    class Live(Tiny):
        def construct(self, x: Any) -> Any:
            if x.asnumpy()[0] > 0:
                ops.assign_add(self.count, ms.Tensor(1.0))
            return self.count * 1

    step = Live()
    Model(step).train(2, ones(5), dataset_sink_mode=True)
    assert float(step.count) == 10
    assert sum("is not one graph" in record.getMessage() for record in caplog.records) == 1


# data_sink.


def function_step() -> tuple[Any, Any]:
    net, loss_fn, optimizer = parts()
    net.set_train()
    grad = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, grads = grad(x, y)
        optimizer(grads)
        return loss

    return step, optimizer


def test_data_sink_calls_a_function_on_the_next_batches() -> None:
    step, optimizer = function_step()
    compiled = ms.jit(step)
    rows = digits(drop=False).create_tuple_iterator()
    expected = [float(compiled(x, y)) for _ in range(2) for x, y in rows][:10]
    rows.stop()
    step, optimizer = function_step()
    sink = ms.data_sink(step, digits(drop=False), 5, ms.JitConfig(jit_level="O1"))
    found: list[float] = []
    while len(found) < 10:
        last = sink()
        found += [float(loss) for loss in sink.results]
        assert float(last) == found[-1] and len(found) % 5 == 0
    assert found == expected and int(optimizer.global_step.asnumpy()[0]) == 10
    sink.close()
    assert gone()


def test_data_sink_of_cells_and_compiled_functions() -> None:
    step = Tiny()
    for given in (step, ms.jit(lambda x: x * 2)):
        sink = ms.data_sink(given, ones(3), sink_size=7)
        result = sink()
        assert len(sink.results) == 7 and float(result) == (14 if given is step else 2)
        del sink
        gc.collect()
        assert gone()


def test_an_error_of_a_dataset_comes_out_of_data_sink() -> None:
    def fails(x: Any) -> Any:
        if x == 3:
            raise ZeroDivisionError("three")
        return x

    data = ds.NumpySlicesDataset(np.arange(9, dtype=np.float32), ["x"], shuffle=False).map(fails, ["x"]).batch(1)
    sink = ms.data_sink(Tiny(), data, 5)
    with pytest.raises(RuntimeError, match="three"):
        sink()
    assert gone()


def test_input_signature_says_what_the_dataset_gives() -> None:
    good = ms.data_sink(Tiny(), ones(3), 2, input_signature=ms.Tensor(shape=[None], dtype=ms.float32))
    assert float(good()) == 4
    good.close()
    for signature, text in (
        (ms.Tensor(np.ones(2, np.float32)), "does not fit input_signature: expected float32.2., got float32.1."),
        ((ms.Tensor(1.0), ms.Tensor(1.0)), "input_signature has 2 tensors, and the dataset gives 1 columns"),
    ):
        bad = ms.data_sink(Tiny(), ones(3), 2, input_signature=signature)
        with pytest.raises(ValueError, match=text):
            bad()
        bad.close()


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((3, ones(2)), TypeError, "fn must be a function or a Cell, not int"),
        ((Tiny(), [1]), TypeError, "dataset must be a dataset"),
        ((Tiny(), ones(2), 0), ValueError, "sink_size must be at least 1, not 0"),
        ((Tiny(), ones(2), -1), ValueError, "sink_size must be at least 1, not -1"),
        ((Tiny(), ones(2), 1.5), TypeError, "sink_size must be an int, not float"),
        ((Tiny(), ones(2), True), TypeError, "sink_size must be an int, not bool"),
        ((Tiny(), ones(2), 1, 3), TypeError, "jit_config must be a JitConfig or None, not int"),
        ((Tiny(), ones(2), 1, None, 3), TypeError, "input_signature must be a tensor"),
    ],
)
def test_data_sink_refuses_what_cannot_work(arguments: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ms.data_sink(*arguments)


@pytest.mark.parametrize("size", [1.5, "a", True])
def test_train_wants_a_whole_number_as_sink_size(size: Any) -> None:
    for sink in (True, False):
        with pytest.raises(TypeError, match="sink_size must be an int"):
            Model(Tiny()).train(1, ones(2), dataset_sink_mode=sink, sink_size=size)

"""Callbacks: what they print, keep, save and steer."""

import json
import os
import re
import signal

import numpy as np
import pytest

from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.train import (
    CheckpointConfig,
    CheckpointError,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    Model,
    ModelCheckpoint,
    OnRequestExit,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
    load_checkpoint,
)
from mycel.train.callback import checkpoint
from mycel.train.callback.base import CallbackParameters, step_loss
from tests.train.support import Batches, Judge, Step, losses

CHECKED = {"train.TimeMonitor": "arithmetic", "train.OnRequestExit": "the requests"}


def context(**known):
    return RunContext(CallbackParameters(known))


def epochs(callback, values, name="eval_loss", **known):
    """Run the epoch ends of `callback` over values of what it watches.

    Gives the epoch at which it asked to stop, or None.
    """
    run = context(validates=True, **known)
    callback.on_train_begin(run)
    params = run.original_args()
    for epoch, value in enumerate(values, 1):
        params.update(cur_epoch_num=epoch, net_outputs=Tensor(0.0), eval_results={})
        if name == "loss":
            params["net_outputs"] = Tensor(np.float32(value))
        else:
            params["eval_results"] = {name: value}
        callback.on_train_epoch_end(run)
        if run.get_stop_requested():
            return epoch
    return None


class Optimizing(Cell):
    """A training network with an optimizer of one rate."""

    def __init__(self, rate):
        super().__init__()
        self.optimizer = Cell(auto_prefix=False)
        self.optimizer.learning_rate = rate
        self.w = Parameter(Tensor([0.0]), name="w")


def constant(rate=0.01):
    return Optimizing(Parameter(Tensor(np.float32(rate)), name="learning_rate"))


@pytest.mark.parametrize("every, steps", [(1, [1, 2, 3, 4, 5, 6]), (2, [2, 4, 6]), (4, [4]), (0, [])])
def test_loss_monitor_prints_every_so_many_steps(capsys, every, steps):
    Model(Step()).train(2, Batches(), LossMonitor(every))
    lines = capsys.readouterr().out.splitlines()
    matches = [re.fullmatch(r"epoch: (\d+) step: (\d+), loss is (\d+\.\d+(?:e-\d+)?)", line) for line in lines]
    assert [(int(m[1]) - 1) * 3 + int(m[2]) for m in matches] == steps
    np.testing.assert_allclose([float(m[3]) for m in matches], [losses(6)[step - 1] for step in steps], rtol=1e-5)


def test_loss_monitor_stops_at_a_loss_that_is_not_finite():
    for value in (np.nan, np.inf):
        run = context(cur_epoch_num=2, cur_step_num=5, batch_num=3, net_outputs=Tensor(np.float32(value)))
        with pytest.raises(ValueError, match=rf"LossMonitor: epoch: 2 step: 2, loss is {value}; training stops"):
            LossMonitor().on_train_step_end(run)
    with pytest.raises(ValueError, match="per_print_times must be at least 0, not -1"):
        LossMonitor(-1)


@pytest.mark.parametrize(
    "outputs, expected",
    [
        (Tensor(1.5), 1.5),
        ((Tensor(1.5), Tensor(True)), 1.5),
        ([[Tensor([1.0, 2.0])], 3], 1.5),
        (2, 2.0),
        (np.float32(3), 3.0),
        (None, None),
        ((), ()),
    ],
)
def test_the_loss_is_the_first_output(outputs, expected):
    assert step_loss(outputs) == expected


def test_time_monitor_prints_each_epoch(capsys):
    Model(Step()).train(2, Batches(), [TimeMonitor(), TimeMonitor(data_time=True)])
    lines = capsys.readouterr().out.splitlines()
    number = r"\d+\.\d{3}"
    plain = rf"Train epoch time: ({number}) ms, per step time: ({number}) ms"
    for line, pattern in zip(lines, [plain, rf"{plain} \(data time: {number} ms\)"] * 2):
        match = re.fullmatch(pattern, line)
        assert match and float(match[1]) == pytest.approx(3 * float(match[2]), abs=2e-3)
    assert len(lines) == 4
    with pytest.raises(ValueError, match="data_size must be at least 1, not 0"):
        TimeMonitor(0).on_train_epoch_end(context())
    with pytest.raises(TypeError, match="data_time must be a bool"):
        TimeMonitor(data_time=1)
    with pytest.raises(ValueError, match="give it as data_size"):
        TimeMonitor().on_train_epoch_end(context())


def test_monitors_show_evaluations_too(capsys):
    step = Step()
    model = Model(step, eval_network=Judge(step), eval_indexes=[0, 1, 2], metrics={"mse"})
    model.eval(Batches(), [LossMonitor(2), TimeMonitor()])
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"epoch: 1 step: 2, loss is \d+\.\d+", lines[0]) and lines[1].startswith("Eval epoch time: ")
    model.fit(1, Batches(), Batches(), callbacks=[LossMonitor(3), TimeMonitor()])
    shown = [line.split(" ", 2)[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [["epoch:", "1"], ["Eval", "epoch"], ["Eval", "result:"], ["Train", "epoch"]] and len(lines) == 2


def test_history_keeps_outputs_and_metrics_of_each_epoch():
    step, history = Step(), History()
    Model(step, eval_network=Judge(step), eval_indexes=[0, 1, 2], metrics={"mse"}).fit(
        3, Batches(), Batches(), valid_frequency=2, callbacks=history
    )
    assert history.epoch == {"epoch": [1, 2, 3]} and history.history.keys() == {"net_output", "mse"}
    np.testing.assert_allclose(history.history["net_output"], [losses(9)[2], losses(9)[5], losses(9)[8]], rtol=1e-4)
    assert len(history.history["mse"]) == 1


def test_lambda_callbacks_take_functions_only():
    with pytest.raises(TypeError, match="on_eval_end must be a function of the run context or None, not int"):
        LambdaCallback(on_eval_end=3)
    with pytest.raises(TypeError, match="original_args must be a dict"):
        RunContext(3)


def files(path):
    return sorted(os.listdir(path))


@pytest.mark.parametrize(
    "config, expected",
    [
        ({"save_checkpoint_steps": 2, "keep_checkpoint_max": 10}, ["1_2", "2_1", "2_3"]),
        ({"save_checkpoint_steps": 4}, ["2_1", "2_3"]),
        ({"save_checkpoint_steps": 1, "keep_checkpoint_max": 3}, ["2_1", "2_2", "2_3"]),
        ({"save_checkpoint_steps": 1, "keep_checkpoint_max": 3, "async_save": True}, ["2_1", "2_2", "2_3"]),
        ({"save_checkpoint_steps": 1, "keep_checkpoint_max": 0}, ["2_3"]),
        ({"save_checkpoint_steps": 0, "save_checkpoint_seconds": 1000}, ["2_3"]),
        ({"save_checkpoint_steps": 1, "keep_checkpoint_max": 0, "keep_checkpoint_per_n_minutes": 1}, ["1_1", "2_3"]),
    ],
)
def test_checkpoints_are_saved_and_kept_as_configured(tmp_path, config, expected):
    save = ModelCheckpoint("net", str(tmp_path / "new"), CheckpointConfig(**config))
    Model(Step()).train(2, Batches(), save)
    assert files(tmp_path / "new") == [f"net-{place}.ckpt" for place in expected]
    assert save.latest_ckpt_file_name == os.path.realpath(tmp_path / "new" / "net-2_3.ckpt")


def test_checkpoints_by_the_clock(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])

    def tick(run_context):
        now[0] += 40

    config = CheckpointConfig(save_checkpoint_steps=0, save_checkpoint_seconds=60, keep_checkpoint_max=10)
    Model(Step()).train(
        2, Batches(), [LambdaCallback(on_train_step_begin=tick), ModelCheckpoint("s", str(tmp_path), config)]
    )
    assert files(tmp_path) == ["s-1_2.ckpt", "s-2_1.ckpt", "s-2_3.ckpt"]
    config = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=0, keep_checkpoint_per_n_minutes=1)
    Model(Step()).train(
        2, Batches(), [LambdaCallback(on_train_step_begin=tick), ModelCheckpoint("m", str(tmp_path), config)]
    )
    assert [name for name in files(tmp_path) if name[0] == "m"] == [
        "m-1_1.ckpt",
        "m-1_3.ckpt",
        "m-2_2.ckpt",
        "m-2_3.ckpt",
    ]


def test_a_later_run_takes_another_prefix(tmp_path):
    for _ in range(3):
        Model(Step()).train(1, Batches(), ModelCheckpoint("net", str(tmp_path), CheckpointConfig(3)))
    assert files(tmp_path) == ["net-1_3.ckpt", "net_1-1_3.ckpt", "net_2-1_3.ckpt"]


def test_what_a_checkpoint_holds(tmp_path):
    class Generator:
        state = 0

        def get_state(self):
            self.state += 1
            return Tensor(np.uint8([self.state]))

    step = Step()
    added = ["epoch_num", "step_num", {"rate": 0.5, "random": Generator(), "note": "run 7"}]
    config = CheckpointConfig(save_checkpoint_steps=3, append_info=added, crc_check=True)
    Model(step).train(2, Batches(), ModelCheckpoint("net", lambda params: str(tmp_path), config))
    first, last = (load_checkpoint(tmp_path / f"net-{epoch}_3.ckpt", crc_check=True) for epoch in (1, 2))
    assert last["w"].asnumpy().tolist() == step.w.asnumpy().tolist() != first["w"].asnumpy().tolist()
    assert [int(first[name].asnumpy()) for name in ("epoch_num", "step_num")] == [1, 3]
    assert [int(last[name].asnumpy()) for name in ("epoch_num", "step_num")] == [2, 6]
    assert last["note"] == "run 7" and [c["random"].asnumpy().tolist() for c in (first, last)] == [[1], [2]]


def test_another_network_and_format_and_a_prefix_from_the_run(tmp_path):
    other = Cell()
    other.only = Parameter(Tensor([1.0]), name="only")
    config = CheckpointConfig(3, saved_network=other, format="safetensors")
    Model(Step()).train(1, Batches(), ModelCheckpoint(lambda params: f"of{params.epoch_num}", str(tmp_path), config))
    assert list(load_checkpoint(tmp_path / "of1-1_3.safetensors", format="safetensors")) == ["only"]


def test_a_failing_run_saves_a_breakpoint_if_asked(tmp_path):
    def fail(run_context):
        if run_context.original_args().cur_step_num == 2:
            raise ZeroDivisionError

    for asked in (False, True):
        config = CheckpointConfig(save_checkpoint_steps=10, exception_save=asked)
        with pytest.raises(ZeroDivisionError):
            Model(Step()).train(
                1, Batches(), [ModelCheckpoint("net", str(tmp_path), config), LambdaCallback(on_train_step_end=fail)]
            )
    assert files(tmp_path) == ["net-1_2_breakpoint.ckpt"]


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"save_checkpoint_steps": -1}, ValueError, "save_checkpoint_steps must be at least 0, not -1"),
        ({"save_checkpoint_steps": 0, "keep_checkpoint_max": 0}, ValueError, "cannot all be 0 or None"),
        ({"append_info": ["foo"]}, ValueError, "append_info takes 'epoch_num', 'step_num', 'dataset_state' and dicts"),
        ({"append_info": [{"a": [1]}]}, TypeError, r"append_info has 'a': \[1\]"),
        ({"append_info": {}}, TypeError, "append_info must be a list"),
        ({"saved_network": 3}, TypeError, "saved_network must be a Cell"),
        ({"format": "h5"}, ValueError, "format must be one of 'ckpt', 'safetensors'"),
        ({"remove_redundancy": 1}, ValueError, "remove_redundancy must be a bool"),
        ({"enc_key": b"0" * 16, "format": "safetensors"}, ValueError, "enc_key goes with format='ckpt'"),
    ],
)
def test_configurations_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        CheckpointConfig(**arguments)


def test_the_policy_is_readable_and_bad_names_are_refused():
    assert CheckpointConfig().get_checkpoint_policy() == {
        "save_checkpoint_steps": 1,
        "save_checkpoint_seconds": None,
        "keep_checkpoint_max": 5,
        "keep_checkpoint_per_n_minutes": None,
        "saved_network": None,
    }
    with pytest.raises(ValueError, match="prefix must be a name without '/'"):
        ModelCheckpoint("a/b")
    with pytest.raises(TypeError, match="config must be a CheckpointConfig"):
        ModelCheckpoint(config=3)


@pytest.mark.parametrize(
    "arguments, values, stopped",
    [
        ({"patience": 0}, [3, 2, 2.5, 1], 3),
        ({"patience": 2}, [3, 2, 2.5, 1.9, 2, 2], 6),
        ({"patience": 2, "min_delta": 0.5}, [3, 2, 1.6, 1.6], 4),
        ({"patience": 2, "mode": "max"}, [1, 2, 1, 1.5], 4),
        ({"patience": 2, "baseline": 0.5}, [3, 2, 1], 2),
        ({"patience": 2, "baseline": 5}, [3, 2, 1], None),
        ({"monitor": "acc", "patience": 1}, [0.5, 0.6, 0.6], 3),
        ({"monitor": "loss", "patience": 1}, [3, 2, 2], 3),
    ],
)
def test_early_stopping(arguments, values, stopped):
    callback = EarlyStopping(**arguments)
    assert epochs(callback, values, arguments.get("monitor", "eval_loss")) == stopped
    assert callback.stopped_epoch == (stopped or 0)


def test_early_stopping_puts_back_the_best_weights(capsys):
    network, callback = constant(), EarlyStopping(patience=2, restore_best_weights=True, verbose=True)
    run = context(validates=True, train_network=network)
    callback.on_train_begin(run)
    for epoch, loss in enumerate([3.0, 1.0, 2.0, 2.0], 1):
        network.w.set_data(Tensor([float(epoch)]))
        run.original_args().update(cur_epoch_num=epoch, eval_results={"eval_loss": loss})
        callback.on_train_epoch_end(run)
    callback.on_train_end(run)
    assert run.get_stop_requested() and network.w.asnumpy().tolist() == [2.0]
    assert capsys.readouterr().out == (
        "Restoring model weights from the end of the best epoch.\nEpoch 00004: early stopping\n"
    )


def test_early_stopping_ends_a_fit():
    step = Step()
    step.b.set_data(Tensor([0.5]))
    step.w.set_data(Tensor(np.float32([[1.0], [2.0]])))
    seen = []
    count = LambdaCallback(on_train_epoch_end=lambda run_context: seen.append(1))
    model = Model(step, eval_network=Judge(step), eval_indexes=[0, 1, 2], metrics={"loss"})
    model.fit(9, Batches(), Batches(), callbacks=[count, EarlyStopping(min_delta=1, patience=3)])
    assert len(seen) == 4


def test_reduce_on_plateau_waits_cools_down_and_stops_at_the_minimum(capsys):
    network = constant(0.01)
    callback = ReduceLROnPlateau(factor=0.1, patience=2, min_delta=100, cooldown=1, min_lr=5e-5, verbose=True)
    epochs(callback, [1.0] * 9, train_network=network)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Epoch 00003", "Epoch 00005", "Epoch 00007"]
    assert lines[0] == "Epoch 00003: ReduceLROnPlateau reducing learning rate to 0.001."
    assert network.optimizer.learning_rate.asnumpy() == np.float32(5e-5)


def test_learning_rate_scheduler_sets_the_rate_after_each_step():
    network, seen = constant(0.01), []
    callback = LearningRateScheduler(lambda rate, step: seen.append((rate, step)) or rate / 2)
    for step in (1, 2, 3):
        callback.on_train_step_end(context(train_network=network, cur_step_num=step))
    assert seen == [(0.01, 1), (0.005, 2), (0.0025, 3)]
    assert network.optimizer.learning_rate.asnumpy() == np.float32(0.00125)
    with pytest.raises(TypeError, match="the function must give a number, not str"):
        LearningRateScheduler(lambda rate, step: "x").on_train_step_end(context(train_network=network, cur_step_num=1))
    with pytest.raises(ValueError, match="must have one constant learning rate"):
        schedule = Optimizing(Parameter(Tensor([0.1, 0.2]), name="r"))
        callback.on_train_step_end(context(train_network=schedule, cur_step_num=1))
    with pytest.raises(ValueError, match="the model has no optimizer"):
        callback.on_train_step_end(context(train_network=Step(), cur_step_num=1))


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: EarlyStopping(mode="x"), ValueError, "mode must be one of 'auto', 'min', 'max', not 'x'"),
        (lambda: EarlyStopping(patience=-1), ValueError, "patience must be at least 0"),
        (lambda: EarlyStopping(monitor=3), TypeError, "monitor must be a string"),
        (lambda: EarlyStopping(baseline="x"), TypeError, "baseline must be a number"),
        (lambda: ReduceLROnPlateau(factor=1.5), ValueError, "factor must be below 1, not 1.5"),
        (lambda: ReduceLROnPlateau(cooldown=-1), ValueError, "cooldown must be at least 0"),
        (lambda: LearningRateScheduler(0.1), TypeError, "takes a function"),
        (lambda: OnRequestExit(file_name="a/b"), ValueError, "file_name must be a name without '/'"),
        (lambda: OnRequestExit(sig=signal.SIGINT), ValueError, "not SIGINT"),
        (lambda: OnRequestExit(save_ckpt=1), ValueError, "save_ckpt must be a bool"),
    ],
)
def test_arguments_that_are_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_signal_stops_training_and_saves(tmp_path):
    step, seen = Step(), []

    def send(run_context):
        seen.append(1)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    former = signal.getsignal(signal.SIGTERM)
    leave = OnRequestExit(save_mindir=False, directory=str(tmp_path), file_name="run")
    Model(step).train(3, Batches(), [LambdaCallback(on_train_step_begin=send), leave])
    assert len(seen) == 2 and signal.getsignal(signal.SIGTERM) is former
    assert load_checkpoint(tmp_path / "rank_0" / "run_train.ckpt")["w"].asnumpy().tolist() == step.w.asnumpy().tolist()


def test_a_file_stops_training(tmp_path):
    wish, seen = tmp_path / "wish.json", []
    wish.write_text("{broken")

    def write(run_context):
        seen.append(1)
        if len(seen) == 2:
            wish.write_text(json.dumps({"GracefulShutdown": 1}))

    leave = OnRequestExit(save_ckpt=False, directory=str(tmp_path), config_file=str(wish))
    Model(Step()).train(3, Batches(), [LambdaCallback(on_train_step_begin=write), leave])
    assert len(seen) == 2 and files(tmp_path) == ["wish.json"]


@pytest.mark.parametrize("save", [False, True, "thread", "process"])
def test_asynchronous_saves_are_pruned_alike(tmp_path, save):
    pytest.importorskip("cryptography")
    config = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=2, async_save=save, enc_key=b"k" * 16)
    step = Step()
    Model(step).train(2, Batches(), ModelCheckpoint("net", str(tmp_path), config))
    assert files(tmp_path) == ["net-2_2.ckpt", "net-2_3.ckpt"]
    assert (
        load_checkpoint(tmp_path / "net-2_3.ckpt", dec_key=b"k" * 16)["w"].asnumpy().tolist()
        == step.w.asnumpy().tolist()
    )
    with pytest.raises(CheckpointError, match="encrypted"):
        load_checkpoint(tmp_path / "net-2_3.ckpt")

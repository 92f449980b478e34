"""What callbacks do where training ends, is stopped, fails or is interrupted, at every moment."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import signal
import threading
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel import nn
from mycel.train import (
    BackupAndRestore,
    Callback,
    CheckpointConfig,
    EarlyStopping,
    Model,
    ModelCheckpoint,
    OnRequestExit,
    SummaryCollector,
)

X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
EPOCHS, STEPS = 3, 4
MOMENTS = ("epoch_begin", "step_begin", "step_end", "epoch_end")
# Each way to end, with what `train` raises.
WAYS: dict[str, Any] = {
    "error": ValueError,
    "interrupt": KeyboardInterrupt,
    "exit": SystemExit,
    "signal": KeyboardInterrupt,
    "stop": None,
}


class Ending(Callback):
    """Ends a run in its second epoch, and notes which hooks run then."""

    def __init__(self, way: str, moment: str) -> None:
        super().__init__()
        self.way, self.moment, self.seen, self.steps = way, moment, [], 0

    def at(self, moment: str, context: Any) -> None:
        params = context.original_args()
        self.seen.append(moment)
        if moment == "step_end":
            self.steps = params.cur_step_num
        if moment == self.moment and params.cur_epoch_num == 2:
            if self.way == "stop":
                context.request_stop()
            elif self.way == "signal":
                os.kill(os.getpid(), signal.SIGINT)
            elif self.way in WAYS:
                raise WAYS[self.way]("on purpose")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.seen.append(kind)


for name in (*MOMENTS, "end"):
    setattr(Ending, f"on_train_{name}", lambda self, context, name=name: self.at(name, context))


@pytest.mark.parametrize(
    "way, moment, sink",
    [("none", "", False), *itertools.product(WAYS, MOMENTS, (False,)), ("signal", "step_end", True)],
)
def test_callbacks_know_whether_training_has_ended(tmp_path: pathlib.Path, way: str, moment: str, sink: bool) -> None:
    net = nn.Dense(3, 1)
    data = ds.NumpySlicesDataset((X, X.sum(1, keepdims=True)), ["x", "y"], shuffle=False).batch(4)
    handler = signal.getsignal(signal.SIGTERM)
    ending = Ending(way, moment)
    saves = ModelCheckpoint("net", str(tmp_path / "saved"), CheckpointConfig(save_checkpoint_steps=1000))
    collected = {
        "collect_landscape": {"landscape_size": 4, "unit": "epoch", "num_samples": 4, "intervals": [[1, 2, 3]]}
    }
    callbacks = [
        saves,
        BackupAndRestore(str(tmp_path / "backup")),
        OnRequestExit(directory=str(tmp_path / "asked")),
        SummaryCollector(str(tmp_path / "summary"), collect_specified_data=collected),
        EarlyStopping("loss", mode="min", patience=100),
        ending,
    ]
    raises = WAYS.get(way)
    run = lambda: Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01)).train(EPOCHS, data, callbacks, sink)
    if raises is None:
        run()
    else:
        with pytest.raises(raises):
            run()
    # Hooks of an end are for what has ended.
    assert ("end" in ending.seen) == (raises is None) and ending.seen[-1] is raises
    # What goes on from a backup has one.
    assert os.listdir(tmp_path / "backup") == ([] if way == "none" else ["backup.ckpt"])
    # The last step that is whole is saved, unless something is wrong.
    names = [path.stem for path in (tmp_path / "saved").glob("*.ckpt")]
    epoch, step = divmod(ending.steps - 1, STEPS)
    assert names == ([] if way == "error" else [f"net-{epoch + 1}_{step + 1}"])
    assert signal.getsignal(signal.SIGTERM) is handler and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not (tmp_path / "asked").exists()
    (facts,) = (tmp_path / "summary").rglob("*.json")
    assert json.loads(facts.read_text())["step_per_epoch"] == STEPS


def test_ctrl_c_is_heard_while_the_next_batch_is_awaited() -> None:
    """Nothing is done meanwhile that has to be finished."""

    class Slow:
        def __len__(self) -> int:
            return 10

        def __getitem__(self, number: int) -> Any:
            if number == 6:
                os.kill(os.getpid(), signal.SIGINT)
                released.wait(60)
            return X[number], X[number, :1]

    released, steps = threading.Event(), []

    class Count(Callback):
        def on_train_step_end(self, context: Any) -> None:
            steps.append(context.original_args().cur_step_num)

        def __exit__(self, *error: Any) -> None:
            released.set()

    net = nn.Dense(3, 1)
    data = ds.GeneratorDataset(Slow(), ["x", "y"], shuffle=False).batch(1)
    with pytest.raises(KeyboardInterrupt):
        Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01)).train(1, data, Count())
    assert steps == list(range(1, len(steps) + 1)) and len(steps) <= 6

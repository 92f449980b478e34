"""A run that is stopped, saved and resumed ends where the uninterrupted run ends, to the bit."""

import pytest

import mycel.dataset as ds
from mycel.dataset import config as data_config
from mycel.train import CheckpointConfig, LambdaCallback, Model, ModelCheckpoint, load_checkpoint, load_param_into_net
from tests.train.support import Step, X, Y


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    monkeypatch.setitem(data_config._settings, "seed", 7)


def shuffled():
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=True).batch(4)


def test_resuming_within_an_epoch(tmp_path):
    whole, first, second = Step(), Step(), Step()
    Model(whole).train(3, shuffled())

    def stop(run_context):
        if run_context.original_args().cur_step_num == 5:
            run_context.request_stop()

    config = CheckpointConfig(save_checkpoint_steps=100, append_info=["epoch_num", "step_num"])
    Model(first).train(
        3, shuffled(), [LambdaCallback(on_train_step_end=stop), ModelCheckpoint("run", str(tmp_path), config)]
    )
    saved = load_checkpoint(tmp_path / "run-2_2.ckpt")
    assert load_param_into_net(second, saved) == ([], ["epoch_num", "step_num"])
    data = shuffled()
    data.set_init_step(int(saved["step_num"].asnumpy()))
    places = []
    keep = LambdaCallback(on_train_step_end=lambda context: places.append(context.original_args().cur_epoch_num))
    Model(second).train(3, data, keep)
    assert places == [2, 3, 3, 3]
    assert second.w.asnumpy().tobytes() == whole.w.asnumpy().tobytes() != first.w.asnumpy().tobytes()
    assert second.b.asnumpy().tobytes() == whole.b.asnumpy().tobytes()

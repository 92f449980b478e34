"""A run that is stopped, saved and resumed ends where the uninterrupted run ends, to the bit."""

import numpy as np
import pytest

import mycel.dataset as ds
from mycel import nn
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


def _regression():
    network = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9)
    return Model(network, nn.MSELoss(), optimizer, metrics={"mse"})


def test_the_optimizer_resumes_too(tmp_path):
    data = lambda: ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(4)
    whole, resumed = _regression(), _regression()
    config = CheckpointConfig(save_checkpoint_steps=3, append_info=["epoch_num"])
    whole.train(2, data(), ModelCheckpoint("run", str(tmp_path), config))
    saved = load_checkpoint(tmp_path / "run-1_3.ckpt")
    assert set(saved) >= {
        "weight",
        "bias",
        "global_step",
        "learning_rate",
        "momentum",
        "moments.weight",
        "moments.bias",
    }
    assert load_param_into_net(resumed.train_network, saved) == ([], ["epoch_num"])
    resumed.train(2, data(), initial_epoch=int(saved["epoch_num"].asnumpy()))
    pairs = list(zip(whole.train_network.get_parameters(), resumed.train_network.get_parameters()))
    assert [(a.name, a.asnumpy().tobytes()) for a, _ in pairs] == [(b.name, b.asnumpy().tobytes()) for _, b in pairs]
    assert whole.eval(data()) == resumed.eval(data())

    weight, bias = np.ones((2, 1)), np.zeros(1)
    momentum = [np.zeros((2, 1)), np.zeros(1)]
    for start in (0, 4, 8, 0, 4, 8):
        x, y = X[start : start + 4].astype(np.float64), Y[start : start + 4]
        error = x @ weight + bias - y
        for index, gradient in enumerate((x.T @ error / 2, error.sum(axis=0) / 2)):
            momentum[index] = 0.9 * momentum[index] + gradient
        weight, bias = weight - 0.05 * momentum[0], bias - 0.05 * momentum[1]
    np.testing.assert_allclose(resumed.predict_network.weight.asnumpy(), weight.T, rtol=1e-5)
    np.testing.assert_allclose(resumed.predict_network.bias.asnumpy(), bias, rtol=1e-5)

"""Loss scales: how they move (beside MindSpore's own sequences), and that steps that overflow leave
no trace.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import amp, nn, ops
from mycel.train import LossMonitor, Model
from tests.train.support import Batches

MODES = (ms.PYNATIVE_MODE, ms.GRAPH_MODE)
CHECKED = dict.fromkeys(
    """amp.DynamicLossScaleManager amp.DynamicLossScaler amp.FixedLossScaleManager
    nn.DynamicLossScaleUpdateCell nn.FixedLossScaleUpdateCell""".split(),
    "MindSpore 2.10",
) | dict.fromkeys(
    (
        "amp.LossScaleManager amp.LossScaler amp.StaticLossScaler amp.all_finite amp.AllFinite "
        "nn.TrainOneStepWithLossScaleCell"
    ).split(),
    "definition",
)


@pytest.fixture(params=MODES, ids=["pynative", "graph"], autouse=True)
def mode(request):
    """Both modes, and the one that was set before at the end."""
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


# (scale, factor, window): the scales after each step, as MindSpore 2.10 moves them; a step is 1
# where its gradients are finite.
STEPS = (1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1)
SCALERS = {
    (65536, 2, 3): [65536, 65536, 131072, 65536, 65536, 32768, 16384, 16384, 16384, 32768, 32768],
    (3.0, 2, 1): [6, 12, 24, 12, 24, 12, 6, 12, 24, 48, 96],
    (1.0, 4, 2): [1, 4, 4, 1, 1, 1, 1, 1, 4, 4, 16],
    (2, 2, 2): [2, 4, 4, 2, 2, 1, 1, 1, 2, 2, 4],
}


@pytest.mark.parametrize("arguments", SCALERS, ids=str)
def test_dynamic_scaler_moves_as_mindspores(arguments):
    scaler = amp.DynamicLossScaler(*arguments)
    found = []
    for fine in STEPS:
        assert scaler.adjust(ms.Tensor(bool(fine))) is True
        found.append(float(scaler.scale_value))
    assert found == SCALERS[arguments]


def test_dynamic_scaler_stays_in_range():
    scaler = amp.DynamicLossScaler(2.0**127, 2, 1)
    scaler.adjust(ms.Tensor(True))
    assert float(scaler.scale_value) == 2.0**127


def test_scaling_and_unscaling_keep_types_and_structures():
    for scaler in (amp.StaticLossScaler(4.0), amp.DynamicLossScaler(4.0, 2, 10)):
        half = ms.Tensor(np.array([1.0], np.float16))
        up, (down, other) = scaler.scale(half), scaler.unscale((half, ms.Tensor(8.0)))
        assert (up.dtype, down.dtype, other.dtype) == (ms.float16, ms.float16, ms.float32)
        assert (float(up), float(down), float(other)) == (4.0, 0.25, 2.0)
    assert amp.StaticLossScaler(4.0).adjust(ms.Tensor(False)) is False


def test_all_finite():
    t = lambda *v: ms.Tensor(np.array(v, np.float32))
    cases = {
        True: [(t(1), t(2)), [t(1)], t(0), (t(1).astype(ms.float16), t(1)), (ms.Tensor([1]),), ()],
        False: [(t(1), t(np.inf)), t(1, np.nan), [(t(1),), t(-np.inf)], t(1e5).astype(ms.float16)],
    }
    for expected, inputs in cases.items():
        for given in inputs:
            assert bool(amp.all_finite(given)) is expected
            assert bool(amp.AllFinite()(given)) is not expected
    with pytest.raises(TypeError, match="must be tensors"):
        amp.all_finite((1.0,))


def test_managers_move_as_mindspores():
    manager = amp.DynamicLossScaleManager(16, 2, 3)
    found = []
    for overflow in (0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1):
        manager.update_loss_scale(bool(overflow))
        found.append(manager.get_loss_scale())
    assert found == [16, 16, 32, 16, 16, 8, 4, 2, 1, 1, 1]
    assert manager.get_drop_overflow_update() and isinstance(manager.get_update_cell(), nn.DynamicLossScaleUpdateCell)
    fixed = amp.FixedLossScaleManager(8.0, False)
    fixed.update_loss_scale(True)
    assert fixed.get_loss_scale() == 8.0 and fixed.get_update_cell() is None
    assert isinstance(amp.FixedLossScaleManager().get_update_cell(), nn.FixedLossScaleUpdateCell)
    assert ms.FixedLossScaleManager is amp.FixedLossScaleManager is ms.train.FixedLossScaleManager


def test_a_manager_gives_up_after_a_thousand_overflows():
    manager = amp.DynamicLossScaleManager()
    for _ in range(1000):
        manager.update_loss_scale(True)
    with pytest.raises(RuntimeError, match="1001 steps in a row"):
        manager.update_loss_scale(True)


def test_update_cells_move_as_mindspores():
    overflows = (0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
    expected = [16, 16, 32, 16, 16, 8, 4, 2, 1, 1, 1, 1, 1, 2, 2]
    for cell, wanted in (
        (nn.DynamicLossScaleUpdateCell(16, 2, 3), expected),
        (nn.FixedLossScaleUpdateCell(16), [16] * 15),
    ):
        scale = ms.Parameter(ms.Tensor(16.0), name="scale")
        assert cell.get_loss_scale() == 16
        for overflow, value in zip(overflows, wanted):
            assert bool(cell(scale, ms.Tensor(bool(overflow)))) is bool(overflow)
            assert float(scale) == value


class Line(nn.Cell):
    """x w, with w of ones."""

    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.ones((2, 1), np.float32)), name="w")

    def construct(self, x):
        return ops.matmul(x, self.w)


def steps(scale, inputs):
    """The results of steps of Momentum(0.125, 0.5) on the mean square of the outputs for inputs of
    equal elements.
    """
    net = Line()
    optimizer = nn.Momentum(net.trainable_params(), 0.125, 0.5)
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.MSELoss()), optimizer, scale_sense=scale
    ).set_train()
    zeros = ms.Tensor(np.zeros((2, 1), np.float32))
    found = []
    for x in inputs:
        loss, overflow, used = step(ms.Tensor(np.full((2, 2), x, np.float32)), zeros)
        found.append((float(loss), bool(overflow), float(used), net.w.asnumpy()[0, 0], int(optimizer.global_step)))
    return found


def reference(inputs):
    """The same by hand in float64, without scale.

    A step whose gradient float32 cannot hold is left out.
    """
    w, v, count, found = 1.0, 0.0, 0, []
    for x in inputs:
        loss, gradient = (2 * x * w) ** 2, 2 * (2 * x * w) * x
        if abs(gradient) * 16 < 3e38:
            v = 0.5 * v + gradient
            w, count = w - 0.125 * v, count + 1
        found.append((loss, w, count))
    return found


@pytest.mark.parametrize("shape", [(), (1,)])
def test_steps_that_overflow_leave_no_trace(shape):
    inputs = (1, 2, 1e20, 1, 0.5)
    found = steps(ms.Tensor(np.full(shape, 16, np.float32)), inputs)
    assert [f[1] for f in found] == [False, False, True, False, False] and {f[2] for f in found} == {16.0}
    for (loss, overflow, _, w, count), (loss_, w_, count_) in zip(found, reference(inputs)):
        assert (overflow or loss == pytest.approx(loss_)) and w == pytest.approx(w_) and count == count_


def test_the_dynamic_scale_halves_after_an_overflow_and_doubles_after_a_window():
    found = steps(nn.DynamicLossScaleUpdateCell(16, 2, 2), (1, 2, 1e20, 1, 1, 1))
    assert [f[2] for f in found] == [16, 16, 32, 16, 16, 32]
    assert [f[1] for f in found] == [False, False, True, False, False, False]
    assert [f[3] for f in found] == [0.5, -0.75, -0.75, -1.0, -0.625, -0.125]


def test_gradients_that_vanish_in_float16_survive_by_the_scale():
    def gradient(scale):
        net = Line().to_float(ms.float16)
        optimizer = nn.SGD(net.trainable_params(), 1.0)
        loss = lambda out, label: (out * 1e-5).sum() * 1e-4
        network = nn.WithLossCell(net, loss)
        step = nn.TrainOneStepWithLossScaleCell(network, optimizer, ms.Tensor(scale))
        x = ms.Tensor(np.ones((2, 2), np.float32))
        step(x, x)
        return 1 - float(net.w[0, 0])

    assert gradient(1.0) == 0.0
    assert gradient(2.0**16) == pytest.approx(2e-9, abs=6e-8)


def test_overflows_in_float16_lower_the_scale_until_steps_count():
    net = Line().to_float(ms.float16)
    optimizer = nn.SGD(net.trainable_params(), 2.0**-6)
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.MSELoss()), optimizer, nn.DynamicLossScaleUpdateCell(2**18, 2, 100)
    )
    x, y = ms.Tensor(np.ones((2, 2), np.float32)), ms.Tensor(np.zeros((2, 1), np.float32))
    results = [step(x, y) for _ in range(8)]
    overflows = [bool(r[1]) for r in results]
    assert overflows[0] and not overflows[-1] and overflows == sorted(overflows, reverse=True)
    scales = [float(r[2]) for r in results]
    assert scales[: sum(overflows) + 1] == [2.0 ** (18 - i) for i in range(sum(overflows) + 1)]
    assert float(net.w[0, 0]) < 1.0 and int(optimizer.global_step) == overflows.count(False)


def test_the_scale_can_be_set():
    net = Line()
    step = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 0.1), ms.Tensor(4.0))
    x = ms.Tensor(np.ones((1, 2), np.float32))
    assert float(step(x)[2]) == 4.0
    step.set_sense_scale(ms.Tensor(32.0))
    assert float(step(x)[2]) == 32.0
    with pytest.raises(TypeError, match="must be a Tensor"):
        step.set_sense_scale(4.0)
    for bad, error in ((3.0, TypeError), (ms.ops.ones((2, 2)), ValueError)):
        with pytest.raises(error, match="scale_sense"):
            nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 0.1), bad)


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: amp.StaticLossScaler(0.5), ValueError),
        (lambda: amp.StaticLossScaler(True), TypeError),
        (lambda: amp.DynamicLossScaler("a", 2, 3), TypeError),
        (lambda: amp.DynamicLossScaler(1, 0, 3), ValueError),
        (lambda: amp.DynamicLossScaler(1, 2.5, 3), TypeError),
        (lambda: amp.DynamicLossScaler(1, 2, 0), ValueError),
        (lambda: amp.FixedLossScaleManager(0.5), ValueError),
        (lambda: amp.FixedLossScaleManager("a"), TypeError),
        (lambda: amp.DynamicLossScaleManager(0.5), ValueError),
        (lambda: amp.DynamicLossScaleManager(2, 2, 0), ValueError),
        (lambda: amp.DynamicLossScaleManager(2, 2, 1.5), TypeError),
        (lambda: amp.LossScaler(), TypeError),
    ],
)
def test_wrong_arguments_are_refused(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
@pytest.mark.parametrize("manager", [None, "fixed", "dynamic"])
def test_model_trains_with_levels_and_managers(level, manager, capsys):
    managers = {
        "fixed": lambda: amp.FixedLossScaleManager(1024.0),
        "dynamic": lambda: amp.DynamicLossScaleManager(2**10),
    }
    options = {} if manager is None else {"loss_scale_manager": managers[manager]()}
    net = nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.5), {"mse"}, amp_level=level, **options)
    before = model.eval(Batches())["mse"]
    model.train(20, Batches(), callbacks=LossMonitor(9))
    assert "loss is" in capsys.readouterr().out
    assert model.eval(Batches())["mse"] < before / 20
    assert net.weight.dtype is ms.float32


def test_a_fixed_scale_that_leaves_no_step_out_is_undone_by_the_optimizer():
    def weights(scale):
        net = Line()
        optimizer = nn.Momentum(net.trainable_params(), 0.125, 0.5, loss_scale=scale)
        step = amp.build_train_network(
            net, optimizer, nn.MSELoss(), loss_scale_manager=amp.FixedLossScaleManager(scale, False)
        )
        x = ms.Tensor(np.ones((2, 2), np.float32))
        for _ in range(3):
            step(x, ms.Tensor(np.zeros((2, 1), np.float32)))
        return net.w.asnumpy()

    np.testing.assert_array_equal(weights(8.0), weights(1.0))


def test_managers_and_scalers_of_the_users_own():
    class Eight(amp.LossScaleManager):
        def get_loss_scale(self):
            return 8.0

        def update_loss_scale(self, overflow):
            self.seen = overflow

        def get_update_cell(self):
            return nn.FixedLossScaleUpdateCell(8.0)

    class Eighth(amp.LossScaler):
        def scale(self, inputs):
            return inputs * 8

        def unscale(self, inputs):
            return inputs / 8

        def adjust(self, grads_finite):
            return False

    net = Line()
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.125), nn.MSELoss(), loss_scale_manager=Eight())
    x = ms.Tensor(np.ones((2, 2), np.float32))
    loss, overflow, scale = step(x, ms.Tensor(np.zeros((2, 1), np.float32)))
    assert (float(loss), bool(overflow), float(scale)) == (4.0, False, 8.0)
    np.testing.assert_array_equal(net.w.asnumpy(), [[0.5], [0.5]])
    scaler = Eighth()
    assert float(scaler.unscale(scaler.scale(ms.Tensor(3.0)))) == 3.0 and scaler.adjust(True) is False

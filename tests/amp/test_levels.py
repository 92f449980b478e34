"""Mixed precision by level and by list: types, values beside MindSpore's own, and that training
converges in both modes.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import amp, nn, ops
from mycel._src.staging.compiled.explain import explain

MODES = (ms.PYNATIVE_MODE, ms.GRAPH_MODE)
CHECKED = dict.fromkeys(
    """amp.auto_mixed_precision amp.build_train_network amp.custom_mixed_precision
    amp.get_black_list amp.get_white_list""".split(),
    "MindSpore 2.10",
)
X = (np.cos(np.arange(6).reshape(2, 3)) * 1.3).astype(np.float32)

# What MindSpore 2.10 gives for `Net` on X, by level, in float16.
EXPECTED = {
    "O0": [[-1.2756156921386719, -0.30623120069503784], [-1.1083422899246216, -0.4531311094760895]],
    "O1": [[-1.275390625, -0.306396484375], [-1.1083984375, -0.453125]],
    "O2": [[-1.275390625, -0.30615234375], [-1.1083984375, -0.453125]],
    "O3": [[-1.275390625, -0.30615234375], [-1.1083984375, -0.453125]],
    "auto": [[-1.2758188247680664, -0.3061786890029907], [-1.1084604263305664, -0.4530292749404907]],
}
# Its losses over four steps of Momentum(0.05, 0.9) on the mean squared error.
LOSSES = {
    "O0": [3.5660898685455322, 3.061540126800537, 2.589423894882202, 2.1702094078063965],
    "O2": [3.5658986568450928, 3.062026262283325, 2.589928150177002, 2.1705079078674316],
    "O3": [3.5658986568450928, 3.061410903930664, 2.5896148681640625, 2.1702353954315186],
}


@pytest.fixture(params=MODES, ids=["pynative", "graph"], autouse=True)
def mode(request):
    """Both modes, and the one that was set before at the end."""
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


class Net(nn.Cell):
    """Two layers with a normalisation between, and parameters of sines."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Dense(3, 4), nn.LayerNorm((4,)), nn.Dense(4, 2)
        for k, p in enumerate(self.get_parameters()):
            p.set_data(ms.Tensor(np.sin(np.arange(p.size) * 0.7 + k).reshape(p.shape).astype(np.float32)))

    def construct(self, x):
        return self.last(ops.relu(self.norm(self.first(x))))


class Types(nn.Cell):
    """The types that arise inside."""

    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.full((3, 3), 1.0 + 2**-12, np.float32)), name="w")
        self.product = ops.MatMul()

    def construct(self, x, pair, index):
        return (
            x,
            pair[0],
            x * self.w,
            self.w + self.w,
            self.product(x, self.w),
            x @ self.w,
            index + index,
            self.w.astype(ms.float32),
        )


def types_of(net, dtype=np.float32):
    x = ms.Tensor(np.ones((3, 3), dtype))
    return [t.dtype for t in net(x, (x, 1), ms.Tensor([1, 2], ms.int32))]


@pytest.mark.parametrize("kind", [ms.float16, ms.bfloat16], ids=str)
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_to_float_casts_inputs_and_parameters(kind, given):
    assert types_of(Types().to_float(kind), given) == [kind] * 6 + [ms.int32, ms.float32]


def test_a_float32_cell_inside_a_float16_one():
    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Types()
            self.v = ms.Parameter(ms.Tensor(2.0), name="v")

        def construct(self, x):
            return (*self.inner(x, (x, 1), 3), x * self.v)

    net = Outer().to_float(ms.float16)
    net.inner.to_float(ms.float32)
    x = ms.Tensor(np.ones((3, 3), np.float32))
    found = [t.dtype for t in net(x) if isinstance(t, ms.Tensor)]
    assert found[:6] == [ms.float32] * 6 and found[-1] is ms.float16
    assert net.get_flags() == {"fp16": True, "fp32": False, "bf16": False}
    assert net.inner.get_flags() == {"fp16": False, "fp32": True, "bf16": False}


def test_to_float_computes_in_the_type():
    w = np.float32(1.0 + 2**-12)
    net = Types().to_float(ms.float16)
    x = ms.Tensor(np.full((3, 3), w))
    assert np.all(net(x, (x, 1), 3)[2].asnumpy() == np.float16(1.0))
    assert np.all(net.to_float(ms.float32)(x, (x, 1), 3)[2].asnumpy() == w * w)


def test_to_float_gradients_come_in_the_parameters_type():
    net = nn.Dense(3, 2).to_float(ms.bfloat16)
    loss, grads = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(ms.Tensor(X))
    assert loss.dtype is ms.bfloat16 and [g.dtype for g in grads] == [ms.float32] * 2
    rounded = ms.Tensor(X).astype(ms.bfloat16).astype(ms.float32).asnumpy().sum(0)
    np.testing.assert_allclose(grads[0].asnumpy(), np.stack([rounded, rounded]), rtol=2**-7)
    np.testing.assert_array_equal(grads[1].asnumpy(), [2, 2])


def test_to_float_refuses_other_types():
    for bad in (ms.float64, ms.int32, "float16"):
        with pytest.raises(ValueError, match="use float16, bfloat16 or float32"):
            nn.ReLU().to_float(bad)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
def test_levels_give_mindspores_values(level):
    net = amp.auto_mixed_precision(Net(), level)
    out = net(ms.Tensor(X))
    assert out.dtype is ms.float32 and all(p.dtype is ms.float32 for p in net.get_parameters())
    np.testing.assert_allclose(out.asnumpy(), EXPECTED[level], rtol=1e-6 if level == "O0" else 2e-3)


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_training_steps_give_mindspores_losses(level):
    net = Net()
    step = amp.build_train_network(
        net, nn.Momentum(net.trainable_params(), 0.05, 0.9), nn.MSELoss(), level=level, loss_scale_manager=None
    )
    label = ms.Tensor(np.float32([[1, -1], [0.5, 2]]))
    losses = [float(step(ms.Tensor(X), label)) for _ in range(4)]
    np.testing.assert_allclose(losses, LOSSES[level], rtol=1e-5 if level == "O0" else 3e-3)


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
@pytest.mark.parametrize("kind", [ms.float16, ms.bfloat16], ids=str)
def test_levels_differ_from_float32_by_rounding(level, kind):
    exact = Net()(ms.Tensor(X)).asnumpy()
    found = amp.auto_mixed_precision(Net(), level, kind)(ms.Tensor(X)).asnumpy()
    error = np.abs(found - exact).max() / np.abs(exact).max()
    assert 0 < error < (2e-3 if kind is ms.float16 else 2e-2)


def test_o2_keeps_normalisations_wide_and_o3_does_not():
    class Watch(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(3)

        def construct(self, x):
            return self.norm(x).dtype == x.dtype, self.norm(x * 300.0)

    x = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)
    for level in ("O2", "O3"):
        same, out = amp.auto_mixed_precision(Watch(), level)(ms.Tensor(x))
        assert same and out.dtype is ms.float32
        np.testing.assert_allclose(out.asnumpy(), x * 300, rtol=3e-3)


def test_white_lists_narrow_operations_only_where_listed():
    x = np.full((2, 2), 1 + 2**-12, np.float32)

    class Both(nn.Cell):
        def __init__(self):
            super().__init__()
            self.product, self.sum = ops.MatMul(), ops.Add()

        def construct(self, x):
            return self.product(x, x), self.sum(x, x), x @ x

    run = lambda listed: [t.asnumpy() for t in amp.custom_mixed_precision(Both(), white_list=listed)(ms.Tensor(x))]
    wide = [x @ x, x + x, x @ x]
    narrow = [np.full((2, 2), 2.0)] * 3
    for listed, chosen in (([], ()), ([ops.MatMul], (0, 2)), ([ops.Add], (1,)), ([ops.MatMul, ops.Add], (0, 1, 2))):
        for i, found in enumerate(run(listed)):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, narrow[i] if i in chosen else wide[i], rtol=1e-7)


def test_black_lists_keep_layers_wide():
    x = np.full((1, 4), 1 + 2**-12, np.float32)
    ones = lambda: nn.Dense(4, 1, weight_init="ones", bias_init="zeros")
    assert float(amp.custom_mixed_precision(ones(), black_list=[])(ms.Tensor(x))) == 4.0
    kept = amp.custom_mixed_precision(nn.SequentialCell(ones()), black_list=[nn.Dense])
    assert float(kept(ms.Tensor(x))) == 4.0  # rounded on the way in and out
    assert kept[0].get_flags()["fp32"] and kept.get_flags()["fp16"]


def test_lists_can_be_changed_without_changing_the_next():
    known = set(
        """BatchMatMul Conv1d Conv1dTranspose Conv2D Conv2DBackpropInput Conv2DTranspose Conv2d
        Conv2dTranspose Conv3D Conv3d Conv3dTranspose Dense GRUCell Ger LSTMCell MatMul PReLU
        RNNCell ReLU""".split()
    )
    assert known <= {c.__name__ for c in amp.get_white_list()} <= known | {"Conv3DTranspose"}
    assert nn.Dense in amp.get_white_list() and ops.MatMul in amp.get_white_list()
    assert amp.get_black_list() == [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm]
    amp.get_white_list().clear()
    assert amp.get_white_list()


def test_arguments_are_checked():
    net = nn.Dense(2, 2)
    for error, text, call in (
        (ValueError, "one of 'O0', 'O1', 'O2', 'O3', 'auto'", lambda: amp.auto_mixed_precision(net, "O4")),
        (ValueError, "float16 or bfloat16", lambda: amp.auto_mixed_precision(net, "O1", ms.float32)),
        (TypeError, "must be a Cell", lambda: amp.auto_mixed_precision(3, "O1")),
        (ValueError, "either", lambda: amp.custom_mixed_precision(net)),
        (ValueError, "either", lambda: amp.custom_mixed_precision(net, white_list=[], black_list=[])),
        (TypeError, "must be a list", lambda: amp.custom_mixed_precision(net, white_list=nn.Dense)),
        (TypeError, "must be classes", lambda: amp.custom_mixed_precision(net, white_list=[3])),
        (ValueError, "takes layers", lambda: amp.custom_mixed_precision(net, black_list=[ops.Add])),
        (ValueError, "unknown option", lambda: amp.build_train_network(net, nn.SGD(net.trainable_params()), foo=3)),
        (ValueError, "level must be", lambda: amp.build_train_network(net, nn.SGD(net.trainable_params()), level="O5")),
    ):
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
@pytest.mark.parametrize("kind", [ms.float16, ms.bfloat16], ids=str)
def test_training_converges(level, kind):
    ms.set_seed(3)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(32, 1, 6, 6)).astype(np.float32)
    labels = (images[:, 0, :3].mean((1, 2)) > images[:, 0, 3:].mean((1, 2))).astype(np.int32)
    net = nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 36, 16), nn.ReLU(), nn.Dense(16, 2)
    )
    amp.auto_mixed_precision(net, level, kind)
    update = nn.DynamicLossScaleUpdateCell(2**12, 2, 50)
    network = nn.WithLossCell(net, nn.CrossEntropyLoss())
    step = nn.TrainOneStepWithLossScaleCell(network, nn.Momentum(net.trainable_params(), 0.05, 0.9), update)
    step.set_train()
    losses = [float(step(ms.Tensor(images), ms.Tensor(labels))[0]) for _ in range(30)]
    assert losses[0] > 0.5 and losses[-1] < 0.05, losses


def test_a_training_step_in_mixed_precision_compiles_as_a_whole():
    net = amp.auto_mixed_precision(Net(), "O2")
    update = nn.DynamicLossScaleUpdateCell(2**12, 2, 50)
    network = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepWithLossScaleCell(network, nn.Adam(net.trainable_params()), update)
    assert not explain(step, ms.Tensor(X), ms.Tensor(np.ones((2, 2), np.float32))).breaks

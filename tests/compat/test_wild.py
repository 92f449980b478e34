"""What third-party programs for MindSpore import from inside it and subclass, and what they find
there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import compat, nn, ops
from mycel._src.foundation.errors import Unsupported

CHECKED = {"nn.DistributedGradReducer": "MindSpore"}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()
    ms.set_context(mode=ms.PYNATIVE_MODE)


def weights(*values: float) -> list[ms.Parameter]:
    return [ms.Parameter(ms.Tensor(np.array(values, np.float32)), name="w")]


def test_a_module_before_the_function_of_its_name() -> None:
    from mindspore.common import initializer as init

    assert init.initializer is ms.common.initializer.initializer and init.HeUniform is ms.common.initializer.HeUniform


def test_import_of_everything_brings_no_modules_of_other_packages() -> None:
    scope: dict[str, Any] = {"common": "mine"}
    exec("from mindspore.common import *", scope)
    assert scope["common"] == "mine" and scope["Tensor"] is ms.Tensor


def test_questions_about_parallel_training() -> None:
    import mindspore
    from mindspore.parallel import _utils as U
    from mindspore.train.model import ParallelMode

    assert (U._get_parallel_mode(), U._get_device_num(), U._get_global_rank()) == ("stand_alone", 1, 0)
    assert not U._get_gradients_mean() and not U._is_sharding_propagation() and not U._is_in_auto_parallel_mode()
    mindspore.set_auto_parallel_context(parallel_mode=ParallelMode.SEMI_AUTO_PARALLEL, gradients_mean=True)
    assert U._is_in_auto_parallel_mode() and U._get_gradients_mean() and not U._is_in_data_parallel_mode()
    mindspore.reset_auto_parallel_context()


def test_levels_of_mixed_precision() -> None:
    from mindspore.train.amp import _add_loss_network, _config_level, _do_keep_batchnorm_fp32

    assert (
        list(_config_level) == ["O0", "O1", "O2", "O3", "auto"] and _config_level["O2"]["cast_model_type"] is ms.float16
    )
    net = nn.SequentialCell(nn.Dense(2, 2), nn.BatchNorm1d(2)).to_float(ms.float16)
    _do_keep_batchnorm_fp32(net)
    # Its variance has no place in float16.
    np.testing.assert_allclose(
        net[1].set_train()(ms.Tensor([[300.0, 1.0], [-300.0, -1.0]]))[:, 0].asnumpy(), [1, -1], rtol=1e-2
    )
    net[1].set_train(False)
    loss = _add_loss_network(net, nn.MSELoss(), ms.float16)(ops.ones((3, 2)), ops.ones((3, 2)))
    assert loss.dtype is ms.float32 and np.isfinite(loss.asnumpy())


def test_values_of_summary_operations() -> None:
    from mindspore.train.summary.summary_record import _get_summary_tensor_data

    for k in (1.0, 2.0):
        ops.TensorSummary()("conv", ms.Tensor([k, 0.0]))
    ((name, value),) = _get_summary_tensor_data().items()
    assert name == "conv[:Tensor]" and value.asnumpy().tolist() == [2, 0] and _get_summary_tensor_data() == {}


def test_the_weights_of_a_recurrent_step() -> None:
    from mindspore.nn.layer.rnn_cells import RNNCellBase

    base = RNNCellBase(3, 4, True, num_chunks=2)
    assert (base.weight_ih.shape, base.weight_hh.shape, base.bias_hh.shape) == ((8, 3), (8, 4), (8,))
    assert RNNCellBase(3, 4, False, 1).bias_ih is None


def test_overflow_of_gradients_and_the_register_of_other_devices() -> None:
    from mindspore.nn.wrap.loss_scale import _grad_overflow
    from mindspore.ops.operations import NPUAllocFloatStatus

    assert [_grad_overflow(ms.Tensor([1.0, x])).asnumpy().tolist() for x in (2.0, np.inf, np.nan)] == [[0], [1], [1]]
    with pytest.raises(Unsupported, match="register of Ascend devices"):
        NPUAllocFloatStatus()()


def test_images_as_arrays() -> None:
    from mindspore.dataset.vision.py_transforms_util import hwc_to_chw, is_numpy

    assert is_numpy(np.ones(1)) and not is_numpy(1) and hwc_to_chw(np.ones((2, 3, 4))).shape == (4, 2, 3)
    with pytest.raises(TypeError, match="must be a NumPy array, not int"):
        hwc_to_chw(1)


class Steps(nn.Cell):
    """A step counter that starts anew, as third-party gradient accumulation writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = ms.Parameter(ms.Tensor(3, ms.int32), name="count")

    def construct(self, x: Any) -> Any:
        self.count += 1
        if self.count >= 5:
            self.count = 0
        return x + self.count


def test_a_number_in_place_of_a_parameter_in_graph_mode() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Steps()
    # As MindSpore 2.10 in its graph mode.
    assert [float(net(ms.Tensor(1.0))) for _ in range(4)] == [5, 1, 2, 3]


class Pooled(nn.Cell):
    """A layer that is made where it is called."""

    def __init__(self, keep_dims: bool = False) -> None:
        super().__init__()
        self.keep_dims = keep_dims

    def construct(self, x: Any) -> Any:
        return ops.mean(x, axis=(1,), keep_dims=self.keep_dims)


class Pools(nn.Cell):
    def construct(self, x: Any) -> Any:
        return Pooled()(x)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_cell_made_inside_construct(mode: int) -> None:
    ms.set_context(mode=mode)
    assert Pools()(ms.Tensor([[1.0, 3.0]])).asnumpy().tolist() == [2]


class Mine(nn.Optimizer):
    """An optimizer of a program, in the form of MindSpore's own: a MultitypeFuncGraph over
    parameters, and a rate that it counts itself.
    """

    update = ops.MultitypeFuncGraph("update")

    def __init__(self, params: Any, learning_rate: Any = 0.1, weight_decay: float = 0.0) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.moments = self._parameters.clone(prefix="moment", init="zeros")

    def construct(self, gradients: Any) -> Any:
        gradients = self._grad_sparse_indices_deduplicate(self.flatten_gradients(gradients))
        lr = self.get_lr()
        if self._is_dynamic_lr_or_weight_decay():
            self.assignadd(self.global_step, self.global_step_increase_tensor)
        return self.map_(
            ops.partial(self.update, lr, self.weight_decay),
            self._parameters,
            self.moments,
            gradients,
            self.optim_filter,
        )

    @nn.Optimizer.target.setter
    def target(self, value: str) -> None:
        self._set_base_target(value)


@Mine.update.register("Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Bool")
def _update(lr: Any, decay: Any, p: Any, m: Any, g: Any, chosen: bool) -> Any:
    if chosen:
        ops.assign(m, m + g)
        ops.assign(p, p - lr * (m + decay * p))
    return p


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_an_optimizer_of_another_package(mode: int) -> None:
    ms.set_context(mode=mode)
    made = Mine(weights(1.0, -2.0), learning_rate=[0.1, 0.2, 0.3], weight_decay=0.5)
    p, m = np.array([1.0, -2.0]), np.zeros(2)
    for rate in (0.1, 0.2, 0.3):
        made((ms.Tensor([1.0, 2.0]),))
        m = m + [1, 2]
        p = p - rate * (m + 0.5 * p)
    np.testing.assert_allclose(made.parameters[0].asnumpy(), p, rtol=1e-6)
    assert int(made.global_step.asnumpy()[0]) == 3 and made.weight_decay.dtype is ms.float32
    made.target = "CPU"
    with pytest.raises(ValueError, match="target must be 'CPU'"):
        made.target = "Ascend"


def test_what_an_optimizer_was_given() -> None:
    w = weights(1.0)
    adam = nn.Adam(w, 0.2, beta1=0.8, weight_decay=0.1)
    assert adam.init_params == {"params": w} and adam.init_learning_rate == 0.2 and adam.unique
    assert adam.init_args["beta1"] == 0.8 and "params" not in adam.init_args and adam.optim_filter == (True,)
    again = type(adam)(weights(1.0), adam.init_learning_rate, **adam.init_args)
    for one in (adam, again):
        one((ms.Tensor([1.0]),))
    assert again.parameters[0].asnumpy() == adam.parameters[0].asnumpy()
    assert [float(d) for d in nn.SGD([{"params": w, "weight_decay": 0.5}], 0.1).weight_decay] == [0.5]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_training_step_of_another_package(mode: int) -> None:
    ms.set_context(mode=mode)

    class Step(nn.TrainOneStepWithLossScaleCell):
        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            status, scale = self.start_overflow_check(loss, self.scale_sense)
            grads = self.grad(self.network, self.weights)(*inputs, ops.ones_like(loss) * scale)
            grads = self.hyper_map(lambda g: g / scale, grads)
            if not self.get_overflow_status(status, grads):
                loss = ops.depend(loss, self.optimizer(self.grad_reducer(grads)))
            return loss

    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1), ms.Tensor(8.0))
    assert float(step(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[1.0]]))) == 4.0
    np.testing.assert_allclose(net.weight.asnumpy(), [[0.6, 0.2]], rtol=1e-6)


def test_gradients_of_a_group_of_one() -> None:
    g = ms.Tensor([2.0, 4.0])
    # As MindSpore 2.10 in one process.
    assert nn.DistributedGradReducer(weights(1.0))((g,))[0].asnumpy().tolist() == [2, 4]
    assert nn.DistributedGradReducer(weights(1.0), mean=True, degree=4)((g,))[0].asnumpy().tolist() == [0.5, 1]
    with pytest.raises(ValueError, match="degree must be at least 1"):
        nn.DistributedGradReducer(weights(1.0), degree=0)


def test_the_extreme_by_keepdims_is_one_tensor() -> None:
    x = ms.Tensor([[1.0, 5.0], [3.0, 2.0]])
    assert x.max(1, keepdims=True).asnumpy().tolist() == [[5], [3]] and x.min(0, keepdims=False).asnumpy().tolist() == [
        1,
        2,
    ]
    assert [t.asnumpy().tolist() for t in x.max(1)] == [[5, 3], [1, 0]]


def test_an_initializer_that_is_made_with_a_tensor_and_not_used() -> None:
    ms.common.initializer.HeNormal(ms.Tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="nonlinearity must be one of"):
        ms.common.initializer.HeNormal(nonlinearity="none")


def test_functions_with_derivatives_of_their_own_and_blocks_without() -> None:
    import mindspore
    from mindspore.common.api import _no_grad, _pynative_executor

    class Tripled(mindspore._Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * ctx.saved_tensors[0]

    def without(x: Any) -> Any:
        with _no_grad():
            y = x * 3
        return y + x

    def stretch(x: Any) -> Any:
        _pynative_executor.set_enable_grad(False)
        y = x * 3
        assert not _pynative_executor.enable_grad()
        _pynative_executor.set_enable_grad(True)
        return y + x

    assert mindspore._no_grad is _no_grad and _pynative_executor.enable_grad()
    assert [float(mindspore.grad(f)(ms.Tensor(5.0))) for f in (Tripled.apply, without, stretch)] == [5, 1, 1]
    assert _pynative_executor.enable_grad()


def test_the_dataset_that_training_goes_on_with() -> None:
    from mindspore.dataset.engine import datasets

    import mycel.dataset as ds

    data = ds.NumpySlicesDataset([1, 2, 3, 4], ["x"], shuffle=False)
    datasets._set_training_dataset(data)
    assert datasets._get_training_dataset() is data
    datasets._reset_training_dataset(3, 4)
    assert [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [4]
    datasets._set_training_dataset(None)
    with pytest.raises(RuntimeError, match="no dataset was noted"):
        datasets._reset_training_dataset(3, 4)


def test_the_lists_that_keep_layers_wide() -> None:
    from mindspore.train.amp import _auto_black_list, _auto_mixed_precision_rewrite

    net = _auto_black_list(
        nn.SequentialCell(nn.Dense(2, 2), nn.SequentialCell(nn.LayerNorm((2,)))), [nn.LayerNorm], ms.float16
    )
    assert net(ops.ones((3, 2))).dtype is ms.float16 and net[0](ops.ones((3, 2))).dtype is ms.float16
    # What float16 cannot hold is normalized in float32.
    wide = net[1][0](ms.Tensor([[6e4, -6e4]]))
    assert wide.dtype is ms.float16 and wide.tolist() == [[1, -1]]
    # The network itself is not looked up.
    assert _auto_black_list(nn.LayerNorm((2,)), [nn.LayerNorm], ms.float16).get_mixed_precision_type().name == "FP16"

    net = _auto_mixed_precision_rewrite(nn.SequentialCell(nn.Dense(2, 2)), ms.float16, white_list=[nn.Dense])
    x = ops.ones((1, 2)) + 2.0**-12
    assert net(x).dtype is ms.float32 and net(x).tolist() == net(ops.ones((1, 2))).tolist()
    with pytest.raises(ValueError, match="give either white_list or black_list"):
        _auto_mixed_precision_rewrite(net, ms.float16)


def test_functions_whose_graphs_are_not_shared() -> None:
    from mindspore.common.api import _function_forbid_reuse

    def double(x: Any) -> Any:
        return x * 2

    assert _function_forbid_reuse(double) is double
    with pytest.raises(TypeError, match="decorates functions, not 'double'"):
        _function_forbid_reuse("double")


def test_functional_of_mint() -> None:
    import mindspore

    assert mindspore.mint.functional.relu is ms.mint.nn.functional.relu


def test_the_installed_release() -> None:
    from importlib import metadata

    assert metadata.version("mindspore") == "2.10.0"
    found = metadata.distribution("mindspore")
    assert found.metadata["Name"] == "mindspore" and found.files is None
    assert [d.metadata["Name"] for d in metadata.distributions()].count("mindspore") == 1
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("mindspore-that-is-not-there")


def test_messages_of_protobuf_are_pythons() -> None:
    assert os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"]

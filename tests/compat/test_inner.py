"""What MindSpore's inner modules give for one process, and what is only there to be asked about."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import compat
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import ignored_settings
from mycel.compat.messages import DecodeError, module_of


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()
    ms.reset_auto_parallel_context()


def test_collectives_that_return_their_results() -> None:
    from mindspore.communication import comm_func as C

    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    for found, handle in (
        C.all_reduce(x),
        C.all_gather_into_tensor(x),
        C.reduce_scatter_tensor(x),
        C.all_to_all_single_with_output_shape((2, 2), x),
    ):
        assert found is not x and found.tolist() == x.tolist() and handle is None
    for found in (C.reduce(x, 0), C.broadcast(x), C.gather_into_tensor(x), C.scatter_tensor(x)):
        assert found is not x and found.tolist() == x.tolist()
    assert C.all_reduce(x, async_op=True)[1].wait() is None and C.barrier() is None
    (part,), _ = C.all_to_all_with_output_shape([(2, 2)], [x])
    assert part.tolist() == x.tolist()
    with pytest.raises(ValueError, match=r"shape \(2, 2\) arrived where \(3, 2\)"):
        C.all_to_all_single_with_output_shape((3, 2), x)
    with pytest.raises(ValueError, match="there is no group 'none'"):
        C.all_reduce(x, group="none")
    assert (C.get_cache_group_rank(), C.get_cache_group_size()) == (0, 1)


REFUSED = {
    "mindspore._c_expression.swap_cache": "copies blocks of a cache",
    "mindspore._c_expression.init_exec_dataset": "iterate over the dataset",
    "mindspore.common.jit_begin_end._jit_begin": "mindspore.jit",
    "mindspore.sdc_detect_start": "check_nan=True",
    "mindspore.TrainFaultTolerance": "ModelCheckpoint",
    "mindspore.train.callback.TrainFaultTolerance.get_optimizer_wrapper": "ModelCheckpoint",
    "mindspore.utils._tft_handler.init": "ModelCheckpoint",
    "mindspore.utils.stress_detect": "check_nan=True",
    "mindspore.export_split_mindir": "mindspore.export",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_tied_to_other_devices_says_what_to_use(name: str) -> None:
    from tests.compat.interface.tables import module_of as find

    parts = name.split(".")
    thing: Any = find(parts[0])
    for i, part in enumerate(parts[1:], 2):
        thing = getattr(thing, part, None) or find(".".join(parts[:i]))
    with pytest.raises(Unsupported, match=REFUSED[name]):
        thing()


def test_classes_that_are_not_served_can_be_subclassed() -> None:
    from mindspore.train.callback import TrainFaultTolerance

    class Mine(TrainFaultTolerance):
        pass

    assert issubclass(Mine, ms.train.Callback)


def test_settings_without_effect_say_so_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    from mindspore.device_context.ascend import op_precision

    monkeypatch.setattr(ignored_settings, "_said", set())
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level("INFO", logger.name):
        for _ in range(2):
            op_precision.matmul_allow_hf32(True)
            ms.set_auto_parallel_context(gradients_mean=True)
            ms.set_algo_parameters(fully_use_devices=True)
    said = list(dict.fromkeys(record.getMessage() for record in caplog.records))
    assert said == [
        "matmul_allow_hf32(True) has no effect: there is no Ascend device",
        "set_auto_parallel_context(gradients_mean=...) has no effect: work runs on one device",
        "set_algo_parameters(fully_use_devices=...) has no effect: there is one device to search strategies for",
    ]
    with pytest.raises(TypeError, match="value must be of type bool"):
        op_precision.matmul_allow_hf32(1)
    with pytest.raises(ValueError, match="mode must be one of 'force_fp16'"):
        op_precision.precision_mode("none")
    ms.set_algo_parameters(fully_use_devices=False)


def test_offload_settings() -> None:
    import mindspore

    mindspore.set_offload_context({"hbm_ratio": 0.5, "offload_param": "cpu"})
    assert mindspore.get_offload_context()["hbm_ratio"] == 0.5
    with pytest.raises(TypeError, match="hbm_ratio must be"):
        mindspore.set_offload_context({"hbm_ratio": "a"})
    with pytest.raises(ValueError, match="there is no setting 'none'"):
        mindspore.set_offload_context({"none": 1})


def test_published_images_as_arrays(tmp_path: Path) -> None:
    from mindspore.mindrecord.tools.cifar10 import Cifar10
    from mindspore.mindrecord.tools.cifar100 import Cifar100

    pixels = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072)
    for name in ("data_batch_1", "test_batch"):
        (tmp_path / name).write_bytes(pickle.dumps({b"data": pixels, b"labels": [1, 9]}, protocol=2))
    for name in ("train", "test"):
        content = {b"data": pixels, b"fine_labels": [1, 99], b"coarse_labels": [0, 19]}
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
    ten = Cifar10(str(tmp_path), one_hot=False)
    (tmp_path / "test").rename(tmp_path / "other")
    ten.load_data()
    # As MindSpore gives them.
    assert ten.images.shape == (2, 32, 32, 3) and ten.images.dtype == np.float64
    assert ten.Test.images.dtype == np.uint8 and ten.labels.tolist() == [[1], [9]]
    (tmp_path / "other").rename(tmp_path / "test")
    (tmp_path / "test_batch").unlink()
    hundred = Cifar100(str(tmp_path))
    hundred.load_data()
    assert hundred.images.dtype == np.uint8 and hundred.fine_labels.shape == (2, 100)
    assert hundred.coarse_labels.argmax(1).tolist() == [0, 19]


def test_damaged_messages() -> None:
    checkpoint = module_of("checkpoint_pb2")["Checkpoint"]
    for raw in (b"\xff\xff", b"\x0a\x7f", b"\x08\x01"):
        with pytest.raises(DecodeError):
            checkpoint.FromString(raw)
    with pytest.raises(ValueError, match="lacks fields"):
        value = checkpoint()
        value.value.add()
        value.SerializeToString()
    lineage = module_of("lineage_pb2")
    assert "LineageEvent" in lineage and module_of("summary_pb2")["Event"]().summary.value == []


def test_flops_of_a_phase() -> None:
    from mindspore.common.api import _cell_graph_executor, flops_collection

    net = ms.nn.Dense(4, 3)
    phase, _ = _cell_graph_executor.compile(net, ms.ops.ones((2, 4)))
    # As MindSpore 2.10.
    assert flops_collection(phase) == (48.0, 48.0, 48.0, 48.0, False)


def test_single_steps_of_recurrent_networks() -> None:
    from mindspore.nn.layer import rnn_cells

    random = np.random.default_rng(0)
    x, h, c = (random.normal(size=(2, n)).astype(np.float32) for n in (3, 4, 4))

    def weights(rows: int) -> list[np.ndarray]:
        shapes = ((rows, 3), (rows, 4), (rows,), (rows,))
        return [random.normal(size=shape).astype(np.float32) for shape in shapes]

    def sigmoid(a: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-a)))

    def products(w: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return x @ w[0].T + w[2], h @ w[1].T + w[3]

    def tensors(*arrays: np.ndarray) -> list[ms.Tensor]:
        return [ms.Tensor(a) for a in arrays]

    w = weights(4)
    p, q = products(w)
    state = ms.Tensor(h)
    found = rnn_cells._rnn_tanh_cell(ms.Tensor(x), state, *tensors(*w))
    np.testing.assert_allclose(found.asnumpy(), np.tanh(p + q), rtol=1e-5)
    found = rnn_cells._rnn_relu_cell(ms.Tensor(x), state, *tensors(*w))
    np.testing.assert_allclose(found.asnumpy(), np.maximum(p + q, 0), rtol=1e-5, atol=1e-6)
    found = rnn_cells._rnn_tanh_cell(ms.Tensor(x), state, *tensors(*w[:2]), None, None)
    np.testing.assert_allclose(found.asnumpy(), np.tanh(x @ w[0].T + h @ w[1].T), rtol=1e-5)
    w = weights(12)
    (a, b, n), (d, e, m) = (np.split(v, 3, 1) for v in products(w))
    new = np.tanh(n + sigmoid(a + d) * m)
    found = rnn_cells._gru_cell(ms.Tensor(x), state, *tensors(*w))
    np.testing.assert_allclose(found.asnumpy(), new + sigmoid(b + e) * (h - new), rtol=1e-4, atol=1e-6)
    w = weights(16)
    i, f, g, o = np.split(sum(products(w)), 4, 1)
    memory = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    both = rnn_cells._lstm_cell(ms.Tensor(x), (state, ms.Tensor(c)), *tensors(*w))
    np.testing.assert_allclose(both[0].asnumpy(), sigmoid(o) * np.tanh(memory), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(both[1].asnumpy(), memory, rtol=1e-4, atol=1e-6)


def test_names_of_layouts_and_of_older_releases() -> None:
    import mindspore
    from mindspore._c_expression import Tensor as Inner
    from mindspore.common.parameter import PARAMETER_NAME_DEFAULT
    from mindspore.dataset.transforms.py_transforms import PyTensorOperation
    from mindspore.parallel.shard import Layout, shard

    assert Layout is mindspore.Layout and mindspore.parallel.shard is shard is mindspore.shard
    assert Inner is ms.Tensor and PARAMETER_NAME_DEFAULT == "Parameter"

    class Twice(PyTensorOperation):
        def execute_py(self, img: int) -> int:
            return 2 * img

    assert Twice()(3) == 6


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_functions_with_derivatives_of_their_own(mode: int) -> None:
    from mindspore.ops.function.grad.grad_func import custom_vjp

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        f = custom_vjp(lambda x, y: x * y)
        with pytest.raises(RuntimeError, match="defbwd"):
            ms.grad(f)(ms.Tensor(3.0), ms.Tensor(2.0))
        g = custom_vjp()(lambda x, y: x * y)
        g.defbwd(lambda x, y, out, dout: (dout * 10, dout * out))
        assert float(g(ms.Tensor(3.0), ms.Tensor(2.0))) == 6.0
        assert [float(v) for v in ms.grad(g, (0, 1))(ms.Tensor(3.0), ms.Tensor(2.0))] == [10.0, 6.0]
    finally:
        ms.set_context(mode=before)


def test_dicts_of_compiled_functions_know_has_key() -> None:
    @ms.jit
    def f(x: Any) -> Any:
        d: Any = {"a": x}
        return d.has_key("a"), d.has_key("b"), x

    assert f(ms.Tensor(1.0))[:2] == (True, False)

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
from mycel.base import notes
from mycel.base.errors import Unsupported
from mycel.base.log import logger
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

    monkeypatch.setattr(notes, "_said", set())
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

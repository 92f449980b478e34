"""`import mindspore` answered by mycel: paths, identity, what is missing, old spellings, and the
answers of one process.
"""

from __future__ import annotations

import importlib
import logging
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mycel
from mycel import compat
from mycel._src.foundation.log import logger


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    """Mycel answers for mindspore during a test."""
    compat.install()
    yield
    compat.uninstall()


# Paths


PATHS = {
    "mindspore": (
        "Tensor Parameter nn ops grad value_and_grad float32 set_context Model load_checkpoint ParallelMode "
        "context dtype"
    ),
    "mindspore.context": "set_context get_context GRAPH_MODE PYNATIVE_MODE ParallelMode set_auto_parallel_context",
    "mindspore.common": "Tensor Parameter ParameterTuple dtype set_seed initializer",
    "mindspore.common.api": "grad",
    "mindspore.common.dtype": "int32 float16",
    "mindspore.common.initializer": "initializer TruncatedNormal Normal",
    "mindspore.common.parameter": "Parameter ParameterTuple Tensor",
    "mindspore.common.seed": "set_seed get_seed",
    "mindspore.common.tensor": "Tensor",
    "mindspore.communication": "init get_rank get_group_size",
    "mindspore.communication.management": "init get_rank get_group_size",
    "mindspore.dataset": "MnistDataset GeneratorDataset vision transforms config",
    "mindspore.dataset.engine": "MnistDataset",
    "mindspore.dataset.engine.datasets": "MnistDataset",
    "mindspore.dataset.transforms": "TypeCast Compose",
    "mindspore.dataset.transforms.c_transforms": "TypeCast OneHot Compose",
    "mindspore.dataset.transforms.py_transforms": "Compose OneHotOp",
    "mindspore.dataset.transforms.vision": "Inter",
    "mindspore.dataset.transforms.vision.c_transforms": "RandomHorizontalFlip Resize Rescale HWC2CHW",
    "mindspore.dataset.transforms.vision.py_transforms": "ToTensor",
    "mindspore.dataset.vision": "Inter Resize",
    "mindspore.dataset.vision.c_transforms": "RandomHorizontalFlip Resize Rescale HWC2CHW",
    "mindspore.dataset.vision.py_transforms": "ToTensor Normalize Cutout",
    "mindspore.nn": "Cell Dense Conv2d Accuracy TopKCategoricalAccuracy Momentum WithLossCell",
    "mindspore.nn.layer.basic": "Dense Flatten",
    "mindspore.nn.loss": "SoftmaxCrossEntropyWithLogits",
    "mindspore.nn.metrics": "Accuracy TopK TopKCategoricalAccuracy",
    "mindspore.nn.optim": "Momentum Adam SGD",
    "mindspore.nn.wrap.cell_wrapper": "WithLossCell TrainOneStepCell",
    "mindspore.ops": "matmul relu MatMul",
    "mindspore.ops.composite": "matmul",
    "mindspore.ops.functional": "matmul reshape grad",
    "mindspore.ops.operations": "MatMul Transpose ReduceMean",
    "mindspore.parallel": "set_algo_parameters",
    "mindspore.parallel._auto_parallel_context": "set_auto_parallel_context",
    "mindspore.train": "Model LossMonitor",
    "mindspore.train.callback": "LossMonitor ModelCheckpoint CheckpointConfig TimeMonitor",
    "mindspore.train.model": "Model",
    "mindspore.train.serialization": "load_checkpoint save_checkpoint load_param_into_net",
}


@pytest.mark.parametrize("path", PATHS)
def test_paths_and_their_names(path: str) -> None:
    module = importlib.import_module(path)
    assert module.__name__ == path
    assert type(module) is types.ModuleType
    for name in PATHS[path].split():
        assert getattr(module, name) is not None
        namespace: dict[str, object] = {}
        exec(f"from {path} import {name}", namespace)
        assert namespace[name] is getattr(module, name)


def test_the_usual_ways_to_import() -> None:
    namespace: dict[str, object] = {}
    exec(
        "import mindspore as ms\nimport mindspore.nn\nimport mindspore.dataset.vision.c_transforms as C\n"
        "from mindspore import nn, ops, Tensor, context\nfrom mindspore import dtype as mstype\n"
        "from mindspore.ops import operations as P, functional as F, composite\n"
        "from mindspore.common import dtype as also\nimport mindspore.common.dtype as again\n"
        "same = nn is ms.nn is mindspore.nn and also is again and mstype.int32 is also.int32 is ms.int32\n"
        "shared = Tensor is ms.Tensor and F.matmul is ops.matmul and ms.ops.operations is P and ms.context is context",
        namespace,
    )
    assert namespace["same"] is True and namespace["shared"] is True


def test_one_module_for_a_path_and_one_object_for_a_name() -> None:
    import mindspore
    import mindspore.nn as first

    assert importlib.import_module("mindspore.nn") is first is mindspore.nn is sys.modules["mindspore.nn"]
    assert mindspore.Tensor is mycel.Tensor and first.Cell is mycel.nn.Cell
    assert first.Dense is mycel.nn.Dense
    assert isinstance(mindspore.Tensor([1.0]), mycel.Tensor)

    class Net(first.Cell):
        pass

    assert isinstance(Net(), mycel.nn.Cell)


def test_everything_at_once() -> None:
    namespace: dict[str, object] = {}
    exec("from mindspore.nn import *\nfrom mindspore.common.initializer import *", namespace)
    assert namespace["Dense"] is mycel.nn.Dense
    assert "TruncatedNormal" in namespace


def test_names_that_mycel_gets_later_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore.ops

    with pytest.raises(AttributeError):
        mindspore.ops.brand_new
    monkeypatch.setattr(mycel.ops, "brand_new", len, raising=False)
    assert mindspore.ops.brand_new is len


def test_the_release_that_is_followed() -> None:
    import mindspore

    assert mindspore.__version__ == compat.API_VERSION
    assert int(mindspore.__version__.split(".")[0]) >= 2


def test_pickles_are_those_of_mycel() -> None:
    import mindspore
    from mindspore import nn
    from mindspore.dataset.vision import c_transforms, py_transforms

    tensor, _ = pickle.loads(pickle.dumps((mindspore.Tensor([1.0, 2.0]), mindspore.float32)))
    np.testing.assert_array_equal(tensor.asnumpy(), [1.0, 2.0])
    net = nn.Dense(2, 3)
    raw = pickle.dumps((net, nn.ReLU, c_transforms.Resize((4, 4)), py_transforms.Normalize([0.5], [0.5])))
    assert b"mindspore" not in raw
    compat.uninstall()
    copy, relu, resize, normalize = pickle.loads(raw)
    np.testing.assert_array_equal(copy.weight.asnumpy(), net.weight.asnumpy())
    assert relu is mycel.nn.ReLU
    assert type(resize) is mycel.dataset.vision.Resize and normalize.is_hwc is False


# Installing


def test_without_install_there_is_nothing() -> None:
    before = dict(vars(mycel.nn))
    importlib.import_module("mindspore.nn.metrics")
    compat.uninstall()
    compat.uninstall()
    assert not compat.is_installed()
    assert not [name for name in sys.modules if name.split(".")[0] == "mindspore"]
    assert dict(vars(mycel.nn)) == before
    assert not hasattr(mycel.nn, "metrics")


def test_installing_twice_is_installing_once() -> None:
    import mindspore

    compat.install()
    assert sys.meta_path.count(compat._finder) == 1
    assert sys.modules["mindspore"] is mindspore


def test_an_installed_mindspore_steps_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compat.uninstall()
    (tmp_path / "mindspore").mkdir()
    (tmp_path / "mindspore" / "__init__.py").write_text("real = True\n")
    (tmp_path / "mindspore" / "nn.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    real = importlib.import_module("mindspore")
    importlib.import_module("mindspore.nn")
    assert real.real is True
    monkeypatch.setattr(logger, "propagate", True)
    with caplog.at_level(logging.DEBUG, logger.name):
        compat.install()
    record = caplog.records[0]
    assert record.levelname == "DEBUG"
    assert (
        "takes precedence over the MindSpore installed" in record.getMessage() and str(tmp_path) in record.getMessage()
    )
    assert importlib.import_module("mindspore").Tensor is mycel.Tensor
    compat.uninstall()
    assert importlib.import_module("mindspore") is real
    for name in ("mindspore", "mindspore.nn"):
        del sys.modules[name]


# What is missing


@pytest.mark.parametrize(
    "line, message",
    [
        ("from mindspore.nn import Dence", r"mindspore\.nn has no 'Dence' in Mycel; close names: mindspore\.nn\.Dense"),
        (
            "from mindspore.nn import matmul",
            r"mindspore\.nn has no 'matmul' in Mycel; close names: mindspore\.ops\.matmul",
        ),
        (
            "from mindspore.ops import Conv2dd",
            r"mindspore\.ops has no 'Conv2dd' in Mycel; close names: .*mindspore\.(nn|ops)\.Conv2",
        ),
        ("from mindspore.common.dtype import flot32", r"no 'flot32' in Mycel; close names: mindspore\.float32"),
        ("from mindspore import LossMoniter", r"close names: mindspore\.LossMonitor|mindspore\.train\.LossMonitor"),
        (
            "import mindspore.dataset.visoin",
            r"mindspore\.dataset has no 'visoin' in Mycel; close names: mindspore\.dataset\.vision",
        ),
        ("import mindspore.qqqq", r"mindspore has no 'qqqq' in Mycel, nor any name close to it"),
        ("import mindspore.lite", r"Mycel does not have mindspore\.lite; models run on devices through mycel itself"),
        ("from mindspore import lite", r"Mycel does not have mindspore\.lite"),
        ("from mindspore.lite import Context", r"Mycel does not have mindspore\.lite"),
        ("from mindspore.compression.quant import x", r"Mycel does not have mindspore\.compression; networks are"),
    ],
)
def test_imports_of_what_is_missing(line: str, message: str) -> None:
    with pytest.raises(ImportError, match=message):
        exec(line, {})


def test_attributes_that_are_missing() -> None:
    import mindspore as ms

    assert not hasattr(ms, "no_such_name")
    assert getattr(ms.nn, "no_such_name", 7) == 7
    with pytest.raises(
        AttributeError, match=r"mindspore\.nn has no 'Dence' in Mycel; close names: mindspore\.nn\.Dense"
    ):
        ms.nn.Dence


# Old spellings


def test_old_transforms() -> None:
    import mindspore.dataset.transforms.c_transforms as C2
    import mindspore.dataset.transforms.py_transforms as P2
    import mindspore.dataset.vision.c_transforms as C
    import mindspore.dataset.vision.py_transforms as P

    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    np.testing.assert_array_equal(C.RandomHorizontalFlip(1.0)(image), image[:, ::-1])
    np.testing.assert_array_equal(C.HWC2CHW()(image), image.transpose(2, 0, 1))
    np.testing.assert_allclose(C.Rescale(1 / 255, 0.0)(image), image / 255, rtol=1e-6)
    assert C2.TypeCast(mycel.int32)(np.uint8(3)).dtype == np.int32
    np.testing.assert_array_equal(P2.OneHotOp(3)(1), [0, 1, 0])
    chw = P.ToTensor()(image)
    normalized = P.Normalize([0.1, 0.2, 0.3], [0.5, 0.5, 0.5])(chw)
    expected = (image.transpose(2, 0, 1) / 255 - np.array([0.1, 0.2, 0.3])[:, None, None]) / 0.5
    np.testing.assert_allclose(normalized, expected, rtol=1e-5, atol=1e-6)
    cut = P.Cutout(2)(np.ones((3, 8, 8), np.float32))
    assert cut.shape == (3, 8, 8) and 1 <= (cut[0] == 0).sum() <= 4


def test_old_metrics() -> None:
    from mindspore import Tensor
    from mindspore.nn.metrics import TopK

    metric = TopK(2)
    metric.update(Tensor([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]), Tensor([2, 0]))
    assert metric.eval() == 0.5


def test_operations_as_objects() -> None:
    from mindspore import Tensor, ops
    from mindspore.ops import composite as C
    from mindspore.ops import operations as P

    assert P.MatMul is ops.MatMul is mycel.ops.MatMul
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(P.MatMul(transpose_b=True)(Tensor(x), Tensor(x)).asnumpy(), x @ x.T)
    np.testing.assert_array_equal(P.Transpose()(Tensor(x), (1, 0)).asnumpy(), x.T)
    np.testing.assert_allclose(P.ReduceMean(keep_dims=True)(Tensor(x), 1).asnumpy(), x.mean(1, keepdims=True))
    gradient = C.GradOperation(get_all=True)(lambda a, b: ops.reduce_sum(a * b))(Tensor(x), Tensor(x + 1))
    np.testing.assert_array_equal(gradient[0].asnumpy(), x + 1)
    np.testing.assert_array_equal(gradient[1].asnumpy(), x)


# One process, one device


def test_a_process_alone() -> None:
    from mindspore import communication as c
    from mindspore.communication.management import get_group_size, get_rank, init

    init()
    assert c.GlobalComm.INITED is True
    assert (get_rank(), get_group_size(), c.get_local_rank(), c.get_local_rank_size()) == (0, 1, 0, 1)
    c.create_group("mine", [0])
    assert c.get_rank("mine") == 0 and c.get_process_group_ranks("mine") == [0]
    assert c.get_world_rank_from_group_rank("mine", 0) == c.get_group_rank_from_world_rank(0, "mine") == 0
    assert c.get_comm_name("mine") == "mine"
    with pytest.raises(ValueError, match="there is a group 'mine' already"):
        c.create_group("mine", [0])
    with pytest.raises(ValueError, match=r"rank_ids \[0, 1\] is not possible: this process is alone"):
        c.create_group("two", [0, 1])
    with pytest.raises(ValueError, match="there is no rank 1"):
        c.get_world_rank_from_group_rank("mine", 1)
    with pytest.raises(TypeError, match="get_rank: group must be a string or None, not int"):
        c.get_rank(3)
    c.destroy_group("mine")
    with pytest.raises(ValueError, match="no group 'mine'"):
        c.destroy_group("mine")
    with pytest.raises(ValueError, match="backend_name must be 'hccl', 'nccl' or 'mccl', not 'gloo'"):
        init("gloo")
    c.release()
    assert c.GlobalComm.INITED is False


def test_parallel_settings_are_remembered(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from mindspore import ParallelMode, context

    monkeypatch.setattr(logger, "propagate", True)
    context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=1)
    assert "work runs on one device" in caplog.text
    assert context.get_auto_parallel_context("parallel_mode") == "data_parallel"
    assert context.get_auto_parallel_context("gradients_mean") is True
    assert context.get_auto_parallel_context("pipeline_scheduler") == "1f1b"
    context.reset_auto_parallel_context()
    assert context.get_auto_parallel_context("gradients_mean") is False
    context.set_algo_parameters(fully_use_devices=True)
    assert context.get_algo_parameters("fully_use_devices") is True
    context.reset_algo_parameters()
    assert context.get_algo_parameters("fully_use_devices") is False


@pytest.mark.parametrize(
    "setting, error, message",
    [
        ({"parallel_mode": "both"}, ValueError, "parallel_mode must be one of 'stand_alone', .* not 'both'"),
        ({"gradient_mean": True}, ValueError, "there is no setting 'gradient_mean'; did you mean 'gradients_mean'"),
        ({"device_num": 0}, ValueError, "device_num must be at least 1, not 0"),
        ({"global_rank": 4096}, ValueError, r"global_rank must be in \[0, 4095\], not 4096"),
        ({"pipeline_stages": 0}, ValueError, "pipeline_stages must be at least 1, not 0"),
        ({"grad_accumulation_step": 0}, ValueError, "grad_accumulation_step must be at least 1, not 0"),
        ({"full_batch": 1}, TypeError, "full_batch must be of type bool, not 1 of type int"),
        ({"pipeline_stages": True}, TypeError, "pipeline_stages must be of type int"),
    ],
)
def test_parallel_settings_that_cannot_be(setting: dict[str, object], error: type[Exception], message: str) -> None:
    from mindspore import context

    with pytest.raises(error, match=message):
        context.set_auto_parallel_context(gradients_mean=True, **setting)
    assert context.get_auto_parallel_context("gradients_mean") is False
    with pytest.raises(ValueError, match="there is no setting 'parallel_mod'"):
        context.get_auto_parallel_context("parallel_mod")


# mycel run


def mycel_run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mycel", "run", str(script), *arguments], capture_output=True, text=True
    )


def test_run_a_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\nimport mindspore as ms\nfrom mindspore import nn, ops, Tensor, context\nfrom mindspore.common "
        "import dtype as mstype\n"
        "context.set_context(mode=context.PYNATIVE_MODE)\n"
        "print(sys.argv[1:], __name__, ops.matmul(Tensor([[1, 2]], mstype.float32), Tensor([[3.0], [4.0]])).tolist())\n"
    )
    done = mycel_run(script, "--lr", "0.1", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "['--lr', '0.1', '--help'] __main__ [[11.0]]\n"


@pytest.mark.parametrize(
    "ending, status", [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('wrong')", 1), ("pass", 0)]
)
def test_run_gives_the_exit_status(tmp_path: Path, ending: str, status: int) -> None:
    script = tmp_path / "ends.py"
    script.write_text(f"import sys\nimport mindspore\n{ending}\n")
    assert mycel_run(script).returncode == status


def test_run_shows_the_line_that_failed(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text(
        "from mindspore import nn, Tensor\n\n\ndef go():\n    return nn.Dense(2, 3)(Tensor([1.0]))\n\n\ngo()\n"
    )
    done = mycel_run(script)
    assert done.returncode == 1 and done.stdout == ""
    assert f'File "{script}", line 5, in go' in done.stderr
    assert "return nn.Dense(2, 3)(Tensor([1.0]))" in done.stderr
    assert (
        done.stderr.rstrip()
        .splitlines()[-1]
        .startswith("ValueError: Dense: the last axis of the input must have 2 elements")
    )


def test_run_names_a_missing_import(tmp_path: Path) -> None:
    script = tmp_path / "old.py"
    script.write_text("from mindspore.nn import Dense, Convolution2d\n")
    done = mycel_run(script)
    assert done.returncode == 1
    assert f'File "{script}", line 1' in done.stderr
    assert "mindspore.nn has no 'Convolution2d' in Mycel" in done.stderr


def test_the_class_of_tensors_is_shown_by_its_path() -> None:
    compat.install()
    try:
        import mindspore

        assert str(type(mindspore.Tensor(1))) == "<class 'mindspore.common.tensor.Tensor'>"
        assert pickle.loads(pickle.dumps([mindspore.Tensor, mindspore.Tensor(2)]))[1].item() == 2
    finally:
        compat.uninstall()
    assert str(mycel.Tensor) == "<class 'mycel._src.tensors.core.tensor.Tensor'>"


def test_a_function_with_the_name_of_a_module_stays() -> None:
    namespace: dict[str, object] = {}
    exec(
        "import mindspore.scipy.optimize.linear_sum_assignment as assign\n"
        "from mindspore.scipy.optimize import minimize\n"
        "import mindspore.scipy.optimize.minimize",
        namespace,
    )
    import mindspore.scipy.optimize as view

    assert namespace["assign"] is mycel.scipy.optimize.linear_sum_assignment
    assert namespace["minimize"] is view.minimize is mycel.scipy.optimize.minimize

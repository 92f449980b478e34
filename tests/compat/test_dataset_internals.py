"""Names inside `mindspore.dataset` that programs import; MindSpore was asked what is expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import compat, nn
from mycel.compat.dataset_modules.dataset_internals import WaitedDSCallback


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def test_paths() -> None:
    import mindspore.dataset as D
    import mindspore.dataset.engine as engine
    from mindspore.dataset import context
    from mindspore.dataset.callback import DSCallback
    from mindspore.dataset.callback import WaitedDSCallback as Waited
    from mindspore.dataset.core.config import get_numa_enable
    from mindspore.dataset.core.py_util_helpers import is_numpy
    from mindspore.dataset.core.validator_helpers import INT32_MAX
    from mindspore.dataset.debug.debug_hook import DebugHook
    from mindspore.dataset.engine.cache_client import DatasetCache
    from mindspore.dataset.engine.datasets import BatchDataset, SourceDataset
    from mindspore.dataset.engine.datasets_user_defined import GeneratorDataset
    from mindspore.dataset.transforms.transforms import PyTensorOperation

    assert D.ds.GeneratorDataset is ds.GeneratorDataset is GeneratorDataset and context.GRAPH_MODE == 0
    assert issubclass(D.MnistDataset, SourceDataset) and list(D.Implementation) == [0, 1]
    assert engine.config.set_seed is ds.config.set_seed and not get_numa_enable() and is_numpy(np.ones(1))
    assert INT32_MAX == 2**31 - 1 and DebugHook is ds.debug.DebugHook and DatasetCache is ds.DatasetCache
    assert Waited is WaitedDSCallback and issubclass(Waited, DSCallback) and BatchDataset is ds.BatchDataset
    assert isinstance(D.vision.Invert(), PyTensorOperation)


VALUES: list[Any] = [0, 1, -1, 256, 2**31, 2**32, 2**63, 1.5, -0.5, "a", None, True, float("nan")]
# For each check: ok, ValueError or TypeError for each of the values.
ANSWERS = {
    "check_int32": "oooovvvtttttt",
    "check_int32_not_zero": "vooovvvtttttt",
    "check_uint8": "oovvvvvtttttt",
    "check_uint32": "oovoovvtttttt",
    "check_pos_uint32": "vovoovvtttttt",
    "check_pos_int32": "vovovvvtttttt",
    "check_non_negative_int32": "oovovvvtttttt",
    "check_uint64": "oovooootttttt",
    "check_pos_int64": "vovooovtttttt",
    "check_float32": "oooovvvoottto",
    "check_float32_not_zero": "vooovvvoottto",
    "check_pos_float32": "vovovvvovttto",
    "check_non_negative_float32": "oovovvvovttto",
    "check_float64": "oooooovoottto",
    "check_pos_float64": "vovooovovttto",
    "check_num_samples": "oovooovtttttt",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_checks_of_numbers(name: str) -> None:
    from mindspore.dataset.core import validator_helpers

    found = ""
    for value in VALUES:
        try:
            getattr(validator_helpers, name)(value, *([] if name == "check_num_samples" else ["x"]))
            found += "o"
        except (TypeError, ValueError) as error:
            found += "t" if isinstance(error, TypeError) else "v"
    assert found == ANSWERS[name]


def test_other_checks(tmp_path: Any) -> None:
    from mindspore.dataset.core import validator_helpers as V

    for call, error in (
        (lambda: V.check_value(6, [0, 5], "x"), ValueError),
        (lambda: V.check_value_cutoff(5, [0, 5]), ValueError),
        (lambda: V.check_value_ratio(0, [0, 5]), ValueError),
        (lambda: V.check_range((2, 1), [0, 5]), ValueError),
        (lambda: V.check_odd(2), ValueError),
        (lambda: V.check_2tuple([1, 2]), ValueError),
        (lambda: V.check_valid_str("c", ["a"]), ValueError),
        (lambda: V.check_columns(["a", "a"], "c"), ValueError),
        (lambda: V.check_columns([], "c"), ValueError),
        (lambda: V.check_columns(3, "c"), TypeError),
        (lambda: V.check_dir(str(tmp_path / "none")), ValueError),
        (lambda: V.check_file(str(tmp_path)), ValueError),
        (lambda: V.check_filename(3), TypeError),
        (lambda: V.check_list_same_size([1], [1, 2]), ValueError),
        (lambda: V.check_num_parallel_workers(0), ValueError),
        (lambda: V.check_dataset_num_shards_shard_id(2, 2), ValueError),
        (lambda: V.check_sampler_shuffle_shard_options({"num_shards": 2}), RuntimeError),
        (lambda: V.check_sampler_shuffle_shard_options({"sampler": 1, "shuffle": True}), RuntimeError),
        (lambda: V.check_dict({"a": "b"}, str, int, "p"), TypeError),
        (lambda: V.check_valid_detype("float"), TypeError),
        (lambda: V.check_tensor_op(1, "p"), TypeError),
        (lambda: V.type_check(True, (int,), "x"), TypeError),
        (lambda: V.type_check_list([1, "a"], (int,), "z"), TypeError),
        (lambda: V.validate_dataset_param_value(["b"], {"b": "x"}, int), TypeError),
    ):
        with pytest.raises(error):
            call()
    V.check_value(5, [0, 5])
    V.check_columns("a", "c")
    V.check_dir(str(tmp_path))
    V.check_dict({"a": 1}, str, int, "p")
    assert V.check_valid_detype("float32") and V.replace_none(None, 3) == 3 and V.pad_arg_name("x") == "x "

    def method(self: Any, a: int, b: int = 2, **kwargs: Any) -> None: ...

    assert V.parse_user_args(method, None, 1, c=3) == ([1, 2, 3], {"self": None, "a": 1, "b": 2, "c": 3})


def test_functions_on_pictures() -> None:
    Image = pytest.importorskip("PIL.Image")
    from mindspore.dataset.vision import Border, Inter
    from mindspore.dataset.vision import py_transforms_util as U

    picture = Image.fromarray((np.arange(6 * 7 * 3).reshape(6, 7, 3) * 37 % 251).astype(np.uint8))
    assert U.is_pil(picture) and not U.is_pil(3)
    for done, size in (
        (U.adjust_brightness(picture, 1.5), (7, 6)),
        (U.adjust_contrast(picture, 1.5), (7, 6)),
        (U.adjust_saturation(picture, 1.5), (7, 6)),
        (U.rotate(picture, 90, Inter.NEAREST, True, None, 0), (6, 7)),
        (U.random_crop(picture, (3, 4), None, False, 0, Border.CONSTANT), (4, 3)),
        (U.crop(picture, 1, 2, 3, 4), (4, 3)),
        (U.resize(picture, (3, 4)), (4, 3)),
        (U.pad(picture, 1, 0, Border.EDGE), (9, 8)),
        (U.random_affine(picture, 10.0, (1, 1), 1.0, (0, 0), Inter.NEAREST), (7, 6)),
    ):
        assert isinstance(done, Image.Image) and done.size == size
    still = U.random_affine(picture, 0.0, (0, 0), 1.0, (0, 0), Inter.BILINEAR)
    assert np.array_equal(np.asarray(still), np.asarray(picture))
    assert np.array_equal(np.asarray(U.horizontal_flip(picture)), np.asarray(picture)[:, ::-1])
    assert U.to_tensor(picture, np.float32).shape == (3, 6, 7)
    assert U.erase(np.ones((1, 3, 3)), 0, 0, 2, 2, 5).sum() == 25
    with pytest.raises(TypeError, match="img should be PIL image. Got .*ndarray.*Use Decode"):
        U.adjust_hue(np.ones((2, 2, 3), np.uint8), 0.1)


def test_pipelines_that_wait_for_training() -> None:
    calls: list[Any] = []

    class Waits(WaitedDSCallback):
        def sync_epoch_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
            calls.append(("epoch", ds_run_context.cur_epoch_num))

        def sync_step_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
            trained = train_run_context.original_args().cur_step_num
            assert trained >= ds_run_context.cur_step_num - 1
            calls.append(("step", ds_run_context.cur_step_num))

    waits = Waits()
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    data = ds.NumpySlicesDataset((x, x[:, :1]), ["x", "y"], shuffle=False).batch(2)
    data = data.map(lambda x: x, "x", callbacks=waits)
    network = nn.Dense(2, 1)
    model = ms.train.Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.001))
    model.train(2, data, callbacks=[waits], dataset_sink_mode=False)
    assert calls == [("step", 2), ("epoch", 2), ("step", 3), ("step", 4)]

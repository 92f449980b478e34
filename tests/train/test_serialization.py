"""Saving and loading networks: what goes into the file, what comes back, and how misfits are
refused.
"""

import os
import threading

import ml_dtypes
import numpy as np
import pytest

from mycel._src.foundation import dtype as D
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import ignored_settings
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.train import serialization
from mycel.train.checkpoint_format import CheckpointError, read_ckpt, read_safetensors, write_ckpt
from mycel.train.serialization import (
    async_ckpt_thread_status,
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    save_checkpoint,
)

CHECKED = dict.fromkeys(("train.async_ckpt_thread_status", "train.load_checkpoint_async"), "what was saved")


class Linear(Cell):
    def __init__(self, fan_in=2, fan_out=3, kind=np.float32):
        super().__init__()
        self.weight = Parameter(
            Tensor(np.arange(fan_in * fan_out).reshape(fan_out, fan_in).astype(kind)), name="weight"
        )
        self.bias = Parameter(Tensor(np.ones(fan_out, kind)), name="bias", requires_grad=False)


class Two(Cell):
    def __init__(self):
        super().__init__()
        self.first = Linear()
        self.second = Linear(3, 1)


def parameter(values, name="w"):
    return Parameter(Tensor(np.asarray(values)), name=name)


def test_a_cell_comes_back_by_name(tmp_path):
    net = Two()
    save_checkpoint(net, tmp_path / "two")
    assert os.listdir(tmp_path) == ["two.ckpt"]
    loaded = load_checkpoint(str(tmp_path / "two.ckpt"))
    assert list(loaded) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert all(isinstance(value, Parameter) and value.name == name for name, value in loaded.items())
    other = Two()
    for p in other.get_parameters():
        p.set_data(Tensor(np.full(p.shape, 9, np.float32)))
    assert load_param_into_net(other, loaded) == ([], [])
    for mine, theirs in zip(other.get_parameters(), net.get_parameters()):
        np.testing.assert_array_equal(mine.asnumpy(), theirs.asnumpy())
    assert not other.first.bias.requires_grad and other.first.weight.requires_grad


def test_a_wrapped_network_keeps_its_names(tmp_path):
    wrapper = Cell(auto_prefix=False)
    wrapper.network = Linear()
    save_checkpoint(wrapper, tmp_path / "a.ckpt")
    assert list(load_checkpoint(tmp_path / "a.ckpt")) == ["weight", "bias"]
    assert load_param_into_net(Linear(), load_checkpoint(tmp_path / "a.ckpt", wrapper)) == ([], [])


def test_append_dict_holds_numbers_strings_tensors_and_generators(tmp_path):
    class Generator:
        def get_state(self):
            return Tensor(np.array([5, 0], np.uint8))

    extra = {
        "epoch": 3,
        "rate": 0.1,
        "flag": True,
        "note": "héllo",
        "t": Tensor([1, 2]),
        "weight": 7,
        "random": Generator(),
    }
    save_checkpoint(Linear(), tmp_path / "a.ckpt", append_dict=extra)
    stored = read_ckpt(tmp_path / "a.ckpt")
    assert {name: (v.dtype.name, v.shape) for name, v in stored.items() if name in ("epoch", "rate", "flag")} == {
        "epoch": ("int64", ()),
        "rate": ("float32", ()),
        "flag": ("bool", ()),
    }
    assert stored["epoch"] == 3 and stored["rate"] == np.float32(0.1) and bool(stored["flag"])
    assert stored["weight"].shape == () and stored["weight"] == 7 and stored["random"].tolist() == [5, 0]
    loaded = load_checkpoint(tmp_path / "a.ckpt")
    assert loaded["note"] == "héllo" and loaded["t"].asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    "value, text", [([1], "is of type list; it takes int"), (None, "NoneType"), (2**70, "64 bits")]
)
def test_append_dict_refuses_other_values(tmp_path, value, text):
    with pytest.raises((TypeError, ValueError), match=f"append_dict.*{text}"):
        save_checkpoint(Linear(), tmp_path / "a.ckpt", append_dict={"x": value})
    assert os.listdir(tmp_path) == []


def test_lists_and_dicts_are_saved(tmp_path):
    pair = [{"name": "b", "data": Tensor([1.0])}, parameter([2, 3], "own")]
    save_checkpoint(pair, tmp_path / "list.ckpt")
    assert {name: v.tolist() for name, v in read_ckpt(tmp_path / "list.ckpt").items()} == {"b": [1.0], "own": [2, 3]}
    save_checkpoint({"key": parameter([4.0], "ignored")}, tmp_path / "dict.ckpt", crc_check=True)
    assert list(load_checkpoint(tmp_path / "dict.ckpt", crc_check=True)) == ["key"]


@pytest.mark.parametrize(
    "save_obj, text",
    [
        (3, "must be a Cell, a list or a dict, not int"),
        ({"a": 1}, "not 'a' to int; numbers and strings go into append_dict"),
        ([{"name": "a"}], "a list holds parameters or dicts with 'name' and 'data'"),
        ({1: Tensor([1.0])}, "not 1 to Tensor"),
    ],
)
def test_other_objects_are_refused(tmp_path, save_obj, text):
    with pytest.raises(TypeError, match=text):
        save_checkpoint(save_obj, tmp_path / "x.ckpt")


def test_two_parameters_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="two parameters have the name 'w'"):
        save_checkpoint([parameter([1]), parameter([2])], tmp_path / "x.ckpt")


def test_choices_by_name(tmp_path):
    path = tmp_path / "two.ckpt"
    save_checkpoint(Two(), path, choice_func=lambda name: not name.endswith("second.bias"))
    assert list(load_checkpoint(path)) == ["first.weight", "first.bias", "second.weight"]
    assert list(load_checkpoint(path, specify_prefix="first.")) == ["first.weight", "first.bias"]
    assert list(load_checkpoint(path, filter_prefix=["first.w", "second"])) == ["first.bias"]
    assert list(load_checkpoint(path, specify_prefix=("first",), choice_func=lambda name: "bias" in name)) == [
        "first.bias"
    ]
    with pytest.raises(CheckpointError, match="nothing to load in .*two.ckpt"):
        load_checkpoint(path, filter_prefix=("first", "second"))
    with pytest.raises(ValueError, match="filter_prefix must be a string that is not empty"):
        load_checkpoint(path, filter_prefix="")


def test_bfloat16_and_safetensors(tmp_path):
    values = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    for format in ("ckpt", "safetensors"):
        save_checkpoint({"w": Tensor(values)}, tmp_path / "half", format=format, append_dict={"step": 4})
        loaded = load_checkpoint(tmp_path / f"half.{format}", format=format)
        assert loaded["w"].dtype is D.bfloat16 and loaded["w"].asnumpy().tobytes() == values.tobytes()
        assert loaded["step"].asnumpy() == 4
    with pytest.raises(ValueError, match=r"does not end in 'ckpt'; give its type as format="):
        load_checkpoint(tmp_path / "half.safetensors")
    with pytest.raises(ValueError, match="format must be 'ckpt' or 'safetensors', not 'h5'"):
        save_checkpoint(Linear(), tmp_path / "x", format="h5")


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(ValueError, match="there is no file .*nowhere.ckpt"):
        load_checkpoint(tmp_path / "nowhere.ckpt")
    path = tmp_path / "cut.ckpt"
    save_checkpoint(Linear(), path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"cut\.ckpt: damaged"):
        load_checkpoint(path)
    with pytest.raises(TypeError, match="ckpt_file_name must be a path, not int"):
        load_checkpoint(3)
    with pytest.raises(FileNotFoundError, match="cannot write checkpoint"):
        save_checkpoint(Linear(), tmp_path / "no" / "x.ckpt")


def test_arguments_without_effect_are_told(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(ignored_settings, "_said", set())
    with caplog.at_level("INFO", logger.name):
        for _ in range(2):
            save_checkpoint(Linear(), tmp_path / "x.ckpt", incremental=True, remove_redundancy=True)
        save_checkpoint(Linear(), tmp_path / "x.ckpt", integrated_save=False, encryption=True)
    assert list(dict.fromkeys(record.getMessage() for record in caplog.records)) == [
        "save_checkpoint(remove_redundancy=True) has no effect: what is saved is all that a rank has",
        "save_checkpoint(incremental=True) has no effect: a checkpoint always has everything",
        "save_checkpoint: there is no argument 'encryption'; it has no effect",
        "save_checkpoint(integrated_save=False) has no effect: parameters are whole on one device",
    ]


def test_asynchronous_saves_write_the_values_of_the_call(tmp_path, monkeypatch):
    gate = threading.Event()

    def slow(path, entries, checksum):
        assert gate.wait(30)
        write_ckpt(path, entries, checksum=checksum)

    monkeypatch.setitem(serialization._FORMATS, "ckpt", (read_ckpt, slow))
    net = Linear()
    save_checkpoint(net, tmp_path / "a.ckpt", async_save=True)
    assert async_ckpt_thread_status()
    net.bias.set_data(Tensor(np.full(3, 5, np.float32)))
    gate.set()
    assert load_checkpoint(tmp_path / "a.ckpt")["bias"].asnumpy().tolist() == [1, 1, 1]
    assert not async_ckpt_thread_status()


def test_a_failed_asynchronous_save_is_raised_later(tmp_path):
    save_checkpoint(Linear(), tmp_path / "no" / "a.ckpt", async_save="thread")
    with pytest.raises(RuntimeError, match="an earlier asynchronous save_checkpoint failed: .*No such file"):
        load_checkpoint(tmp_path / "b.ckpt")
    save_checkpoint(Linear(), tmp_path / "b.ckpt", async_save="process")
    assert list(load_checkpoint(tmp_path / "b.ckpt")) == ["weight", "bias"]
    with pytest.raises(ValueError, match="async_save must be"):
        save_checkpoint(Linear(), tmp_path / "b.ckpt", async_save="later")


def test_loading_in_the_background(tmp_path):
    save_checkpoint(Linear(), tmp_path / "a.ckpt")
    later = load_checkpoint_async(tmp_path / "a.ckpt")
    assert load_param_into_net(Linear(), later) == ([], [])
    assert list(later) == ["weight", "bias"] and len(later) == 2 and later["bias"].shape == (3,)
    with pytest.raises(CheckpointError, match="there is no file"):
        load_checkpoint_async(tmp_path / "b.ckpt").result()


def test_loading_straight_into_a_network(tmp_path):
    source, target = Linear(), Linear()
    source.bias.set_data(Tensor(np.full(3, 4, np.float32)))
    save_checkpoint(source, tmp_path / "a.ckpt")
    load_checkpoint(tmp_path / "a.ckpt", target)
    assert target.bias.asnumpy().tolist() == [4, 4, 4]


def test_empty_tensors_come_back(tmp_path):
    save_checkpoint({"e": Tensor(np.zeros((0, 3), np.int16)), "one": Tensor(np.zeros(0))}, tmp_path / "e.ckpt")
    loaded = load_checkpoint(tmp_path / "e.ckpt")
    assert loaded["e"].shape == (0, 3) and loaded["e"].dtype is D.int16 and loaded["one"].asnumpy().shape == (0,)


def test_names_that_do_not_fit_are_reported():
    net = Linear()
    given = {"weight": parameter(np.zeros((3, 2), np.float32)), "moments.bias": parameter([1.0]), "note": "text"}
    assert load_param_into_net(net, given) == (["bias"], ["moments.bias", "note"])
    assert net.weight.asnumpy().sum() == 0 and net.bias.asnumpy().tolist() == [1, 1, 1]


def test_a_common_prefix_is_taken_off_unless_strict():
    values = {"net.weight": parameter(np.zeros((3, 2), np.float32)), "net.bias": parameter(np.zeros(3, np.float32))}
    net = Linear()
    assert load_param_into_net(net, values, strict_load=True) == (["weight", "bias"], ["net.weight", "net.bias"])
    assert net.bias.asnumpy().tolist() == [1, 1, 1]
    assert load_param_into_net(net, {**values, "net.epoch": parameter(1)}) == ([], ["net.epoch"])
    assert net.bias.asnumpy().tolist() == [0, 0, 0]
    ambiguous = {"a.bias": parameter(np.ones(3, np.float32)), "b.bias": parameter(np.zeros(3, np.float32))}
    assert load_param_into_net(Linear(), ambiguous) == (["weight", "bias"], ["a.bias", "b.bias"])


@pytest.mark.parametrize(
    "own, given, strict, text",
    [
        (
            np.zeros((3, 2), np.float32),
            np.zeros((2, 3), np.float32),
            False,
            r"has shape \(3, 2\) in the network and \(2, 3\)",
        ),
        (np.zeros((1,), np.float32), np.zeros((), np.float32), False, r"has shape \(1,\) in the network and \(\)"),
        (
            np.zeros(2, np.float32),
            np.zeros(2, np.int64),
            False,
            "is float32 in the network and int64.*only floating types",
        ),
        (np.zeros(2, np.float32), np.zeros(2, np.float16), True, "strict_load allows no conversion"),
        (np.zeros(2, np.int32), np.full(2, 2**40), False, "too large for int32"),
        (np.zeros(2, np.float16), np.full(2, 1e6, np.float32), False, "too large for float16"),
    ],
)
def test_misfits_are_refused_and_change_nothing(own, given, strict, text):
    net = Cell()
    net.first = parameter(np.zeros(1, np.float32), "first")
    net.w = parameter(own)
    with pytest.raises(RuntimeError, match=f"parameter 'w' .*{text}"):
        load_param_into_net(net, {"first": parameter(np.ones(1, np.float32)), "w": parameter(given)}, strict)
    assert net.first.asnumpy().tolist() == [0] and not net.w.asnumpy().any()


@pytest.mark.parametrize(
    "own, given",
    [
        (np.zeros(2, np.float32), np.array([0.5, np.inf])),
        (np.zeros(2, np.float16), np.array([0.5, -2.0], np.float32)),
        (np.zeros(2, ml_dtypes.bfloat16), np.array([0.5, -2.0], np.float32)),
        (np.zeros(2, np.int32), np.array([5, -7])),
        (np.zeros((2, 1), np.float32), np.ones((2, 1, 1, 1), np.float32)),
        (np.zeros((), np.float32), np.ones(1, np.float32)),
    ],
)
def test_what_converts(own, given):
    net = Cell()
    net.w = parameter(own)
    assert load_param_into_net(net, {"w": parameter(given)}) == ([], [])
    assert net.w.shape == own.shape and net.w.asnumpy().dtype == own.dtype
    np.testing.assert_array_equal(net.w.asnumpy(), given.reshape(own.shape).astype(own.dtype))


def test_arguments_of_other_types_are_refused():
    with pytest.raises(TypeError, match="net must be a Cell, not int"):
        load_param_into_net(3, {})
    with pytest.raises(TypeError, match="parameter_dict must be a dict, not list"):
        load_param_into_net(Linear(), [])
    with pytest.raises(TypeError, match="not 'weight' to ndarray"):
        load_param_into_net(Linear(), {"weight": np.zeros(2)})
    with pytest.raises(TypeError, match="strict_load must be a bool"):
        load_param_into_net(Linear(), {}, 3)


def test_safetensors_of_a_cell_with_checksum(tmp_path):
    save_checkpoint(Two(), tmp_path / "two.safetensors", format="safetensors", crc_check=True)
    assert read_safetensors(tmp_path / "two.safetensors", verify=True)["second.bias"].tolist() == [1.0]

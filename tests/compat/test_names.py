"""Every name of every module of MindSpore can be imported, and what is not served says so."""

from __future__ import annotations

import enum
import gc
import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel
from mycel import compat, nn, train
from mycel._src.foundation.errors import Unsupported
from mycel.compat import names
from mycel.compat.unserved_advice import advice_on

TABLE = json.loads((Path(compat.__file__).parent / "names.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def listed(path: str) -> Iterator[str]:
    """The names of a module in the table."""
    for part, groups in TABLE[path].items():
        for group, content in groups.items():
            yield from (group,) if part in "ev" else (word.partition("=")[0] for word in content.split())


def view(path: str) -> Any:
    return importlib.import_module(f"mindspore.{path}" if path else "mindspore")


def test_every_module_and_name_is_there() -> None:
    assert len(TABLE) > 1300
    lacking = [f"{path}.{name}" for path in TABLE for name in listed(path) if not is_there(path, name)]
    assert not lacking


def is_there(path: str, name: str) -> bool:
    """Whether a name is there, or is another package's that this environment lacks."""
    home = names.home_of(path, name)
    if home.startswith("/"):
        return True
    return hasattr(view(path), name)


def test_names_of_other_packages() -> None:
    from mindspore.train.serialization import OrderedDict, Thread, np  # type: ignore[import-not-found]

    assert OrderedDict.__module__ == "collections" and np.__name__ == "numpy" and Thread.__module__ == "threading"


def test_what_is_not_served_refuses_when_it_is_used() -> None:
    from mindspore.graph._parse.parser import Parser, get_bprop_method_of_class  # type: ignore[import-not-found]
    from mindspore.graph.api import _IGNORE_DIRS

    with pytest.raises(Unsupported, match=r"^mindspore\.graph\._parse\.parser\.Parser belongs to .* mindspore\.jit$"):
        Parser(1, fn=2)
    with pytest.raises(Unsupported, match="get_bprop_method_of_class belongs"):
        get_bprop_method_of_class(nn.ReLU())
    for use in (list, len, bool, lambda v: v[0], lambda v: v(), lambda v: "a" in v, lambda v: v.name):
        with pytest.raises(Unsupported, match="_IGNORE_DIRS"):
            use(_IGNORE_DIRS)
    assert not hasattr(_IGNORE_DIRS, "name") and "not served" in repr(_IGNORE_DIRS)
    assert Parser is names.made("graph._parse.parser", "Parser") and names.is_made(Parser)


def test_classes_have_the_bases_that_they_have_there() -> None:
    from mindspore.nn.wrap.cell_wrapper import _BroadCastCell  # type: ignore[import-not-found]
    from mindspore.train.callback._cluster_monitor import ClusterMonitor  # type: ignore[import-not-found]

    assert issubclass(_BroadCastCell, nn.Cell) and issubclass(ClusterMonitor, train.Callback)

    class Mine(ClusterMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            self.there = True

    assert Mine().there


def test_enumerations_and_constants_are_what_they_are() -> None:
    from mindspore._c_dataengine import DE_BORDER_EDGE, BorderType  # type: ignore[import-not-found]
    from mindspore._c_mindrecord import MIN_PAGE_SIZE, MSRStatus  # type: ignore[import-not-found]

    assert isinstance(DE_BORDER_EDGE, enum.Enum) and DE_BORDER_EDGE is BorderType.DE_BORDER_EDGE
    assert MIN_PAGE_SIZE == 32 * 1024 and [s.name for s in MSRStatus] == ["SUCCESS", "FAILED"]


def test_a_path_or_name_that_mindspore_lacks_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"mindspore\.graph has no '_parsers' in Mycel"):
        importlib.import_module("mindspore.graph._parsers")
    with pytest.raises(AttributeError, match="has no 'Parsers' in Mycel"):
        view("graph._parse.parser").Parsers


def test_import_of_everything_from_a_module_without_sources() -> None:
    scope: dict[str, Any] = {}
    exec("from mindspore.mindrecord.core.shardutils import *", scope)
    assert {"MIN_SHARD_COUNT", "SUCCESS"} <= set(scope) and "np" not in scope


def test_advice_names_what_is_there() -> None:
    words = {w.strip(";,()'") for path in TABLE for w in advice_on(path).split() if w.startswith("mindspore.")}
    for word in words:
        owner, _, name = word.partition("(")[0].rpartition(".")
        assert hasattr(importlib.import_module(owner), name) or inspect.ismodule(importlib.import_module(word)), word


def test_modules_below_public_ones_have_what_is_there() -> None:
    from mindspore import graph, hal, runtime
    from mindspore.device_context.cpu.device import device_count  # type: ignore[import-not-found]
    from mindspore.graph.api import jit  # type: ignore[import-not-found]
    from mindspore.graph.mutable import mutable  # type: ignore[import-not-found]
    from mindspore.hal.stream import Stream  # type: ignore[import-not-found]
    from mindspore.mindrecord.common.exceptions import MRMOpenError  # type: ignore[import-not-found]
    from mindspore.runtime.memory import max_memory_allocated  # type: ignore[import-not-found]

    assert jit is mycel.jit and mutable is mycel.mutable and graph.api.jit is mycel.jit
    assert issubclass(MRMOpenError, mycel.mindrecord.MindRecordException) and MRMOpenError().error_code > 0
    assert Stream is runtime.Stream is hal.Stream and max_memory_allocated() >= 0 and device_count() == 1


def test_iterators_end_together() -> None:
    from mindspore.dataset.engine import iterators  # type: ignore[import-not-found]

    data = mycel.dataset.NumpySlicesDataset([1, 2, 3], ["a"], shuffle=False)
    iterators._cleanup()
    iterators._unset_iterator_cleanup()
    one, two = data.create_dict_iterator(output_numpy=True), data.create_tuple_iterator(output_numpy=True)
    assert next(one)["a"] == 1 and next(two)[0] == 1
    del two
    gc.collect()
    assert [r() for r in iterators.ITERATORS_LIST] == [one, None] and not iterators.check_iterator_cleanup()
    iterators._cleanup()
    assert iterators.check_iterator_cleanup() and not iterators.ITERATORS_LIST
    with pytest.raises(RuntimeError, match="was stopped"):
        next(one)
    iterators._unset_iterator_cleanup()
    assert next(data.create_tuple_iterator(output_numpy=True))[0] == 1
    for _ in range(200):
        data.create_tuple_iterator()
    assert len(iterators.ITERATORS_LIST) <= 64


def test_names_that_do_something() -> None:
    from mindspore.common._decorator import deprecated  # type: ignore[import-not-found]
    from mindspore.common.parameter import _get_unique_parameter_key  # type: ignore[import-not-found]

    class Holder:
        @deprecated("2.0", "ops.twice", use_substitute_name=True, module_prefix="ops.")
        def double(self, x: int) -> int:
            """Double."""
            return 2 * x

    assert Holder().double(3) == 6 and Holder.double.__doc__ == "Double."
    assert getattr(Holder, "substitute_name", None) == "ops.twice"
    first = _get_unique_parameter_key()
    assert [_get_unique_parameter_key() for _ in range(2)] == [first + 1, first + 2]
    net = nn.Dense(2, 2)
    optimizer = nn.SGD(net.trainable_params())
    for given, kept in (({}, None), ({"keep_batchnorm_fp32": False}, False)):
        assert train.Model(net, nn.MSELoss(), optimizer, amp_level="O3", **given)._keep_bn_fp32 is kept


def test_private_parts_of_operations_and_containers() -> None:
    operation = mycel.ops.MatMul(transpose_b=True)
    assert vars(operation)["init_attrs"] == {"transpose_a": False, "transpose_b": True}
    operation.add_prim_attr("kept", 3)
    assert operation.get_attr_dict() == {**vars(operation)["init_attrs"], "kept": 3}
    first, second = nn.ReLU(), nn.Dense(2, 2)
    assert nn.SequentialCell(first, second).cell_list == [first, second]


def test_tensors_of_the_data_engine() -> None:
    from mindspore._c_dataengine import DataType, Tensor, TensorShape

    array = np.arange(3)
    tensor = Tensor(array)
    array[0] = 9
    assert tensor.as_array().tolist() == [9, 1, 2] and tensor.shape().as_list() == [3]
    assert [str(Tensor(np.array([v])).type()) for v in ("a", b"a", True)] == ["string", "bytes", "bool"]
    assert str(DataType("float")) == "unknown" and DataType("python").is_python()
    assert str(TensorShape([2, -1])) == "<2,*>" and not TensorShape([2, -1]).is_known()
    with pytest.raises(RuntimeError, match="no type for arrays of complex128"):
        Tensor(np.array([1j]))
    with pytest.raises(TypeError, match="an array is needed, not list"):
        Tensor([1])

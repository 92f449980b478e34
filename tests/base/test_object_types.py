"""The types of Python's objects, as MindSpore 2.10 names and finds them, and the questions about
what a compiled function may call.
"""

import pickle

import numpy as np
import pytest

import mycel as ms

CHECKED = {
    "Int": "MindSpore 2.10",
    "Type": "MindSpore 2.10",
    "TensorType": "MindSpore 2.10",
    "QuantDtype": "MindSpore 2.10",
    "get_py_obj_dtype": "MindSpore 2.10",
    "get_obj_module_and_name_info": "MindSpore 2.10",
    "is_invalid_or_jit_forbidden_method": "MindSpore 2.10",
    "is_jit_forbidden_module": "MindSpore 2.10",
}


class Plain:
    def method(self):
        return 1


def test_names_and_classes():
    shown = {
        ms.list_: ("List", "mindspore.list_"),
        ms.tuple_: ("Tuple", "mindspore.tuple_"),
        ms.string: ("String", "mindspore.string_"),
        ms.number: ("Number", "mindspore.number"),
        ms.type_none: ("None", "mindspore.type_none"),
        ms.TensorType(): ("Tensor", "mindspore.tensor"),
        ms.TensorType(ms.float32): ("Tensor[Float32]", "mindspore.tensor[float32]"),
        ms.Int(): ("Int", "mindspore.int"),
    }
    for kind, (title, name) in shown.items():
        assert (str(kind), repr(kind)) == (title, name) and isinstance(kind, ms.Type)
        assert pickle.loads(pickle.dumps(kind)) == kind
    assert isinstance(ms.int32, ms.Int) and not isinstance(ms.uint32, ms.Int) and not isinstance(ms.list_, ms.Int)
    assert isinstance(ms.float32, type(ms.number)) and issubclass(ms.Int, ms.Type)
    assert [ms.Int(n) for n in (8, 16, 32, 64)] == [ms.int8, ms.int16, ms.int32, ms.int64]
    assert ms.TensorType(ms.float32) == ms.TensorType(ms.float32) != ms.TensorType(ms.int32)
    assert ms.TensorType(ms.int8).element_type() is ms.int8 and ms.TensorType().element_type() is None
    assert ms.list_ != ms.tuple_ and ms.tensor_type == ms.TensorType()
    assert ms.dtype.list_ is ms.list_ and ms.dtype.TensorType is ms.TensorType and ms.dtype.number_type[0] is ms.int8
    assert not hasattr(ms.dtype, "no_such_type")
    with pytest.raises(ValueError, match="8, 16, 32 or 64"):
        ms.Int(7)
    with pytest.raises(TypeError, match="no instances"):
        ms.Type()
    with pytest.raises(TypeError, match="element type"):
        ms.TensorType(3)


def test_types_of_objects():
    wanted = [
        (1, ms.int64),
        (1.0, ms.float64),
        (True, ms.bool_),
        ("a", ms.string),
        (None, ms.type_none),
        ([1], ms.list_),
        ((1, 2.0), ms.tuple_),
        (ms.Tensor([1.0]), ms.TensorType(ms.float32)),
        (ms.Parameter(ms.Tensor([1])), ms.TensorType(ms.int64)),
        (np.float32(1), ms.float32),
        (1j, ms.complex128),
        (int, ms.int64),
        (list, ms.list_),
        (str, ms.string),
    ]
    for value, kind in wanted:
        assert ms.get_py_obj_dtype(value) == kind
    for value in (test_types_of_objects, ms.nn.ReLU(), len):
        assert repr(ms.get_py_obj_dtype(value)) == "mindspore.function"
    assert repr(ms.get_py_obj_dtype(ms.int32)) == "mindspore.type_type"
    for value in ({"a": 1}, slice(1, 2), ..., Plain()):
        with pytest.raises(NotImplementedError, match="no type describes"):
            ms.get_py_obj_dtype(value)
    assert ms.dtype_to_pytype(ms.list_) is list and ms.dtype_to_pytype(ms.string) is str
    assert ms.pytype_to_dtype(list) == ms.list_ and ms.pytype_to_dtype(type(None)) == ms.type_none
    with pytest.raises(TypeError, match="no Python class"):
        ms.dtype_to_pytype(ms.number)


def test_overloads_by_type_objects():
    kind = ms.ops.MultitypeFuncGraph("kind")
    for given, name in (
        (ms.list_, "list"),
        (ms.string, "string"),
        (ms.number, "number"),
        (ms.TensorType(ms.float32), "floats"),
        (ms.TensorType(), "tensor"),
    ):
        kind.register(given)(lambda x, name=name: name)
    found = [kind(v) for v in ([1], "a", 2, 2.5, ms.Tensor([1.0]), ms.Tensor([1]))]
    assert found == ["list", "string", "number", "number", "floats", "tensor"]


def test_quantised_types():
    names = [f"{kind}{width}" for kind in ("INT", "UINT") for width in range(1, 17)]
    assert [str(q) for q in ms.QuantDtype] == names
    assert [q.value() for q in ms.QuantDtype] == [*range(16), *range(100, 116)]
    assert ms.QuantDtype(103) is ms.QuantDtype.UINT4


def test_what_compiled_functions_may_call():
    assert ms.get_obj_module_and_name_info(Plain) == (__name__, "Plain", "class")
    assert ms.get_obj_module_and_name_info(Plain().method) == (__name__, "Plain.method", "method or function")
    assert ms.get_obj_module_and_name_info([].append)[1:] == ("list.append", "method or function")
    assert ms.get_obj_module_and_name_info(np) is None and ms.get_obj_module_and_name_info(1) is None
    assert ms.is_jit_forbidden_module("mycel.common.seed") and ms.is_jit_forbidden_module("mindspore.common.seed")
    for name in ("mycel.ops", "numpy", "mycel.logarithm", None):
        assert not ms.is_jit_forbidden_module(name)
    assert not ms.is_invalid_or_jit_forbidden_method(Plain(), Plain, "method")
    assert ms.is_invalid_or_jit_forbidden_method(ms.Generator(), ms.Generator, "manual_seed")
    with pytest.raises(AttributeError, match="zz"):
        ms.is_invalid_or_jit_forbidden_method(Plain(), Plain, "zz")
    # What is forbidden does not become part of a graph: it runs at each call.
    function = ms.jit(lambda x: (ms.set_seed(3), x + 1)[1])
    assert function(ms.Tensor([1.0])).tolist() == [2.0] and "break" in str(ms.explain(function, ms.Tensor([1.0])))

"""Operations of the user's own against the same formulas in NumPy, with derivatives by hand;
descriptions of kernels against those that MindSpore 2.10 builds.
"""

import shutil
import subprocess

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.foundation.errors import Unsupported

CHECKED = {
    **{f"ops.{name}": "NumPy" for name in "Custom PyFunc kernel ms_kernel".split()},
    **{
        f"ops.{name}": "MindSpore 2.10"
        for name in (
            "CustomRegOp CpuRegOp AiCPURegOp AkgGpuRegOp AkgAscendRegOp TBERegOp DataType custom_info_register "
            "op_info_register CustomOpBuilder"
        ).split()
    },
}
X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


def cube(x):
    assert type(x) is np.ndarray
    return x**3


CUBE = ops.Custom(cube, lambda s: s, lambda d: d, "pyfunc", lambda x, out, dout: (dout * 3 * x * x,))


def test_python_functions():
    for run in (CUBE, ms.jit(lambda x: CUBE(x))):
        np.testing.assert_allclose(run(Tensor(X)).asnumpy(), X**3)
    two = lambda a, b: (a + b, (a * b).sum())
    for declared in ((((2, 2), ()), (ms.float32, ms.float64)), (lambda a, b: (a, ()), lambda a, b: (a, ms.float64))):
        operation = ops.Custom(two, *declared)
        for first, second in (
            operation(Tensor(X), Tensor(X)),
            ms.jit(lambda a, b, o=operation: o(a, b))(Tensor(X), Tensor(X)),
        ):
            np.testing.assert_allclose(first.asnumpy(), 2 * X)
            assert second.dtype is ms.float64 and second.shape == () and second.item() == pytest.approx((X * X).sum())
    assert ops.Custom(lambda x, n: x * n, lambda x, n: x, lambda x, n: x)(Tensor(X), 3).shape == (2, 2)


def test_arrays_are_copies():
    def spoil(x):
        x[...] = 7
        return x

    x = Tensor(X.copy())
    assert ops.Custom(spoil, (2, 2), ms.float32)(x).tolist() == [[7, 7], [7, 7]]
    np.testing.assert_array_equal(x.asnumpy(), X)


def test_derivatives():
    loss = lambda x: (CUBE(x * 2) * x).sum()
    for gradient in (ms.grad(loss), ms.jit(ms.grad(loss)), ms.grad(ms.jit(loss))):
        np.testing.assert_allclose(gradient(Tensor(X)).asnumpy(), 32 * X**3, rtol=1e-6)
    plain = ops.Custom(cube, (2, 2), ms.float32)
    with pytest.raises(Unsupported, match="give one as bprop"):
        ms.grad(lambda x: plain(x).sum())(Tensor(X))
    np.testing.assert_allclose(ms.grad(lambda x: (ops.stop_gradient(plain(x)) * x).sum())(Tensor(X)).asnumpy(), X**3)


def test_what_custom_refuses():
    x = Tensor(X)
    for call, error, text in (
        (lambda: ops.Custom(cube, (2, 2), ms.float32, "akg"), Unsupported, "pyfunc, hybrid, aot"),
        (lambda: ops.Custom("a", (2,), ms.float32), TypeError, "function"),
        (lambda: ops.Custom(cube), TypeError, "out_shape is needed"),
        (lambda: ops.Custom(cube, (3,), ms.float32)(x), ValueError, r"\(3,\) was declared"),
        (lambda: ops.Custom(cube, ((2, 2), (2, 2)), (ms.float32, ms.float32))(x), ValueError, "1 results"),
        (lambda: ops.Custom(cube, "ab", ms.float32)(x), TypeError, "out_shape"),
        (lambda: ops.Custom("nothing", (2,), ms.float32, "aot"), TypeError, "path:function"),
        (lambda: ops.Custom("/no/such.so:f", (2,), ms.float32, "aot"), ValueError, "cannot be loaded"),
        (lambda: CUBE(cube), TypeError, "takes tensors"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_declared_functions():
    operation = ops.PyFunc(
        lambda a, b: (a + b, float((a * b).sum())), [ms.float32] * 2, [(2, 2)] * 2, [ms.float32] * 2, [(2, 2), ()]
    )
    for args in ((Tensor(X), Tensor(X)), ((Tensor(X), Tensor(X)),)):
        for first, second in (operation(*args), ms.jit(lambda *a: operation(*a))(*args)):
            np.testing.assert_allclose(first.asnumpy(), 2 * X)
            assert second.shape == () and second.item() == pytest.approx((X * X).sum())
    scalar = ops.PyFunc(lambda n: isinstance(n, int) and n + 1, [ms.int64], [()], [ms.int64], [()])
    assert scalar(Tensor(3))[0].item() == 4
    for call, error in (
        (lambda: operation(Tensor(X)), ValueError),
        (lambda: operation(Tensor(X), Tensor([1.0])), TypeError),
        (lambda: ops.PyFunc(1, [], [], [], []), TypeError),
        (lambda: operation(Tensor(X), Tensor(X.astype(np.float64))), TypeError),
        (lambda: ops.PyFunc(cube, [ms.float32], [], [], []), TypeError),
        (lambda: ms.grad(lambda x: operation(x, x)[0].sum())(Tensor(X)), Unsupported),
    ):
        with pytest.raises(error):
            call()


def test_kernels():
    @ops.kernel
    def product(a, b):
        c = output_tensor((a.shape[0], b.shape[1]), a.dtype)  # noqa: F821
        d = allocate((1,), a.dtype)  # noqa: F821
        for i, j in grid((a.shape[0], b.shape[1])):  # noqa: F821
            for k in reduce(a.shape[1]):  # noqa: F821
                d[0] = a[i, k] * b[k, j]
                c[i, j] = c[i, j] + d[0]
        return c

    @ops.ms_kernel(reg_info=None)
    def curve(a, scale=2.0):
        b = output_tensor(a.shape, a.dtype)  # noqa: F821
        for i in grid(a.shape):  # noqa: F821
            b[i] = exp(a[i]) * float32(scale) + erf(a[i])  # noqa: F821
        return b

    from scipy.special import erf as reference

    np.testing.assert_allclose(product(X, X), X @ X, rtol=1e-6)
    np.testing.assert_allclose(curve(X), np.exp(X) * 2 + reference(X), rtol=1e-6)
    for operation in (ops.Custom(product, func_type="hybrid"), ops.Custom(product, lambda a, b: a, lambda a, b: a)):
        np.testing.assert_allclose(operation(Tensor(X), Tensor(X)).asnumpy(), X @ X, rtol=1e-6)
    with pytest.raises(TypeError):
        ops.kernel(3)


SOURCE = """
#include <stdint.h>
#include <string.h>
int scaled(int n, void **p, int *ndims, int64_t **shapes, const char **types, void *stream, void *extra) {
    if (n != 2 || strcmp(types[0], "float32")) return 3;
    int64_t size = 1;
    for (int i = 0; i < ndims[0]; i++) size *= shapes[0][i];
    for (int64_t i = 0; i < size; i++) ((float *)p[1])[i] = 3 * ((float *)p[0])[i] + (float)ndims[0];
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_functions_of_a_shared_library(tmp_path):
    source, library = tmp_path / "scaled.c", tmp_path / "scaled.so"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    operation = ops.Custom(f"{library}:scaled", lambda s: s, lambda d: d, "aot", lambda x, out, dout: (dout * 3,))
    for x in (X, X[0], X.T, np.zeros((0, 2), np.float32), np.float32(2.0)):
        for run in (operation, ms.jit(lambda v: operation(v))):
            np.testing.assert_allclose(run(Tensor(x)).asnumpy(), 3 * x + np.ndim(x))
    assert ms.grad(lambda v: operation(v).sum())(Tensor(X)).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(RuntimeError, match="returned 3"):
        operation(Tensor(X.astype(np.float64)))
    with pytest.raises(ValueError, match="no function"):
        ops.Custom(f"{library}:other", lambda s: s, lambda d: d, "aot")


def test_descriptions():
    D = ops.DataType
    assert (D.F16_Default, D.I32_NCHW, D.BF16_5HD, D.None_None, D.C64_Default, D.BOOL_None) == (
        ("float16", "DefaultFormat"),
        ("int32", "NCHW"),
        ("bfloat16", "NC1HWC0"),
        ("", ""),
        ("complex64", "DefaultFormat"),
        ("bool", ""),
    )
    assert (
        D.U8_FracZ == ("uint8", "FRACTAL_Z")
        and D.F32_Default_Tuple == ("float32", "DefaultFormat", "tuple")
        and D.I8_NC1HWC0 == ("int8", "NC1HWC0")
    )
    assert len([n for n in dir(D) if not n.startswith("_")]) == 204
    row = (("float16", "DefaultFormat"),) * 2
    custom = (
        ops.CustomRegOp("k")
        .input(0, "x")
        .output(0, "y")
        .dtype_format(D.F16_Default, D.F16_Default)
        .attr("a", "required", "int", value=3)
        .target("CPU")
    )
    assert custom.get_op_info() == {
        "op_name": "k",
        "inputs": [{"index": 0, "name": "x", "paramType": "required"}],
        "outputs": [{"index": 0, "name": "y", "paramType": "required"}],
        "attr": [{"name": "a", "paramType": "required", "type": "int", "value": 3}],
        "fusion_type": "",
        "dtype_format": [row],
        "target": "CPU",
    }
    assert (
        ops.CustomRegOp().get_op_info()["op_name"] == "Custom"
        and ops.CustomRegOp().get_op_info()["target"] == "UnKnown"
    )
    plain = {
        "op_name": "k",
        "inputs": [{"index": 0, "name": "x"}],
        "outputs": [{"index": 0, "name": "y"}],
        "attr": [],
        "fusion_type": "",
        "dtype_format": [row],
    }
    for builder, extra in (
        (ops.CpuRegOp, {"imply_type": "CPU"}),
        (ops.AiCPURegOp, {"imply_type": "AiCPU"}),
        (ops.AkgGpuRegOp, {"imply_type": "AKG", "processor": "CUDA"}),
        (ops.AkgAscendRegOp, {"imply_type": "AKG", "processor": "AiCore"}),
    ):
        assert builder("k").input(0, "x").output(0, "y").dtype_format(D.F16_Default, D.F16_Default).get_op_info() == {
            **plain,
            **extra,
        }
    assert ops.op_info_register(plain)(lambda: 1).op_info["inputs"] == plain["inputs"]
    for call, error in (
        (lambda: ops.CustomRegOp(1), ValueError),
        (lambda: ops.CustomRegOp().input(0, "x").input(1, "y").dtype_format(D.F16_Default), ValueError),
        (lambda: ops.CustomRegOp().input("x"), TypeError),
        (lambda: ops.CustomRegOp().input(0, "x").dtype_format("float16"), ValueError),
        (lambda: ops.op_info_register({"a": 1}), TypeError),
        (lambda: ops.custom_info_register(3), TypeError),
        (lambda: ops.CustomRegOp().target(3), TypeError),
        (lambda: ops.CpuRegOp("k").fusion_type(3), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_descriptions_with_many_properties():
    described = (
        ops.TBERegOp("k")
        .input(0, "x", False, "required", "all")
        .output(0, "y", True, "dynamic", "all", reshape_type="NH")
    )
    described = (
        described.attr("a", "required", "int", "1,2", "3")
        .real_input_index([1, 0])
        .unknown_shape_formats(["ND"])
        .binfile_name("b")
        .dynamic_shape(True)
    )
    assert described.get_op_info() == {
        "op_name": "k",
        "inputs": [{"index": 0, "name": "x", "needCompile": False, "paramType": "required", "shape": "all"}],
        "outputs": [
            {
                "index": 0,
                "name": "y",
                "need_compile": True,
                "paramType": "dynamic",
                "shape": "all",
                "reshape_type": "NH",
            }
        ],
        "attr": [{"name": "a", "paramType": "required", "type": "int", "value": "1,2", "defaultValue": "3"}],
        "fusion_type": "",
        "dtype_format": [],
        "imply_type": "TBE",
        "async_flag": False,
        "binfile": "b",
        "compute_cost": 10,
        "kernel": "",
        "partial_flag": False,
        "reshape_type": "",
        "dynamicRankSupport": False,
        "dynamicShapeSupport": True,
        "dynamicCompileStatic": False,
        "needCheckSupport": False,
        "dynamicFormat": False,
        "op_pattern": "",
        "real_input_index": [1, 0],
        "input_to_attr_index": [],
        "unknown_shape_formats": [["ND"]],
    }
    assert ops.TBERegOp("other").get_op_info()["binfile"] == ""
    for call in (
        lambda: ops.TBERegOp("k").binfile_name(3),
        lambda: ops.TBERegOp("k").async_flag(1),
        lambda: ops.TBERegOp("k").compute_cost(True),
    ):
        with pytest.raises(TypeError):
            call()


def test_descriptions_limit_types():
    D = ops.DataType
    info = ops.CustomRegOp().input(0, "x").output(0, "y").dtype_format(D.F32_Default, D.F32_Default).get_op_info()
    marked = ops.custom_info_register(info)(lambda x: x + 1)
    for operation in (
        ops.Custom(marked, lambda s: s, lambda d: d),
        ops.Custom(cube, lambda s: s, lambda d: d, reg_info=info),
    ):
        assert operation(Tensor(X)).dtype is ms.float32
        with pytest.raises(TypeError, match="float64"):
            operation(Tensor(X.astype(np.float64)))


def test_blocks_of_kernels():
    @ops.kernel
    def product(a, b):
        c = output_tensor(a.shape, a.dtype)  # noqa: F821
        with block_realize(c):  # noqa: F821
            for i, j in grid(c.shape):  # noqa: F821
                c[i, j] = (a[i, :] * b[:, j]).sum()
        return c

    a, b = (np.arange(4.0, dtype=np.float32).reshape(2, 2) + k for k in range(2))
    np.testing.assert_allclose(product(a, b), a @ b)


def test_operations_against_mindspores_headers_are_refused_when_they_are_built(tmp_path):
    source = tmp_path / "a.cpp"
    source.write_text('#include "ms_extension/api.h"\n')
    made = ops.CustomOpBuilder("mine", [str(source)], backend="CPU", cflags="-O2")
    assert made.get_sources() == [str(source)]
    for use in (made.build, made.load):
        with pytest.raises(Unsupported, match=r"ops\.Custom"):
            use()
    for args, error in (((3, "a.cpp"), TypeError), (("m", 3), TypeError), (("m", "a.cpp", "zz"), ValueError)):
        with pytest.raises(error):
            ops.CustomOpBuilder(*args)
    with pytest.raises(ValueError, match="there is no file"):
        ops.CustomOpBuilder("m", str(tmp_path / "none.cpp")).load()
    with pytest.raises(Unsupported, match="op_def"):
        ops.CustomOpBuilder("m", str(source), op_def="a.yaml")
    with pytest.raises(TypeError, match="no option width"):
        ops.CustomOpBuilder("m", str(source), width=3)
    with pytest.raises(Unsupported, match="Ascend"):
        ops.CustomOpBuilder("m", str(source), "Ascend").build()


needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
MODULE = """
#include <Python.h>
#include "factor.h"
static PyObject *scaled(PyObject *, PyObject *x) { return PyFloat_FromDouble(PyFloat_AsDouble(x) * FACTOR * EXTRA); }
static PyMethodDef methods[] = {{"scaled", scaled, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "built_here", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_built_here() { return PyModule_Create(&module); }
"""


@needs_compiler
def test_modules_in_cpp_are_built(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "factor.h").write_text("#define FACTOR 3\n")
    source = tmp_path / "built_here.cpp"
    source.write_text(MODULE)
    options = {"include_paths": str(tmp_path / "more"), "cflags": "-DEXTRA=2", "ldflags": "-lm"}
    builder = ops.CustomOpBuilder("built_here", str(source), backend="CPU", build_dir=tmp_path / "out", **options)
    assert builder.build() == str(tmp_path / "out" / "built_here.so")
    assert ops.CustomOpBuilder("built_here", [str(source)], **options).load().scaled(1.5) == 9.0
    with pytest.raises(RuntimeError, match="EXTRA"):
        ops.CustomOpBuilder("built_here", str(source), include_paths=[str(tmp_path / "more")]).build()


FUNCTION = """
#include <stdint.h>
#include <string.h>
#define ARGUMENTS int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, \\
                  void *extra
static int64_t kind(const char *t) {
  return !strcmp(t, "float32") ? 1 : !strcmp(t, "int64") ? 2 : !strcmp(t, "bool") ? 3 : 0;
}
EXTERN int seen(ARGUMENTS) {
  int64_t *out = (int64_t *)params[nparam - 1];
  if (stream || extra) return 9;
  for (int k = 0; k + 1 < nparam; k++) {
    out[3 * k] = ndims[k];
    out[3 * k + 1] = ndims[k] ? shapes[k][0] : -1;
    out[3 * k + 2] = kind(dtypes[k]);
  }
  if (nparam == 2 && ndims[0] == 3) return 7;
  return 0;
}
EXTERN int wantsInit(int *ndims, int64_t **shapes, const char **dtypes, void *extra) { return 0; }
EXTERN int wants(ARGUMENTS) { return 0; }
"""


@needs_compiler
@pytest.mark.parametrize("suffix", [".c", ".cc"])
def test_sources_are_compiled_and_called(suffix, tmp_path):
    source = tmp_path / f"seen{suffix}"
    source.write_text(FUNCTION.replace("EXTERN", "" if suffix == ".c" else 'extern "C"'))
    seen = ops.Custom(f"{source}:seen", lambda *shapes: (3 * len(shapes),), ms.int64, "aot")
    x = ms.Tensor(np.ones((5, 2), np.float32))
    assert seen(x, 2.0, 3, True, (1, 2, 3), (1.0, 2)).tolist() == [
        *(2, 5, 1), *(0, -1, 1), *(0, -1, 2), *(0, -1, 3), *(1, 3, 2), *(1, 2, 1)
    ]  # fmt: skip
    assert seen([x, x]).tolist() == [2, 5, 1, 2, 5, 1]
    assert seen(x.T).tolist() == [2, 2, 1]
    with pytest.raises(RuntimeError, match="returned 7"):
        seen(ms.Tensor(np.ones((1, 1, 1))))
    with pytest.raises(TypeError, match="not 'x'"):
        seen(x, "x")
    with pytest.raises(Unsupported, match="AotExtra"):
        ops.Custom(f"{source}:wants", (2,), ms.float32, "aot")
    source.write_text("this is no program\n")
    with pytest.raises(RuntimeError, match="failed"):
        ops.Custom(f"{source}:seen", (2,), ms.float32, "aot")


def test_kinds_of_functions():
    for kind in ("akg", "tbe", "aicpu"):
        with pytest.raises(Unsupported, match="use one of pyfunc, hybrid, aot"):
            ops.Custom(lambda x: x, (2,), ms.float32, kind)
    with pytest.raises(ValueError, match="func_type"):
        ops.Custom(lambda x: x, (2,), ms.float32, "julia")


def test_without_a_compiler_it_is_said(monkeypatch, tmp_path):
    from mycel.ops.operations import custom_sources

    source = tmp_path / "a.cc"
    source.write_text("\n")
    monkeypatch.setattr(custom_sources.shutil, "which", lambda name: None)
    with pytest.raises(Unsupported, match="there is no compiler"):
        ops.Custom(f"{source}:f", (2,), ms.float32, "aot")

"""Operations that show, check or write values: at once in eager mode, after each call of a compiled
function; what is written is read again.
"""

import re

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

CHECKED = {
    "ops.Print": "MindSpore 2.10",
    "ops.Assert": "MindSpore 2.10",
    **{f"ops.{name}": "NumPy" for name in "TensorDump tensordump DumpGradient".split()},
}


def test_print(capsys):
    def program(x):
        ops.Print()("a", x, 1, (2, 3), True, None)
        return x * 2

    wanted = "a\nTensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])\n1\n(2, 3)\nTrue\nNone\n"
    for run in (program, ms.jit(program)):
        for _ in range(2):
            assert run(Tensor([1.0, 2.0])).tolist() == [2, 4]
            assert capsys.readouterr().out == wanted
    with pytest.raises(ValueError):
        ops.Print()()


def test_print_where_a_tensor_decides(capsys):
    @ms.jit
    def program(x):
        if x > 0:
            ops.Print()("positive")
        return x

    for value, wanted in ((1.0, "positive\n"), (-1.0, ""), (2.0, "positive\n")):
        program(Tensor(value))
        assert capsys.readouterr().out == wanted


def test_assert():
    def program(condition, x):
        ops.Assert()(condition, [x, Tensor([[1, 2], [3, 4]])])
        return x + 1

    compiled = ms.jit(program)
    for run in (program, compiled, program, compiled):
        assert run(Tensor(True), Tensor([1.0])).tolist() == [2]
        with pytest.raises(RuntimeError, match=re.escape("[1.0]\n[1 2 3 ...]")):
            run(Tensor(False), Tensor([1.0]))
    ops.Assert()(True, [])
    ops.Assert()(Tensor([True, True]), (Tensor(1.0),))
    for count, shown in ((1, "[1 ...]"), (-1, "[1 2 3 4]"), (9, "[1 2 3 4]")):
        with pytest.raises(RuntimeError, match=re.escape(shown)):
            ops.Assert(summarize=count)(False, [Tensor([1, 2, 3, 4])])
    for call in (
        lambda: ops.Assert()(1, []),
        lambda: ops.Assert()(True, Tensor(1.0)),
        lambda: ops.Assert(1.5)(True, []),
        lambda: ops.Assert()(Tensor(1), []),
    ):
        with pytest.raises(TypeError):
            call()


def written(folder):
    """Each file's name without its number, and its array, in the order of the numbers."""
    files = sorted(folder.rglob("*.npy"), key=lambda p: int(p.stem.rpartition("_")[2]))
    return [(p.stem.rpartition("_")[0], np.load(p)) for p in files]


def test_dumping(tmp_path):
    x = Tensor([[1.0, 2.0], [3.0, 4.5]])
    path = f"{tmp_path}/new/x"
    ops.tensordump(path, x)
    ops.TensorDump("in")(path + ".npy", x.astype(ms.int32))
    ops.tensordump(path, [x.astype(ms.bfloat16), Tensor(2)], "in")
    found = written(tmp_path)
    assert [name for name, _ in found] == ["x_float32", "x_int32", "x_bfloat16", "x_int64"]
    for (_, array), (wanted, dtype) in zip(
        found, ((x, "float32"), (x.astype(ms.int32), "int32"), (x, "float32"), (Tensor(2), "int64"))
    ):
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, wanted.asnumpy())
    for call, error in (
        (lambda: ops.tensordump("", x), ValueError),
        (lambda: ops.tensordump(1, x), TypeError),
        (lambda: ops.tensordump(path, 1), TypeError),
        (lambda: ops.tensordump(path, x, "all"), ValueError),
        (lambda: ops.TensorDump("all")(path, x), ValueError),
    ):
        with pytest.raises(error):
            call()
    assert len(written(tmp_path)) == 4


def test_dumping_from_compiled_functions(tmp_path):
    @ms.jit
    def program(x):
        ops.TensorDump()(f"{tmp_path}/y", x * 2)
        return x + 1

    for value in (1.0, 5.0):
        assert program(Tensor([value])).tolist() == [value + 1]
    assert [array.tolist() for _, array in written(tmp_path)] == [[2.0], [10.0]]


def test_dumping_gradients(tmp_path):
    function = lambda x: (ops.DumpGradient()(f"{tmp_path}/g", x * x, "out") * 3.0).sum()
    assert function(Tensor([1.0, 2.0])).item() == 15 and written(tmp_path) == []
    gradient = ms.grad(function)
    for count, run in enumerate((gradient, ms.jit(gradient), ms.jit(gradient)), 1):
        assert run(Tensor([1.0, 2.0])).tolist() == [6, 12]
        found = written(tmp_path)
        assert len(found) == count and found[-1][0] == "g_float32" and found[-1][1].tolist() == [3, 3]
    with pytest.raises(ValueError):
        ops.DumpGradient()("", Tensor(1.0), "out")
    with pytest.raises(TypeError):
        ops.DumpGradient()("x", 1.0, "out")

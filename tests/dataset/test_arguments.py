"""Arguments of the package do something, or it is said once that they do not; and results of a
`per_batch_map` are columns.
"""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import Tensor, mindrecord
from mycel._src.foundation import logged_once
from mycel.dataset.audio import single_thread_products
from mycel.mindrecord import FileReader, MindPage

ROOTS = [Path(str(package.__file__)).parent for package in (ds, mindrecord)]
# Methods that others call, each with all that any of its kind may need.
PROTOCOL = {"compute", "accepts", "apply", "apply_block", "bytes_of", "chained", "ds_begin", "__exit__"}


@pytest.fixture
def said(caplog):
    logged_once._said.clear()
    logger = logging.getLogger("mycel")
    logger.addHandler(caplog.handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield lambda: [record.getMessage() for record in caplog.records]
    logger.setLevel(level)
    logger.removeHandler(caplog.handler)


def functions():
    for package, path in [(root.parent, path) for root in ROOTS for path in sorted(root.rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for item in node.body if isinstance(node, (ast.ClassDef, ast.Module)) else ():
                if isinstance(item, ast.FunctionDef):
                    yield f"{path.relative_to(package)}:{getattr(node, 'name', '')}.{item.name}", item


def test_every_argument_is_read():
    unread = []
    for name, function in functions():
        short = function.name
        if short in PROTOCOL or (short.startswith("_") and short != "__init__"):
            continue
        if all(
            isinstance(line, ast.Raise) or isinstance(getattr(line, "value", None), ast.Constant)
            for line in function.body
        ):
            continue
        given = function.args
        names = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a}
        read = {node.id for line in function.body for node in ast.walk(line) if isinstance(node, ast.Name)}
        unread += [f"{name}: {argument}" for argument in names - read - {"self", "cls", "_"}]
    assert not unread


def numbers():
    return ds.NumpySlicesDataset(list(range(6)), ["x"], shuffle=False)


def test_what_has_no_effect_is_said_once(said):
    for _ in range(3):
        numbers().map(lambda x: x, python_multiprocessing=True, max_rowsize=16)
        numbers().map(ds.transforms.TypeCast("int8"), python_multiprocessing=True)
        numbers().filter(lambda x: True, num_parallel_workers=2)
        numbers().batch(2, num_parallel_workers=3, python_multiprocessing=True)
        ds.NumpySlicesDataset([1, 2], num_parallel_workers=2)
        ds.GeneratorDataset([1, 2], ["x"], num_parallel_workers=2)
    assert said() == [
        "map: max_rowsize=16 has no effect: the memory that processes share grows with the rows",
        "map: python_multiprocessing=True has no effect: transforms of the library run in threads",
        "batch: python_multiprocessing=True has no effect: there is no per_batch_map for processes to call",
        "NumpySlicesDataset: num_parallel_workers=2 has no effect: it runs in the pipeline's own thread",
    ]


def test_what_is_given_for_its_effect_alone_is_a_warning(said, caplog):
    ds.config.set_numa_enable(True)
    ds.config.set_monitor_sampling_interval(500)
    ds.GeneratorDataset([1, 2], ["x"], max_rowsize=6)
    ds.config.set_numa_enable(False)
    ds.config.set_monitor_sampling_interval(1000)
    assert [message.partition(":")[0] for message in said()] == [
        "set_numa_enable",
        "set_monitor_sampling_interval",
        "GeneratorDataset",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_what_works_or_is_the_default_says_nothing(said):
    numbers().map(lambda x: x, num_parallel_workers=2).batch(2, num_parallel_workers=1).filter(lambda x: True)
    ds.GeneratorDataset([1, 2], ["x"])
    ds.GeneratorDataset([1, 2], ["x"], num_parallel_workers=2, python_multiprocessing=False)
    assert said() == []
    with pytest.raises(TypeError, match="map: python_multiprocessing must be a bool, not str"):
        numbers().map(lambda x: x, python_multiprocessing="yes")


@pytest.mark.parametrize(
    "result, outputs, message",
    [
        (([1, 2], {1, 2}), ["x", "y"], "column 'y' must be a list of rows or an array"),
        (([1, 2], [3, 4]), ["x"], "returned 2 columns, a list, a list, for 1 output columns .'x'.; return a tuple"),
        ([1, 2], ["x", "y"], "returned 1 columns, a list, for 2 output columns"),
        (None, ["x"], "returned a NoneType"),
        ("ab", ["x"], "returned a str"),
        (b"ab", ["x"], "returned a bytes"),
        ((5,), ["x"], "returned a int"),
        (np.float32(1), ["x"], "returned a float32"),
        ((), ["x"], "returned 0 columns, none, for 1"),
        (([],), ["x"], "returned no rows for column 'x'"),
        (([{1}],), ["x"], "a column must be a number, text, bytes"),
        (([[1], [1, 2]],), ["x"], "has shape"),
    ],
)
def test_per_batch_map_gives_columns(result, outputs, message):
    data = numbers().batch(2, per_batch_map=lambda x, info: result, input_columns=["x"], output_columns=outputs)
    with pytest.raises((RuntimeError, ValueError), match=message):
        list(data.create_tuple_iterator(num_epochs=1))


@pytest.mark.parametrize("result", [([1, 2],), [1, 2], (1, 2), np.array([1, 2]), Tensor([1, 2], ms.int64)])
def test_per_batch_map_gives_one_column_in_many_ways(result):
    result = (result,) if isinstance(result, tuple) and not isinstance(result[0], list) else result
    data = numbers().batch(2, per_batch_map=lambda x, info: result)
    assert [x.tolist() for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [[1, 2]] * 3


# Products within the threads of a pipeline.


@pytest.mark.parametrize("lead", [(), (3,), (2, 1, 2)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (40, 128, 101), (128, 1025, 70), (5, 9000, 3), (3, 4, 0)])
@pytest.mark.parametrize("share", [0.02, 1.0])
def test_filters_are_applied_in_pieces_that_no_library_shares_out(monkeypatch, lead, shape, share):
    rows, inner, frames = shape
    random = np.random.default_rng(1)
    matrix = np.where(random.random((rows, inner)) < share, random.standard_normal((rows, inner)), 0.0)
    values = random.standard_normal((*lead, inner, frames)).astype(np.float32)
    sizes = []
    plain = np.matmul
    monkeypatch.setattr(
        single_thread_products.np,
        "matmul",
        lambda a, b, out: sizes.append(a.size * b.shape[-1]) or plain(a, b, out=out),
    )
    found = single_thread_products.filtered(matrix, values)
    assert found.dtype == np.float32 and found.shape == (*lead, rows, frames) and found.flags.c_contiguous
    scale = np.abs(matrix) @ np.abs(values).astype(np.float64) if frames else np.ones((1,))
    assert np.all(np.abs(found - plain(matrix, values.astype(np.float64))) <= 1e-6 * scale + 1e-12)
    assert max(sizes, default=0) <= 1 << 17


def test_no_other_product_of_matrices_is_left_to_a_library():
    products_of = {"dot", "matmul", "tensordot", "inner", "vdot"}
    found = set()
    for path in ROOTS[0].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                found.add(path.name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in products_of:
                found.add(path.name)
    # A sparse product and the pieces; three numbers by three; integers; a matrix of the user's, as
    # large as an image squared.
    assert found <= {"single_thread_products.py", "filters.py", "warp.py", "color.py", "composition.py"}, found


def test_readers_of_records_say_what_has_no_effect(said, tmp_path):
    name = str(tmp_path / "a")
    numbers().save(name)
    for _ in range(2):
        FileReader(name).close()
        FileReader(name, 2, operator=1).close()
        MindPage(name, 3)
    assert said() == [
        "FileReader: num_consumer=2 has no effect: rows are read in the thread that asks for them",
        "FileReader: operator=1 has no effect: nothing is done to the rows",
        "MindPage: num_consumer=3 has no effect: rows are read in the thread that asks for them",
    ]
    with pytest.raises(RuntimeError, match="FileReader: there is no file"):
        FileReader(name + "b")
    with pytest.raises(RuntimeError, match="MindDataset: there is no file"):
        ds.MindDataset(name + "b")
    with pytest.raises(mindrecord.MRMOpenError, match="already; remove it, or pass overwrite=True to FileWriter"):
        numbers().save(name)


def test_one_thread_for_open_files_is_said(said, tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(6)))
    with open(tmp_path / "a", "rb") as file:

        def byte(x, *rest):
            file.seek(int(x))
            return file.read(1)[0] == x

        def batch(x, info):
            # The function that it calls has the file.
            return ([byte(value) for value in x],)

        for data in (
            numbers().filter(byte, num_parallel_workers=2),
            numbers().batch(1, num_parallel_workers=3, per_batch_map=batch),
            numbers().map(byte, num_parallel_workers=4),
        ):
            assert len(list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))) == 6
    assert [message[:60] for message in said()] == [
        "filter: num_parallel_workers=2 has no effect: threads must n",
        "batch: num_parallel_workers=3 has no effect: threads must no",
        "map: num_parallel_workers=4 has no effect: threads must not ",
    ]


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (lambda: numbers().map(abs, foo=1), TypeError, "map.. got an unexpected keyword argument 'foo'"),
        (lambda: numbers().batch(2, foo=1), TypeError, "batch.. got an unexpected keyword argument 'foo'"),
        (lambda: numbers().zip(5), TypeError, "zip: datasets must be a dataset or a list of them, not int"),
        (lambda: numbers() + 5, TypeError, "concat: datasets must be a dataset or a list of them, not int"),
        (
            lambda: ds.TextFileDataset(__file__, shuffle=ds.Shuffle.ADAPTIVE),
            NotImplementedError,
            "TextFileDataset: Shuffle.ADAPTIVE is not supported; use True, False, or Shuffle.GLOBAL, Shuffle.FILES, ",
        ),
        (lambda: numbers().filter(abs, num_parallel_workers=0), ValueError, r"filter: num_.* within \[1, 1024\]"),
    ],
)
def test_wrong_calls_say_what_is_wanted(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


def _data() -> ds.Dataset:
    return ds.NumpySlicesDataset({"a": [1, 2, 3], "b": [4, 5, 6]}, shuffle=False)


class _WithoutLength:
    def __getitem__(self, index):
        return index

    def __len__(self):
        raise TypeError("many")


@pytest.mark.parametrize(
    "make",
    [
        lambda: _data().map(lambda x: x, "z"),
        lambda: _data().project("z"),
        lambda: _data().rename("z", "y"),
        lambda: _data().rename("a", "b"),
        lambda: _data().zip(_data()),
        lambda: _data().concat(_data().project("a")),
        lambda: _data().padded_batch(2, pad_info={"z": ([2], 0)}),
        lambda: _data().map([]),
        lambda: _data().create_tuple_iterator(columns=["z"]),
        lambda: _data().create_dict_iterator(num_epochs=0),
        lambda: ds.DistributedSampler(2, 3),
        lambda: ds.DistributedSampler(2, 0, offset=3),
        lambda: ds.SequentialSampler(-1),
        lambda: ds.WeightedRandomSampler([0, 0]),
        lambda: ds.vision.BoundingBoxAugment(ds.vision.HorizontalFlip())(np.zeros((2, 2, 3), np.uint8)),
    ],
)
def test_what_mindspore_refuses_as_a_runtime_error_is_one(make):
    with pytest.raises(RuntimeError) as caught:
        make()
    assert isinstance(caught.value, ValueError)


def test_refusals_have_mindspores_classes():
    with pytest.raises(ValueError, match="map: operations must be functions or transforms, not 3"):
        _data().map(3)
    with pytest.raises(ValueError, match="functions or transforms, not the class .*TypeCast.*; call it to make one"):
        _data().map(ds.transforms.TypeCast)
    with pytest.raises(TypeError, match="split: sizes must be a list"):
        _data().split(3)
    with pytest.raises(ValueError, match="split: the list of sizes is empty"):
        _data().split([])
    with pytest.raises(RuntimeError, match="Slice: index 9 is out of range") as caught:
        ds.transforms.Slice(9)(np.arange(3))
    assert isinstance(caught.value, IndexError)
    with pytest.raises(TypeError, match="does not say its length"):
        ds.GeneratorDataset(_WithoutLength(), ["a"], shuffle=False).get_dataset_size()
    assert issubclass(ms.mindrecord.MindRecordException, RuntimeError)

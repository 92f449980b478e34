"""Chains of dataset operations as data, and what a module `dataset` makes of them.

A program is `{"source": [name, arguments], "steps": [[operation, arguments], ...]}`. `answers`
runs one with the given module, Mycel's or MindSpore's, and returns what a user sees of it as JSON.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

ROWS = 7
A = (np.arange(2 * ROWS, dtype=np.float32) * 0.5).reshape(ROWS, 2)
B = np.arange(ROWS, dtype=np.int32) * 10


class Pairs:
    """Rows that are read by number: `A` and `B`."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return A[index], B[index]

    def __len__(self) -> int:
        return ROWS


class Ragged:
    """Rows whose first column has 1, 2 or 3 numbers."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return np.arange(1 + index % 3, dtype=np.int64) + index, np.array(index, np.float32)

    def __len__(self) -> int:
        return ROWS


def stream() -> Any:
    """Yield the rows of `Pairs` one after the other."""
    for index in range(ROWS):
        yield A[index], B[index]


def _sampler(ds: Any, name: str, arguments: list[Any], child: Any) -> Any:
    made = getattr(ds, name)(*arguments)
    if child is not None:
        made.add_child(_sampler(ds, *child))
    return made


def source(ds: Any, name: str, options: dict[str, Any]) -> Any:
    """Return one of the sources; `options` has `prefix`, `sampler` and arguments as they are."""
    options = dict(options)
    prefix = options.pop("prefix", "")
    columns = [prefix + "a", prefix + "b"]
    sampler = options.pop("sampler", None)
    if sampler is not None:
        options["sampler"] = sampler if isinstance(sampler[0], int) else _sampler(ds, *sampler)
    elif name != "stream":
        options.setdefault("shuffle", False)
    if name == "slices":
        return ds.NumpySlicesDataset((A.copy(), B.copy()), columns, **options)
    if name == "dictionary":
        return ds.NumpySlicesDataset({columns[0]: A.copy(), columns[1]: B.copy()}, **options)
    if name == "texts":
        return ds.NumpySlicesDataset((["one", "two", "three", "fourth", "", "six", "x"], B.copy()), columns, **options)
    if name == "stream":
        return ds.GeneratorDataset(stream, columns, **options)
    return ds.GeneratorDataset({"pairs": Pairs, "ragged": Ragged}[name](), columns, **options)


def _doubled(values: Any) -> Any:
    # In the same type for every version of NumPy.
    return tuple(np.multiply(v, 2, dtype=v.dtype) for v in values)


def _grow(*columns: Any) -> Any:
    return columns[0], np.array(len(columns), np.int16)


def _by_batch(*columns: Any) -> Any:
    *values, info = columns
    made = tuple([np.asarray(v) for v in column] for column in values)
    return (made[0], [np.array(info.get_batch_num(), np.int32)] * len(made[0])) if len(made) == 1 else made


def _summed(*columns: Any) -> Any:
    *values, _ = columns
    return ([np.sum(np.asarray(v), dtype=np.float64) for v in values[0]],)


def _whole(*columns: Any) -> Any:
    return tuple(np.stack([np.asarray(v) for v in column]) for column in columns[:-1])


def _size(info: Any) -> int:
    return int(info.get_batch_num()) % 2 + 1


FUNCTIONS: dict[str, Any] = {
    "same": lambda *x: x if len(x) > 1 else x[0],
    "first": lambda *x: x[0],
    "double": lambda *x: _doubled(x) if len(x) > 1 else _doubled(x)[0],
    "grow": _grow,
    "total": lambda *x: np.float64(sum(float(np.sum(v)) for v in x)),
    "number": lambda *x: len(x),
    "real": lambda *x: 0.5,
    "word": lambda *x: f"w{len(x)}",
    "flag": lambda *x: bool(np.size(x[0]) > 1),
    "list": lambda *x: [1, 2, 3],
    "bytes": lambda *x: b"ab",
    "half": lambda *x: np.asarray(x[0]).astype(np.float16),
    "keys": lambda *x: {"k": x[0], "n": 1},
    "key": lambda *x: x[0]["k"] if isinstance(x[0], dict) else x[0],
    "held": lambda *x: ({"k": list(x[0])},),
    "nothing": lambda *x: None,
    "by_batch": _by_batch,
    "summed": _summed,
    "whole": _whole,
    "size": _size,
    "even": lambda *x: bool(int(np.sum(x[-1])) // 10 % 2 == 0),
    "small": lambda *x: np.sum(np.asarray(x[0], np.float64)) < 9,
    "none": lambda *x: False,
    "length": lambda *x: len(x[0]),
    "pairs": lambda d: d.batch(2),
    "start": lambda d: d.take(2),
}


def _operations(ds: Any, names: Any) -> Any:
    made = []
    for name in names:
        if isinstance(name, list):
            kind, *arguments = name
            made.append(
                getattr(ds.transforms, kind)(*(getattr(np, a, a) if isinstance(a, str) else a for a in arguments))
            )
        else:
            made.append(FUNCTIONS[name])
    return made


def _of_arity(function: Any, count: int) -> Any:
    """Return the function with this number of named parameters, which MindSpore counts."""
    named = ", ".join(f"x{place}" for place in range(count))
    return eval(f"lambda {named}: function({named})", {"function": function})


def step(ds: Any, data: Any, operation: str, arguments: dict[str, Any]) -> Any:
    """Return `data` with one operation applied to it."""
    options = dict(arguments)
    if operation == "map":
        options["operations"] = _operations(ds, options["operations"])
        return data.map(**options)
    if operation in ("batch", "padded_batch"):
        if isinstance(options["batch_size"], str):
            options["batch_size"] = FUNCTIONS[options["batch_size"]]
        if "per_batch_map" in options:
            given = options.get("input_columns", data.get_col_names())
            options["per_batch_map"] = _of_arity(FUNCTIONS[options["per_batch_map"]], len(given) + 1)
        if options.get("pad_info"):
            options["pad_info"] = {k: v if v is None else tuple(v) for k, v in options["pad_info"].items()}
        return getattr(data, operation)(**options)
    if operation == "bucket_batch_by_length":
        if "element_length_function" in options:
            options["element_length_function"] = FUNCTIONS[options["element_length_function"]]
        if options.get("pad_info"):
            options["pad_info"] = {k: v if v is None else tuple(v) for k, v in options["pad_info"].items()}
        return data.bucket_batch_by_length(**options)
    if operation == "filter":
        options["predicate"] = FUNCTIONS[options["predicate"]]
        return data.filter(**options)
    if operation == "apply":
        return data.apply(FUNCTIONS[options["function"]])
    if operation in ("zip", "concat"):
        return getattr(data, operation)(source(ds, *options["other"]))
    if operation == "add":
        return data + source(ds, *options["other"])
    if operation == "split":
        return data.split(options["sizes"], randomize=False)[options["part"]]
    if operation == "use_sampler":
        data.use_sampler(_sampler(ds, *options["sampler"]))
        return data
    return getattr(data, operation)(**options)


def build(ds: Any, program: dict[str, Any]) -> Any:
    """Return the dataset that a program describes."""
    data = source(ds, *program["source"])
    for operation, arguments in program["steps"]:
        data = step(ds, data, operation, arguments)
    return data


def _value(array: Any) -> Any:
    if isinstance(array, dict):
        return {key: _value(value) for key, value in array.items()}
    if isinstance(array, list):
        return ["list", [_value(value) for value in array]]
    array = np.asarray(array)
    kind = array.dtype.kind if array.dtype.kind in "US" else str(array.dtype)
    values = array.tolist()
    if kind == "object":
        return ["object", repr(values)]
    return [kind, list(array.shape), _text(values) if kind == "S" else values]


def _text(value: Any) -> Any:
    return [_text(v) for v in value] if isinstance(value, list) else value.decode("latin1")


def _asked(question: Any) -> Any:
    try:
        return question()
    except Exception as error:
        return "!" + type(error).__name__


def _type(dtype: Any) -> str:
    found = np.dtype(dtype)
    return found.kind if found.kind in "US" else str(found)


def _rows(data: Any, epochs: int) -> list[Any]:
    """Return the rows of some epochs, or those before an error and its class."""
    rows: list[Any] = []
    iterator = _asked(lambda: data.create_dict_iterator(num_epochs=epochs, output_numpy=True))
    if isinstance(iterator, str):
        return [iterator]
    for _ in range(epochs):
        try:
            for row in iterator:
                rows.append({name: _value(value) for name, value in row.items()})
                if len(rows) > 60:
                    return rows
        except Exception as error:
            return [*rows, "!" + type(error).__name__]
        rows.append("end")
    return rows


def _answer(question: Any, ds: Any, program: dict[str, Any]) -> Any:
    return question(build(ds, program))


def answers(ds: Any, program: dict[str, Any]) -> dict[str, Any]:
    """Return what a program gives: names, sizes, shapes, types, and the rows of its epochs."""
    made = _asked(lambda: build(ds, program))
    if isinstance(made, str):
        return {"build": made}
    questions = {
        "size": lambda d: d.get_dataset_size(),
        "batch": lambda d: d.get_batch_size(),
        "repeat": lambda d: d.get_repeat_count(),
        "names": lambda d: d.get_col_names(),
        "shapes": lambda d: [list(shape) for shape in d.output_shapes()],
        "estimated": lambda d: [list(shape) for shape in d.output_shapes(estimate=True)],
        "types": lambda d: [_type(dtype) for dtype in d.output_types()],
        "classes": lambda d: d.num_classes(),
        "indexing": lambda d: d.get_class_indexing(),
    }
    found: dict[str, Any] = {}
    for name, question in questions.items():
        # Each of a dataset of its own, as MindSpore remembers what it was asked before.
        found[name] = _asked(partial(_answer, question, ds, program))
    endless = found["repeat"] == -1
    found["rows"] = _rows(made, 1 if endless else program.get("epochs", 1))
    return found

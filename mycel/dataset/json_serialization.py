"""Pipelines as JSON: `serialize` describes one, and `deserialize` makes it again.

A description has the form of MindSpore's: for every dataset its kind, its arguments by name, and
those it reads as `children`; for every transform its name and arguments. Functions and data in
memory have no description: they are marked, and cannot be made again.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.caching.dataset_cache import DatasetCache
from mycel.dataset.nodes.graph_description import FUNCTION, written
from mycel.dataset.nodes.node import Node
from mycel.dataset.pipeline import Dataset
from mycel.dataset.samplers import BuiltinSampler
from mycel.dataset.transforms.base import Transform

__all__ = ["compare", "deserialize", "serialize", "show"]


def serialize(dataset: Dataset, json_filepath: str = "") -> dict[str, Any]:
    """Return the description of a pipeline as a dictionary, and write it to a file.

    * `dataset`: the pipeline.
    * `json_filepath`: the name of the file; none is written where it is empty.

    >>> import mycel.dataset as ds
    >>> numbers = ds.NumpySlicesDataset([1, 2, 3], ["x"])
    >>> found = ds.serialize(numbers.batch(2))
    >>> found["op_type"], found["batch_size"], found["children"][0]["op_type"]
    ('Batch', 2, 'NumpySlicesDataset')
    """
    arguments.instance("serialize", "dataset", dataset, Node, "a dataset")
    return written(dataset, json_filepath)


def show(dataset: Dataset, indentation: int = 2) -> None:
    """Print the description of a pipeline as JSON; `indentation` is that of its parts.

    >>> import mycel.dataset as ds
    >>> ds.show(ds.FakeImageDataset(3, (2, 2, 3), 3).skip(1))
    {
      "op_type": "Skip",
      "children": [
    ...
      "count": 1
    }
    """
    print(json.dumps(serialize(dataset), indent=indentation))


def compare(pipeline1: Dataset, pipeline2: Dataset) -> bool:
    """Return whether two pipelines have the same description.

    Functions and objects in memory have none: pipelines that differ in these alone are the same.

    >>> import mycel.dataset as ds
    >>> images = ds.FakeImageDataset(3, (2, 2, 3), 3)
    >>> ds.compare(images.batch(2), images.batch(2)), ds.compare(images.batch(2), images.batch(3))
    (True, False)
    """
    return serialize(pipeline1) == serialize(pipeline2)


def _kinds(base: type[Any]) -> Iterator[type[Any]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _known(base: type[Any], name: str, what: str) -> type[Any]:
    for kind in _kinds(base):
        if kind.__name__ == name:
            return kind
    raise ValueError(f"deserialize: there is no {what} {name!r}")


def _made(kind: type[Any], named: dict[str, Any], *first: Any) -> Any:
    given: list[Any] = list(first)
    options: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(kind.__init__).parameters.items())[1:]:
        if name in named:
            value = _revived(named[name], f"{kind.__name__}: {name}")
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                given += value
            else:
                options[name] = value
    return kind(*given, **options)


def _revived(value: Any, where: str) -> Any:
    if value == FUNCTION:
        raise ValueError(f"deserialize: {where} is a function or an object in memory, which has no description")
    if isinstance(value, list):
        return [_revived(part, where) for part in value]
    if not isinstance(value, dict):
        return value
    if "tensor_op_name" in value:
        return _made(_known(Transform, value["tensor_op_name"], "transform"), value["tensor_op_params"])
    if "sampler_name" in value:
        sampler = _made(_known(BuiltinSampler, value["sampler_name"], "sampler"), value)
        for child in value.get("child_sampler", ()):
            sampler.add_child(_revived(child, where))
        return sampler
    if set(value) == {"cache_client"}:
        return DatasetCache(**value["cache_client"])
    if set(value) == {"enum"}:
        kind, _, name = value["enum"].partition(".")
        return getattr(_known(Enum, kind, "constant"), name)
    if set(value) == {"type"}:
        return np.dtype(value["type"])
    return {name: _revived(part, where) for name, part in value.items()}


def _dataset(found: Any) -> Dataset:
    if isinstance(found, dict) and "remark" in found and "tree" in found:
        found = found["tree"]
    if not isinstance(found, dict) or "op_type" not in found:
        raise ValueError(f"deserialize: the input must describe a dataset, not be {found!r:.80}")
    children = [_dataset(child) for child in found.get("children", ())]
    name = found["op_type"]
    kind = _known(Dataset, f"{name}Dataset" if children else name, "dataset")
    if kind._in_memory:
        raise ValueError(f"deserialize: the rows of {name} are an object in memory, which has no description")
    first = [] if not children else [children] if kind._several else children
    made: Dataset = _made(kind, found, *first)
    return made


def deserialize(input_dict: dict[str, Any] | None = None, json_filepath: str | None = None) -> Dataset:
    """Return the pipeline of a description that `serialize` gave.

    * `input_dict`: the description.
    * `json_filepath`: the name of its file, which is read where there is no `input_dict`. It may be
      one that autotune wrote.

    Raises ValueError for functions and data in memory, which have no description.

    >>> import mycel.dataset as ds
    >>> made = ds.FakeImageDataset(5, (2, 2, 3), 3, shuffle=False).batch(2, drop_remainder=True)
    >>> again = ds.deserialize(ds.serialize(made))
    >>> again.get_dataset_size(), ds.compare(made, again)
    (2, True)
    """
    if input_dict is not None:
        return _dataset(input_dict)
    if not json_filepath:
        raise ValueError("deserialize: give a description as input_dict, or the name of its file as json_filepath")
    with open(json_filepath, encoding="utf-8") as handle:
        try:
            found = json.load(handle)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"deserialize: {json_filepath} cannot be read as JSON: {error}") from error
    return _dataset(found)

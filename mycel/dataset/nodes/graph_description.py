"""Descriptions of pipelines as dictionaries, in the form of MindSpore's JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from mycel._src.foundation import dtype as types
from mycel._src.foundation.files import atomic_files
from mycel.dataset.caching.dataset_cache import DatasetCache
from mycel.dataset.nodes.node import Node
from mycel.dataset.samplers import BuiltinSampler
from mycel.dataset.transforms.base import Transform

FUNCTION = "pyfunc"
# The arguments of a dataset that are its children.
_CHILDREN = ("input_dataset", "datasets")
_NONE: dict[int, int] = {}


def arguments_of(thing: Any) -> dict[str, Any]:
    """Return the arguments that an object was made with, by name; none where they are data."""
    if getattr(type(thing), "_in_memory", False):
        return {}
    args, kwargs = thing.__dict__.get("_made_of", ((), {}))
    bound = inspect.signature(type(thing).__init__).bind(thing, *args, **kwargs)
    bound.apply_defaults()
    named = dict(list(bound.arguments.items())[1:])
    named.update(named.pop("kwargs", {}))
    return named


def _described(value: Any) -> Any:
    if isinstance(value, Enum):
        return {"enum": f"{type(value).__name__}.{value.name}"}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Transform):
        return {"tensor_op_name": type(value).__name__, "tensor_op_params": _all_described(arguments_of(value))}
    if isinstance(value, BuiltinSampler):
        child = {} if value.child_sampler is None else {"child_sampler": [_described(value.child_sampler)]}
        return {"sampler_name": type(value).__name__, **_all_described(arguments_of(value)), **child}
    if isinstance(value, DatasetCache):
        given = {name: held for name, held in vars(value).items() if not name.startswith("_")}
        return {"cache_client": given}
    if isinstance(value, (list, tuple)):
        return [_described(part) for part in value]
    if isinstance(value, dict):
        return _all_described(value)
    try:
        return {"type": np.dtype(value if isinstance(value, (type, np.dtype)) else types.to_numpy(value)).name}
    except TypeError:
        return FUNCTION


def _all_described(named: dict[str, Any]) -> dict[str, Any]:
    return {name: _described(value) for name, value in named.items()}


def kind(node: Node) -> str:
    """Return what descriptions call a node."""
    name = type(node).__name__
    return name if not node.children else name.removesuffix("Dataset")


def tree(node: Node, workers: Mapping[int, int] = _NONE) -> dict[str, Any]:
    """Return the description of a pipeline, with other numbers of `workers` by the node's id."""
    found: dict[str, Any] = {"op_type": kind(node), "children": [tree(child, workers) for child in node.children]}
    named = {key: value for key, value in arguments_of(node).items() if key not in _CHILDREN}
    if "operations" in named and not isinstance(named["operations"], (list, tuple)):
        named["operations"] = [named["operations"]]
    if id(node) in workers:
        named["num_parallel_workers"] = workers[id(node)]
    return {**found, **_all_described(named)}


def written(node: Node, filename: str) -> dict[str, Any]:
    """Return the description of a pipeline, and write it to a file unless the name is empty."""
    found = tree(node)
    if filename:
        atomic_files.write(filename, json.dumps(found, indent=2).encode(), "description of a pipeline")
    return found

"""Strategy files: the strategies of a divided program's operators, saved and loaded.

A file is JSON: ``{"parallel_strategy_item": {NAME: {"stage": 0, "parallel_strategy": [[2, 1], [1,
4]]}}}`` with the operators' names, as ``Default/network-Net/MatMul-op0``, and for each input the
number of parts of each axis. What programs of one process save goes into one file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.transforms.expansion import without_calls
from mycel._src.compiler.transforms.operator_regions import Region, regions_of, without_marks
from mycel._src.compiler.transforms.partition import implied, opened
from mycel._src.foundation.files.atomic_files import replacing
from mycel._src.foundation.system import locks
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.distributed.version_partition import VersionParts

__all__ = ["Strategies", "chosen", "load_strategies", "save_strategies"]

Strategies = Mapping[str, list[list[int]]]

_ITEMS = "parallel_strategy_item"
_lock = locks.reentrant()
_saved: dict[str, dict[str, list[list[int]]]] = {}


def chosen(version: Version, parts: VersionParts) -> dict[str, list[list[int]]]:
    """Return how a program is divided: for each operator, by its name, the number of parts of each
    axis of each input.

    They are those of the user, and where the user gave none those that follow, or that were
    searched for. Operators of which nothing is left in the program have the user's.
    """
    said = {o.name: [list(d.cuts) for d in given if d is not None] for o, given in version.strategies}
    marked, image = _image(version, parts)
    for region in regions_of(marked):
        if region.inputs:
            said.setdefault(region.operator.name, _cuts(region, parts, image))
    order = sorted(said, key=lambda name: int(name.rpartition("op")[2]))
    return {name: said[name] for name in order}


def _image(version: Version, parts: VersionParts) -> tuple[Graph, Mapping[Node, Node]]:
    """Return a version's graph with its marks, and what became of its nodes in the graph that was
    divided.
    """
    given = parts.graph
    if regions_of(given):
        return given, {node: node for node in given.nodes}
    marked = opened(without_calls(version.graph))
    plain, image = without_marks(marked)
    if len(plain.nodes) != len(given.nodes):
        return marked, {}
    same = dict(zip(plain.nodes, given.nodes))
    return marked, {node: same[made] for node, made in image.items() if made in same}


def _cuts(region: Region, parts: VersionParts, image: Mapping[Node, Node]) -> list[list[int]]:
    """Return the numbers of parts of an operator's inputs: as its nodes take them."""
    divisions = parts.made.divisions
    result = []
    for mark in region.inputs:
        layout = next(
            (
                implied(image[node], divisions[image[node]])[0][node.inputs.index(mark)]
                for node in region.nodes
                if mark in node.inputs and node in image and image[node] in divisions
            ),
            None,
        )
        cuts = [1] * mark.type.rank
        if layout is None and image.get(mark) in divisions and divisions[image[mark]].parts:
            layout = implied(image[mark], divisions[image[mark]])[1][0]
        for part in layout.parts if layout is not None else ():
            cuts[part.axis] *= part.count
        result.append(cuts)
    return result


def save_strategies(path: str, found: Strategies) -> None:
    """Write the strategies of a program's operators to a file, with those saved there before."""
    with _lock:
        known = _saved.setdefault(path, {})
        known.update(found)
        items = {name: {"stage": 0, "parallel_strategy": cuts} for name, cuts in known.items()}
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with replacing(path, "strategies of operators") as temporary:
            temporary.write_text(json.dumps({_ITEMS: items}, indent=1), encoding="utf-8")


def load_strategies(path: str) -> Strategies:
    """Return the strategies in a file, by the names of operators.

    Raises FileNotFoundError where there is no such file, ValueError for one of another form.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"the file of operators' strategies {path!r} is not there")
    with open(path, encoding="utf-8") as file:
        try:
            content: Any = json.load(file)
            found = {n: [[int(c) for c in cuts] for cuts in v["parallel_strategy"]] for n, v in content[_ITEMS].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path!r} is no file of operators' strategies: {type(error).__name__}: {error}"
            ) from error
    return found

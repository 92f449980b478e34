"""How the package hangs together: no circles, no imports inside functions without a reason, folders
of a size that can be read, and short chains of classes.
"""

from __future__ import annotations

import configparser
import importlib
import inspect
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

from . import imports as sources
from .imports import AT_LOAD, FOR_TYPES, IN_FUNCTION, PACKAGE

LISTED = Path(__file__).parent / "imports_in_functions.txt"
# Imports between neighbours of a folder that close a circle, all of them inside functions.
CLOSING = {
    # The derivative of one primitive is made of others, whose derivatives are made of it.
    ("_src.compiler.prims.base", "_src.compiler.prims.shape"),
    ("_src.compiler.prims.elementwise_records", "_src.compiler.prims.reduce"),
    ("_src.compiler.prims.elementwise_records", "_src.compiler.prims.shape"),
    ("_src.compiler.prims.shape", "_src.compiler.prims.elementwise"),
    ("_src.compiler.prims.shape", "_src.compiler.prims.elementwise_records"),
    ("_src.compiler.prims.shape", "_src.compiler.prims.reduce"),
    ("_src.compiler.prims.control_flow.while_gradient", "_src.compiler.prims.control_flow.control"),
    ("_src.compiler.prims.indexing.index_factors", "_src.compiler.prims.indexing.index"),
    # The host's buffers are allocated by code that the native engine's generator makes.
    ("_src.engines.buffers", "_src.engines.native.runtime.allocator_ir"),
    ("_src.engines.buffers", "_src.engines.native.runtime.runtime"),
    # A bijector of a distribution is a distribution.
    ("nn.probability.bijector.base", "nn.probability.distribution.base"),
    ("nn.probability.bijector.base", "nn.probability.distribution.transformed"),
    # Methods and functions that name each other.
    ("ops.variants", "ops.operations.debugging"),
    ("ops.algebra.linalg", "ops.algebra.linear_systems"),
    ("ops.sparse.tensors", "ops.sparse.sparse_matrices"),
    ("ops.sparse.tensors", "ops.sparse.values"),
}
# Imports for types that close a circle, and why.
TYPED = {
    ("_src.tensors.core.eager", "_src.tensors.core.tensor"): "operations take tensors, whose methods they are",
    ("_src.tensors.core.execution_context", "_src.tensors.core.tensor"): "contexts take and give tensors, which ask "
    "the context in force what an operation does",
}
REASONS = {
    "circle": "the imported module needs the importer, which is loading",
    "start": "`import mycel` stays quick without it",
    "use": "only who calls the function needs it",
    "command": "a command loads what it uses, so that others begin at once",
}
# Classes of which users make subclasses: what is below them is counted from there.
BASES = """Cell Metric Callback Distribution Bijector LearningRateSchedule LossBase Optimizer Transform
ImageTransform AudioTransform TextTransform Tokenizer Dataset MappableDataset Sampler Primitive Type
Initializer TrainOneStepCell""".split()
# Longer chains, by the class where they begin, and why they are there.
CHAINS = {
    "MadeOf": "nodes of pipelines",
    "Dataset": "published data sets, by how their files lie",
    "MappableDataset": "published data sets that are held in memory",
    "AudioTransform": "masks along one axis or the other",
    "Cell": "paddings of one, two and three dimensions, as MindSpore's are",
    "Optimizer": "AdamW is an Adam in MindSpore",
    "Metric": "F1 is an Fbeta in MindSpore",
}


def edges_of(*when: str) -> dict[str, set[str]]:
    found = defaultdict(set)
    for each in sources.imports():
        if each.when in when:
            found[each.importer].add(each.imported)
    return dict(found)


def test_there_are_no_circles_when_modules_load() -> None:
    assert sources.circles(edges_of(AT_LOAD)) == []


def test_there_are_no_circles_of_types_but_those_with_a_reason() -> None:
    edges = edges_of(AT_LOAD, FOR_TYPES)
    circles = sources.circles(edges)
    for pair in TYPED:
        importer, imported = (f"mycel.{name}" for name in pair)
        assert any({importer, imported} <= {*circle} for circle in circles), pair
        edges[importer].remove(imported)
    assert sources.circles(edges) == []


def test_contracts_of_layers_count_imports_for_types() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(LISTED.parents[1] / ".importlinter", encoding="utf-8")
    assert not contracts.getboolean("importlinter", "exclude_type_checking_imports")


def test_neighbours_in_a_folder_are_in_no_circle() -> None:
    """In all folders but the package's own, whose order is the contract of layers; with types."""
    folders: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    used = set()
    for importer, imported, _ in sources.imports():
        pair = importer.removeprefix("mycel."), imported.removeprefix("mycel.")
        if pair in CLOSING:
            used.add(pair)
            continue
        one, other = importer.split("."), imported.split(".")
        alike = next((n for n, (a, b) in enumerate(zip(one, other)) if a != b), 0)
        if alike > 1 and pair not in TYPED:
            folders[".".join(one[:alike])][one[alike]].add(other[alike])
    assert {name: found for name, edges in folders.items() if (found := sources.circles(edges))} == {}
    assert used == CLOSING


def reason_of(importer: str, imported: str, reached: Callable[[str], set[str]]) -> str:
    """Why an import stands inside a function; nothing where it could be at the top."""
    start = sources.loaded_at_start()
    around = [imported, *sources.packages_around(imported, importer)]
    if imported == "mycel" or any(name == importer or importer in reached(name) for name in around):
        return "circle"
    if importer in start and imported not in start:
        return "start"
    if importer.startswith("mycel.cli"):
        return "command"
    return "" if imported in start else "use"


def test_imports_inside_functions_have_the_reasons_of_the_list() -> None:
    """`python -m tests.test_layers` writes the list.

    An import without a reason goes to the top of its module.
    """
    assert LISTED.read_text(encoding="ascii").splitlines() == listed()


def listed() -> list[str]:
    edges = edges_of(AT_LOAD)
    for importer, reached in list(edges.items()):
        edges[importer] = reached | {p for name in reached for p in sources.packages_around(name, importer)}
    reached = cache(lambda name: sources.reached(name, edges))
    pairs = sorted({(i.importer, i.imported) for i in sources.imports() if i.when == IN_FUNCTION})
    return [f"{a} {b} {reason_of(a, b, reached)}".rstrip() for a, b in pairs]


def test_every_import_inside_a_function_has_a_reason() -> None:
    lines = [line.split() for line in LISTED.read_text(encoding="ascii").splitlines()]
    assert [words for words in lines if len(words) < 3] == []
    assert {words[2] for words in lines} == set(REASONS)


def test_folders_of_the_machinery_have_25_files_at_most() -> None:
    counts = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "_src").rglob("*.py"))
    assert {folder: count for folder, count in counts.items() if count > 25} == {}


def chain(kind: type) -> list[type]:
    """The classes of the package that a class comes from, the longest way, up to one users know."""
    own = [b for b in kind.__bases__ if b.__module__.startswith("mycel")]
    longest = max((chain(b) for b in own if b.__name__ not in BASES), key=len, default=[])
    known = [[b] for b in own if b.__name__ in BASES]
    return [kind, *max([longest, *known], key=len)]


def test_classes_have_two_between_them_and_a_base_at_most() -> None:
    long = set()
    for name in sources.modules():
        if not name.endswith("__main__"):
            for kind in vars(importlib.import_module(name)).values():
                if inspect.isclass(kind) and kind.__module__ == name:
                    found = chain(kind)
                    if len(found) > 4 and kind.__name__ not in BASES:
                        long.add((found[-1].__name__, " < ".join(k.__name__ for k in found)))
    assert {text for end, text in long if end not in CHAINS} == set()
    assert {end for end, _ in long} == set(CHAINS)


if __name__ == "__main__":
    LISTED.write_text("".join(f"{line}\n" for line in listed()), encoding="ascii")

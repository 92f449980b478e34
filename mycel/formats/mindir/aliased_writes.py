"""Refuses MindIR graphs that write into aliased tensors (views and what they show).

An operator with the attribute `side_effect_mem` writes into its first input, or those of `_PLACES`.
In MindSpore a view and what it shows then have values that differ with the kernel and with what is
returned of them, so that no order of reads gives what it gives. A tensor that is written into must
be no view, and no view may be made of it. Parameters are read as copies, so views may be made of
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from mycel._src.foundation.errors import Unsupported
from mycel.formats.mindir.messages import Function, Model, Node

__all__ = ["check_writes"]

_REF = "REF::"
_SAME = ("Depend", "Load", "TupleGetItem", "ListGetItem", "tuple_getitem", "list_getitem")
# The inputs that are written into, where that is not the first one.
_PLACES: Mapping[str, tuple[int, ...]] = {"BatchNorm": (3, 4), "BatchNormExt": (3, 4)}
_VIEWS = frozenset(
    (
        "AsStrided", "BroadcastTo", "Chunk", "Diagonal", "ExpandAs", "ExpandDims", "Flatten", "FlattenExt", "Narrow",
        "Reshape", "Select", "SelectExt", "Slice", "SliceExt", "Split", "SplitTensor", "SplitWithSize", "Squeeze",
        "StridedSlice", "Transpose", "TransposeExt", "Unbind", "Unstack", "UnstackExt", "Unsqueeze",
    )
)  # fmt: skip


def check_writes(functions: Mapping[str, Function], model: Model, parameters: Mapping[str, object]) -> None:
    """Raise Unsupported, naming both operators, where a view or its base is written into.

    `functions` are all graphs of the model, and `parameters` its parameters by name.
    """
    writers = {
        name: p.operator
        for name, p in model.primitives.items()
        # Views have the attribute and write nothing.
        if any(a.name == "side_effect_mem" and a.number for a in p.attributes) and not _is_view(p.operator)
    }
    kinds = {name: p.operator for name, p in model.primitives.items()}
    for function in functions.values() if writers else ():
        _check(function, writers, kinds, parameters)


def _check(
    function: Function, writers: Mapping[str, str], kinds: Mapping[str, str], parameters: Mapping[str, object]
) -> None:
    nodes = {n.output: n for n in function.nodes}

    def kind(node: Node) -> str:
        return kinds.get(node.operator.removeprefix(_REF), "")

    def source(name: str) -> str:
        """Return the value of which a value is a part or another name."""
        while name in nodes and kind(nodes[name]) in _SAME and nodes[name].inputs:
            name = nodes[name].inputs[0]
        return name

    views = {n.output: n for n in function.nodes if n.inputs and _is_view(kind(n))}
    shown = {source(n.inputs[0]): n for n in views.values()}
    for node in function.nodes:
        writer = writers.get(node.operator.removeprefix(_REF))
        places = () if writer is None else _PLACES.get(writer, (0,))
        for place in [k for k in places if k < len(node.inputs)]:
            name = source(node.inputs[place])
            view = views.get(name) or (None if name in parameters else shown.get(name))
            if view is not None:
                raise Unsupported(
                    f"load: {writer} writes into a tensor that shares its elements with another, by {kind(view)}; "
                    "copy it before"
                )


def _is_view(kind: str) -> bool:
    return kind in _VIEWS or kind.endswith("View")

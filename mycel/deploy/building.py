"""`build`: compiles a network or a training step to a library for a machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.symbols import Symbol
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.neural.quantisation import dequantize
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.graph_freezing import frozen
from mycel._src.engines.aot.library import Library, library_of
from mycel._src.engines.aot.library_module import Value
from mycel._src.engines.aot.size_arguments import Decided, Size
from mycel._src.engines.aot.targets import named
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.generator import default_generator
from mycel.deploy.size_bounds import sizes_of
from mycel.formats.exporting import model_of
from mycel.formats.graph_files.graph_file import Model, State

__all__ = ["build"]


def build(
    net: Any,
    *inputs: Any,
    target: str,
    name: str = "model",
    stripes: bool | None = None,
    state: str = "library",
    parallel: bool = False,
    sizes: Mapping[str, Symbol] | None = None,
) -> Library:
    """Return a library that computes what a function or Cell computes, for another machine.

    The library has one function in C, which takes the tensors in the arguments, those of the
    result, and memory to work in. It needs no runtime and no operating system: of C it calls
    memcpy, memmove and memset, and arithmetic that the processor lacks.

    Parameters that the program only reads are constants of the library. Those that it writes, as a
    training step does, and the state of the random generator, are kept from call to call, and begin
    with the values of now.

    Sizes that are a `Symbol` with a `max` are arguments of the function, which checks them: batches
    of 1 to 64 are ``Tensor(shape=[Symbol(max=64), 784], dtype=float32)``. `arena_bytes` is enough
    for the largest, and `account` is of it. The network is staged anew for sizes that it treats in
    another way.

    Args:
        net (Cell | Callable): The Cell or function of tensors.
        *inputs (Tensor): The arguments, for whose types the library is made.
        target (str): The machine, one of `mycel.deploy.targets()`.
        name (str): The name of the function in C. Default: "model".
        stripes (bool | None): Whether the first operations on images are computed in stripes of
            rows where memory becomes less by that: the results are the same, the code is longer and
            takes up to a quarter more instructions, and `library.account` says what is copied. None
            does so for microcontrollers only, where memory becomes less by a third. Default: None.
        state (str): Where what the program keeps is: "library" for the library's own memory,
            "caller" for memory that the caller gives as one more argument, so that there can be
            several of it: `NAME_begin` fills it, and its bytes may be saved. Default: "library".
        parallel (bool): Whether the function takes one more argument, with which the caller divides
            the work of large steps among threads of its own; the header has its form. Default:
            False.
        sizes (Mapping[str, Symbol] | None): Symbols by the names that the arguments for them get,
            which are ``unique=True``; other arguments for sizes are called as the tensor and the
            axis. Default: None.

    Returns:
        Library: The library, in C.

    Raises:
        Unsupported: For sizes without a bound, for what needs a runtime, and for `parallel` on a
            target of one thread.
        CompileError: If the function is not one graph.
        ValueError: For `sizes` that the inputs do not have.

    Examples:
        >>> import mycel as ms
        >>> from mycel.deploy import build
        >>> made = build(ms.nn.Dense(4, 2), ms.ops.ones((1, 4)), target="cortex-m4", name="dense")
        >>> head = "int dense(const float *x, float *result, void *arena);"
        >>> made.constant_bytes, head in made.header
        (40, True)
    """
    arguments.text("build", "target", target)
    arguments.text("build", "name", name)
    arguments.one_of("build", "state", state, ("library", "caller"))
    arguments.flag("build", "parallel", parallel)
    if stripes is not None:
        arguments.flag("build", "stripes", stripes)
    kinds = _types(inputs)
    known = _names(net)
    found = sizes_of(kinds, known if len(known) == len(kinds) else [], sizes or {})

    def staged(hints: Mapping[str, int]) -> Model:
        return model_of(net, inputs, hints)

    model = model_of(net, inputs, {s.symbol: s.high for s in found})
    return of_model(model, known, target, name, stripes, state == "caller", parallel, found, staged)


def of_model(
    model: Model,
    known: list[str],
    target: str,
    name: str,
    stripes: bool | None = None,
    lends: bool = False,
    parallel: bool = False,
    sizes: Sequence[Size] = (),
    anew: Callable[[Mapping[str, int]], Model] | None = None,
) -> Library:
    """Return the library of a staged network, the `model`.

    `known` are names of its arguments; `target`, `name` and `stripes` are as for `build`, and with
    `lends` the caller gives the memory of its state, and with `parallel` what divides the work.
    `sizes` are its symbols, and `anew` stages the network for other ones.
    """
    count = len(model.graph.inputs) - len(model.states)
    if _returns_arguments(model.result):
        raise Unsupported(
            "build: the program returns an argument as it is, which a library does not copy; leave it out"
        )
    kept = sorted({*_outputs(model.result), *[output for _, output in model.writes]})
    place = {output: k for k, output in enumerate(kept)}
    names = known if len(known) == count else [f"input_{k}" for k in range(count)]
    written = {state for state, _ in model.writes}
    values = [Value(s.name, _value(s), True) for k, s in enumerate(model.states) if k in written]
    places = {s: k for k, s in enumerate(sorted(written))}
    writes = {place[o]: places[s] for s, o in model.writes}

    def staged(hints: Mapping[str, int]) -> tuple[Graph, Decided]:
        other = model if anew is None or dict(hints) == model.sizes else anew(hints)
        forms = [
            (m.result, m.writes, [(s.name, s.kind, s.value.shape, s.value.dtype) for s in m.states])
            for m in (model, other)
        ]
        if forms[0] != forms[1]:
            raise Unsupported(f"build: for {dict(hints)} the program gives or keeps other things; give narrower bounds")
        return _known(other, kept, target), other.conditions

    graph = _known(model, kept, target)
    return library_of(graph, names, values, writes, target, name, stripes, lends, parallel, sizes, staged)


def _known(model: Model, kept: Sequence[int], target: Any) -> Graph:
    """Return the graph of a model with the outputs `kept`, and with the values that it only reads.

    Weights are packed, and what depends on them alone is computed. Where the memory of `target` is
    scarce constants of few bits stay so, and become floats where they are read.
    """
    graph, count = model.graph, len(model.graph.inputs) - len(model.states)
    written = {state for state, _ in model.writes}
    graph = Graph(graph.inputs, [graph.outputs[k] for k in kept], graph.name)
    known = {graph.inputs[count + k]: _value(s) for k, s in enumerate(model.states) if k not in written}
    return fold_normalisations(frozen(graph, known, () if named(target).copies else (dequantize,)))


def _outputs(form: Any) -> set[int]:
    """Return the outputs of a graph that the form of a result names."""
    if isinstance(form, dict):
        own = {form[kind] for kind in ("tensor", "number") if isinstance(form.get(kind), int)}
        return own.union(*[_outputs(v) for v in form.values()])
    return set().union(*[_outputs(v) for v in form]) if isinstance(form, (list, tuple)) else set()


def _returns_arguments(form: Any) -> bool:
    """Return whether the form of a result has arguments that come back as they are."""
    if isinstance(form, dict):
        return "argument" in form or any(_returns_arguments(v) for v in form.values())
    return isinstance(form, (list, tuple)) and any(map(_returns_arguments, form))


def _value(state: State) -> np.ndarray[Any, Any]:
    """Return the value that a state of a network begins with."""
    return default_generator.state.asnumpy() if state.kind == "generator" else np.asarray(state.value)


def _types(value: Any) -> list[TensorType]:
    """Return the types of the tensors in arguments, in the order in which a model has them."""
    if isinstance(value, Tensor):
        return [value._type]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for v in inner for t in _types(v)]


def _names(net: Any) -> list[str]:
    """Return the names of the parameters of a function, as far as they are plain."""
    function = net.construct if isinstance(net, Cell) else net
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

"""`build`: a network or a training step becomes a library for a machine."""

from __future__ import annotations

import inspect
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.cells.cell import Cell
from mycel.common.generator import default_generator
from mycel.engines.aot.library import Library, library_of
from mycel.engines.aot.module import Value
from mycel.ir.graph import Graph
from mycel.train.graph_file import Model, State
from mycel.train.mindir import model_of
from mycel.transforms.quantise.folding import fold_normalisations
from mycel.transforms.quantise.freezing import frozen

__all__ = ["build"]


def build(
    net: Any,
    *inputs: Any,
    target: str,
    name: str = "model",
    stripes: Optional[bool] = None,
    state: str = "library",
    parallel: bool = False,
) -> Library:
    """Return a library that computes what a function or Cell computes, for another machine.

    `net` is the function or Cell, and `inputs` are tensors, whose types the library is made for.
    `target` is one of `mycel.deploy.targets()`, and `name` that of the function in C, which takes
    the tensors in the arguments, those of the result, and memory to work in. Parameters that the
    program only reads are constants of the library. Those that it writes, as a training step does,
    and the state of the random generator, are kept in the library's own memory from call to call,
    and begin with the values of now.

    With ``state="caller"`` what the program keeps is in memory that the caller gives as one more
    argument, so that there can be several of it: `NAME_begin` fills it, and its bytes may be saved.

    With `stripes` the first operations on images are computed in stripes of rows where memory
    becomes less by that: the results are the same, the code is longer and takes up to a quarter
    more instructions, and `library.account` says what is copied. None does so for microcontrollers
    only, where memory becomes less by a third.

    With `parallel` the function takes one more argument, with which the caller divides the work of
    large steps among threads of its own; the header has its form.

    The library needs no runtime and no operating system: of C it calls memcpy, memmove and memset,
    and arithmetic that the processor lacks. Raises Unsupported for sizes that are not known and for
    what needs a runtime, and for `parallel` on a target of one thread, CompileError where the
    function is not one graph.

    >>> import mycel as ms
    >>> from mycel.deploy import build
    >>> made = build(ms.nn.Dense(4, 2), ms.ops.ones((1, 4)), target="cortex-m4", name="dense")
    >>> made.constant_bytes, "int dense(const float *x, float *result, void *arena);" in made.header
    (40, True)
    """
    arguments.text("build", "target", target)
    arguments.text("build", "name", name)
    arguments.one_of("build", "state", state, ("library", "caller"))
    arguments.flag("build", "parallel", parallel)
    if stripes is not None:
        arguments.flag("build", "stripes", stripes)
    return of_model(model_of(net, inputs), _names(net), target, name, stripes, state == "caller", parallel)


def of_model(
    model: Model,
    known: list[str],
    target: str,
    name: str,
    stripes: Optional[bool] = None,
    lends: bool = False,
    parallel: bool = False,
) -> Library:
    """Return the library of a staged network, the `model`.

    `known` are names of its arguments; `target`, `name` and `stripes` are as for `build`, and with
    `lends` the caller gives the memory of its state, and with `parallel` what divides the work.
    """
    graph, count = model.graph, len(model.graph.inputs) - len(model.states)
    kept = sorted({*_outputs(model.result), *[output for _, output in model.writes]})
    place = {output: k for k, output in enumerate(kept)}
    graph = Graph(graph.inputs, [graph.outputs[k] for k in kept], graph.name)
    names = known if len(known) == count else [f"input_{k}" for k in range(count)]
    written = {state for state, _ in model.writes}
    states = model.states
    # What is only read is known: weights are packed, and what depends on them alone is computed.
    known_values = {graph.inputs[count + k]: _value(s) for k, s in enumerate(states) if k not in written}
    graph = fold_normalisations(frozen(graph, known_values))
    values = [Value(s.name, _value(s), True) for k, s in enumerate(states) if k in written]
    places = {s: k for k, s in enumerate(sorted(written))}
    return library_of(
        graph, names, values, {place[o]: places[s] for s, o in model.writes}, target, name, stripes, lends, parallel
    )


def _outputs(form: Any) -> set[int]:
    """Return the outputs of a graph that the form of a result names."""
    if isinstance(form, dict):
        own = {form[kind] for kind in ("tensor", "number") if isinstance(form.get(kind), int)}
        return own.union(*[_outputs(v) for v in form.values()])
    return set().union(*[_outputs(v) for v in form]) if isinstance(form, (list, tuple)) else set()


def _value(state: State) -> np.ndarray[Any, Any]:
    """Return the value that a state of a network begins with."""
    return default_generator.state.asnumpy() if state.kind == "generator" else np.asarray(state.value)


def _names(net: Any) -> list[str]:
    """Return the names of the parameters of a function, as far as they are plain."""
    function = net.construct if isinstance(net, Cell) else net
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

"""Engine selection and registration; entries of primitives and graphs (functions on buffers).

Every engine registers here and nowhere else. The environment variable `MYCEL_ENGINE` names the one
that the whole process uses, or the option `engine` of `set_context` before anything is compiled:
compiled programs are remembered, and those of two engines must not be mixed. A `device_target`
other than the processor is the XLA engine's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.graph import Graph, at, input_node
from mycel._src.compiler.prims.base import Primitive, outputs_of
from mycel._src.compiler.prims.control_flow.control import call, sizes_in_call
from mycel._src.compiler.prims.custom_derivatives import kept_call
from mycel._src.engines import base, nonfinite
from mycel._src.engines.base import Engine
from mycel._src.engines.native.engine import NativeEngine
from mycel._src.engines.reference.engine import ReferenceEngine
from mycel._src.engines.shape_sharing import shared_program
from mycel._src.engines.size_specialization import programs_of
from mycel._src.engines.xla.engine import XlaEngine
from mycel._src.foundation.settings import config

__all__ = ["compile_graph", "compile_primitive", "compile_small", "engine", "engines"]

base.register(NativeEngine())
base.register(ReferenceEngine())
_xla = XlaEngine()
base.register(_xla)


def _chosen() -> Engine:
    asked = os.environ.get("MYCEL_ENGINE") or NativeEngine.name
    try:
        return base.choose(asked)
    except ValueError as error:
        raise ValueError(f"MYCEL_ENGINE={asked}: {error}") from None


_chosen()


def _decide_engine(name: str) -> None:
    try:
        base.choose(name)
    except ValueError as error:
        raise ValueError(f"set_context: {error}") from None


def _decide_device(target: str) -> None:
    """Have programs run on a device: a GPU is the XLA engine's."""
    before = base.current()
    try:
        if target != "CPU":
            base.choose(_xla.name)
        if base.current() is _xla:
            try:
                _xla.use(target)
            except BaseException:
                base.choose(before.name)
                raise
        config.note("engine", base.current().name)
    except (ImportError, RuntimeError) as error:
        raise ValueError(f"set_context: device_target {target!r} is not available here: {error}") from None


config.deciders.update(engine=_decide_engine, device_target=_decide_device)


def engine() -> Engine:
    """Return the engine in force.

    >>> engine().name in engines()
    True
    """
    return base.current()


def engines() -> Mapping[str, Engine]:
    """Return all engines, by name."""
    return base.known()


def compile_primitive(primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> Callable[..., Any]:
    """Return a function from buffers to a buffer (or a tuple of them) that runs one primitive."""
    if primitive in (call, kept_call) and (sizes := sizes_in_call(params["graph"], types)):
        if not nonfinite.is_on():
            return programs_of(params["graph"]).entry(sizes)
    with at(None):
        inputs = [input_node(t) for t in types]
        out = outputs_of(primitive.node(*inputs, **params))
        graph = Graph(inputs, out if isinstance(out, tuple) else (out,), primitive.name)
        return compile_small(graph, alone=True)


def compile_graph(graph: Graph, aliases: Mapping[int, int] | None = None, alone: bool = False) -> Callable[..., Any]:
    """Return a function from buffers to a buffer (or a tuple of them) that runs a graph.

    `aliases` maps outputs to the inputs into whose memory they are written; `alone` marks an eager
    operation of the user's code.
    """
    if nonfinite.is_on():
        return nonfinite.checked(graph, base.current().compile(graph), alone)
    return base.current().compile(graph, aliases)


def compile_small(graph: Graph, alone: bool = False) -> Callable[..., Any]:
    """Return the result of `compile_graph` for a graph of an eager operation or of a few.

    Such graphs share programs where they differ in sizes alone.
    """
    found = None if nonfinite.is_on() else shared_program(graph)
    return compile_graph(graph, alone=alone) if found is None else found

"""Contexts by role: a context refuses what it does not do, and no name is made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import input_node
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.frontend.ast_interpreter.graph_breaks import LivePlan, LiveStage
from mycel._src.staging.frontend.ast_interpreter.interpret import Interpreter
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.recording import Recorder
from mycel._src.tensors.core.execution_context import Context, Differentiating, Following, Recording, Staging
from mycel._src.tensors.core.fused import _Tracing
from mycel._src.tensors.core.tensor import make_staged

ROLES = (Context, Differentiating, Recording, Staging, Following)


class Plain(Context):
    """A context that does nothing but run operations."""

    def emit(self, primitive: Any, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        return eager.execute(primitive, inputs, params)


CONTEXTS: dict[str, tuple[Callable[[], Context], set[Any]]] = {
    "plain": (Plain, {Context}),
    "recorder": (Recorder, {Context, Differentiating, Recording}),
    "tracing": (_Tracing, {Context, Staging}),
    "stage": (Interpreter, {Context, Differentiating, Staging, Following}),
    "live": (lambda: LiveStage(LivePlan(""), None), {Context, Differentiating, Staging, Following}),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_gives_its_roles(name: str) -> None:
    make, roles = CONTEXTS[name]
    context = make()
    of_itself = {r for r in ROLES if isinstance(context, r)}
    assert of_itself == (roles if context.staging is None else roles - {Differentiating})
    assert (context.recording is context) == (Recording in roles) == (context.recording is not None)
    assert (context.staging is context) == (Staging in roles) == (context.staging is not None)
    assert context.is_staging == (Staging in roles)
    if Differentiating in roles:
        assert isinstance(context.differentiating, Differentiating)
        assert context.differentiating.context is context
    else:
        with pytest.raises(Exception, match="taking a derivative"):
            _ = context.differentiating
    if context.staging is not None:
        if Following in roles:
            assert context.staging.following is context
        else:
            with pytest.raises(Exception, match="following code"):
                _ = context.staging.following


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_name_that_no_role_has_is_an_error(name: str) -> None:
    context = CONTEXTS[name][0]()
    with pytest.raises(AttributeError, match="pull_back"):
        context.pull_back  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CONTEXTS)
def test_the_context_in_force_is_known_by_its_roles(name: str) -> None:
    context = CONTEXTS[name][0]()
    with eager.use_context(context):
        assert eager.local.context is context
        assert eager.local.recording is context.recording and eager.local.staging is context.staging
        with eager.use_context(None):
            assert (eager.local.context, eager.local.recording, eager.local.staging) == (None, None, None)
        assert eager.local.context is context and eager.local.staging is context.staging
    assert (eager.local.context, eager.local.recording, eager.local.staging) == (None, None, None)


@pytest.mark.parametrize(
    "use, what",
    [
        (lambda x: ms.grad(lambda v: v * v)(x), "taking a derivative"),
        (lambda x: ms.jvp(lambda v: v * v, x, x), "taking a derivative"),
        (lambda x: ms.recompute(lambda v: v * v, x), "taking a derivative"),
        (lambda x: x.register_hook(lambda g: g), "taking a derivative"),
        (lambda x: ops.assign(x, x + 1), "writing into a tensor"),
        (lambda x: x.__setitem__(0, 1.0), "writing into a tensor"),
    ],
)
def test_what_a_context_does_not_do_it_says(use: Callable[[Tensor], Any], what: str) -> None:
    x = Tensor([1.0, 2.0])
    with (
        eager.use_context(Plain()),
        pytest.raises(Unsupported, match=f"^{what}: the context in force, a Plain, runs operations, and no more$"),
    ):
        use(x)
    assert x.tolist() == [1, 2]


def test_a_role_that_is_not_written_out_cannot_be_in_force() -> None:
    class Half(Differentiating):
        def emit(self, primitive: Any, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
            return None

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_a_tracing_ends_at_what_it_is_not_asked_to_do() -> None:
    tracing = _Tracing()
    staged = make_staged(input_node(Tensor([1.0])._type))
    for ask in (
        lambda: tracing.node_of(staged),
        lambda: tracing.need_value(staged, "item()"),
        lambda: tracing.write(staged, staged),
        lambda: tracing.invoke(len, ((),), {}),
        lambda: tracing.created([1]),
        lambda: tracing.viewed(staged),
        lambda: tracing.before_draw(staged),
        lambda: tracing.positions(staged, 0),
    ):
        with pytest.raises(Exception) as caught:
            ask()
        assert type(caught.value).__name__ == "_Refused"

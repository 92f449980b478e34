"""Execution contexts: the interfaces of recordings and stages, one class per role.

A context decides what it means to apply an operation while it is in force in a thread
(`core.eager.use_context`). Every context is a `Context`. There is a further interface for each
thing that it can do beside running operations:

* `Differentiating`: derivatives are taken of what it ran (recordings, and functions being staged);
* `Recording`: its operations have already run when it is told of them (recordings);
* `Staging`: its operations have no value yet, so that it is asked for values, nodes and numbers
  (functions being staged, and tracings of library functions);
* `Following`: it interprets code, follows library functions, defers effects and guards what was
  read (functions being staged).

The properties `differentiating`, `recording`, `staging` and `following` give an object of that
role, which need not be the context itself. `recording` and `staging` are None where the context
does not have the role; the others raise an error that says what the context does instead
(`Context.refusal`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Optional, Protocol, TypeVar

from mycel._src.foundation.errors import NeedsValue, Unsupported

if TYPE_CHECKING:
    import numpy as np

    from mycel._src.compiler.ir.graph import Node
    from mycel._src.compiler.prims.base import Primitive
    from mycel._src.compiler.prims.custom_derivatives import Rule
    from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "Context",
    "Differentiating",
    "EarlierCall",
    "Following",
    "HookTable",
    "Optionals",
    "Recording",
    "SavedHooks",
    "Staging",
]

V = TypeVar("V")
Tensors = Sequence["Tensor"]
Optionals = list[Optional["Tensor"]]
SavedHooks = tuple[Callable[..., Any], Callable[..., Any]]


class Context(ABC):
    """The meaning of applying a primitive while this context is in force in a thread.

    `depth` counts the derivatives that are being taken of what it runs.
    """

    depth = 0
    does: ClassVar[str] = "runs operations"
    is_staging: ClassVar[bool] = False
    is_live: ClassVar[bool] = False

    @abstractmethod
    def emit(self, primitive: Primitive, inputs: Tensors, params: dict[str, Any]) -> Any:
        """Apply a primitive and return its output: a tensor, or a tuple of tensors."""

    def write(self, target: Tensor, new: Tensor) -> None:
        """Make `new` the value of `target`."""
        raise self.refusal("writing into a tensor")

    def invoke(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the user's."""
        return fn(*args, **kwargs)

    @property
    def differentiating(self) -> Differentiating:
        """What takes derivatives of what this context ran."""
        raise self.refusal("taking a derivative")

    @property
    def recording(self) -> Recording | None:
        """The context as one whose operations have run already; None where it is none."""
        return None

    @property
    def staging(self) -> Staging | None:
        """The context as one whose operations have no value yet; None where it is none."""
        return None

    def refusal(self, what: str) -> Exception:
        """Return the error for what this context does not do."""
        does = [c.__dict__["does"] for c in reversed(type(self).__mro__) if "does" in c.__dict__]
        return Unsupported(f"{what}: the context in force, a {type(self).__name__}, {' and '.join(does)}, and no more")


class EarlierCall:
    """A call that a gradient can go back through.

    `out` are its outputs, with their nodes in the context of `derivatives`. `nodes` has the nodes
    of the tensors that were its inputs, by their identity, and `stops` those at which the
    derivative ends beside the nodes that it is taken by.
    """

    def __init__(
        self, derivatives: Differentiating, out: Any, nodes: dict[int, Node], stops: Sequence[Node] = ()
    ) -> None:
        self.derivatives, self.out, self.nodes, self.stops = derivatives, out, nodes, stops


class HookTable(Protocol):
    """The hooks of one tensor, the next of which is attached to the node `base`."""

    base: Any

    def chain(self) -> Rule:
        """Return one rule of all that are attached."""


class Differentiating(ABC):
    """What takes derivatives of what a context ran."""

    @property
    @abstractmethod
    def context(self) -> Context:
        """The context of whose operations derivatives are taken."""

    @abstractmethod
    def node_of(self, t: Tensor) -> Node | None:
        """Return the node that computes a tensor; None if it depends on no input of the
        derivative.
        """

    @abstractmethod
    def mark(self, t: Tensor) -> Tensor:
        """Return a new tensor with the value of `t` whose gradient can be asked for."""

    @abstractmethod
    def marked_weights(self, weights: Tensors) -> AbstractContextManager[list[Node]]:
        """Return a context manager that marks parameters in place and gives their nodes.

        What is written to the parameters within it stays.
        """

    @abstractmethod
    def pullback(self, outputs: Tensors, cotangents: Tensors, wrt: Sequence[Node]) -> Optionals:
        """Return the gradients of `outputs`, weighted by `cotangents`, by the nodes `wrt`.

        A gradient is None where no output depends on the node.
        """

    @abstractmethod
    def pushforward(self, outputs: Tensors, wrt: Sequence[Node], tangents: Tensors) -> tuple[Tensors, Optionals]:
        """Return `outputs` and their tangents for the tangents of the nodes `wrt`.

        The tangent of an output that depends on none of the nodes is None.
        """

    @abstractmethod
    def rows(self, output: Tensor, wrt: Sequence[Node]) -> Optionals:
        """Return the Jacobian of an output by each of the nodes `wrt`.

        Its shape is the output's followed by the node's; None where the output does not depend on
        the node.
        """

    @abstractmethod
    def columns(self, outputs: Tensors, by: Node) -> Optionals:
        """Return the Jacobian of each output by the node `by`.

        Its shape is the output's followed by the node's; None where the output does not depend on
        the node.
        """

    @abstractmethod
    def attach(self, values: Tensors, operands: Tensors, rule: Rule) -> Tensors:
        """Return copies of `values` whose derivative by `operands` is `rule`, the program's own."""

    @abstractmethod
    def attach_hook(self, t: Tensor, rule: Rule, table: HookTable) -> bool:
        """Call `rule` with the complete gradient by `t`, a tensor that was computed here.

        `table` holds the tensor's hooks. Returns False where `t` was not computed here.
        """

    def earlier_call(self, cell: Any, args: tuple[Any, ...], weights: Tensors) -> EarlierCall | None:
        """Return the last call of a Cell, if it was made with `args` here and a gradient by these
        and `weights` can go back through it; else None.
        """
        return None

    @abstractmethod
    def recompute(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function as a region whose values a gradient computes anew instead of keeping."""


class Recording(Context):
    """A context whose operations have already run when it is told of them."""

    does = "takes derivatives and records what has run"

    @property
    def recording(self) -> Recording:
        return self

    @abstractmethod
    def enter(self, primitive: Primitive, inputs: Tensors, params: dict[str, Any], result: Any) -> None:
        """Record the `result` (a tensor or a tuple) of a primitive applied to `inputs` and
        `params`, if it depends on a marked input.
        """

    @abstractmethod
    def enter_pair(self, primitive: Primitive, x: Tensor, y: Tensor, result: Tensor) -> None:
        """Record the `result` of a primitive without parameters applied to `x` and `y`, if it
        depends on a marked input.
        """


class Staging(ABC):
    """What is asked of a context whose operations have no value yet.

    `numbers` are the tensors, by identity, that stand for Python numbers.
    """

    is_live: ClassVar[bool] = False
    numbers: Mapping[int, Tensor] = MappingProxyType({})

    @abstractmethod
    def refusal(self, what: str) -> Exception:
        """Return the error for what this context does not do."""

    @property
    def following(self) -> Following:
        """The context as one that interprets code."""
        raise self.refusal("following code")

    @property
    def may_decide(self) -> bool:
        """Whether Python can have values here."""
        return False

    @abstractmethod
    def node_of(self, t: Tensor) -> Node:
        """Return the node of a tensor's present value."""

    @abstractmethod
    def need_value(self, t: Tensor, what: str) -> np.ndarray[Any, Any]:
        """Return the array of a tensor.

        Where the tensor has no value, raises NeedsValue, which says that `what` needs it.
        """

    def settle(self, what: str) -> None:
        """Run what was staged so far, as `what` acts on others than tensors here.

        Raises NeedsValue where nothing can run yet.
        """
        raise NeedsValue(f"{what} cannot be part of a graph; do this outside the compiled function")

    @abstractmethod
    def literal(self, value: Any, dtype: Any = None) -> Tensor:
        """Return a number or array as a constant."""

    @abstractmethod
    def created(self, value: V) -> V:
        """Note that the program made an object here, and return the object."""

    def is_number(self, value: Any) -> bool:
        """Return whether a value is a Python number, or a tensor in the place of a Python number
        that depends on tensors.
        """
        return type(value) in (bool, int, float, complex) or id(value) in self.numbers

    @abstractmethod
    def track(self, t: Tensor) -> None:
        """Remember a tensor that has no value yet, so that it can be given one later."""

    @abstractmethod
    def viewed(self, t: Tensor) -> None:
        """Note that a tensor made here is a view of another."""

    @abstractmethod
    def before_draw(self, state: Tensor) -> None:
        """Prepare for random numbers being drawn from a generator's state."""

    def has_positions(self) -> bool:
        """Return whether `positions` can be called here."""
        return False

    def positions(self, mask: Tensor, least: int) -> Tensor:
        """Return the positions at which a mask without a value is True.

        Their number is a new symbol, which is at least `least`.
        """
        raise self.refusal("the positions at which a mask holds")


class Following(ABC):
    """What is asked of a context that interprets code.

    `saving` are the hooks on saved values in force.
    """

    saving: SavedHooks | None

    @abstractmethod
    def follow(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Interpret a function of the library as if the user had written it, so that conditions
        in it may depend on tensors.
        """

    @abstractmethod
    def call_cell(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a Cell, interpreting its construct."""

    @abstractmethod
    def defer(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call a function after each run of the compiled code, with the values that the arguments
        have at this point of the run.
        """

    @abstractmethod
    def guard_attribute(self, target: Any, name: str, value: Any) -> None:
        """Note that an attribute was read: compiled code is valid while it has this value."""

    @abstractmethod
    def is_fresh(self, value: Any) -> bool:
        """Return whether an object was created while staging."""

"""Result structures: rebuilds a compiled function's result at each call from the graph's outputs.

Containers, named tuples, dataclasses and objects that the function made are rebuilt at each call
with the call's tensors in them. A tensor that is an argument or existed before is returned as
itself. An object that holds a tensor and cannot be rebuilt raises an error.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Node
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.pytree import flatten
from mycel._src.staging.frontend.calls.frames import Closure
from mycel._src.staging.frontend.control_flow.branch_join import Choice
from mycel._src.staging.frontend.control_flow.loop_unrolling import TensorRange
from mycel._src.staging.frontend.graph_building.stage import Stage, current_stage, is_constant, is_staged
from mycel._src.staging.frontend.graph_building.staged_views import OWN, Either, Mixed, Origin, Tree, decided, is_left
from mycel._src.staging.frontend.graph_building.symbolic_sizes import number_of
from mycel._src.staging.frontend.returned_iterators import is_iterator, members
from mycel._src.staging.frontend.specialization.snapshots import reach
from mycel._src.tensors.core.tensor import Tensor
from mycel._src.tensors.core.views import View, attach

__all__ = ["Outputs"]

Build = Callable[[Any, Any], Any]
_REVERSED = (reversed, type(reversed([0])))
_PLAIN = frozenset((int, float, complex, str, bytes, bool, type(None), slice))


class Outputs:
    """The nodes that results need, which are collected by `of`.

    `of(value)` returns a function from (the graph's outputs, the call's tensors) to the value. If
    it `returns_given`, a list or dict of those at `places` in the call, then the call itself, with
    the arguments by name after the others, follows its tensors. `stage` staged the function;
    `arguments` are the positions of the stand-ins of these tensors by their identity, and `known`
    the objects among the arguments.
    """

    def __init__(
        self,
        stage: Stage,
        arguments: dict[int, int],
        known: frozenset[int] = frozenset(),
        places: dict[int, tuple[Any, ...]] | None = None,
    ) -> None:
        self.stage, self.arguments, self.known = stage, arguments, known
        self.places_given = places or {}
        self.returns_given = False
        # how to get at results from outside, which have to exist
        self.pinned: list[Callable[[], Any]] = []
        self.nodes: list[Node] = []
        self.places: dict[Any, int] = {}
        self.memo: dict[int, Build] = {}
        self.kept: list[Any] = []
        self.shown: dict[int, list[Tensor]] = {}  # until results are built
        self.shared: dict[int, Build] = {}

    def close(self) -> None:
        """End collecting: from here on the functions that build results keep no object from
        outside alive.
        """
        self.kept = []
        self.arguments, self.known, self.places_given = {}, frozenset(), {}
        del self.stage

    def place(self, node: Node, owner: Any = None) -> int:
        """Return the position of a node's value among the graph's outputs.

        Each owner has an output, and so a buffer, of its own.
        """
        key = (node, owner)
        if key not in self.places:
            self.places[key] = len(self.nodes)
            self.nodes.append(node)
        return self.places[key]

    def of(self, value: Any) -> Build:
        found = self.memo.get(id(value))
        if found is None:
            self.kept.append(value)
            self.memo[id(value)] = _inside
            found = self.memo[id(value)] = self._of(value)
        if found is _inside:
            kind = type(value).__name__
            raise CompileError(f"a compiled function cannot return a {kind} that contains itself; return its parts")
        return found

    def _of(self, value: Any) -> Build:
        kind = type(value)
        if kind in _PLAIN:
            return lambda out, args: value
        if kind is Dim:
            return self._size(value)
        if isinstance(value, np.generic):
            return self.of(value.item())
        if isinstance(value, Tensor):
            return self._tensor(value)
        if kind in (list, dict, OrderedDict):
            if id(value) in self.places_given:
                return self._given(self.places_given[id(value)])
            if self._is_outside(value):
                return self._itself(value)
        if kind in (list, tuple, deque, set, frozenset):
            parts = [self.of(v) for v in value]
            return lambda out, args: kind([p(out, args) for p in parts])
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            parts = [self.of(v) for v in value]
            return lambda out, args: kind(*[p(out, args) for p in parts])
        if kind in (dict, OrderedDict):
            pairs = [(k, self.of(v)) for k, v in value.items()]
            return lambda out, args: kind([(k, p(out, args)) for k, p in pairs])
        if kind is defaultdict:
            pairs = [(k, self.of(v)) for k, v in value.items()]
            factory = value.default_factory
            return lambda out, args: defaultdict(factory, [(k, p(out, args)) for k, p in pairs])
        if isinstance(value, (Closure, Choice, TensorRange)) or isinstance(getattr(value, "__func__", None), Closure):
            raise CompileError(
                "a compiled function cannot return a function that it defines; define it outside, or return its results"
            )
        if kind in _REVERSED and self.stage.is_fresh(value):
            items = self.of([*value][::-1])
            return lambda out, args: reversed(items(out, args) if kind is not reversed else tuple(items(out, args)))
        if is_iterator(value):
            if hasattr(kind, "__next__"):
                self.stage.need_own_iterator(value)
            return self.of(members(value))
        if (
            self.stage.is_fresh(value)
            and hasattr(value, "__dict__")
            and not isinstance(value, (type, types.ModuleType))
        ):
            return self._object(value)
        if _holds_staged(value):
            return self._object(value)
        return self._itself(value)

    def _given(self, path: tuple[Any, ...]) -> Build:
        """Return the function that gives an argument, or a part of one, itself."""
        self.returns_given = True
        return lambda out, args: functools.reduce(operator.getitem, path, args[-1])

    def _is_outside(self, value: Any) -> bool:
        """Return whether a list or dict is known to be from outside.

        The library's own may be known to the guards as well, but hold tensors of this program.
        """
        if not self.stage.guards.knows(value) or self.stage.is_fresh(value):
            return False
        return self.stage.was_changed(("container", id(value))) or not any(map(is_staged, flatten(value)[0]))

    def _itself(self, value: Any) -> Build:
        """Return the function that gives an object from outside.

        It does not keep an object alive on which the compiled code depends.
        """
        if not self.stage.guards.knows(value) and id(value) not in self.known:
            return lambda out, args: value
        get = self.stage.guards.way_to(value)
        return lambda out, args: get()

    def _size(self, value: Dim) -> Build:
        place = self.place(self.stage.node_of(number_of(self.stage, value)), value)
        return lambda out, args: out[place].item()

    def _tensor(self, t: Tensor) -> Build:
        position = self.arguments.get(id(t))
        if position is not None and self.stage.is_number(t):
            return lambda out, args: args[position].item()
        if position is not None:
            return lambda out, args: args[position]
        if type(t._view) is View:
            return self._view(t)
        if t._buf is not None and id(t) not in self.stage.current:
            if not self.stage.is_fresh(t):
                return self._pinned(t)
        elif t._buf is not None and not is_constant(self.stage.current[id(t)]) and not self.stage.is_fresh(t):
            return self._pinned(t)
        if id(t) in self.shown:
            self.shared[id(t)] = lambda out, args: out[place]
        place = self.place(self.stage.node_of(t), id(t))
        if self.stage.is_number(t):
            return lambda out, args: out[place].item()
        if type(t._view) is Mixed:
            return self._mixed(place, t._view.tree)
        return lambda out, args: out[place]

    def _mixed(self, place: int, tree: Tree) -> Build:
        """Return the function that builds a tensor which, depending on conditions, may be a view of
        an argument, of a tensor from outside or of another result.
        """
        form = self._form(tree)
        if form is None:
            return lambda out, args: out[place]
        stage: list[Any] = []

        def build(out: Any, args: Any) -> Any:
            if not stage:
                stage.append(any(number in self.memo for number in _roots(form)))
            return decided(current_stage(), out[place], self._now(form, out, args)) if stage[0] else out[place]

        return build

    def _form(self, tree: Tree) -> Any:
        """Return the form from which the place of a mixed tensor's elements is known at each call.

        Returns None where the elements are its own or their place cannot be known.
        """
        if isinstance(tree, Either):
            true, false = self._form(tree.true), self._form(tree.false)
            if (true is None and false is None) or tree.pred is None or is_left(self.stage, tree.pred):
                return None
            return self.place(self.stage.node_of(tree.pred), id(tree.pred)), true, false
        root = tree.root()
        if root is None or any(is_left(self.stage, o) for _, _, operands in tree.steps for o in operands):
            return None
        if id(root) in self.arguments or (root._buf is not None and not self.stage.is_fresh(root)):
            self.of(root)
        operands = [[self.place(self.stage.node_of(o), id(o)) for o in given] for _, _, given in tree.steps]
        self.kept.append(root)
        return id(root), tree.steps, operands

    def _now(self, form: Any, out: Any, args: Any) -> Tree:
        """Return the tree of origins that a form is for the tensors of a call."""
        if form is None:
            return OWN
        if isinstance(form[2], list):
            number, steps, operands = form
            if number not in self.memo:
                return OWN
            return Origin(
                self.memo[number](out, args),
                tuple([(k, p, tuple([out[i] for i in g])) for (k, p, _), g in zip(steps, operands)]),
            )
        pred, true, false = form
        return Either(out[pred], self._now(true, out, args), self._now(false, out, args))

    def _pinned(self, t: Tensor) -> Build:
        """Return the function that gives a tensor from outside itself.

        The attribute from which it was read must still hold it.
        """
        known = self.stage.sources.get(id(t))
        if known is not None:
            self.stage.guards.attribute(known[0], known[1], t)
        elif id(t) in self.stage.captures:
            get = reach(t)
            self.pinned.append(get)
            return lambda out, args: get()
        return self._itself(t)

    def _view(self, t: Tensor) -> Build:
        """Return the function that builds a view of an argument, of a tensor from outside or of
        another result; a view of any other tensor becomes a tensor of its own.
        """
        if t._node is None or t._buf is not None:
            return self._pinned(t)
        root, steps = t._view.root, t._view.steps
        number = id(root)
        place = self.place(self.stage.node_of(t), id(t))
        from_outside = number in self.arguments or root._buf is not None and not self.stage.is_fresh(root)
        if not from_outside:
            # No other result shares this root, so that the view can be a tensor of its own.
            self.shown.setdefault(number, []).append(t)
            if len(self.shown[number]) > 1 or number in self.memo:
                self.shared[number] = self.of(root)
        elif number not in self.shared:
            self.shared[number] = self.of(root)
        operands = [[self.place(self.stage.node_of(o), id(o)) for o in given] for _, _, given in steps]

        def build(out: Any, args: Any) -> Any:
            if number not in self.shared:
                return out[place]
            known = [(kind, params, tuple([out[i] for i in g])) for (kind, params, _), g in zip(steps, operands)]
            return attach(out[place], self.shared[number](out, args), tuple(known))

        return build

    def _object(self, value: Any) -> Build:
        parts = {name: self.of(v) for name, v in value.__dict__.items()}
        form = value
        if not hasattr(type(value), "__copy__"):
            form = copy.copy(value)
            form.__dict__.clear()

        def build(out: Any, args: Any) -> Any:
            made = copy.copy(form)
            made.__dict__.update({name: p(out, args) for name, p in parts.items()})
            return made

        return build


def _holds_staged(value: Any) -> bool:
    """Return whether a dataclass instance that is an argument or was made by the library holds a
    tensor of this program.
    """
    if isinstance(value, Tensor):
        return value._buf is None
    if type(value) in (list, tuple):
        return any(_holds_staged(v) for v in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return False
    return any(_holds_staged(v) for v in getattr(value, "__dict__", {}).values())


def _roots(form: Any) -> list[int]:
    if form is None:
        return []
    return [form[0]] if isinstance(form[2], list) else _roots(form[1]) + _roots(form[2])


def _inside(out: Any, args: Any) -> Any:
    """Stand for a value whose parts are still being visited; never called."""
    raise AssertionError("a value that is not built yet")

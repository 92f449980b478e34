"""Interprets assignments: stores, deletions and unpacking, each as a closure.

Targets are names, attributes and items.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import current_where, set_where
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.ast_interpreter.expressions import BINARY, IN_PLACE, ExpressionBuilder
from mycel._src.staging.frontend.calls import operator_methods
from mycel._src.staging.frontend.calls.attribute_access import load_attribute, store_attribute
from mycel._src.staging.frontend.calls.frames import Frame, call, mangled
from mycel._src.staging.frontend.calls.operator_methods import FAST
from mycel._src.staging.frontend.calls.user_code import MUTATED
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["AssignmentBuilder"]

Run = Callable[[Frame], Any]
Store = Callable[[Frame, Any], None]


class AssignmentBuilder(ExpressionBuilder):
    """The builder of the closures of assignments and deletions."""

    def _Assign(self, node: ast.Assign) -> Run:
        value = self.expression(node.value)
        stores = [self.target(t) for t in node.targets]
        if len(stores) == 1:
            store = stores[0]

            def one(f: Frame) -> None:
                store(f, value(f))

            return one

        def several(f: Frame) -> None:
            v = value(f)
            for s in stores:
                s(f, v)

        return several

    def _AnnAssign(self, node: ast.AnnAssign) -> Run:
        if node.value is None:
            return lambda f: None
        value, store = self.expression(node.value), self.target(node.target)

        def run(f: Frame) -> None:
            store(f, value(f))

        return run

    def _AugAssign(self, node: ast.AugAssign) -> Run:
        operate, value = IN_PLACE[type(node.op)], self.expression(node.value)
        symbol, where = BINARY[type(node.op)], self.where(node)

        def update(f: Frame, old: Any, new: Any) -> Any:
            set_where(where)
            if f.stage is not None and type(old) in MUTATED:
                f.stage.note_container(old)
            if f.stage is not None and type(old) not in FAST:
                return operator_methods.in_place(f.stage, operate, symbol, symbol.__name__.rstrip("_"), old, new)
            if isinstance(old, Tensor):
                number = f.stage is not None and f.stage.is_number(old)
                return symbol(old, new) if number else operate(old, new)
            return symbol(old, new) if isinstance(new, Tensor) else operate(old, new)

        if isinstance(node.target, ast.Name):
            load = self.expression(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            store = self.target(node.target)

            def name(f: Frame) -> None:
                old = load(f)
                store(f, update(f, old, value(f)))

            return name
        target = self.expression(node.target.value)
        if isinstance(node.target, ast.Attribute):
            attribute = mangled(node.target.attr, self.code.class_name)

            def of_object(f: Frame) -> None:
                owner = target(f)
                old = getattr(owner, attribute) if f.stage is None else load_attribute(f.stage, owner, attribute)
                new = update(f, old, value(f))
                if new is not old or not isinstance(new, Tensor):
                    set_attribute(f, owner, attribute, new)

            return of_object
        index = self.expression(node.target.slice)

        def item(f: Frame) -> None:
            owner, i = target(f), index(f)
            set_item(f, owner, i, update(f, owner[i], value(f)))

        return item

    def target(self, node: ast.expr) -> Store:
        if isinstance(node, ast.Name):
            return self.store_name(node.id, self.scope)
        where = self.where(node)
        if isinstance(node, ast.Attribute):
            owner, name = self.expression(node.value), mangled(node.attr, self.code.class_name)

            def to_attribute(f: Frame, value: Any) -> None:
                target = owner(f)
                set_where(where)
                set_attribute(f, target, name, value)

            return to_attribute
        if isinstance(node, ast.Subscript):
            owner, index = self.expression(node.value), self.expression(node.slice)

            def to_item(f: Frame, value: Any) -> None:
                target, i = owner(f), index(f)
                set_where(where)
                set_item(f, target, i, value)

            return to_item
        if isinstance(node, ast.Starred):
            return self.target(node.value)
        assert isinstance(node, (ast.Tuple, ast.List))
        stores = [self.target(e) for e in node.elts]
        star = next((i for i, e in enumerate(node.elts) if isinstance(e, ast.Starred)), None)

        def unpack(f: Frame, value: Any) -> None:
            set_where(where)
            items = list(operator_methods.iterate(f.stage, value))
            if star is None:
                if len(items) != len(stores):
                    word = "too many" if len(items) > len(stores) else "not enough"
                    raise ValueError(f"{word} values to unpack (expected {len(stores)}, got {len(items)})")
            else:
                behind = len(stores) - star - 1
                if len(items) < len(stores) - 1:
                    raise ValueError(
                        f"not enough values to unpack (expected at least {len(stores) - 1}, got {len(items)})"
                    )
                middle = items[star : len(items) - behind]
                if f.stage is not None:
                    f.stage.created(middle)
                items = [*items[:star], middle, *items[len(items) - behind :]]
            for store, item in zip(stores, items):
                store(f, item)

        return unpack

    def _Delete(self, node: ast.Delete) -> Run:
        actions = [self._deletion(t) for t in node.targets]

        def run(f: Frame) -> None:
            for a in actions:
                a(f)

        return run

    def _deletion(self, node: ast.expr) -> Run:
        if isinstance(node, ast.Name):
            name = node.id
            kind, distance = self.scope.resolve(name, self.code.free)
            if kind != "frame" or distance:
                return self.unsupported(node, "deletions of variables of other functions")

            def variable(f: Frame) -> None:
                if name not in f.vars:
                    raise UnboundLocalError(
                        f"cannot access local variable {name!r} where it is not associated with a value"
                    )
                del f.vars[name]

            return variable
        if isinstance(node, ast.Attribute):
            owner, attribute = self.expression(node.value), mangled(node.attr, self.code.class_name)

            def of_object(f: Frame) -> None:
                target = owner(f)
                if f.stage is not None:
                    f.stage.note_attribute(target, attribute)
                delattr(target, attribute)

            return of_object
        if isinstance(node, ast.Subscript):
            container, index = self.expression(node.value), self.expression(node.slice)

            def item(f: Frame) -> None:
                target = container(f)
                if f.stage is not None and type(target) in MUTATED:
                    f.stage.note_container(target)
                del target[index(f)]

            return item
        parts = [self._deletion(e) for e in node.elts]  # type: ignore[attr-defined]

        def several(f: Frame) -> None:
            for p in parts:
                p(f)

        return several


def set_attribute(f: Frame, owner: Any, name: str, value: Any) -> None:
    """Set ``owner.name = value`` for code that runs in the frame `f`."""
    if f.stage is None:
        setattr(owner, name, value)
    else:
        store_attribute(f.stage, owner, name, value)


def set_item(f: Frame, owner: Any, index: Any, value: Any) -> None:
    """Set ``owner[index] = value`` for code that runs in the frame `f`.

    While a function is staged the change is journaled; raises CompileError for objects from outside
    whose change cannot be.
    """
    stage = f.stage
    if stage is not None and not isinstance(owner, Tensor):
        method = operator_methods.method_of(stage, owner, "__setitem__")
        if method is not None:
            call(stage, method, (owner, index, value), {})
            return
        if type(owner) in MUTATED:
            stage.note_container(owner)
        elif not stage.is_fresh(owner) and not hasattr(owner, "__setitem__"):
            raise TypeError(f"{type(owner).__name__!r} object does not support item assignment")
        elif not stage.is_fresh(owner) or stage.scope.is_branch:
            method = getattr(type(owner), "__setitem__", None)
            if type(method) is types.FunctionType:
                call(stage, method, (owner, index, value), {})
                return
            if stage.may_decide:
                owner[index] = value
                return
            raise CompileError(
                f"{current_where()}: a compiled function cannot change an item of a {type(owner).__name__} from "
                "outside; do it outside"
            )
    owner[index] = value

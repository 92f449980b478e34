"""What a name of a module with facts is: see `mycel.compat.operations`."""

from __future__ import annotations
import __future__

import ast
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.python_runtime import syntax_trees
from mycel.compat.operations import operation_factory
from mycel.compat.operations.facts import Fact, facts_of, has_facts
from mycel.compat.operations.hand_written import PRIVATE
from mycel.compat.operations.parameter_binding import bound_to, parsed
from mycel.compat.operations.private_lookup import CLASSES, NAMED, by_name, of_class, of_function, written
from mycel.compat.operations.public_lookup import key_of, public_function, served, served_by_class
from mycel.compat.operations.unserved_reasons import advice_for
from mycel.compat.unserved import unserved_class
from mycel.mint import distributed
from mycel.ops import operations
from mycel.ops.operations.primitive import Primitive

__all__ = ["elsewhere", "find", "is_known"]

_ROOT = "mindspore"
_GENERATED = "ops.auto_generate.gen_ops_prim"
_made: dict[tuple[str, str], Any] = {}


def find(path: str, name: str) -> Any:
    """Return what a name of a module with facts is.

    Raises AttributeError for a name that is not in the table.

    >>> find("ops.auto_generate.gen_ops_prim", "AddExt")()(1.0, 2.0).item()
    3.0
    """
    fact = facts_of(path).get(name)
    if fact is None:
        raise AttributeError(f"module {_where(path)!r} has no attribute {name!r}")
    key = path, name
    if key not in _made:
        _made.setdefault(key, _MAKERS[fact.kind](path, name, fact))
    return _made[key]


def is_known(path: str, name: str) -> bool:
    """Return whether a module has facts, and a name among them."""
    return has_facts(path) and facts_of(path).get(name) is not None


def _where(path: str) -> str:
    return f"{_ROOT}.{path}" if path else _ROOT


def _class(path: str, name: str, fact: Fact) -> Any:
    constructor, call = fact.content[0], fact.content[1] if len(fact.content) > 1 else "*args"
    if name in CLASSES:
        return CLASSES[name]
    given = written(path, name)
    if given is not None:
        return given
    own = of_class(name)
    if own is not None:
        return operation_factory.composed(_where(path), name, constructor, call, own)
    if not by_name(path):
        return operation_factory.operation(_where(path), name, constructor, call, None, advice_for(name))
    work = served(name, operation_factory.names_of(parsed(call), parsed(constructor)))
    return operation_factory.operation(_where(path), name, constructor, call, work, advice_for(name))


def _is_of(value: Any, module: str) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module


def _public(path: str, name: str) -> Any:
    """Return a name that the nearest of Mycel's modules above a path defines, or None."""
    while path and not name.startswith("_"):
        try:
            module = importlib.import_module(f"mycel.{path}")
        except ModuleNotFoundError:
            path = path.rpartition(".")[0]
            continue
        value = getattr(module, name, None)
        return value if name in getattr(module, "__all__", ()) or _is_of(value, module.__name__) else None
    return None


def _function(path: str, name: str, fact: Fact) -> Any:
    own = written(path, name)
    if own is not None:
        return operation_factory.shown(_where(path), name, fact.content, own)
    signature = parsed(fact.content)
    names = operation_factory.names_of(signature)
    work = of_function(path, name, names) or _of_library(path, name, names)
    if work is None and any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        public = public_function(name) if by_name(path) and not name.startswith("_") else None
        if public is not None:
            return operation_factory.shown(_where(path), name, fact.content, public)
        return operation_factory.function(_where(path), name, fact.content, None, advice_for(name))
    if work is None and by_name(path):
        work = _by_name(path, name, names)
    public = _public(path, name) if work is None else None
    if public is not None:
        return public
    return operation_factory.function(_where(path), name, fact.content, work, advice_for(name))


def _of_library(path: str, name: str, names: list[str]) -> Any:
    """Return the function of a library whose names others have too, or None."""
    if path != "ops.function.comm_func" or not hasattr(distributed, name):
        return None
    return bound_to(getattr(distributed, name), names)


def _by_name(path: str, name: str, names: list[str]) -> Any:
    """Return the function that the rules of names give for a function of a module, or None."""
    if path.startswith("ops.function"):  # written for programs; what is private there has any meaning
        return served(name, names) if not name.startswith("_") or name in PRIVATE else None
    if name.endswith("_impl"):
        return served_by_class(name, names, _class_of) or served(name, names)
    return served(name, names) or served_by_class(name, names, _class_of)


def _class_of(key: str) -> Any:
    """Return the class of operations whose name has this in common with others, or None."""
    name = _classes().get(key)
    if name is None:
        return None
    return getattr(operations, name) if hasattr(operations, name) else find(_GENERATED, name)


@cache
def _classes() -> dict[str, str]:
    generated = [n for n, fact in facts_of(_GENERATED).names.items() if fact.kind == "classes"]
    return {key_of(n): n for n in [*generated, *operations.__all__]}


def _instance(path: str, name: str, fact: Fact) -> Any:
    """Return the object that an expression ``[PATH:]CLASS(NAME=VALUE, ...)`` makes."""
    owner, _, text = fact.content.rpartition(":") if ":" in fact.content.split("(")[0] else ("", "", fact.content)
    call = syntax_trees.expression(text)
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    kind = elsewhere(owner or path, call.func.id)
    if kind is Primitive and name in NAMED:
        named: Any = operation_factory.composed(
            _where(path), name, "", "*args", lambda p, *inputs: NAMED[name](*inputs)
        )
        return named()
    given = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
    return kind(**given)


def _value(path: str, name: str, fact: Fact) -> Any:
    own = written(path, name)
    if own is not None:
        return own
    return ast.literal_eval(_ElementTypes().visit(syntax_trees.expression(fact.content)))


class _ElementTypes(ast.NodeTransformer):
    """Element types in place of their names, ``mindspore.float32``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return the element type as a constant."""
        return ast.Constant(getattr(D, "bool_" if node.attr == "bool" else node.attr))


def _module(path: str, name: str, fact: Fact) -> Any:
    try:
        return importlib.import_module(fact.content)
    except ModuleNotFoundError as error:
        raise AttributeError(f"module {_where(path)!r} has no {name!r}: {error}") from error


def _other(path: str, name: str, fact: Fact) -> Any:
    if name in __future__.all_feature_names:
        return getattr(__future__, name)
    own = written(path, name)
    if own is not None:
        return own
    work = of_function(path, name, [])
    if work is not None:
        return operation_factory.shown(_where(path), name, "*args", work)
    public = _public(path, name)
    if public is not None:
        return public
    if fact.content == "class":
        return unserved_class(f"{_where(path)}.{name}", advice_for(name))
    return operation_factory.function(_where(path), name, "*args, **kwargs", None, advice_for(name))


def _reference(path: str, name: str, fact: Fact) -> Any:
    own = written(path, name)
    return elsewhere(*fact.content) if own is None else own


def elsewhere(path: str, name: str) -> Any:
    """Return what a name is in another module: one with facts, one of Mycel's, or, where the path
    begins with "/", one of another package.

    What is not there is made such that it says so when it is used.
    """
    if name in __future__.all_feature_names:
        return getattr(__future__, name)
    if name.startswith("pyboost_"):
        return _kernel(_where(path), name)
    if path.startswith("/"):
        return getattr(importlib.import_module(path[1:]), name)
    if has_facts(path) and facts_of(path).get(name) is not None:
        return find(path, name)
    try:
        return getattr(importlib.import_module(_where(path)), name)
    except (AttributeError, ModuleNotFoundError):
        make = operation_factory.operation if name[:1].isupper() else _plain
        return make(_where(path), name, "*args, **kwargs", "*args, **kwargs", None, advice_for(name))


def _kernel(where: str, name: str) -> Callable[..., Any]:
    """Return the entry of a kernel: a function of an operation and a list of its arguments."""

    def call(op: Any, args: Any) -> Any:
        return op(*args)

    return operation_factory.shown(where, name, "op, args", call)


def _plain(where: str, name: str, parameters: str, call: str, work: Any, advice: str) -> Callable[..., Any]:
    return operation_factory.function(where, name, parameters, work, advice)


_MAKERS: dict[str, Callable[[str, str, Fact], Any]] = {
    "classes": _class,
    "functions": _function,
    "instances": _instance,
    "values": _value,
    "modules": _module,
    "others": _other,
    "names": _reference,
}

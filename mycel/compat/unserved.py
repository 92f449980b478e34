"""Names of MindSpore that are not served: they can be imported, subclassed and asked about, and
raise Unsupported, with what to use instead, where a program uses them.

A module lists them in groups, by what they are tied to, and makes them when they are first asked
for:

    __getattr__ = served_on_request(__name__, (Group("runs on Ascend devices only; use ops.matmul",
        functions=("quant_matmul(x, weight, scale=None)",), operations=("QuantMatmul()",)),))

A function raises when it is called. A class raises when it is created, an operation (a subclass of
`ops.Primitive`) when it is called, as networks create operations that they may never reach.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, cast

from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.python_runtime import syntax_trees
from mycel.ops.operations.primitive import Primitive

__all__ = [
    "Group",
    "is_unserved",
    "served_on_request",
    "signature_of",
    "unserved_class",
    "unserved_function",
    "unserved_object",
]


class _NotServed(Unsupported, AttributeError):
    """An attribute of what is not served; for `hasattr` it is one that is not there."""


class Group(NamedTuple):
    """Names with one reason.

    `advice` goes on after the name in the error: what it is tied to, and what to use instead.
    `functions`, `classes` and `operations` are names, each with its parameters in parentheses where
    they are known: "barrier(group=None)".
    """

    advice: str
    functions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


def unserved_function(name: str, advice: str, signature: inspect.Signature | None = None) -> Callable[..., NoReturn]:
    """Return a function that raises Unsupported.

    >>> unserved_function("mindspore.sdc_detect_start", "watches Ascend devices; use check_nan")()
    Traceback (most recent call last):
    mycel.errors.Unsupported: mindspore.sdc_detect_start watches Ascend devices; use check_nan
    """

    def unserved(*args: Any, **named: Any) -> NoReturn:
        raise Unsupported(f"{name} {advice}")

    module, _, last = name.rpartition(".")
    unserved.__name__ = unserved.__qualname__ = last
    unserved.__module__ = module
    unserved.__doc__ = f"Raise Unsupported: this {advice}."
    vars(unserved)["is_unserved"] = True
    if signature is not None:
        vars(unserved)["__signature__"] = signature
    return unserved


class _Unserved:
    """An object that raises Unsupported when it is called, or asked for an attribute or a value."""

    def __init__(self, name: str, advice: str) -> None:
        vars(self).update(is_unserved=True, _name=name, _advice=advice)

    def __repr__(self) -> str:
        return f"<{self._name}: not served>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise _NotServed(f"{self._name} {self._advice}")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")

    def __getitem__(self, key: Any) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")

    def __iter__(self) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")

    def __len__(self) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")

    def __bool__(self) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")

    def __contains__(self, key: Any) -> NoReturn:
        raise Unsupported(f"{self._name} {self._advice}")


def unserved_object(name: str, advice: str) -> Any:
    """Return an object that raises Unsupported when a program does anything with it.

    >>> unserved_object("mindspore.graph.api.sys_path", "is MindSpore's own")[0]
    Traceback (most recent call last):
    mycel.errors.Unsupported: mindspore.graph.api.sys_path is MindSpore's own
    """
    return _Unserved(name, advice)


def is_unserved(value: Any) -> bool:
    """Return whether something is there only to say that it is not served."""
    return vars(value).get("is_unserved", False) if hasattr(value, "__dict__") else False


def unserved_class(
    name: str,
    advice: str,
    signature: inspect.Signature | None = None,
    base: type = object,
    members: Mapping[str, Any] | None = None,
) -> type:
    """Return a class that raises Unsupported when it is created; an operation, when it is called.

    `name` is the whole path and `advice` goes on after it in the error. `signature` is that of the
    constructor, without self; `base` is the superclass; `members` are attributes that programs may
    read, such as constants.
    """
    module, _, last = name.rpartition(".")
    of_operation = issubclass(base, Primitive)

    def refuse(self: Any, *args: Any, **named: Any) -> NoReturn:
        raise Unsupported(f"{name} {advice}")

    def create(self: Any, *args: Any, **named: Any) -> None:
        Primitive.__init__(self, last)

    content: dict[str, Any] = {"__module__": module, "__doc__": f"Raise Unsupported when used: this {advice}."}
    content["is_unserved"] = True
    content.update({"__init__": create, "__call__": refuse} if of_operation else {"__init__": refuse})
    if signature is not None:
        content["__signature__"] = signature
    return type(last, (base,), {**content, **(members or {})})


def served_on_request(module: str, groups: Iterable[Group]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module, which makes the names of `groups` when asked for.

    `module` is the path of MindSpore that errors name. Each name gives the same object every time.
    """
    known: dict[str, tuple[str, str, type | None]] = {}
    for group in groups:
        for words, base in ((group.functions, None), (group.classes, object), (group.operations, Primitive)):
            for word in words:
                last, _, parameters = word.partition("(")
                known[last] = (group.advice, parameters and f"({parameters}", base)
    made: dict[str, Any] = {}

    def find(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name not in made:
            advice, parameters, base = known[name]
            signature = signature_of(parameters) if parameters else None
            path = f"{module}.{name}"
            made[name] = (
                unserved_function(path, advice, signature)
                if base is None
                else unserved_class(path, advice, signature, base)
            )
        return made[name]

    return find


def signature_of(text: str) -> inspect.Signature:
    """Return the signature that a text in parentheses means; defaults are literals or names.

    >>> signature_of("(x, *, eps=1e-05)").parameters["eps"].default
    1e-05
    """
    arguments = cast(ast.FunctionDef, syntax_trees.module(f"def f{text}: ...").body[0]).args
    kinds = inspect.Parameter
    names = [*arguments.posonlyargs, *arguments.args]
    without = len(names) - len(arguments.defaults)
    found = [
        inspect.Parameter(
            one.arg,
            kinds.POSITIONAL_ONLY if i < len(arguments.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if i < without else _default(arguments.defaults[i - without]),
        )
        for i, one in enumerate(names)
    ]
    if arguments.vararg is not None:
        found.append(inspect.Parameter(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        value = kinds.empty if default is None else _default(default)
        found.append(inspect.Parameter(one.arg, kinds.KEYWORD_ONLY, default=value))
    if arguments.kwarg is not None:
        found.append(inspect.Parameter(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


class _Named:
    """A default that is no literal; it is shown as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _Named(ast.unparse(node))

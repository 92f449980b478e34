"""Wrong arguments by rule: the changes of a call's arguments one at a time, and how they are run.

A case is named by where and how: ``1n`` has None in place of the second argument, ``axis=s`` a
string in place of the argument `axis`, ``>0U`` a tensor of one more dimension in place of the first
argument of the call of an object just made. `RULES` says what each letter stands for.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np

PLAIN = {
    "n": "None",
    "s": "'a'",
    "d": "{}",
    "e": "()",
    "f": "1.5",
    "i": "1",
    "b": "True",
    "-": "-1",
    "M": "-100",
    "z": "0",
    "L": "100",
    "l": "[1, 2, 3, 4, 5, 6, 7]",
    "t": "T('float32', [1.0, 2.0])",
    "I": "ms.int32",
    "B": "ms.bool_",
    "C": "ms.complex64",
    "y": "-1.5",
    "Y": "1e6",
}
# Changes of a value, as functions of its text.
CHANGED = {
    "+": "longer",
    "_": "shorter",
    "O": "zeros",
    "N": "negatives",
    "g": "halves",
    "j": "strings",
    "U": "raised",
    "D": "lowered",
    "W": "wider",
    "J": "as_int32",
    "F": "as_float32",
    "Q": "as_float64",
    "P": "as_bool",
    "K": "as_complex64",
    "V": "far_below",
    "X": "far_above",
    "E": "listed",
    "Z": "emptied",
}
RULES = {
    "tensor": "n s d e f b U D W J F Q P K V X E Z m",
    "int": "n s f b - M z L d e l t m",
    "float": "n s y Y z b i d l t m",
    "bool": "n s i f d t m",
    "str": "n s i d b t m",
    "sequence": "n s i f d e + _ O N g j t m",
    "dtype": "n s i d I B C t m",
    "other": "n s i f d t m",
    "none": "s d f - M t b",
}
CODES = {
    "TypeError": "T",
    "ValueError": "V",
    "RuntimeError": "R",
    "IndexError": "I",
    "KeyError": "K",
    "AttributeError": "A",
    "NotImplementedError": "N",
    "OverflowError": "O",
    "MemoryError": "M",
    "AssertionError": "S",
    "ZeroDivisionError": "Z",
    "FileNotFoundError": "F",
}
NAMED = {v: k for k, v in CODES.items()}


def kind_of(text: str) -> str:
    """Return the kind of a value by its text."""
    if text.startswith(("T(", "R(", "P(", "A(", "F(")):
        return "tensor"
    if text in ("True", "False"):
        return "bool"
    if text == "None":
        return "none"
    if text[0] in "'\"":
        return "str"
    if text[0] in "([":
        return "sequence"
    if text.lstrip("-").isdigit():
        return "int"
    if text[0].isdigit() or text[0] == "-":
        return "float"
    if text.startswith("ms.") and "(" not in text and text.count(".") == 1:
        return "dtype"
    return "other"


def helpers(package: Any) -> dict[str, Any]:
    """Return the changes of values in `package`, by their names in `CHANGED`."""
    tensor, parameter = package.Tensor, package.Parameter

    def numpy(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return x
        if x.dtype == package.bfloat16:
            return x.astype(package.float32).asnumpy()
        return x.asnumpy()

    def again(x: Any, array: Any, dtype: Any = None) -> Any:
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        if isinstance(x, np.ndarray):
            return array
        made = tensor(array, dtype or x.dtype)
        return parameter(made, name=x.name) if isinstance(x, parameter) else made

    def typed(name: str) -> Any:
        def change(x: Any) -> Any:
            kind = {"bool_": "bool"}.get(name, name)
            return again(x, numpy(x).astype(kind), getattr(package, name))

        return change

    def each(change: Any) -> Any:
        return lambda s: type(s)(change(v) if isinstance(v, (int, float)) else v for v in s)

    return {
        "longer": lambda s: type(s)([*s, s[-1] if s else 1]),
        "shorter": lambda s: s[:-1],
        "zeros": each(lambda v: 0),
        "negatives": each(lambda v: -1),
        "halves": each(lambda v: v + 0.5),
        "strings": lambda s: type(s)("a" for _ in s),
        "raised": lambda x: again(x, numpy(x)[None]),
        "lowered": lambda x: again(x, numpy(x)[0]),
        "wider": lambda x: again(x, np.concatenate([numpy(x)] * 2, -1)),
        "as_int32": typed("int32"),
        "as_float32": typed("float32"),
        "as_float64": typed("float64"),
        "as_bool": typed("bool_"),
        "as_complex64": typed("complex64"),
        "far_below": lambda x: again(x, np.full_like(numpy(x), -100)),
        "far_above": lambda x: again(x, np.full_like(numpy(x), 100)),
        "listed": lambda x: numpy(x).tolist(),
        "emptied": lambda x: again(x, numpy(x).reshape(-1)[:0]),
    }


Call = tuple[list[str], dict[str, str]]


def changed(call: Call, optional: dict[str, str], owner: bool) -> Iterator[tuple[str, Call]]:
    """Yield the names of cases and the changed arguments.

    `call` has the arguments of an accepted call, `optional` the defaults of parameters that it does
    not give. With `owner` the first argument is the tensor whose method is called.
    """
    args, kwargs = call
    for place, text in enumerate(args):
        for letter in RULES[kind_of(text)].split():
            if owner and place == 0 and letter not in "UDWJFQPKVXZ":
                continue
            if letter == "m":
                if place == len(args) - 1:
                    yield f"{place}m", (args[:-1], kwargs)
                continue
            new = _new(letter, text)
            if new != text:
                yield f"{place}{letter}", ([*args[:place], new, *args[place + 1 :]], kwargs)
    for name, text in {**optional, **kwargs}.items():
        for letter in RULES[kind_of(text)].split():
            if letter == "m":
                if name in kwargs:
                    yield f"{name}=m", (args, {k: v for k, v in kwargs.items() if k != name})
                continue
            new = _new(letter, text)
            if new != text:
                yield f"{name}={letter}", (args, {**kwargs, name: new})
    yield "u", (args, {**kwargs, "unknown_keyword": "1"})
    yield "x", ([*args, "1"], kwargs)


def _new(letter: str, text: str) -> str:
    return PLAIN[letter] if letter in PLAIN else f"{CHANGED[letter]}({text})"


def resolved(package: Any, path: str) -> Any:
    """Return the function or class of a path, or the function that calls a tensor's method."""
    if path.startswith("Tensor."):
        name = path[7:]
        return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)
    found = package
    for part in path.split("."):
        found = getattr(found, part)
    return found


def settled(value: Any) -> None:
    """Wait for a result: errors of what runs in the background come up here."""
    if isinstance(value, (tuple, list)):
        for v in value:
            settled(v)
    elif isinstance(value, dict):
        for v in value.values():
            settled(v)
    elif hasattr(value, "asnumpy"):
        value.asnumpy()


@functools.cache
def _code(text: str) -> CodeType:
    """Return what evaluates the text of an argument: most texts belong to many cases."""
    return compile(text, "<argument>", "eval")


class Runner:
    """Runs calls in a package and names what comes of them."""

    def __init__(self, package: Any, names: dict[str, Any]) -> None:
        self.package, self.names = package, {**names, **helpers(package)}
        self.last: BaseException | None = None

    def read(self, call: Call) -> tuple[list[Any], dict[str, Any]]:
        args = [eval(_code(t), self.names) for t in call[0]]
        return args, {k: eval(_code(t), self.names) for k, t in call[1].items()}

    def run(self, path: str, call: Call, then: Call | None, method: str = "") -> str | None:
        """Run a call, and `then` the call of its result (or of its method `method`).

        Returns "." or the letter of the class of the error, lower case for one of the second call;
        None where the arguments cannot be made.
        """
        self.last = None
        try:
            target = resolved(self.package, path)
            args, kwargs = self.read(call)
            rest = self.read(then) if then is not None else None
        except Exception as error:
            self.last = error
            return None
        try:
            result = target(*args, **kwargs)
            if rest is None:
                settled(result)
        except Exception as error:
            return self.code(error)
        if rest is None:
            return "."
        try:
            settled((getattr(result, method) if method else result)(*rest[0], **rest[1]))
        except Exception as error:
            return self.code(error).lower()
        return "."

    def code(self, error: BaseException) -> str:
        """Return the letters of the built-in classes of an error, the nearest first."""
        self.last = error
        found = [CODES[k.__name__] for k in type(error).__mro__ if k.__module__ == "builtins" and k.__name__ in CODES]
        return "".join(found) or "E"


def entry_cases(path: str, entry: dict[str, Any]) -> Iterator[tuple[str, Call, Call | None, str]]:
    """Yield the cases of an entry of a table: name, call, second call, method of the second."""
    call = (entry["args"], entry["kwargs"])
    then = (entry["then"], entry["then_kwargs"]) if "then" in entry else None
    method = entry.get("method", "")
    yield "", call, then, method
    for name, new in changed(call, entry.get("optional", {}), path.startswith("Tensor.")):
        yield name, new, then, method
    if then is not None:
        for name, new in changed(then, {}, False):
            yield f">{name}", call, new, method

"""From the parameters that MindSpore has to those of the function of Mycel that does the work.

`Names` are parameters in MindSpore's order. `bound_to` gives a function of values in this order, if
the parameters of a Mycel function can be told from them: by the same name, by a name of the same
meaning (`_MEANINGS`), or, for the first two, by the same place. A parameter for which
there is no value keeps its default.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.python_runtime import syntax_trees
from mycel.compat.unserved import signature_of

__all__ = ["LEFT", "Names", "bound_to", "filled", "parsed"]

Names = Sequence[str]

# The value of a parameter that is not given, and whose default is known to the function only.
LEFT: Any = ...

_MEANINGS = (
    "input x self input_x tensor a logits_input",
    "other y exponent_tensor tensor2 b x2 vec2 mat2 batch2",
    "dim axis axes dims",
    "keepdim keep_dims keepdims",
    "size shape output_size",
    "dtype out_dtype output_dtype",
    "min clip_value_min",
    "max clip_value_max",
    "source src",
    "index indices",
    "eps epsilon",
    "target label labels",
    "p prob keep_prob",
    "groups group",
    "pos_weight posWeight",
    "scale scale_value scalar_value",
    "atten_mask attn_mask",
    "kernel_size ksize",
    "padding pads pad",
    "return_inverse return_idx",
)
_MEANING = {name: words.split()[0] for words in _MEANINGS for name in words.split()}


def parsed(parameters: str) -> inspect.Signature:
    """Return the signature of parameters as the tables write them.

    >>> parsed("x, dtype=dtype.float32, eps=...").parameters["dtype"].default is D.float32
    True
    """
    signature = signature_of(f"({parameters})")
    return signature.replace(parameters=[p.replace(default=_default(p.default)) for p in signature.parameters.values()])


def _default(value: Any) -> Any:
    text = repr(value)
    if text.startswith("dtype."):
        return getattr(D, text.removeprefix("dtype."))
    if text.startswith("float("):
        return float(ast.literal_eval(syntax_trees.expression(text[len("float(") : -1])))
    return value


def filled(name: str, signature: inspect.Signature, args: Sequence[Any], named: dict[str, Any]) -> Sequence[Any]:
    """Return the values of all parameters of a call, with defaults.

    `name` is what is called, `signature` its parameters, `args` and `named` what it is given.

    Raises TypeError for arguments that do not fit.
    """
    if not named and len(args) == len(signature.parameters):
        return args
    try:
        bound = signature.bind(*args, **named)
    except TypeError as error:
        raise TypeError(f"{name}: {error}; the parameters are {signature}") from None
    bound.apply_defaults()
    return list(bound.arguments.values())


def bound_to(function: Callable[..., Any], names: Names) -> Callable[..., Any] | None:
    """Return a function of values for `names`, in their order, that calls `function`; None where
    its parameters do not fit.

    >>> mean = lambda x, axis=0, keepdims=False: (x, axis, keepdims)
    >>> bound_to(mean, ("input", "keepdim"))(5, True)
    (5, 0, True)
    >>> bound_to(lambda x: x, ("input", "alpha")) is None
    True
    """
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    places = _places(names, [p.name for p in parameters])
    if places is None:
        return None
    taken = {parameters[k].name for k in places}
    if any(p.default is p.empty and p.name not in taken for p in parameters):
        return None

    def by_name(*values: Any) -> Any:
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        given = {k: v for k, v in zip(places, values) if v is not LEFT}
        for number, parameter in enumerate(parameters):
            if number not in given:
                continue
            if number == len(positional) and parameter.kind is not parameter.KEYWORD_ONLY:
                positional.append(given[number])
            else:
                keywords[parameter.name] = given[number]
        return function(*positional, **keywords)

    return by_name


def _places(names: Names, there: Names) -> list[int] | None:
    """Return the place of each name among the parameters `there`; None where one has no place."""
    places: list[int | None] = [there.index(n) if n in there else None for n in names]
    meanings = [_MEANING.get(n, n) for n in there]
    for number, name in enumerate(names):
        if places[number] is None:
            meaning = _MEANING.get(name, name)
            free = [k for k, m in enumerate(meanings) if m == meaning and k not in places]
            places[number] = free[0] if free else None
    for number, place in enumerate(places):
        if place is None:
            if number > 1 or number >= len(there) or number in places:
                return None
            places[number] = number
    return [p for p in places if p is not None]

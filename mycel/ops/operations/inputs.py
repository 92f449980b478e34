"""The inputs of operations as objects: how many a call takes, and which types each may have.

A class statement says by ``inputs=`` what is not a tensor, by position, in types as `isinstance`
takes them: ``inputs=(Tensor, int)``. All others are tensors. NumPy's numbers go where Python's do,
and symbolic sizes where ints do; a bool is no int. Only types are looked at here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import InputError
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["NUMBER", "SIZES", "WHOLE", "Inputs", "Kinds"]

Kinds = type | tuple[type, ...]
# Operands of arithmetic, sizes and positions.
NUMBER = (Tensor, bool, int, float)
WHOLE = (int, Tensor)
SIZES = (tuple, list, Tensor)
_ALSO: dict[type, tuple[type, ...]] = {
    bool: (np.bool_,),
    int: (np.integer, Dim),
    float: (np.floating,),
    complex: (np.complexfloating,),
}


class Inputs:
    """What the calls of an operation take.

    `name` is the operation and `compute` the function that computes it, to whose parameters, after
    the first `own`, the inputs go. `kinds` are the types of the first inputs; a function that is
    made may have them in its signature, as unions.
    """

    def __init__(self, name: str, compute: Callable[..., Any], own: int, kinds: Sequence[Kinds]) -> None:
        taken = list(inspect.signature(compute).parameters.values())[own:]
        self.name = name
        self.signature = inspect.Signature(taken)
        self.kinds: dict[str, Kinds] = {}
        for place, p in enumerate(taken):
            known: Kinds = get_args(p.annotation) or Tensor
            known = kinds[place] if place < len(kinds) else known
            if p.default is None and known is not object:
                known = (*(known if isinstance(known, tuple) else (known,)), type(None))
            self.kinds[p.name] = known

    def check(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Raise InputError unless a call may have these inputs."""
        try:
            bound = self.signature.bind(*given, **named).arguments
        except TypeError as error:
            names = ", ".join(self.kinds)
            wrong = f"not {len(given)}" if not named else f"and {error}"
            raise InputError(f"{self.name}: takes {len(self.kinds)} inputs ({names}), {wrong}") from None
        for parameter, value in bound.items():
            kinds = self.kinds[parameter]
            several = self.signature.parameters[parameter].kind is inspect.Parameter.VAR_POSITIONAL
            for v in value if several else (value,):
                if not _is(v, kinds):
                    raise arguments.wrong_type(self.name, parameter, arguments.named(kinds), v, InputError)


def _is(value: Any, kinds: Kinds) -> bool:
    if kinds is object:
        return True
    listed = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, bool):
        return bool in listed
    return isinstance(value, listed) or any(isinstance(value, _ALSO.get(k, ())) for k in listed)

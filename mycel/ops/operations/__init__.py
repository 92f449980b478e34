"""Operations as objects: parameters at construction, tensors at the call, as in
``ops.MatMul(transpose_b=True)(x, y)``.

Every class is one statement over a function of `mycel.ops`, one module a topic
(`mycel.ops.operations.primitive`). What the constructor was given are attributes of the object.
"""

from __future__ import annotations

from importlib import import_module

from mycel.ops.operations.primitive import Primitive as Primitive

__all__ = ["Primitive"]

for _topic in (
    "arithmetic",
    "reductions",
    "shapes",
    "layers",
    "advanced",
    "updates",
    "sparse",
    "images",
    "windows",
    "attention",
    "mathematics",
    "arrays",
    "random",
    "recurrent",
    "control",
    "showing",
    "program",
    "registration",
    "custom",
    "morph",
    "collectives",
):
    _module = import_module(f"{__name__}.{_topic}")
    globals().update({name: getattr(_module, name) for name in _module.__all__})
    __all__ += _module.__all__

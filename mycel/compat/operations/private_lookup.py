"""The work of private primitives, and what rules give for private functions.

`of_class` finds the function of a primitive by its name, given the object and its inputs; a table
is imported when its module is asked for. `of_function` finds the function of a private module:
one written for it (`_WRITTEN`), or what a rule for the whole module says (`multitype`, `bprops`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from mycel.compat.operations import bprops, multitype
from mycel.compat.operations.private_primitives.gradients import PULLED
from mycel.compat.operations.private_primitives.images import IMAGES
from mycel.compat.operations.private_primitives.inner_ops import INNER
from mycel.compat.operations.private_primitives.layers import LAYERS
from mycel.compat.operations.private_primitives.quantization import CLASSES, QUANTIZATION
from mycel.compat.operations.private_primitives.saved_gradients import SAVED
from mycel.compat.operations.private_primitives.sequences import NAMED, SCALARS, SEQUENCES
from mycel.compat.operations.private_primitives.sparse import SPARSE

__all__ = ["CLASSES", "NAMED", "by_name", "of_class", "of_function", "written"]

Work = Callable[..., Any]

_TABLES = (PULLED, SAVED, IMAGES, INNER, LAYERS, QUANTIZATION, SEQUENCES, SCALARS, SPARSE)
# Modules of MindSpore of which some names are written out here.
_WRITTEN = {
    "numpy.utils": "numpy_utils",
    "numpy.utils_const": "numpy_utils",
    "ops._grad_experimental.grad_comm_ops": "signatures",
    "ops.operations.nn_ops": "signatures",
    "ops.operations._pyfunc_registry": "bprops",
    "ops.composite.math_ops": "composites",
    "ops.primitive": "signatures",
    "ops.signature": "signatures",
    "scipy.utils": "scipy_utils",
    "scipy.utils_const": "scipy_utils",
    "scipy.ops": "scipy_utils",
    "scipy.ops_grad": "scipy_utils",
    "scipy.ops_wrapper": "scipy_utils",
    "ops._utils.arg_dtype_cast": "argument_handlers",
    "ops._utils.arg_handler": "argument_handlers",
    "ops._utils.utils": "numpy_utils",
    "ops.composite.base": "composites",
    "ops.composite.env_ops": "composites",
    "ops.composite.multitype_ops._compile_utils": "indexing",
    "ops._register_for_op": "bprops",
    "ops.operations._custom_grad": "bprops",
    "ops.vm_impl_registry": "bprops",
}
# Modules whose functions are found by their names in public libraries.
_BY_NAME = (
    "ops.auto_generate",
    "ops.function",
    "ops._primitive_cache",
    "ops.operations.manually_defined",
    "scipy.fft",
)


def by_name(path: str) -> bool:
    """Return whether names of a module are those of public functions that do the same."""
    return path.startswith(_BY_NAME)


def of_class(name: str) -> Work | None:
    """Return the work of a primitive: a function of the object and its inputs.

    >>> of_class("TanhGrad") is not None, of_class("NoSuchPrimitive") is None
    (True, True)
    """
    return next((table[name] for table in _TABLES if name in table), None)


@cache
def _names(path: str) -> dict[str, Any]:
    module = _WRITTEN.get(path, "bprops" if path.startswith("ops._grad_experimental.") else None)
    return importlib.import_module(f"mycel.compat.operations.{module}").NAMES if module is not None else {}


def written(path: str, name: str) -> Any:
    """Return a name of a private module that is written out here; None where it is not."""
    return _names(path).get(name)


def of_function(path: str, name: str, parameters: list[str]) -> Work | None:
    """Return the work of a function of a private module: a function of its parameters' values."""
    found = written(path, name)
    if found is None and path.startswith("ops.composite.multitype_ops."):
        found = multitype.work_of(path.rpartition(".")[2], name, parameters)
    if found is None and path.startswith(("ops._grad_experimental.", "scipy.ops_grad")):
        found = bprops.work_of(name)
    return found

"""Native calls during staging, and guards on the outside state that they may read.

Interpreted code tells the guards what it reads, but native code does not. So the arguments of a
native call are *seen* before it: plain data and tensors need no guard, containers and objects are
guarded with everything that can be reached from them, and objects that cannot be inspected raise an
error. Staging is also *watched*: if a frame of the user's code appears that the interpreter did not
make, native code has called it (as an operator method, a callback or a generator), and it may have
read anything. The function is then run in segments, where nothing that was read is remembered.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import current_where
from mycel._src.engines.profile_hook import KnownCode
from mycel._src.engines.select import engine
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.package import FOLDER
from mycel._src.foundation.python_runtime.code_origins import is_installed, is_standard
from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.foundation.settings import config
from mycel._src.staging.frontend.calls.frames import call
from mycel._src.staging.frontend.calls.user_code import MUTATED, PACKAGE, is_native_code, is_users
from mycel._src.staging.frontend.graph_building.stage import Stage, current_stage
from mycel._src.staging.frontend.source_code import tracebacks
from mycel._src.staging.frontend.specialization.guards import MISSING
from mycel._src.staging.frontend.specialization.snapshots import IMMUTABLE, is_closed
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["PROCESS_MODULES", "refuse_unseen", "see", "see_call", "see_library", "see_result", "watched"]


def see(stage: Stage, value: Any, depth: int = 0) -> None:
    """Guard everything that can be reached from a value, as native code may read it."""
    kind = type(value)
    if kind in IMMUTABLE or isinstance(value, (Tensor, type, np.generic)):
        return
    if isinstance(value, Cell):
        if not stage.is_fresh(value):
            for _, cell in value.cells_and_names():
                stage.guards.native_cell(cell)
        return
    if stage.is_fresh(value) or kind is tuple:
        if depth < 8 and isinstance(value, (tuple, list, set, frozenset)):
            for v in value:
                see(stage, v, depth + 1)
        elif depth < 8 and isinstance(value, Mapping):
            for v in value.values():
                see(stage, v, depth + 1)
        return
    if kind.__module__.startswith("mycel.") or is_closed(value, kind):
        return
    if not _holds_only_plain(value):
        stage.guards.state(value)
    elif not stage.was_changed(("container", id(value))):
        stage.guards.content(value)


def _holds_only_plain(value: Any) -> bool:
    if type(value) in (list, set, frozenset):
        return all(type(v) in IMMUTABLE for v in value)
    if type(value) is dict:
        return all(type(v) in IMMUTABLE for v in value.values())
    return type(value) is np.ndarray and value.dtype.kind != "O"


_READING = frozenset(
    "get keys values items copy index count most_common elements total isdisjoint issubset issuperset union "
    "intersection difference tolist tobytes "
    "_asdict _replace __getitem__ __contains__ __len__ __iter__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ "
    "__repr__ __str__ __format__ "
    "__getattribute__ __dir__ __bool__ __reversed__ __reduce__ __reduce_ex__ __sizeof__ __class__ __init__ "
    "__init_subclass__".split()
)


def see_call(stage: Stage, fn: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Guard what the native call ``fn(*args, **kwargs)`` may read, in the guards of `stage`.

    Raises CompileError if the call may change an object from outside without a journal entry.
    """
    receiver = getattr(fn, "__self__", None)
    name = getattr(fn, "__name__", "")
    if name in ("__setattr__", "__delattr__"):
        owner, attribute = (receiver, args[0]) if type(fn) is not types.WrapperDescriptorType else args[:2]
        stage.note_attribute(owner, attribute)
        return
    if receiver is not None and not isinstance(receiver, types.ModuleType):
        if name not in _READING and _may_change(stage, receiver):
            raise CompileError(
                f"{current_where()}: {type(receiver).__name__}.{name}() may change an object from outside, so that it "
                "has to run at "
                "each call; do it outside"
            )
        see(stage, receiver)
    for value in (*args, *kwargs.values()):
        see(stage, value)


# Modules of the library whose functions read or change state of the process.
PROCESS_MODULES = (
    "mycel.common.seed",
    "mycel.common.generator",
    "mycel._src.foundation.settings.config",
    "mycel.dataset",
    "mycel.train.serialization",
    "mycel._src.foundation.log",
    "mycel._src.foundation.settings.jit_config",
)


def see_library(stage: Stage, fn: Any, args: Any) -> None:
    """Guard the setting that a function of the library reads.

    Raises CompileError for functions that read or change other state of the process.
    """
    if fn is config.get_context and len(args) == 1:
        stage.guards.item(config._context, args[0], config._context.get(args[0], MISSING))
    elif type(fn) is types.FunctionType and fn.__module__.startswith(PROCESS_MODULES):
        raise CompileError(
            f"{current_where()}: {fn.__qualname__}() belongs to the process and has to run at each call; do it outside"
        )


def _may_change(stage: Stage, value: Any) -> bool:
    kind = type(value)
    if kind in IMMUTABLE or kind in MUTATED or isinstance(value, (Tensor, type, np.generic)) or stage.is_fresh(value):
        return False
    return (
        not is_closed(value, kind)
        and not kind.__module__.startswith("mycel.")
        and not isinstance(value, (tuple, frozenset))
    )


def see_result(stage: Stage, value: Any, is_alone: bool) -> Any:
    """Return a result of native code, which is new if nothing else refers to it.

    A container that is not new is guarded by its contents.
    """
    if type(value) in (list, dict, set, np.ndarray, bytearray) and not stage.is_fresh(value):
        if is_alone:
            stage.created(value)
        else:
            see(stage, value)
    return value


# Calling.


def callback(value: Any) -> Any:
    """Return a user's function in a form that native code can call and that is interpreted while a
    function is staged.
    """
    if not is_users(value):
        return value

    @functools.wraps(value)
    def run(*args: Any, **kwargs: Any) -> Any:
        return call(current_stage(), value, args, kwargs)

    return run


def call_natively(stage: Stage, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Return ``fn(*args, **kwargs)``, run natively while `stage` stages a function.

    What `fn` may read is guarded. Raises CompileError for functions that have to run at each call.
    """
    if not stage.runs_each_time:
        module, name = _origin(fn)
        if module in ("logging", "warnings") and name in _REPORTS:
            stage.defer(fn, tuple(args), kwargs)
            return None
        _refuse_impure(fn)
    if stage.runs_each_time:
        unseen = False
    else:
        module = _origin(fn)[0]
        unseen = not module.startswith("mycel.")
        if not unseen:
            see_library(stage, fn, args)
    if unseen:
        see_call(stage, fn, args, kwargs)
    for value in itertools.chain(args, kwargs.values()):
        if type(value) in MUTATED:
            stage.note_container(value)
        else:
            stage.need_own_iterator(value)
    result = fn(*args, **kwargs)
    if isinstance(result, Tensor) and id(result) in stage.numbers and _origin(fn)[0].startswith("mycel."):
        if not any(result is value for value in args):
            # What an operation gives for numbers is a tensor.
            del stage.numbers[id(result)]
    if unseen:
        see_result(stage, result, sys.getrefcount(result) < ONE_OWNER)
    if hasattr(type(result), "__next__") or _is_new_array(fn, result):
        if not any(result is value for value in args):
            stage.created(result)
    return result


def _is_new_array(fn: Any, result: Any) -> bool:
    module = getattr(fn, "__module__", None) or ""
    return type(result) is np.ndarray and module.startswith("numpy") and result.flags.owndata


# Modules whose functions return the same result for the same arguments and change nothing else.
_PURE = frozenset(
    "builtins math cmath operator _operator functools _functools itertools collections _collections _collections_abc "
    "copy copyreg numpy scipy re _sre "
    "string _string typing types dataclasses enum abc _abc numbers fractions decimal _decimal statistics inspect "
    "textwrap bisect _bisect heapq _heapq "
    "contextlib weakref _weakref _weakrefset json hashlib _hashlib struct _struct array ml_dtypes posixpath ntpath "
    "mycel mindspore".split()
)
_IMPURE = ("numpy.random", "scipy.io", "numpy.lib.npyio", "numpy.lib._npyio_impl", "numpy._core.multiarray.fromfile")
_REPORTS = frozenset(("debug", "info", "warning", "error", "critical", "exception", "log", "warn"))


def _origin(fn: Any) -> tuple[str, str]:
    """Return the module and the name of a function that runs natively."""
    module = getattr(fn, "__module__", None)
    name = getattr(fn, "__name__", type(fn).__name__)
    if module is None or type(fn) is types.BuiltinMethodType and not isinstance(fn.__self__, types.ModuleType):
        owner = getattr(fn, "__self__", None)
        module = (
            getattr(owner if isinstance(owner, type) else type(owner), "__module__", "") if owner is not None else ""
        )
    return module or "", name


def _refuse_impure(fn: Any) -> None:
    """Raise CompileError for a function that has to run at each call, because its result may change
    by itself or because it has effects outside.
    """
    module, name = _origin(fn)
    if not module or module.split(".")[0] in _PURE and not module.startswith(_IMPURE) or _is_users_module(module):
        return
    raise CompileError(
        f"{current_where()}: {module}.{name}() has to run at each call, as its result or effect may differ; "
        "do it outside, pass its result as an argument, or use the functions of ops"
    )


def _is_users_module(name: str) -> bool:
    """Return whether a module belongs neither to the standard library nor to an
    installed package.
    """
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return name == "__main__"
    return not is_standard(file) and not is_installed(file)


# Watching.


@functools.cache
def _native() -> KnownCode:
    """Return the known code, which belongs to Python, to libraries or to Mycel."""
    return engine().known_code()


# The frontend: what stages functions.
_HERE = os.path.join(FOLDER, "_src", "staging", "frontend", "")
# Where rules of primitives are called, which a program may have defined: they are a part of the
# primitive.
_RULES = tuple(
    [
        os.path.join(FOLDER, "_src", *names, "")
        for names in (("compiler", "ir"), ("compiler", "prims"), ("compiler", "transforms"), ("engines",))
    ]
)
_EMIT = Stage.emit.__code__


@contextmanager
def watched(stage: Stage) -> Iterator[None]:
    """Return a context manager that watches for frames of the user's code run by native code.

    The first of them is noted in `stage.unseen`. Nothing is watched if the thread has a profiling
    function already.
    """
    if sys.getprofile() is not None:
        yield
        return

    known = _native()

    def on_event(frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "call" and id(frame.f_code) not in known.codes:
            _judge(stage, frame)

    known.watch(on_event)
    try:
        yield
    finally:
        sys.setprofile(None)


def _judge(stage: Stage, frame: types.FrameType) -> None:
    code = frame.f_code
    if is_native_code(code, frame.f_globals):
        if code.co_filename != "<string>":
            _native().add(code)
            return
        # Methods that dataclasses and named tuples generate.
        for name in code.co_varnames[: code.co_argcount]:
            if name in frame.f_locals and code.co_name not in ("__init__", "__new__", "__create_fn__"):
                see(stage, frame.f_locals[name])
        return
    before = frame.f_back.f_code if frame.f_back is not None else code
    caller = before.co_filename
    exempt = (
        code.co_name == "__del__"
        or _asks_what_it_is(frame)
        or "logging" in caller
        or before is _EMIT
        or caller == tracebacks.__file__
        or caller.startswith(_RULES)
        or code.co_filename == "<string>"
        and (str(frame.f_globals.get("__name__")).startswith("namedtuple_") or _is_inside(caller))
    )
    if stage.unseen is None and not exempt:
        name = getattr(code, "co_qualname", code.co_name)
        stage.unseen = (current_where(), name)


def _asks_what_it_is(frame: types.FrameType) -> bool:
    """Return whether a frame is that of a user's attribute access which is asked for what every
    object has, as `isinstance` asks for `__class__`.
    """
    code = frame.f_code
    if code.co_name not in ("__getattr__", "__getattribute__") or code.co_argcount != 2:
        return False
    name = frame.f_locals.get(code.co_varnames[1])
    return type(name) is str and name.startswith("__") and name.endswith("__")


def _is_inside(file: str) -> bool:
    """Return whether a file belongs to the library, but not to its interpreter, which calls the
    user's code.
    """
    return file.startswith(PACKAGE) and not file.startswith(_HERE)


def refuse_unseen(stage: Stage) -> None:
    """Raise CompileError if native code ran the user's code while a function was staged."""
    if stage.unseen is not None:
        where, name = stage.unseen
        place = f"{where}: " if where else ""
        raise CompileError(
            f"{place}{name} is called here by code that the compiler does not follow, so that it has to run at each "
            "call; "
            "call it directly"
        )

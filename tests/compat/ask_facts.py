"""Ask the real package what the modules that Mycel answers by rule have, and write it as facts.

    REAL_PYTHON tests/compat/ask_facts.py [MODULE ...]

runs with an interpreter that has MindSpore 2.10, without Mycel. Each module, named below
"mindspore.", becomes `mycel/compat/operations/facts/MODULE.json`:

* "classes": operations that the module itself defines, ``[constructor, call]`` as parameters.
* "functions": functions that the module itself defines, with their parameters.
* "instances": objects of operations, as the expression that makes them.
* "values": constants.
* "whole": modules whose public names are here too, but for those that this one has itself.
* "names": what is defined elsewhere, by the path that has it; a name that is another there is
  ``here=there``. A public path goes before a private one; "/MODULE" is one of another package.
* "modules": modules under the names that they have here.
* "others": what is none of these, with its type; nobody can use it but the package itself.
* "all": what ``import *`` brings, where the module says so.

Defaults of parameters are literals, ``dtype.NAME`` for element types, or ``...`` for other objects.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import sys
import types
import warnings
from pathlib import Path

if __name__ == "__main__":  # only there is the real package
    warnings.simplefilter("ignore")
    import mindspore
    from mindspore.common import dtype as mstype
    from mindspore.ops import Primitive

FACTS = Path(__file__).resolve().parents[2] / "mycel" / "compat" / "operations" / "facts"
FUNCTIONS = """
    _add_attr_func array_func clip_func comm_func debug_func fft_func image_func linalg_func
    math_func nn_func other_func parameter_func random_func reshard_func sparse_func
    sparse_unary_func spectral_func vmap_func grad grad.grad_func
"""
OPERATIONS = """
    _csr_ops _custom_grad _custom_ops_utils _embedding_cache_ops _grad_ops _infer_ops _inner_ops
    _map_tensor_ops _ms_kernel _ocr_ops _pyfunc_registry _quant_ops _rl_inner_ops _scalar_ops
    _sequence_ops _sparse_grad_ops _thor_ops array_ops comm_ops control_ops custom_ops debug_ops
    image_ops inner_ops linalg_ops manually_defined._inner math_ops nn_ops other_ops random_ops
    reshard_ops sparse_ops spectral_ops
"""
MULTITYPE = """
    _compile_utils _constexpr_utils add_impl bitwise_and_impl bitwise_or_impl bitwise_xor_impl
    div_impl equal_impl floordiv_impl getitem_impl greater_equal_impl greater_impl in_impl
    invert_impl left_shift_impl less_equal_impl less_impl logical_and_impl logical_not_impl
    logical_or_impl mod_impl mul_impl negative_impl not_equal_impl not_in_impl ones_like_impl
    pow_impl right_shift_impl setitem_impl sub_impl uadd_impl zeros_like_impl
"""
GRADIENTS = """
    grad_array_ops grad_base grad_comm_ops grad_debug_ops grad_implementations grad_inner_ops
    grad_math_ops grad_nn_ops grad_quant_ops grad_sparse grad_sparse_ops taylor_rule
"""
PRIVATE = "_register_for_op op_info_register primitive signature vm_impl_registry"
SCIPY = """
    fft linalg ops ops_grad ops_wrapper optimize optimize._bfgs optimize._lagrange optimize._lbfgs
    optimize.gradient_optimization_algorithm optimize.line_search optimize.linear_sum_assignment
    optimize.minimize utils utils_const
"""
GENERATED = [
    "ops.auto_generate.gen_ops_prim",
    "ops.auto_generate.pyboost_inner_prim",
    "ops.auto_generate.gen_extend_func",
    "ops.auto_generate.gen_ops_def",
    "ops.auto_generate",
]
MODULES = [
    *GENERATED,
    *(f"ops.function.{name}" for name in FUNCTIONS.split()),
    "ops.function",
    "ops.functional",
    "ops.functional_overload",
    "ops._primitive_cache",
    "ops._utils.arg_dtype_cast",
    "ops._utils.arg_handler",
    "ops.operations.manually_defined.ops_def",
    "ops.operations.manually_defined",
    *(f"ops.operations.{name}" for name in OPERATIONS.split()),
    "ops.operations",
    *(f"ops.composite.multitype_ops.{name}" for name in MULTITYPE.split()),
    "ops.composite.multitype_ops",
    *(f"ops.composite.{name}" for name in ("base", "env_ops", "math_ops")),
    "ops.composite",
    *(f"ops._grad_experimental.{name}" for name in GRADIENTS.split()),
    "ops._grad_experimental",
    *(f"ops.{name}" for name in PRIVATE.split()),
    "ops._utils.utils",
    "ops._utils",
    *(f"scipy.{name}" for name in SCIPY.split()),
    "numpy.utils",
    "numpy.utils_const",
]
# The first of these that has an object is where it is asked for.
PUBLIC = ["", "ops", "mint", "mint.nn.functional", "mint.linalg", "mint.special", "mint.nn", "nn", "numpy", "common"]


def text_of(value: dict | set) -> str:
    return "{" + ", ".join(sorted(map(repr, value))) + "}" if isinstance(value, set) else repr(value)


def module_of(path: str) -> types.ModuleType:
    return importlib.import_module("mindspore" + ("." + path if path else ""))


def path_of(module_name: str) -> str:
    return module_name.removeprefix("mindspore").removeprefix(".")


class Index:
    """Where an object is found: its public path first, then the module that defines it."""

    def __init__(self) -> None:
        self.where: dict[int, tuple[str, str]] = {}
        for path in [*PUBLIC, *GENERATED]:
            self.add(path)
        rest = sorted(n for n in sys.modules if n.startswith("mindspore.") and "._c_expression" not in n)
        self.private = list(dict.fromkeys([*MODULES, *map(path_of, rest)]))

    def add(self, path: str) -> None:
        for name, value in vars(module_of(path)).items():
            if path and path not in GENERATED and not is_public(path, name):
                continue
            if not name.startswith("_") or path in GENERATED:
                foreign = path in GENERATED and getattr(value, "__module__", None) != f"mindspore.{path}"
                if callable(value) and not (foreign and not isinstance(value, Primitive)):
                    self.where.setdefault(id(value), (path, name))

    def find(self, value: object) -> tuple[str, str] | None:
        known = self.where.get(id(value))
        if known is not None:
            return known
        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(module, str) and isinstance(name, str):
            if getattr(sys.modules.get(module), name, None) is value:
                return (path_of(module) if module.split(".")[0] == "mindspore" else f"/{module}", name)
        for path in self.private:
            for name, other in vars(module_of(path)).items():
                if other is value and not name.startswith("__"):
                    return (path, name)
        return None


def is_public(path: str, name: str) -> bool:
    listed = getattr(module_of(path), "__all__", None)
    return listed is None or name in listed


@functools.cache
def types_of() -> dict[int, str]:
    """Return the names of element types by what they are."""
    return {id(v): n for n, v in vars(mstype).items() if n in mindspore.__all__ and n == str(v).lower()}


def default_of(value: object) -> str:
    if id(value) in types_of():
        return f"dtype.{types_of()[id(value)]}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if type(value) in (tuple, list) and all(default_of(v) != "..." for v in value):
        inner = ", ".join(map(default_of, value))
        return f"({inner}{',' * (len(value) == 1)})" if type(value) is tuple else f"[{inner}]"
    return "..."


def parameters_of(function: object, skip: int = 0) -> str:
    """Return the parameters as Python writes them, without annotations."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "*args, **kwargs"
    parts, starred = [], False
    listed = list(signature.parameters.values())[skip:]
    for number, p in enumerate(listed):
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if p.kind is p.VAR_POSITIONAL:
            starred = True
        elif p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(text if p.default is p.empty else f"{text}={default_of(p.default)}")
        following = listed[number + 1].kind if number + 1 < len(listed) else None
        if p.kind is p.POSITIONAL_ONLY and following is not p.POSITIONAL_ONLY:
            parts.append("/")
    return ", ".join(parts)


def expression_of(value: Primitive, here: str, index: Index) -> str:
    kind = type(value)
    found = index.find(kind)
    owner = "" if found is None or found[0] == here else f"{found[0]}:"
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    known = {"name": value.name, **value.attrs, **(getattr(value, "init_attrs", None) or {})}
    given = {n: known[n] for n in names if n in known}
    return f"{owner}{kind.__name__}({', '.join(f'{k}={default_of(v)}' for k, v in given.items())})"


def facts_of(path: str, index: Index) -> dict[str, object]:
    module = module_of(path)
    facts: dict[str, dict] = {k: {} for k in ("classes", "functions", "instances", "values", "modules", "others")}
    names: dict[str, list[str]] = {}
    for name, value in sorted(vars(module).items()):
        if name.startswith("__"):
            continue
        if inspect.ismodule(value):
            facts["modules"][name] = value.__name__
            continue
        if default_of(value) != "..." or type(value) in (dict, set) and default_of([*value]) != "...":
            facts["values"][name] = default_of(value) if default_of(value) != "..." else text_of(value)
            continue
        found = index.find(value) if path not in GENERATED or id(value) in index.where else None
        if found is None and getattr(value, "__module__", None) != module.__name__:
            found = index.find(value)
        own = found is None or found[0] == path
        if not own:
            names.setdefault(found[0], []).append(name if found[1] == name else f"{name}={found[1]}")
        elif inspect.isclass(value) and issubclass(value, Primitive):
            call = [] if value.__call__ is Primitive.__call__ else [parameters_of(value.__call__, 1)]
            facts["classes"][name] = [parameters_of(value.__init__, 1), *call]
        elif inspect.isfunction(value):
            facts["functions"][name] = parameters_of(value)
        elif type(value).__name__ in ("CompileOp", "ProxyOp"):  # functions that run while a graph is made
            facts["functions"][name] = parameters_of(value.fn)
        elif isinstance(value, Primitive):
            facts["instances"][name] = expression_of(value, path, index)
        elif path == "ops.auto_generate.pyboost_inner_prim" and name.endswith("_impl"):
            facts["functions"][name] = parameters_of(type(value).__call__, 1)
        elif inspect.isclass(value):
            facts["others"][name] = "class"
        else:
            facts["others"][name] = type(value).__name__
    written: dict[str, object] = {k: v for k, v in facts.items() if v}
    whole = [p for p in GENERATED if p != path and has_all(module, module_of(p))]
    if whole:
        written["whole"] = whole
        here = vars(module)
        covered = {n for p in whole for n, v in vars(module_of(p)).items() if here.get(n) is v and n[0] != "_"}
        for kind in ("instances", "modules", "functions", "others", "values"):
            written[kind] = {n: v for n, v in facts[kind].items() if n not in covered}
        names = {where: [n for n in listed if n.split("=")[0] not in covered] for where, listed in names.items()}
    written["names"] = {where: " ".join(listed) for where, listed in sorted(names.items()) if listed}
    written = {k: v for k, v in written.items() if v}
    listed = getattr(module, "__all__", None)
    if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
        written["all"] = " ".join(sorted(listed))
    return written


def has_all(module: types.ModuleType, other: types.ModuleType) -> bool:
    """Return whether a module has every public name of another one, nearly all the same objects."""
    public = [(n, v) for n, v in vars(other).items() if not n.startswith("_")]
    others = sum(vars(module).get(n) is not v for n, v in public)
    return others <= 5 and all(hasattr(module, n) for n, _ in public)


def main(paths: list[str]) -> None:
    index = Index()
    FACTS.mkdir(exist_ok=True)
    for path in paths:
        text = json.dumps(facts_of(path, index), indent=0, ensure_ascii=True)
        (FACTS / f"{path}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or MODULES)

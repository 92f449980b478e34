"""Ask MindSpore for every name of each of its modules, and write `mycel/compat/names.json`.

    python ask_names.py

Run with an interpreter that has MindSpore 2.10. Modules that have a table of operations
(`mycel/compat/operations/facts`) are in it with what that table lacks. For each module the file has

* "f", the functions that it defines, and "o", its objects that are no constants;
* "c", its classes, by the path of their first base ("/" in front of other packages');
* "e", its enumerations, each with its members;
* "v", its constants: numbers, short words, and tuples of them;
* "i", what it has from other modules, by their paths, as `name` or `name=name_there`; those of
  other packages have "/" in front, and modules by an alias are under "/".
"""

from __future__ import annotations
import __future__

import ast
import enum
import importlib
import json
import pkgutil
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = "mindspore"
HERE = Path(__file__).resolve().parent
COMPAT = HERE.parents[2] / "mycel" / "compat"
LONGEST = 60
# Where Mycel has objects that do not say where they are from, or that each module makes for itself.
HOMES = {
    "_pynative_executor _cell_graph_executor _no_grad cells_compile_cache flops_collection": "common.api",
    "tensor_operator_registry": "common._register_for_tensor",
    "RowTensorInner": "common.sparse_tensor",
    "hifloat8 qint4x2 _null _NullType": "common.dtype",
    "np_dtype_valid": "common.dtype",
    "_DEFAULT_JIT_CONFIG ARG_SPECIFIED TOTAL_ARG_LEN": "common.api",
    "create_amp_strategy push_amp_strategy pop_amp_strategy get_curr_amp_strategy": "_c_expression.amp",
    "_framework_profiler_step_start _framework_profiler_step_end reset_op_id": "_c_expression",
    "is_reboot_node get_clock_syscnt init_pipeline finalize_hccl clean_tdt_channel": "_c_expression",
    "_get_optimzer_timestamps _get_snapshot_params _is_snapshot_valid set_is_arf": "_c_expression",
    "_reset_error_state _is_cipher_file init_exec_dataset _wait_pipeline": "_c_expression",
    "init_cluster init_hccl _init_cluster_with_store _init_hccl_with_store": "_c_expression",
    "split_mindir split_dynamic_mindir dump_func_graph _set_dataset_mode_config": "_c_expression",
    "update_func_graph_hyper_params set_cluster_exit_with_exception": "_c_expression",
    "reciprocal grad_scale shard_grad_scale tensor_grad_scale_pipeline": "nn.wrap.loss_scale",
    "tensor_shard_grad_scale_pipeline": "nn.wrap.loss_scale",
    "cell_attr_register": "nn.cell",
    "twice": "_checkparam",
    "jit": ".",
    "jit_class": ".",
    "Layout": "parallel",
    "_is_role_sched DEVICE_TO_BACKEND": "communication._comm_helper",
    "_create_group_helper _destroy_group_helper _get_comm_name_helper": "communication._comm_helper",
    "_get_group_rank_from_world_rank_helper _get_group_ranks": "communication._comm_helper",
    "_get_group_rank_from_world_rank_from_cache_helper": "communication._comm_helper",
    "_get_local_rank_helper _get_local_size_helper _get_rank_helper": "communication._comm_helper",
    "_get_size_helper _get_world_rank_from_group_rank_helper": "communication._comm_helper",
    "is_initialized": "context",
    "is_shape_unknown get_func load_lib": "common._utils",
    "PluginEnum": "train.summary.enums",
    "_check_prefix": "train.serialization",
}
Names = dict[str, dict[str, Any]]


HOME_OF = {name: home for names, home in HOMES.items() for name in names.split()}
OTHER_NAMES = {"_executor": "_cell_graph_executor"}


def modules() -> dict[str, types.ModuleType]:
    """All modules that can be imported, by their paths below the root."""
    pending = [ROOT]
    while pending:
        name = pending.pop()
        try:
            module = importlib.import_module(name)
        except (ImportError, RuntimeError):
            continue
        pending += [f"{name}.{found.name}" for found in pkgutil.iter_modules(getattr(module, "__path__", ()))]
    found = {n: m for n, m in sys.modules.items() if n == ROOT or n.startswith(f"{ROOT}.")}
    return {n[len(ROOT) + 1 :]: m for n, m in sorted(found.items()) if not n.startswith(f"{ROOT}.ops_generate")}


def is_constant(value: Any) -> bool:
    """Whether a value is written into the table as it is."""
    if isinstance(value, tuple):
        return all(map(is_constant, value)) and len(repr(value)) <= LONGEST
    return type(value) in (bool, int, float, str, type(None)) and len(repr(value)) <= LONGEST and "/" not in repr(value)


def members(kind: type) -> dict[str, Any] | None:
    """The members of an enumeration, of Python or of a module in C++; None for another class."""
    if isinstance(kind, enum.EnumMeta):
        found = {n: m.value for n, m in kind.__members__.items()}
    elif isinstance(vars(kind).get("__members__"), property) or hasattr(kind, "__entries"):
        found = {n: int(m) for n, m in kind.__members__.items()}
    else:
        return None
    return found if all(map(is_constant, found.values())) else None


def path_of(kind: type) -> str:
    """The path of a class below the root, or that of another package with "/" in front."""
    whole = f"{kind.__module__}.{kind.__qualname__}"
    return whole[len(ROOT) + 1 :] if whole.startswith(f"{ROOT}.") else f"/{whole}"


def imported(module: types.ModuleType) -> set[str]:
    """The names that a module in Python has by its import statements."""
    source = getattr(module, "__file__", None)
    if not source or not source.endswith(".py"):
        return set()
    nodes = ast.walk(ast.parse(Path(source).read_text(encoding="utf-8")))
    return {a.asname or a.name for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names}


def _rank(item: tuple[str, types.ModuleType]) -> tuple[bool, bool, int]:
    """How good a home a module is: one in C++ is the best, an old path of another one the worst."""
    path, module = item
    return not str(getattr(module, "__file__", "")).endswith(".py"), not path.startswith("_extends"), path.count(".")


def homes(found: dict[str, types.ModuleType]) -> dict[tuple[str, int], str]:
    """Where objects that do not say it are defined: in the module of the longest path that has
    them by that name and does not import them, one in C++ before all.
    """
    known: dict[tuple[str, int], str] = {}
    for path, module in sorted(found.items(), key=_rank):
        brought = imported(module)
        every = "*" in brought
        for name, value in vars(module).items():
            if name not in brought and not (every and (name, id(value)) in known):
                known[name, id(value)] = path
    return known


def rows(path: str, module: types.ModuleType, known: dict[tuple[str, int], str]) -> Iterator[tuple[str, str, str, Any]]:
    """The names of a module, each with the part of the table that it goes to."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("__") and name.endswith("__"):
            continue
        there = OTHER_NAMES.get(name, name)
        home = HOME_OF.get(there, path)
        if home != path and hasattr(sys.modules.get(f"{ROOT}.{home}".rstrip(".")), there):
            yield name, "i", home, name if there == name else f"{name}={there}"
        elif isinstance(value, types.ModuleType):
            if value.__name__ not in (f"{module.__name__}.{name}", f"{ROOT}.ops_generate"):
                yield name, "i", "/", name if value.__name__ == name else f"{name}={value.__name__}"
        elif isinstance(value, __future__._Feature):
            yield name, "i", "/__future__", name
        elif callable(value) and isinstance(owner := getattr(value, "__module__", None), str):
            owner = f"{ROOT}.train.{owner}" if owner.endswith("_pb2") and "." not in owner else owner
            there = getattr(value, "__qualname__", getattr(value, "__name__", name))
            if vars(sys.modules.get(owner, module)).get(there) is not value or owner == module.__name__:
                there = name
            if owner.partition(".")[0] == ROOT and owner != module.__name__ and hasattr(sys.modules.get(owner), there):
                yield name, "i", owner[len(ROOT) + 1 :] or ".", name if there == name else f"{name}={there}"
            elif owner.partition(".")[0] != ROOT and hasattr(sys.modules.get(owner), there):
                yield name, "i", f"/{owner}", name if there == name else f"{name}={there}"
            elif isinstance(value, type):
                listed = members(value)
                if listed is None:
                    yield name, "c", path_of(value.__bases__[0]).removeprefix("/builtins.object"), name
                else:
                    yield name, "e", name, listed
            else:
                yield name, "f", "", name
        elif is_constant(value):
            yield name, "v", name, value
        elif known.get((name, id(value)), path) != path:
            yield name, "i", known[name, id(value)] or ".", name
        else:
            yield name, "o", "", name


def table_of(path: str, module: types.ModuleType, known: dict[tuple[str, int], str], have: set[str]) -> Names:
    """The table of a module, without the names that another table has."""
    table: Names = {}
    for name, part, group, content in rows(path, module, known):
        if name in have:
            continue
        if part in "ev":
            table.setdefault(part, {})[group] = content
        else:
            table.setdefault(part, {}).setdefault(group, []).append(content)
    return {
        part: groups if part in "ev" else {group: " ".join(names) for group, names in groups.items()}
        for part, groups in table.items()
    }


def names_in_facts(path: str) -> set[str]:
    """The names that the table of a module's operations has."""
    sys.path.insert(0, str(COMPAT / "operations"))
    facts = importlib.import_module("facts")
    return set(facts.facts_of(path).names) if facts.has_facts(path) else set()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = modules()
    known = homes(found)
    lines = [
        f"{json.dumps(path)}: {json.dumps(table_of(path, module, known, names_in_facts(path)), separators=(',', ':'))}"
        for path, module in found.items()
    ]
    (COMPAT / "names.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

"""What processes that Mycel starts import: nothing from the current folder, where anyone writes."""

from __future__ import annotations

import ast
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

import mycel

PACKAGE = pathlib.Path(mycel.__file__).parent
# What starts a process, by module and the names in it.
STARTS = {
    "subprocess": ("run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
    "os": ("fork", "forkpty", "system", "popen", "startfile", *[n for n in dir(os) if n.startswith(("exec", "spawn"))]),
    "posix": ("fork", "system", "posix_spawn", "posix_spawnp", "execv", "execve"),
    "pty": ("fork", "spawn"),
    "asyncio": ("create_subprocess_exec", "create_subprocess_shell"),
    "multiprocessing": ("Process", "Pool", "Manager", "get_context", "set_forkserver_preload"),
    "concurrent.futures": ("ProcessPoolExecutor",),
}
STARTS["os"] += tuple(name for name in dir(os) if name.startswith("posix_spawn"))
# Python's own module under another name.
ALLOWED = {"_src/foundation/system/subprocesses.py", "compat/inner/multiprocessing.py"}


def starts(source: str) -> list[str]:
    """The names by which a source starts processes, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in STARTS.get(node.value.id, ()):
                # `subprocess.Popen[bytes]` is a type.
                found.append((node.lineno, f"{node.value.id}.{node.attr}"))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            module = node.module.removesuffix(".context").removesuffix(".pool").removesuffix(".process")
            found += [(node.lineno, a.name) for a in node.names if a.name in STARTS.get(module, ())]
    types = {
        (n.value.lineno, f"subprocess.{n.value.attr}")
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Attribute) and n.value.attr == "Popen"
    }
    return [f"{line}: {name}" for line, name in found if (line, name) not in types]


def test_one_module_starts_all_processes() -> None:
    found = {}
    others = "|".join(name for name in STARTS if name != "os").replace(".", r"\.")
    words = re.compile(rf"\b({others})\b|from os import|\bos\.({'|'.join(STARTS['os'])})\b")
    for file in PACKAGE.rglob("*.py"):
        name, source = file.relative_to(PACKAGE).as_posix(), file.read_text()
        if name not in ALLOWED and words.search(source) and (lines := starts(source)):
            found[name] = lines
    assert not found, found


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess; subprocess.run(['ls'])",
        "from subprocess import Popen",
        "import os; os.execv('a', [])",
        "from os import fork",
        "import multiprocessing; multiprocessing.Process()",
        "from concurrent.futures import ProcessPoolExecutor",
        "from multiprocessing.pool import Pool",
    ],
)
def test_starts_are_seen(line: str) -> None:
    assert starts(line)
    assert not starts("def f(p: subprocess.Popen[bytes]) -> None: ...")


NAMES = [name for name in sys.stdlib_module_names if name not in sys.builtin_module_names]
NAMES += "mycel numpy scipy llvmlite ml_dtypes rich mindspore helper".split()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """A folder of programs, and one of data with a module of each name that leaves a mark."""
    base = tmp_path_factory.mktemp("starts")
    programs, data = base / "programs", base / "data"
    programs.mkdir(), data.mkdir()
    for name in NAMES:
        (data / f"{name}.py").write_text(f"open({str(base / 'marks')!r}, 'a').write('{name} ')\nraise ImportError\n")
    # What lies beside the program is its own.
    (programs / "helper.py").write_text("def double(x):\n    return x * 2\n")
    (programs / "rows.py").write_text(ROWS)
    (programs / "rank.py").write_text(RANK)
    (programs / "emit.py").write_text(EMIT)
    (programs / "cache.py").write_text(CACHE)
    (programs / "agent").write_text('#!/bin/sh\nexec sh -c "$2"\n')
    (programs / "agent").chmod(0o755)
    return programs, data


ROWS = """
import sys
import numpy as np
import mycel.dataset as ds
import helper
for method in sys.argv[1:]:
    ds.config.set_multiprocessing_start_method(method)
    rows = ds.NumpySlicesDataset(np.arange(4), ["x"], shuffle=False)
    rows = rows.map(helper.double, ["x"], num_parallel_workers=2, python_multiprocessing=True)
    print(method, [int(x) for (x,) in rows.create_tuple_iterator(output_numpy=True, num_epochs=1)])
"""
RANK = """
import os, sys, helper
sys.stdout.write(f"rank {os.environ['RANK_ID']} {helper.double(2)}\\n")
"""
EMIT = """
import llvmlite.binding as llvm
from mycel._src.engines.aot import object_emission as emit
from mycel._src.engines.aot.targets import named
module = llvm.parse_assembly("define i32 @f(i32 %x) { ret i32 %x }")
print("emitted", len(emit._apart(module.as_bitcode(), named('cortex-m55'), True)) > 10)
"""
CACHE = """
import sys
from mycel.dataset.caching import admin
port = int(sys.argv[1])
admin.start(port, 1)
try:
    print("server", admin.is_there(port))
finally:
    admin.stop(port)
"""


def marks(folders: tuple[pathlib.Path, pathlib.Path], words: list[object]) -> tuple[str, str]:
    """What a command in the folder of data prints, and which of its modules were run."""
    programs, data = folders
    marked = programs.parent / "marks"
    marked.unlink(missing_ok=True)
    options = {"env": {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}}
    done = subprocess.run([*map(str, words)], cwd=data, capture_output=True, text=True, timeout=600, **options)
    said = done.stdout + "".join(file.read_text() for file in sorted(data.glob("*.log")))
    return said + (done.stderr if done.returncode else ""), marked.read_text() if marked.exists() else ""


# The program, as it is started, with what it prints.
MAIN = [sys.executable, "-c", "import sys; sys.path.pop(0); from mycel.cli import main; sys.exit(main())"]
MSRUN = [sys.executable, "-c", "import sys; sys.path.pop(0); from mycel.cli.msrun import main; sys.exit(main())"]
KINDS = {
    "workers": ([sys.executable, "rows.py", "forkserver", "spawn", "fork"], "forkserver [0, 2, 4, 6]\nspawn [0, 2, 4"),
    "launch": ([*MAIN, "launch", "-n", "1", "rank.py"], "rank 0 4"),
    "launch by an agent": (
        [*MAIN, "launch", "--hosts", "localhost", "--agent", "agent", "--plain", "rank.py"],
        "rank 0 4",
    ),
    "msrun": (
        [*MSRUN, "--master_port=PORT", "--worker_num=1", "--local_worker_num=1", "--join=True", "rank.py"],
        "rank 0 4",
    ),
    "code": ([sys.executable, "emit.py"], "emitted True"),
    "cache": ([sys.executable, "cache.py", "PORT"], "server True"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_current_folder_is_run(folders: tuple[pathlib.Path, pathlib.Path], kind: str) -> None:
    words, expected = KINDS[kind]
    beside = {file.name for file in folders[0].iterdir()}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [word.replace("PORT", str(port)) for word in words]
    said, marked = marks(folders, [folders[0] / word if word in beside else word for word in words])
    assert marked == "", said
    assert all(line in said for line in expected.split("\n")), said


def test_a_program_that_runs_there_has_workers_that_import_from_there(tmp_path: pathlib.Path) -> None:
    """A function in a module of the current folder is found where that is on the program's path."""
    (tmp_path / "helper.py").write_text("def double(x):\n    return x * 2\n")
    done = subprocess.run(
        [sys.executable, "-c", ROWS, "forkserver"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )  # fmt: skip
    assert done.stdout == "forkserver [0, 2, 4, 6]\n", done.stderr

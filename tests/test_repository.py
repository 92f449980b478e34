"""The repository as a whole: no machine's paths or registries in it, one version, documented
packages, known dependencies.
"""

from __future__ import annotations

import ast
import configparser
import functools
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mycel
from tests import sources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
CORE = {"numpy", "llvmlite", "onednn-cpu-gomp", "ml_dtypes", "safetensors", "rich", "scipy"}
# Functions whose parameters alone are a page; docstrings do not count.
LONG = {"fused_infer_attention_score"}
EXTRAS = {
    "encrypt": {"cryptography"},
    "mpi": {"mpi4py", "mpich"},
    "ray": {"ray"},
    "arrow": {"pyarrow"},
    "remote": {"fsspec"},
    "plot": {"matplotlib"},
    "image": {"pillow"},
    "video": {"av"},
    "polyhedra": {"islpy"},
    "xla": {"jax"},
    "docs": {"sphinx", "myst-parser", "furo"},
    "dev": {
        "pytest",
        "pytest-xdist",
        "hypothesis",
        "ruff",
        "mypy",
        "basedpyright",
        "setuptools",
        "import-linter",
        "tomli",
        "protobuf",
        "cryptography",
        "onnx",
    },
}

# A path into somebody's own folders, as in the tracebacks and logs that get pasted by mistake.
OWN_PATH = re.compile(r"(?<![\w.~/-])/(?:home|Users|root|work|workspace|mnt|opt|tmp|private)/\w")
# A package index by its address; installation commands name packages and leave the index to the
# user's settings.
INDEX = re.compile(r"https?://[^\s\"'/]*(?:/[^\s\"']*)?/simple\b|--(?:extra-)?index-url|--find-links|--trusted-host")


def repository_files() -> list[Path]:
    """The files that git tracks, or would if they were added; all of the folder in an unpacked
    archive.
    """
    if (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    hidden = {".venv", ".venv-torch", "site", "build", "dist", "__pycache__"}
    return [path for path in ROOT.rglob("*") if path.is_file() and not hidden & set(path.relative_to(ROOT).parts)]


@functools.cache
def text_files() -> dict[str, str]:
    """Name and content of each text file."""
    contents = {}
    for path in repository_files():
        raw = path.read_bytes()
        if b"\0" not in raw[:4096]:
            contents[path.relative_to(ROOT).as_posix()] = raw.decode("utf-8")
    return contents


def project() -> dict[str, object]:
    """The [project] table."""
    table: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def requirement_name(requirement: str) -> str:
    """The package that a requirement names."""
    match = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert match, requirement
    return match.group()


@pytest.mark.parametrize("pattern", [OWN_PATH, INDEX], ids=["own paths", "package indexes"])
def test_no_file_names_a_machine(pattern: re.Pattern[str]) -> None:
    this_file = Path(__file__).name
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in text_files().items()
        if not name.endswith(this_file) and pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_the_patterns_find_what_they_are_for() -> None:
    assert OWN_PATH.search('File "/home/ann/net.py"')
    assert not OWN_PATH.search("from docs/home/index or a/work/b")
    assert INDEX.search("pip install --index-url x")
    assert not INDEX.search("https://keepachangelog.com/en/1.1.0/")


def test_no_file_holds_the_marks_of_a_merge() -> None:
    found = [name for name, text in text_files().items() if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE)]
    assert not found


def test_no_file_is_large() -> None:
    large = {path.name: path.stat().st_size for path in repository_files() if path.stat().st_size > 1_000_000}
    assert large == {}


def test_the_version_is_the_same_everywhere() -> None:
    import mycel

    version = project()["version"]
    assert mycel.__version__ == version
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{version}]" in changes or "## [Unreleased]" in changes


def test_every_public_package_and_module_has_a_docstring() -> None:
    assert [path for path, tree in sources.outlines().items() if not ast.get_docstring(tree)] == []


def test_dependencies_are_the_allowed_ones() -> None:
    table = project()
    dependencies = table["dependencies"]
    assert isinstance(dependencies, list)
    assert {requirement_name(entry) for entry in dependencies} == CORE
    extras = table["optional-dependencies"]
    assert isinstance(extras, dict)
    assert {name: {requirement_name(entry) for entry in entries} for name, entries in extras.items()} == EXTRAS


def test_onednn_is_asked_for_where_its_wheel_exists() -> None:
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    (entry,) = (entry for entry in dependencies if entry.startswith("onednn"))
    assert 'platform_machine == "x86_64"' in entry
    assert 'sys_platform == "linux"' in entry


def test_the_package_compiles_nothing() -> None:
    # The sample of an Android application is no part of it, nor is a library that a test loads.
    own = [path for path in repository_files() if "android" not in path.parts and path.name != "plugin.cc"]
    compiled = [path.name for path in own if path.suffix in {".c", ".cc", ".cpp", ".pyx", ".so", ".pyd"}]
    assert compiled == []


def test_the_license_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert project()["license"] == "Apache-2.0"


def test_no_module_is_hidden_by_what_has_its_name() -> None:
    hidden = []
    for found in pkgutil.walk_packages(mycel.__path__, "mycel."):
        if found.name != "mycel.__main__":
            module = importlib.import_module(found.name)
            parent, _, name = found.name.rpartition(".")
            if getattr(sys.modules[parent], name, None) is not module:
                hidden.append(found.name)
    assert not hidden


def test_files_and_functions_are_of_a_size_to_read() -> None:
    long = []
    known = {sources.PACKAGE / path: tree for path, tree in sources.outlines().items()}
    for path in repository_files():
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            if text.count("\n") > 700:
                long.append(f"{path}: {text.count(chr(10))} lines")
            for node in ast.walk(known.get(path) or sources.outline(text)):
                if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                    described = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
                    lines = node.end_lineno - node.lineno + 1
                    if described is not None and described.end_lineno is not None:
                        lines -= described.end_lineno - described.lineno + 1
                    if lines > (100 if node.name in LONG else 80):
                        long.append(f"{path}: {node.name} has {lines} lines")
    assert not long


def test_every_package_has_its_layer() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / ".importlinter")
    layers = settings["importlinter:contract:one-way-down"]["layers"].split()
    named = {name for name in layers if name not in ":|"}
    package = ROOT / "mycel"
    wings = {"_src": {"compiler", "tensors", "staging"}}
    there = set()
    for file in package.iterdir():
        if file.suffix == ".py" and file.stem != "__init__":
            there.add(f"mycel.{file.stem}")
        elif (file / "__init__.py").exists() and file.name not in wings:
            there.add(f"mycel.{file.name}")
    for file in (package / "_src").glob("*/__init__.py"):
        if file.parent.name in wings["_src"]:
            there |= {f"mycel._src.{file.parent.name}.{p.parent.name}" for p in file.parent.glob("*/__init__.py")}
        else:
            there.add(f"mycel._src.{file.parent.name}")
    assert named == there


def test_text_is_parsed_by_one_module() -> None:
    parsing = {path for path, text in sources.texts().items() if "ast.parse(" in text}
    assert parsing <= {"_src/foundation/python_runtime/syntax_trees.py"}

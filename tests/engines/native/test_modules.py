"""Modules that compile while their caller goes on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.llvm.machine_code import Generator
from mycel._src.engines.native.llvm.target import host
from mycel._src.foundation.settings import config


def text(number: int, statements: int = 3) -> str:
    lines = [f"  %v{k} = add i64 %{'x' if k == 0 else f'v{k - 1}'}, {number + k}" for k in range(statements)]
    body = "\n".join(lines)
    return f"define i64 @mycel_kernel(i64 %x) {{\n{body}\n  ret i64 %v{statements - 1}\n}}\n"


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache, and no thread or setting that stays."""
    monkeypatch.setattr(config, "cache_directory", lambda: tmp_path)
    interval = sys.getswitchinterval()
    yield
    assert sys.getswitchinterval() == interval
    assert not [t for t in threading.enumerate() if t.name.startswith("mycel-compile")]


def made(texts: list[str]) -> list[bytes]:
    modules = jit.Modules()
    try:
        for t in texts:
            modules.begin(t)
        return [modules.code(t) for t in texts]
    finally:
        modules.close()


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_code_does_not_depend_on_who_makes_it(count: int) -> None:
    texts = [text(n, 1 + n % 5) for n in range(count)]
    expected = [Generator(host().machine(), host().triple).code_of(t) for t in texts]
    assert made(texts) == expected
    assert made([*texts[::-1], *texts]) == [*expected[::-1], *expected]


def test_what_the_cache_has_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text(n) for n in range(5)]
    expected = made(texts)
    monkeypatch.setattr(jit.Machine, "compile", None)
    assert made(texts) == expected


@pytest.mark.parametrize("count", [1, 4])
def test_a_failure_is_told_and_not_kept(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text(n) for n in range(count)]
    compile_one: Any = jit.Machine.compile
    failures = {texts[-1]: 1}

    def failing(self: jit.Machine, t: str) -> bytes:
        if failures.get(t):
            failures[t] -= 1
            raise KeyboardInterrupt
        return compile_one(self, t)  # type: ignore[no-any-return]

    monkeypatch.setattr(jit.Machine, "compile", failing)
    modules = jit.Modules()
    for t in texts:
        modules.begin(t)
    with pytest.raises(KeyboardInterrupt):
        modules.code(texts[-1])
    modules.close()
    assert [modules.code(t) for t in texts] == made(texts)
    modules.close()


def test_code_is_made_after_the_threads_have_ended() -> None:
    texts = [text(n, 40) for n in range(40)]
    modules = jit.Modules()
    for t in texts:
        modules.begin(t)
    modules.close()
    assert [modules.code(t) for t in texts] == made(texts)
    modules.close()


def test_text_that_is_no_module() -> None:
    with pytest.raises(RuntimeError, match="expected type"):
        made(["define nothing\n", text(1)])
    with pytest.raises(RuntimeError, match="expected type"):
        made([*[text(n) for n in range(5)], "define nothing\n"])
    assert len(made([text(1)])) == 1


def test_a_generator_takes_many_modules() -> None:
    one = Generator(host().machine(), host().triple)
    expected = one.code_of(text(7))
    one.modules = 255
    assert one.code_of(text(7)) == expected and one.modules == 256

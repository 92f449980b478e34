"""The native profile hook: which frames it tells of."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from mycel._src.engines.native.runtime.profile_hook import KnownCode


@pytest.fixture(autouse=True)
def hook_as_before() -> Iterator[None]:
    before = sys.getprofile()
    yield
    sys.setprofile(before)


def one(x: Any) -> Any:
    return two(x) + 1


def two(x: Any) -> Any:
    return len([x]) + sum(three(k) for k in range(2))


def three(x: Any) -> Any:
    return x


def told(known: KnownCode, function: Any, *args: Any) -> list[tuple[str, str, Any]]:
    """What the hook tells while a function runs."""
    found: list[tuple[str, str, Any]] = []

    def on_event(frame: types.FrameType, event: str, arg: Any) -> None:
        found.append((frame.f_code.co_name, event, arg))

    known.watch(on_event)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return found


def test_calls_of_unknown_code_are_told_and_nothing_else() -> None:
    known = KnownCode()
    found = [name for name, event, arg in told(known, one, 1) if (event, arg) == ("call", None)]
    assert len(found) == len(told(known, one, 1))
    assert [n for n in found if n in ("one", "two", "three")] == ["one", "two", "three", "three"]
    known.add(two.__code__)
    assert [n for n, _, _ in told(known, one, 1) if n in ("one", "two", "three")] == ["one", "three", "three"]
    known.add(one.__code__)
    known.add(three.__code__)
    assert not [n for n, _, _ in told(known, one, 1) if n in ("one", "two", "three")]


def test_what_is_told_can_become_known() -> None:
    known = KnownCode()
    found: list[str] = []

    def on_event(frame: types.FrameType, event: str, arg: Any) -> None:
        found.append(frame.f_code.co_name)
        known.add(frame.f_code)

    known.watch(on_event)
    try:
        for _ in range(5):
            one(1)
    finally:
        sys.setprofile(None)
    assert sorted(n for n in found if n in ("one", "two", "three")) == ["one", "three", "two"]


def test_many_codes() -> None:
    known = KnownCode()
    functions = []
    for k in range(5000):
        space: dict[str, Any] = {}
        exec(f"def f{k}(): return {k}", space)
        functions.append(space[f"f{k}"])
        if k % 2:
            known.add(functions[-1].__code__)
            known.add(functions[-1].__code__)
    assert len(known.codes) == 2500

    def all_of_them() -> None:
        for f in functions:
            f()

    names = [n for n, _, _ in told(known, all_of_them) if n != "all_of_them" and n.startswith("f")]
    assert names == [f"f{k}" for k in range(0, 5000, 2)]


def test_an_error_of_the_callback_ends_the_call() -> None:
    known = KnownCode()

    def on_event(frame: types.FrameType, event: str, arg: Any) -> None:
        if frame.f_code is two.__code__:
            raise KeyError("told")

    known.watch(on_event)
    try:
        with pytest.raises(KeyError, match="told"):
            one(1)
    finally:
        sys.setprofile(None)
    assert one(1) == 3


def test_the_hook_can_be_saved_and_set_again() -> None:
    known = KnownCode()
    found: list[str] = []

    def on_event(frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "call":
            found.append(frame.f_code.co_name)

    known.watch(on_event)
    try:
        saved = sys.getprofile()
        sys.setprofile(None)
        three(1)
        sys.setprofile(saved)
        one(1)
    finally:
        sys.setprofile(None)
    assert saved is on_event
    assert [n for n in found if n in ("one", "two", "three")] == ["one", "two", "three", "three"]


def test_other_threads_are_not_watched() -> None:
    known = KnownCode()
    found: list[str] = []
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait(10)
        one(1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()

    def on_event(frame: types.FrameType, event: str, arg: Any) -> None:
        found.append(frame.f_code.co_name)

    known.watch(on_event)
    try:
        go.set()
        done.wait(10)
    finally:
        sys.setprofile(None)
    thread.join()
    assert not [n for n in found if n in ("one", "two", "three")]

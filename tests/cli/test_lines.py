"""Lines of ranks come whole, however their bytes are cut, and each with its rank in front."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from mycel.cli import lines
from mycel.cli.lines import Lines, Piped, front_of

TEXTS = {
    b"": [],
    b"a": ["a"],
    b"a\n": ["a"],
    b"a\nb": ["a", "b"],
    b"\n\na\n": ["", "", "a"],
    b"a\r\nb\r\n": ["a", "b"],
    b"10%\r20%\r100%\n": ["10%", "20%", "100%"],
    b"a\r": ["a"],
    b"a\r\n\r\nb\n": ["a", "", "b"],
    "grün\n€\n".encode(): ["grün", "€"],
}


@pytest.mark.parametrize("text", TEXTS)
def test_lines_are_those_of_the_text(text: bytes) -> None:
    for seed in range(20):
        draw, shown = random.Random(seed), list[bytes]()
        made = Lines(front_of(3), shown.append)
        at = 0
        while at < len(text):
            end = at + draw.randint(1, 1 + seed)
            made.add(text[at:end])
            at = end
        assert all(part.endswith(b"\n") for part in shown)
        made.end()
        assert b"".join(shown).decode() == "".join(f"[rank 3] {line}\n" for line in TEXTS[text])


def test_a_line_without_end_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_LONGEST", 10)
    shown: list[bytes] = []
    made = Lines("", shown.append)
    made.add(b"x" * 25)
    assert b"".join(shown) == b"xxxxxxxxxx\nxxxxxxxxxx\n"
    made.end()
    assert shown[-1] == b"xxxxx\n"


WRITE = """
import os, sys
for k in range(50):
    for part in (b"abc", b"def ", sys.argv[1].encode(), b"\\n"):
        os.write(1, part), os.write(2, part)
os.write(1, b"last")
"""


def test_lines_of_processes_do_not_mix(capfd: pytest.CaptureFixture[str]) -> None:
    piped, started = Piped(), []
    for rank in range(3):
        command = [sys.executable, "-S", "-c", WRITE, str(rank)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        piped.add(front_of(rank), process)
    piped.begin()
    assert [process.wait() for process in started] == [0, 0, 0]
    piped.end()
    found = capfd.readouterr()
    each = [f"[rank {rank}] abcdef {rank}" for rank in range(3)]
    assert sorted(found.err.splitlines()) == sorted(each * 50)
    assert sorted(found.out.splitlines()) == sorted(each * 50 + [f"[rank {rank}] last" for rank in range(3)])

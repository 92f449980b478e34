"""The programs under examples/ in a very small setting: both modes learn, and what they print and
promise is in order.

Their full scores are checked by `make examples`, which takes minutes.
"""

from __future__ import annotations

import ast
import importlib.util
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms

FOLDER = Path(__file__).resolve().parent.parent / "examples"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run_all")
MODES = {"graph": ms.GRAPH_MODE, "pynative": ms.PYNATIVE_MODE}
SMALL = {
    "digits_page": ["--epochs", "4", "--samples", "512"],
    "dqn": ["--steps", "300", "--batch-size", "32"],
    "finetune": ["--epochs", "5", "--first-epochs", "1"],
    "gan": ["--epochs", "2", "--samples", "128", "--plot", ""],
    "gpt": ["--epochs", "4", "--samples", "256", "--batch-size", "32"],
    "graph_conv": ["--epochs", "40", "--people", "600"],
    "lstm_tagger": ["--epochs", "2", "--samples", "150", "--batch-size", "32"],
    "pinn": ["--steps", "60", "--points", "128"],
    "resnet": ["--epochs", "8", "--samples", "256"],
    "unet": ["--epochs", "3", "--samples", "64", "--batch-size", "8"],
    "vae": ["--epochs", "8", "--samples", "256", "--batch-size", "64", "--plot", ""],
}


# The losses of a network that another one works against, or whose aims move, need not fall.
MOVING = ("dqn", "gan")


@pytest.fixture(autouse=True)
def restore_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    ms.set_context(mode=mode)


def loaded(name: str) -> Any:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SMALL)
def test_both_modes_learn_and_begin_alike(
    name: str, capsys: Any, caplog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = []
    for mode, number in MODES.items():
        losses, score = loaded(name).main([*SMALL[name], "--mode", mode, "--seed", "3"])
        assert ms.get_context("mode") == number
        assert np.isfinite(losses).all() and np.isfinite(score)
        part = max(len(losses) // 5, 1)
        assert name in MOVING or np.mean(losses[-part:]) < 0.95 * np.mean(losses[:part])
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.startswith("score: ") and ("(at least " in last or "(at most " in last)
        first.append(losses[0])
    np.testing.assert_allclose(*first, rtol=1e-4)
    assert not [record for record in caplog.records if "not one graph" in record.getMessage()]


@pytest.mark.parametrize("mode", MODES)
def test_the_cache_of_the_gpt_changes_nothing(mode: str) -> None:
    gpt = loaded("gpt")
    ms.set_context(mode=MODES[mode])
    ms.set_seed(1)
    net = gpt.GPT(len(gpt.ALPHABET), context=9)
    net.set_train(False)
    questions = np.random.default_rng(0).integers(0, len(gpt.ALPHABET), (5, gpt.QUESTION)).astype(np.int32)
    whole = questions
    for _ in range(gpt.ANSWER):
        logits, _ = net(ms.Tensor(whole))
        whole = np.concatenate([whole, logits.asnumpy()[:, -1:].argmax(-1).astype(np.int32)], 1)
    np.testing.assert_array_equal(gpt.generate(net, questions, gpt.ANSWER), whole[:, gpt.QUESTION :])


def test_a_missed_score_is_an_exit_status(monkeypatch: Any, capsys: Any) -> None:
    options = ["--mode", "pynative", "--epochs", "1", "--samples", "64", "--plot", ""]
    monkeypatch.setattr(sys, "argv", ["vae.py", *options])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(FOLDER / "vae.py"), run_name="__main__")
    assert end.value.code == 1
    assert "score: " in capsys.readouterr().out


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_and_says_what_it_reaches(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    described = ast.get_docstring(ast.parse(text)) or ""
    assert "Score: " in described and f"python examples/{name}.py" in described
    assert 80 <= len(text.splitlines()) <= 200
    assert f"[{name}.py]({name}.py)" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_an_unknown_example_is_named(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        loaded("run_all").main(["resnets"])
    assert "no such example: resnets; there are " in capsys.readouterr().err

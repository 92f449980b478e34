"""Modules for browsers compute what compiled functions compute, in Node where it is installed."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel.deploy import build, web

NODE = shutil.which("node")
in_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def _network() -> Any:
    ms.set_seed(0)
    return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 10))


def _run(folder: Path, name: str, program: str) -> Any:
    """Run a program over a module, `made` and its `bytes`, and return what it prints."""
    start = "import { readFileSync } from 'node:fs';\n"
    start += f"import * as made from './{name}.mjs';\nconst bytes = readFileSync('{folder}/{name}.wasm');\n"
    (folder / "main.mjs").write_text(start + program)
    assert NODE is not None
    done = subprocess.run([NODE, "main.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@in_node
def test_a_network_gives_its_numbers(tmp_path: Path) -> None:
    net = _network()
    x = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32)
    web(build(net, ms.Tensor(x), target="wasm32", name="classify")).write(tmp_path)
    program = f"""
    const model = await made.load(bytes), x = {json.dumps(x.ravel().tolist())};
    const results = [[...model.run(x)]];
    model.inputs.input_data.set(x.map((v) => 2 * v));
    model.call();
    results.push([...model.outputs.result]);
    console.log(JSON.stringify([results, made.inputs[0].shape, model.state.length]));
    """
    results, shape, state = _run(tmp_path, "classify", program)
    assert shape == [2, 1, 8, 8] and state == 0
    for got, given in zip(results, (x, 2 * x)):
        np.testing.assert_allclose(np.reshape(got, (2, 10)), net(ms.Tensor(given)).asnumpy(), rtol=1e-5, atol=1e-6)


@in_node
def test_training_goes_on_from_a_saved_state(tmp_path: Path) -> None:
    net = _network()
    update = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, update.parameters)

    def step(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss

    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((4, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, 4).astype(np.int32)
    web(build(step, ms.Tensor(x), ms.Tensor(y), target="wasm32", name="train")).write(tmp_path)
    program = f"""
    const x = {json.dumps(x.ravel().tolist())}, y = {json.dumps(y.tolist())}, losses = [];
    const first = await made.load(bytes), second = await made.load(bytes);
    for (let k = 0; k < 4; k++) losses.push(first.run(x, y)[0]);
    second.state.set(first.state);
    for (let k = 0; k < 4; k++) losses.push(second.run(x, y)[0]);
    console.log(JSON.stringify(losses));
    """
    compiled = ms.jit(step)
    wanted = [float(compiled(ms.Tensor(x), ms.Tensor(y)).asnumpy()) for _ in range(8)]
    np.testing.assert_allclose(_run(tmp_path, "train", program), wanted, rtol=1e-5)
    assert wanted[-1] < wanted[0]


@in_node
def test_integers_of_64_bits_and_several_results(tmp_path: Path) -> None:
    def both(a: ms.Tensor, b: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
        return a * 3, ops.cumsum(b, 0)

    a, b = ms.Tensor([1 << 40, -5], ms.int64), ops.arange(6).astype(ms.float64)
    module = web(build(both, a, b, target="wasm32", name="both"))
    module.write(tmp_path)
    assert "run(a: ArrayLike<bigint>, b: ArrayLike<number>): [BigInt64Array, Float64Array];" in module.types
    program = """
    const model = await made.load(bytes), found = model.run([1n << 40n, -5n], [0, 1, 2, 3, 4, 5]);
    console.log(JSON.stringify([[...found[0]].map(String), [...found[1]]]));
    """
    assert _run(tmp_path, "both", program) == [[str(3 << 40), "-15"], [0, 1, 3, 6, 10, 15]]


@in_node
def test_wrong_arrays_and_indices_are_refused(tmp_path: Path) -> None:
    weights = ms.Tensor(np.arange(6, dtype=np.float32).reshape(3, 2))

    def rows(index: ms.Tensor) -> ms.Tensor:
        return ops.gather(weights, index, 0)

    web(build(rows, ms.Tensor([0, 1], ms.int32), target="wasm32", name="rows")).write(tmp_path)
    program = """
    const model = await made.load(bytes), said = [];
    const trial = (f) => { try { said.push([...f()]); } catch (e) { said.push(`${e.name}: ${e.message}`); } };
    trial(() => model.run([2, 0]));
    trial(() => model.run([2, 3]));
    trial(() => model.run([2]));
    trial(() => model.run());
    console.log(JSON.stringify(said));
    """
    assert _run(tmp_path, "rows", program) == [
        [4, 5, 0, 1],
        "RangeError: rows: an index was out of range",
        "RangeError: rows: index has 2 numbers, of shape [2], not 1",
        "TypeError: rows takes 1 arrays, not 0",
    ]


def test_other_targets_are_refused() -> None:
    with pytest.raises(Unsupported, match="web: the library is for aarch64; build it for wasm32"):
        web(build(_network(), ops.ones((1, 1, 8, 8)), target="aarch64"))


def test_the_memory_is_what_the_module_says() -> None:
    module = web(build(_network(), ops.ones((1, 1, 8, 8)), target="wasm32"))
    assert module.memory_bytes < len(module.wasm) + 8192
    assert "net" not in module.script.split("export")[0]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_a_page_computes_in_a_browser(tmp_path: Path) -> None:
    net = _network()
    x = np.random.default_rng(2).standard_normal((1, 1, 8, 8)).astype(np.float32)
    module = web(build(net, ms.Tensor(x), target="wasm32", name="classify"))
    program = (
        module.script.replace("export ", "")
        + f"""
    const bytes = Uint8Array.from(atob("{base64.b64encode(module.wasm).decode()}"), (c) => c.charCodeAt(0));
    document.body.textContent = JSON.stringify([...(await load(bytes)).run({json.dumps(x.ravel().tolist())})]);
    """
    )
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><body></body><script type="module">{program}</script>')
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]
    command = ["chromium", *options, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    (numbers,) = re.findall(r"<body>(\[.*\])", done.stdout)
    np.testing.assert_allclose([json.loads(numbers)], net(ms.Tensor(x)).asnumpy(), rtol=1e-5, atol=1e-6)


@in_node
def test_sizes_within_bounds(tmp_path: Path) -> None:
    batch, odd = ms.Symbol(max=9, unique=True), ms.Symbol(max=13, min=3, divisor=2, remainder=1, unique=True)
    x, y = (ms.Tensor(shape=[batch, n], dtype=ms.float32) for n in (2, odd))
    sizes = {"n": batch, "odd": odd}
    module = web(build(lambda x, y: x.sum(1) + y[:, 2:].sum(1), x, y, target="wasm32", name="f", sizes=sizes))
    module.write(tmp_path)
    assert "readonly sizes: { n: number; odd: number; };" in module.types
    program = """
    const model = await made.load(bytes), said = [model.sizes, model.shapes];
    const trial = (f) => { try { said.push(f()); } catch (e) { said.push(`${e.name}: ${e.message}`); } };
    trial(() => model.resize({ n: 10 }));
    trial(() => model.resize({ odd: 4 }));
    trial(() => model.resize({ n: 2.5 }));
    trial(() => model.resize({ m: 1 }));
    model.resize({ n: 2, odd: 5 });
    trial(() => [...model.run([1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])]);
    trial(() => model.run([1, 2], [1]));
    console.log(JSON.stringify(said));
    """
    largest, shapes, *said = _run(tmp_path, "f", program)
    assert largest == {"n": 9, "odd": 13} and shapes == {"x": [9, 2], "y": [9, 13], "result": [9]}
    assert said[0] == said[2].replace("2.5", "10") == "RangeError: f: n is from 1 to 9, not 10"
    assert said[1] == "RangeError: f: odd is from 3 to 13 in steps of 2, not 4"
    assert said[3] == "TypeError: f has no size m" and said[4] == [15, 34]
    assert said[5] == "RangeError: f: x has 4 numbers, of shape [2,2], not 2"

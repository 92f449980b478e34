"""Networks from one format to another, as a function and from the command line."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.cli import main
from mycel.formats import converting


def written(folder: Path, suffix: str) -> Path:
    net = nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net.set_train(False)
    path = folder / f"net{suffix}"
    rows = ms.Tensor(shape=[None, 2, 6, 6], dtype=ms.float32)
    ms.export(net, rows, file_name=path, file_format=suffix[1:].upper())
    return path


@pytest.mark.parametrize("source, target", [(".onnx", ".mindir"), (".mindir", ".onnx"), (".onnx", ".onnx")])
def test_networks_stay_what_they_are(tmp_path: Path, source: str, target: str) -> None:
    path = written(tmp_path, source)
    report = ms.formats.convert(path, tmp_path / f"other{target}")
    assert report.difference is not None and report.difference < 1e-6 and report.parameters >= 5
    x = ms.Tensor(np.random.default_rng(0).normal(size=(3, 2, 6, 6)).astype(np.float32))
    first, second = ms.load(path), ms.load(tmp_path / f"other{target}")
    np.testing.assert_allclose(second(x).asnumpy(), first(x).asnumpy(), atol=1e-6)


def test_the_command_reports(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path, ".onnx")
    assert main(["convert", str(path), str(tmp_path / "out.mindir"), "--shape", "input_data=1,2,6,?"]) == 2
    name = ms.load(path).input_names[0]
    assert main(["convert", str(path), str(tmp_path / "out.mindir"), "--shape", f"{name}=1,2,6,6"]) == 0
    shown = capsys.readouterr().out
    assert "1 BatchNormalization" in shown and "float32[1, 2, 6, 6]" in shown and "difference  " in shown


@pytest.mark.parametrize(
    "source, target, said",
    [
        ("net.onnx", "out.tflite", "of no format that is written; those are .mindir, .mycel, .onnx"),
        ("net.pt", "out.onnx", "of no format that is read"),
        ("none.onnx", "out.onnx", "there is no file"),
    ],
)
def test_what_cannot_be_converted(tmp_path: Path, capsys: Any, source: str, target: str, said: str) -> None:
    written(tmp_path, ".onnx")
    assert main(["convert", str(tmp_path / source), str(tmp_path / target)]) == 2
    assert said in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "net.onnx"), str(tmp_path / "o.onnx"), "--shape", "x=a"]) == 2
    assert "is not NAME=" in capsys.readouterr().err


def test_a_network_of_mindspores(tmp_path: Path) -> None:
    source = tmp_path / "lenet.mindir"
    kept = Path(__file__).parent.parent / "data" / "mindir" / "lenet.mindir.gz"
    source.write_bytes(gzip.decompress(kept.read_bytes()))
    report = ms.formats.convert(source, tmp_path / "lenet.onnx")
    assert report.written["Conv"] == 2 and report.read["Conv2D"] == 2
    assert report.difference is not None and report.difference < 1e-6


def test_a_file_for_mindspore(tmp_path: Path) -> None:
    path = written(tmp_path, ".onnx")
    assert main(["convert", str(path), str(tmp_path / "out.mindir"), "--for-mindspore"]) == 0
    assert type(ms.load(tmp_path / "out.mindir")).__name__ == "MindIRGraph"
    with pytest.raises(ValueError, match="for_mindspore is for .mindir files"):
        ms.formats.convert(path, tmp_path / "out.onnx", for_mindspore=True)


def test_results_that_differ_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, ".onnx")
    changed = ms.load(path)
    changed.trainable_params()[0].set_data(changed.trainable_params()[0] + 1.0)
    monkeypatch.setitem(converting.READERS, ".mindir", converting.READERS[".onnx"]._replace(load=lambda p: changed))
    report = ms.formats.convert(path, tmp_path / "out.mindir")
    assert "mycel.diverge(mycel.load(IN), mycel.load(OUT), inputs)" in str(report)


def test_modules_of_formats_are_attributes_before_they_are_imported() -> None:
    program = (
        "import mycel as ms\n"
        "found = ms.formats.onnx.load, ms.formats.onnx.messages, ms.formats.mindir.network, ms.formats.tflite\n"
        "found += ms.formats.convert, ms.formats.loading\n"
        "assert not hasattr(ms.formats, 'nothing') and not hasattr(ms.formats.onnx, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

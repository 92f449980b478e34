"""`mycel build`: libraries of functions and files, what they take, and what does not fit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mycel as ms
from mycel import nn, ops
from mycel.cli import main
from mycel.deploy.memory_limits import bytes_of

MODULE = """
import mycel as ms
from mycel import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Dense(256, 10)

    def construct(self, x):
        return self.fc(ops.flatten(ops.relu(self.conv(x))))

net = Net()
update = nn.SGD(net.trainable_params(), 0.1)
derive = ms.value_and_grad(lambda x: net(x).sum(), None, update.parameters)

def step(x):
    loss, gradients = derive(x)
    update(gradients)
    return loss

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "built_here.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "built_here", raising=False)
    return tmp_path


def build(*arguments: str) -> int:
    return main(["build", *arguments, "--out", "lib"])


def test_a_library_of_a_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--input", "1,1,8,8", "--target", "cortex-m4", "--name", "digits", "--ram", "2K", "--flash", "16K")
    assert build("built_here:Net", *options) == 0
    said = capsys.readouterr().out
    assert "bytes of arena" in said and "built_here.py:11" in said and "at 100 MHz" in said
    assert "products" in said and (folder / "lib" / "digits.o").read_bytes()[:4] == b"\x7fELF"
    assert "int digits(const float *x, float *result, void *arena);" in (folder / "lib" / "digits.h").read_text()


def test_a_library_for_browsers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build("built_here:Net", "--input", "1,1,8,8", "--target", "wasm32") == 0
    assert "wrote lib/model.wasm, lib/model.mjs and lib/model.d.mts" in capsys.readouterr().out
    assert (folder / "lib" / "model.wasm").read_bytes()[:4] == b"\0asm"
    assert "export async function load" in (folder / "lib" / "model.mjs").read_text()
    assert {f.suffix for f in (folder / "lib").iterdir()} == {".o", ".h", ".wasm", ".mjs", ".mts"}


COUNTED = """
import mycel as ms
from mycel import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.wide, self.deep = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3, group=8)
        self.last = nn.Dense(512, 10, has_bias=False)

    def construct(self, x):
        return self.last(nn.Flatten()(ms.ops.relu(self.deep(ms.ops.relu(self.wide(x))))))
"""


@pytest.mark.parametrize("target", ["aarch64", "cortex-m4", "wasm32"])
def test_products_of_all_kernels_are_counted(folder: Path, capsys: pytest.CaptureFixture[str], target: str) -> None:
    """Those that are computed together with what follows them, too."""
    (folder / "counted_here.py").write_text(COUNTED)
    assert build("counted_here:Net", "--input", "1,1,8,8", "--target", target) == 0
    assert f"{8 * 64 * 9 * 2 + 512 * 10:,} products" in capsys.readouterr().out


def test_a_library_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ms.export(nn.Dense(4, 2), ms.ops.ones((1, 4)), file_name="net.mindir", file_format="MINDIR")
    assert build("net.mindir", "--target", "aarch64") == 0
    assert "40 bytes of constants" in capsys.readouterr().out
    assert build("net.mindir", "--target", "aarch64", "--input", "1,4") == 0
    assert build("net.mindir", "--target", "aarch64", "--input", "2,4") == 2
    assert "the input 'x' of net.mindir has 1,4" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["mindir", "onnx"])
def test_sizes_that_a_file_leaves_open(folder: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    example = ms.Tensor(shape=[None, 4], dtype=ms.float32)
    ms.export(nn.Dense(4, 2), example, file_name="net", file_format=suffix.upper())
    options = (f"net.{suffix}", "--target", "x86-64")
    assert build(*options) == 2
    said = capsys.readouterr().err
    assert re.search(r"has [?d]\d*,4; give --input", said) and "--size batch=1..64" in said
    for more in (["--input", "batch,4"], []):
        assert build(*options, *more, "--size", "batch=1..64") == 0
        assert "for batch from 1 to 64; memory is for the largest" in capsys.readouterr().out
        assert "int model(int32_t batch, const float *" in (folder / "lib" / "model.h").read_text()
    assert build(*options, "--input", "3,4") == 0
    assert "int model(const float *" in (folder / "lib" / "model.h").read_text()


def test_sizes_by_the_names_in_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = ms.Tensor(shape=[None, None, 4], dtype=ms.float32)
    ms.export(lambda x: ops.exp(x).sum(1), example, file_name="net", file_format="ONNX")
    words = [d.name for d in ms.load("net.onnx").declared[0][1].tensor.shape.dims[:2]]
    sizes = [f"--size={words[0]}=1..4", f"--size={words[1]}=1..8"]
    assert build("net.onnx", "--target", "x86-64", *sizes) == 0
    assert "int32_t " + words[1] in (folder / "lib" / "model.h").read_text()
    assert build("net.onnx", "--target", "x86-64", "--size", "batch=1..4") == 2
    assert f"has {words[0]},{words[1]},4; give --input" in capsys.readouterr().err


def test_open_sizes_of_tensorflow_lite(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).parent.parent / "data" / "tflite" / "cnn_open_int8.tflite"
    assert build(str(sample), "--target", "cortex-m4", "--size", "batch=1..64") == 0
    assert "int model(int32_t batch, const int8_t *" in (folder / "lib" / "model.h").read_text()
    assert build(str(sample), "--target", "cortex-m4") == 2
    assert "has ?,8,8,3; give --input" in capsys.readouterr().err


def test_sizes_of_a_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("built_here:Net", "--target", "cortex-m4", "--input", "batch,1,8,8")
    assert build(*options, "--size", "batch=8..64..8") == 0
    assert "for batch from 8 to 64 in steps of 8" in capsys.readouterr().out
    assert build(*options, "--size", "batch=1..64", "--ram", "20K") == 2
    assert "Lower bounds of sizes take less" in capsys.readouterr().err


def test_what_does_not_fit_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = ("built_here:step", "--input", "8,1,8,8", "--target", "cortex-m4")
    assert build(*step, "--ram", "20K", "--flash", "1K") == 2
    said = capsys.readouterr().err
    assert "bytes of RAM are needed and there are 20,480" in said and "A batch of 4 fits" in said
    assert "bytes of flash are needed and there are 1,024" in said and "of 8 bits" in said
    assert not (folder / "lib").exists()
    assert build(*step, "--ram", "1K") == 2
    assert "The state alone is more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing", "--target", "cortex-m4"), "neither a file"),
        (("missing.mindir", "--target", "cortex-m4"), "there is no file"),
        (("built_here:absent", "--target", "cortex-m4"), "built_here has no absent"),
        (("built_here:number", "--target", "cortex-m4"), "int, which is no Cell"),
        (("built_here:Net", "--target", "pdp-11", "--input", "1,1,8,8"), "there is no target"),
        (("built_here:Net", "--target", "cortex-m4", "--input", "1x1"), "give sizes as"),
        (("built_here:Net", "--target", "cortex-m4", "--input", "1,1:text"), "there is no type"),
        (("built_here:Net", "--target", "cortex-m4", "--ram", "many"), "no number of bytes"),
        (("built_here:Net", "--target", "cortex-m4", "--input", "n,1,8,8"), "give --size n=1..64"),
        (("built_here:Net", "--target", "cortex-m4", "--input", "n,1,8,8", "--size", "n=4"), "give bounds as"),
        (("built_here:Net", "--target", "cortex-m4", "--input", "n,1,8,8", "--size", "n=0..4"), "first bound is"),
        (
            ("built_here:Net", "--target", "cortex-m4", "--input", "1,1,8,8", "--size", "n=1..4"),
            "no input has the size n",
        ),
        (("absent_module:Net", "--target", "cortex-m4"), "absent_module"),
    ],
)
def test_wrong_arguments(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert build(*arguments) == 2
    assert said in capsys.readouterr().err


def test_numbers_of_bytes() -> None:
    assert bytes_of("0") == 0 and bytes_of("16KiB") == 16384 and bytes_of("2GB") == 2 << 30
    for text in ("", "-1", "1.5K", "K", "1T", "9" * 20):
        with pytest.raises(ValueError, match="no number of bytes"):
            bytes_of(text)

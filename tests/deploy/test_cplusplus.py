"""Programs of C++ call libraries as models of MindSpore Lite, where a compiler is installed."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.deploy import build, cpp

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(
    COMPILER is None or platform.machine() not in ("x86_64", "AMD64"), reason="needs a compiler of C++ for x86-64"
)
START = """
#include <cstdio>
#include "{name}.hpp"
using namespace mindspore;
int main() {{
  Model model;
"""
PRINT = '  for (int64_t k = 0; k < t.ElementNum(); k++) std::printf("%.9g ", ((const float *)t.Data().get())[k]);'


def _run(folder: Path, name: str, body: str, options: tuple[str, ...] = ()) -> list[str]:
    """The words that a program prints, whose `main` has a model, not built, and then `body`."""
    (folder / "main.cpp").write_text(START.format(name=name) + body + "\n  return 0;\n}\n")
    assert COMPILER is not None
    strict = ["-std=c++11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    command = [COMPILER, *strict, *options, "main.cpp", f"{name}.o", "-o", "main", "-ldl"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout.split()


def _network() -> Any:
    ms.set_seed(0)
    return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(256, 10))


def test_a_model_predicts(tmp_path: Path) -> None:
    net = _network()
    x = np.random.default_rng(0).standard_normal((1, 1, 8, 8)).astype(np.float32)
    cpp(build(net, ms.Tensor(x), target="x86-64-v2", name="classify"), tmp_path)
    values = ", ".join(f"{v:.9g}f" for v in x.ravel())
    body = f"""
  if (!model.Build(classify_program(), std::make_shared<Context>())) return 1;
  std::vector<MSTensor> inputs = model.GetInputs(), outputs;
  if (inputs.size() != 1 || inputs[0].DataSize() != 256) return 6;
  if (inputs[0].DataType() != DataType::kNumberTypeFloat32) return 2;
  if (inputs[0].Shape() != std::vector<int64_t>({{1, 1, 8, 8}}) || inputs[0].Name() != "input_data") return 3;
  static float given[] = {{{values}}};
  std::memcpy(inputs[0].MutableData(), given, inputs[0].DataSize());
  if (model.Predict(inputs, &outputs) != kSuccess) return 4;
  for (MSTensor &t : outputs) {{ {PRINT} }}
  for (float &v : given) v *= 2;
  inputs[0].SetData(given);
  if (model.Predict(inputs, &outputs).IsError()) return 5;
  MSTensor t = model.GetOutputByTensorName("result");
  {PRINT}"""
    got = np.array(_run(tmp_path, "classify", body), np.float32).reshape(2, 10)
    want = [net(ms.Tensor(factor * x)).asnumpy()[0] for factor in (1, 2)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_a_status(tmp_path: Path) -> None:
    weights = ms.Tensor(np.arange(6, dtype=np.float32).reshape(3, 2))

    def rows(index: ms.Tensor, scale: ms.Tensor) -> ms.Tensor:
        return ops.gather(weights, index, 0) * scale

    types = ms.Tensor([0, 1], ms.int32), ms.Tensor(1.0, ms.float32)
    cpp(build(rows, *types, target="x86-64-v2", name="rows"), tmp_path)
    body = """
  std::vector<MSTensor> none, outputs;
  std::printf("%d ", model.Predict(none, &outputs) == kLiteNullptr);
  std::shared_ptr<Context> context = std::make_shared<Context>();
  context->SetThreadNum(4);
  std::printf("%d ", model.Build(rows_program(), context) == kLiteNotSupport);
  if (!model.Build(rows_program())) return 1;
  std::vector<MSTensor> inputs = model.GetInputs();
  std::printf("%d ", model.Predict(none, &outputs) == kLiteInputTensorError);
  std::swap(inputs[0], inputs[1]);
  std::printf("%d ", model.Predict(inputs, &outputs) == kLiteInputTensorError);
  std::swap(inputs[0], inputs[1]);
  ((int32_t *)inputs[0].MutableData())[1] = 7;
  *(float *)model.GetInputByTensorName("scale").MutableData() = 2;
  std::printf("%d ", model.Predict(inputs, &outputs) == kLiteOutOfTensorRange);
  ((int32_t *)inputs[0].MutableData())[1] = 2;
  std::printf("%d ", model.Predict(inputs, &outputs) == kSuccess);
  std::printf("%g %d", ((float *)outputs[0].MutableData())[3], model.GetOutputByTensorName("no") == nullptr);"""
    assert _run(tmp_path, "rows", body) == ["1"] * 6 + ["10", "1"]


def test_a_model_is_a_shared_library(tmp_path: Path) -> None:
    net = _network()
    x = np.full((1, 1, 8, 8), 0.5, np.float32)
    cpp(build(net, ms.Tensor(x), target="x86-64-v2", name="classify"), tmp_path)
    (tmp_path / "part.cpp").write_text('#include "classify.hpp"\nMYCEL_EXPORT_PROGRAM(classify)\n')
    assert COMPILER is not None
    made = [COMPILER, "-std=c++11", "-shared", "-fPIC", "part.cpp", "classify.o", "-o", "libclassify.so"]
    subprocess.run(made, cwd=tmp_path, check=True, timeout=120)
    body = f"""
  Status none = model.Build("./nothing.so", kMindIR);
  if (none.IsOk() || none.ToString().find("nothing.so") == std::string::npos) return 1;
  if (!model.Build("./libclassify.so", kMindIR)) return 2;
  std::vector<MSTensor> inputs = model.GetInputs(), outputs;
  for (int k = 0; k < 64; k++) ((float *)inputs[0].MutableData())[k] = 0.5f;
  if (!model.Predict(inputs, &outputs)) return 3;
  MSTensor t = outputs[0];
  {PRINT}"""
    got = np.array(_run(tmp_path, "classify", body, ("-DMYCEL_WITH_DLOPEN",)), np.float32)
    np.testing.assert_allclose(got, net(ms.Tensor(x)).asnumpy()[0], rtol=1e-5, atol=1e-6)


def test_sizes_within_bounds(tmp_path: Path) -> None:
    batch, odd = ms.Symbol(max=9, unique=True), ms.Symbol(max=13, min=3, divisor=2, remainder=1, unique=True)
    x, y = (ms.Tensor(shape=[batch, n], dtype=ms.float32) for n in (2, odd))
    library = build(
        lambda x, y: (x.sum(1) + y.sum(1), y[:, 1:]), x, y, target="x86-64", name="f", sizes={"n": batch, "odd": odd}
    )
    cpp(library, tmp_path)
    body = f"""
  if (!model.Build(f_program())) return 1;
  std::vector<MSTensor> inputs = model.GetInputs(), outputs;
  if (inputs[1].Shape() != std::vector<int64_t>({{9, 13}})) return 2;
  if (!model.Resize(inputs, {{{{3, 2}}, {{3, 5}}}})) return 3;
  typedef std::vector<std::vector<int64_t>> Shapes;
  std::vector<Shapes> wrong = {{Shapes{{{{10, 2}}, {{10, 5}}}}, Shapes{{{{0, 2}}, {{0, 5}}}},
                               Shapes{{{{3, 2}}, {{4, 5}}}}, Shapes{{{{3, 2}}, {{3, 4}}}},
                               Shapes{{{{3, 3}}, {{3, 5}}}}, Shapes{{{{3}}, {{3, 5}}}}}};
  for (const Shapes &one : wrong)
    if (model.Resize(inputs, one).IsOk()) return 4;
  if (model.Resize({{inputs[0]}}, {{{{2, 2}}}}).IsOk() || model.Resize(inputs, {{}}).IsOk()) return 5;
  inputs = model.GetInputs();
  if (inputs[1].Shape() != std::vector<int64_t>({{3, 5}}) || inputs[1].DataSize() != 60) return 6;
  for (MSTensor &t : inputs)
    for (int64_t k = 0; k < t.ElementNum(); k++) static_cast<float *>(t.MutableData())[k] = static_cast<float>(k);
  if (model.Predict(inputs, &outputs).IsError()) return 7;
  for (MSTensor &t : outputs) {{ {PRINT} }}
  if (outputs[1].Shape() != std::vector<int64_t>({{3, 4}})) return 8;"""
    got = [float(word) for word in _run(tmp_path, "f", body)]
    given = [np.arange(n, dtype=np.float32).reshape(3, -1) for n in (6, 15)]
    want = [*(given[0].sum(1) + given[1].sum(1)), *given[1][:, 1:].ravel()]
    assert got == want

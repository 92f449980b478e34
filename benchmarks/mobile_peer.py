"""A process of `mobile.py` that runs a network in ONNX Runtime, OpenVINO or LiteRT, on one thread.

    python mobile_peer.py FOLDER

It makes what it needs of FOLDER's `NAME.onnx`, `NAME.tflite` and arrays, answers a line with what
it has, and then requests, which are lines of JSON: {"run": KEY, "count": N} is answered with the
seconds of N runs, {"result": KEY} with the path of an array.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

Array = np.ndarray
Run = Callable[[], Array]


def onnx_runtime(path: Path, x: Array) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})[0]


def openvino(model: Any, x: Array) -> Run:
    import openvino as ov

    core = ov.Core()
    model = core.read_model(str(model)) if isinstance(model, Path) else model
    facts = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", facts).create_infer_request()
    request.set_input_tensor(ov.Tensor(x))

    def run() -> Array:
        request.infer()
        return request.get_output_tensor().data

    return run


def litert(path: Path, x: Array) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    first, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    moved = x.transpose(0, 2, 3, 1).copy() if tuple(first["shape"]) != x.shape else x
    if first["dtype"] != np.float32:
        scale, zero = first["quantization"]
        moved = np.clip(np.rint(moved / scale) + zero, -128, 127).astype(first["dtype"])

    def run() -> Array:
        interpreter.set_tensor(first["index"], moved)
        interpreter.invoke()
        found = interpreter.get_tensor(result["index"])
        if found.dtype == np.float32:
            return found
        scale, zero = result["quantization"]
        return (found.astype(np.float32) - zero) * np.float32(scale)

    return run


def quantised_onnx(folder: Path, name: str, data: Array) -> Path:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self, key: str) -> None:
            self.rows = iter([{key: row} for row in data])

        def get_next(self) -> Any:
            return next(self.rows, None)

    import onnx

    source, ready, made = (folder / f"{name}{end}.onnx" for end in ("", "_ready", "_int8"))
    quant_pre_process(str(source), str(ready))
    key = onnx.load(str(source)).graph.input[0].name
    forms = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(str(ready), str(made), Reader(key), quant_format=QuantFormat.QDQ, per_channel=True, **forms)
    return made


def quantised_openvino(folder: Path, name: str, data: Array) -> Any:
    import nncf
    import openvino as ov

    model = ov.Core().read_model(str(folder / f"{name}.onnx"))
    kind = nncf.ModelType.TRANSFORMER if name == "transformer" else None
    return nncf.quantize(model, nncf.Dataset(list(data)), subset_size=len(data), model_type=kind)


def makers(folder: Path, name: str) -> dict[str, Callable[[], Run]]:
    """Return what makes the runs of a network."""
    x, data = np.load(folder / f"{name}_x.npy"), np.load(folder / f"{name}_data.npy")
    plain, found = folder / f"{name}.onnx", {}
    if plain.exists():
        found[f"{name} float ONNX Runtime"] = lambda: onnx_runtime(plain, x)
        found[f"{name} float OpenVINO"] = lambda: openvino(plain, x)
        if name in ("mobilenet", "resnet"):
            found[f"{name} int8 ONNX Runtime"] = lambda: onnx_runtime(quantised_onnx(folder, name, data), x)
            found[f"{name} int8 OpenVINO of ONNX"] = lambda: openvino(folder / f"{name}_int8.onnx", x)
            found[f"{name} int8 OpenVINO"] = lambda: openvino(quantised_openvino(folder, name, data), x)
    for kind in ("float", "int8"):
        path = folder / f"{name}_{kind}.tflite"
        if path.exists():
            found[f"{name} {kind} LiteRT"] = functools.partial(litert, path, x)
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runs: dict[str, Run] = {}
    missing: dict[str, str] = {}

    def attempt(key: str, make: Callable[[], Run]) -> None:
        try:
            made = make()
            made()
            runs[key] = made
        except Exception as error:
            missing[key] = f"{type(error).__name__}: {error}"[:200]

    for name in sys.argv[2:]:
        for key, make in makers(folder, name).items():
            attempt(key, make)
    print(json.dumps({"runs": list(runs), "missing": missing}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "result" in asked:
            path = folder / "result.npy"
            np.save(path, runs[asked["result"]]())
            print(json.dumps(str(path)), file=answers, flush=True)
            continue
        times = []
        for _ in range(asked["count"]):
            start = time.process_time()
            runs[asked["run"]]()
            times.append(time.process_time() - start)
        print(json.dumps(times), file=answers, flush=True)


main()

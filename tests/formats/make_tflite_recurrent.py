"""Write samples of TensorFlow Lite's recurrent operators, which its converter makes no more, in
`tests/data/tflite`: files of one operator with what LiteRT computes. Run it as
``python -m tests.formats.make_tflite_recurrent FOLDER`` in an environment with ai-edge-litert.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.formats.tflite_cases import model

random = np.random.default_rng(5)
TIME, BATCH, SIZE, HIDDEN = 5, 2, 3, 4


def constant(*shape: int) -> dict[str, Any]:
    return {"shape": shape, "kind": "float32", "content": random.uniform(-1, 1, shape).astype(np.float32)}


def plain(*shape: int, kept: bool = False) -> dict[str, Any]:
    return {"shape": shape, "kind": "float32", "kept": kept}


def gates() -> list[Any]:
    """Weights of inputs, of states, of cells (none), biases and projections (none)."""
    found: list[Any] = [constant(HIDDEN, SIZE) for _ in range(4)] + [constant(HIDDEN, HIDDEN) for _ in range(4)]
    return [*found, *[None] * 3, *[constant(HIDDEN) for _ in range(4)], None, None]


def of(operator: str, options: Any, operands: list[Any], *results: dict[str, Any]) -> bytes:
    tensors = [o for o in operands if o is not None]
    order = iter(range(len(tensors)))
    named = [next(order) if o is not None else -1 for o in operands]
    outputs = list(range(len(tensors), len(tensors) + len(results)))
    return model(operator, options, [*tensors, *results], [0], outputs, named)


def lstm(time_major: bool, clip: float) -> bytes:
    lead = (TIME, BATCH) if time_major else (BATCH, TIME)
    states = [plain(BATCH, HIDDEN, kept=True), plain(BATCH, HIDDEN, kept=True)]
    values = {"fusedActivationFunction": 4, "cellClip": clip, "projClip": 0.0, "timeMajor": time_major}
    options = ("UnidirectionalSequenceLSTMOptions", values)
    operands = [plain(*lead, SIZE), *gates(), *states]
    return of("UNIDIRECTIONAL_SEQUENCE_LSTM", options, operands, plain(*lead, HIDDEN))


def both(merged: bool) -> bytes:
    states = [plain(BATCH, HIDDEN, kept=True) for _ in range(4)]
    values = {"fusedActivationFunction": 4, "cellClip": 0.0, "projClip": 0.0, "mergeOutputs": merged, "timeMajor": True}
    operands = [plain(TIME, BATCH, SIZE), *gates(), *gates(), *states, *[None] * 9]
    results = [plain(TIME, BATCH, HIDDEN * (2 if merged else 1)) for _ in range(1 if merged else 2)]
    return of("BIDIRECTIONAL_SEQUENCE_LSTM", ("BidirectionalSequenceLSTMOptions", values), operands, *results)


def rnn(active: int) -> bytes:
    options = ("SequenceRNNOptions", {"timeMajor": False, "fusedActivationFunction": active})
    parts = [constant(HIDDEN, SIZE), constant(HIDDEN, HIDDEN), constant(HIDDEN), plain(BATCH, HIDDEN, kept=True)]
    operands = [plain(BATCH, TIME, SIZE), *parts]
    return of("UNIDIRECTIONAL_SEQUENCE_RNN", options, operands, plain(BATCH, TIME, HIDDEN))


CASES = {
    "sequence_lstm": lambda: lstm(False, 0.0),
    "sequence_lstm_limited": lambda: lstm(True, 0.3),
    "sequence_lstm_both": lambda: both(True),
    "sequence_lstm_apart": lambda: both(False),
    "sequence_rnn": lambda: rnn(4),
    "sequence_rnn_relu": lambda: rnn(1),
}


def write(folder: Path, name: str) -> None:
    from ai_edge_litert.interpreter import Interpreter

    content = CASES[name]()
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    info = interpreter.get_input_details()[0]
    kept = {"x0": random.uniform(-1, 1, info["shape"]).astype(np.float32)}
    interpreter.set_tensor(info["index"], kept["x0"])
    interpreter.invoke()
    for i, made in enumerate(interpreter.get_output_details()):
        kept[f"y{i}"] = interpreter.get_tensor(made["index"])
    (folder / f"{name}.tflite").write_bytes(content)
    np.savez_compressed(folder / f"{name}.npz", **kept)  # type: ignore[arg-type]
    print(name, len(content))


if __name__ == "__main__":
    for case in CASES:
        write(Path(sys.argv[1]), case)

"""Quantised operators of TensorFlow Lite beside LiteRT's kernels, bit by bit.

    python -m tests.formats.tflite_cases [WORD]     (in an environment with ai-edge-litert)

Each case is a file of one operator with drawn sizes, scales and weights. It is computed by LiteRT's
reference kernels and by its optimised ones on all that can be drawn; the table has how many results
differ from either. `--keep FOLDER` writes the files with inputs and LiteRT's results, as tests
have them.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 4
random = np.random.default_rng(0)
# The first versions of operators that take what the cases have.
VERSIONS = {"FULLY_CONNECTED": 5, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3}


def scale() -> float:
    return float(np.float32(10 ** random.uniform(-2.5, -0.5)))


def model(
    operator: str,
    options: Any,
    tensors: list[dict[str, Any]],
    inputs: list[int],
    outputs: list[int],
    operands: Any = None,
) -> bytes:
    """The bytes of a file of one operator, whose operands are by default all but the outputs."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    made = schema.ModelT()
    made.version, made.buffers = 3, [schema.BufferT()]
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, operator)
    code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), VERSIONS.get(operator, 2)
    made.operatorCodes = [code]
    graph, node = schema.SubGraphT(), schema.OperatorT()
    graph.tensors = []
    for number, info in enumerate(tensors):
        tensor = schema.TensorT()
        tensor.shape, tensor.name = list(info["shape"]), f"t{number}".encode()
        tensor.type = getattr(schema.TensorType, info["kind"].upper())
        tensor.buffer = 0
        if "content" in info:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(info["content"]).tobytes(), np.uint8)
            made.buffers.append(buffer)
            tensor.buffer = len(made.buffers) - 1
        if "scales" in info:
            found = schema.QuantizationParametersT()
            found.scale, found.zeroPoint = info["scales"], info["zeros"]
            found.quantizedDimension = info.get("axis", 0)
            tensor.quantization = found
        tensor.isVariable = info.get("kept", False)
        graph.tensors.append(tensor)
    node.inputs, node.outputs = operands or [n for n in range(len(tensors)) if n not in outputs], outputs
    if options is not None:
        name, values = options
        node.builtinOptions = getattr(schema, f"{name}T")()
        node.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        for key, value in values.items():
            setattr(node.builtinOptions, key, value)
    graph.operators, graph.inputs, graph.outputs = [node], inputs, outputs
    made.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def value(*shape: int, scales: Any = None, zero: Any = None, kind: str = "int8") -> dict[str, Any]:
    ends = np.iinfo(kind)
    zero = int(random.integers(ends.min, ends.max + 1)) if zero is None else zero
    return {"shape": shape, "kind": kind, "scales": [scales or scale()], "zeros": [zero]}


def constant(array: Any) -> dict[str, Any]:
    return {"shape": array.shape, "kind": array.dtype.name, "content": array}


def weights(*shape: int, axis: int, per_channel: bool) -> dict[str, Any]:
    count = shape[axis] if per_channel else 1
    held = constant(random.integers(-127, 128, shape).astype(np.int8))
    return {**held, "scales": [scale() / 20 for _ in range(count)], "zeros": [0] * count, "axis": axis}


def bias(x: dict[str, Any], w: dict[str, Any], count: int) -> dict[str, Any]:
    sizes = [float(np.float32(x["scales"][0]) * np.float32(s)) for s in w["scales"]]
    held = constant(random.integers(-3000, 3000, count).astype(np.int32))
    return {**held, "scales": sizes, "zeros": [0] * len(sizes)}


def layers(per_channel: bool) -> Iterator[tuple[str, bytes]]:
    for padding in (0, 1):
        for active in (0, 1, 3):
            x = value(2, 9, 8, 3)
            w = weights(5, 3, 3, 3, axis=0, per_channel=per_channel)
            size = (5, 4) if padding == 0 else (4, 3)
            strides = {"padding": padding, "strideH": 2, "strideW": 2, "fusedActivationFunction": active}
            y = value(2, *size, 5)
            yield "CONV_2D", model("CONV_2D", ("Conv2DOptions", strides), [x, w, bias(x, w, 5), y], [0], [3])
            w = weights(1, 3, 3, 3, axis=3, per_channel=per_channel)
            y = value(2, *size, 3)
            made = ("DepthwiseConv2DOptions", {**strides, "depthMultiplier": 1})
            yield "DEPTHWISE_CONV_2D", model("DEPTHWISE_CONV_2D", made, [x, w, bias(x, w, 3), y], [0], [3])
    for active in (0, 1):
        x, w, y = value(6, 40), weights(7, 40, axis=0, per_channel=per_channel), value(6, 7)
        made = ("FullyConnectedOptions", {"fusedActivationFunction": active})
        yield "FULLY_CONNECTED", model("FULLY_CONNECTED", made, [x, w, bias(x, w, 7), y], [0], [3])


def cases() -> Iterator[tuple[str, bytes]]:
    for _ in range(ROUNDS):
        for name, content in layers(True):
            yield name, content
        for name, content in layers(False):
            yield f"{name} (one scale)", content
        for active in (0, 1, 2, 3):
            for name in ("Add", "Sub", "Mul"):
                x, y, z = value(3, 5, 7), value(3, 5, 7), value(3, 5, 7)
                made = (f"{name}Options", {"fusedActivationFunction": active})
                yield name.upper(), model(name.upper(), made, [x, y, z], [0, 1], [2])
            x = value(2, 9, 8, 3)
            same = {"scales": x["scales"][0], "zero": x["zeros"][0]}
            for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
                for padding, size in ((0, (5, 4)), (1, (4, 3))):
                    made = {"padding": padding, "strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 3}
                    made["fusedActivationFunction"] = active
                    yield name, model(name, ("Pool2DOptions", made), [x, value(2, *size, 3, **same)], [0], [1])
        for axes, keep, shape in (((1, 2), 1, (2, 1, 1, 3)), ((1, 2), 0, (2, 3)), ((3,), 0, (2, 9, 8))):
            x = value(2, 9, 8, 3)
            made = ("ReducerOptions", {"keepDims": bool(keep)})
            yield "MEAN", model("MEAN", made, [x, constant(np.array(axes, np.int32)), value(*shape)], [0], [2])
        x = value(4, 11)
        end = value(4, 11, scales=1 / 256, zero=-128)
        yield "SOFTMAX", model("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), [x, end], [0], [1])
        yield "LOGISTIC", model("LOGISTIC", None, [x, end], [0], [1])
        yield "TANH", model("TANH", None, [x, value(4, 11, scales=1 / 128, zero=0)], [0], [1])
        for name in ("RELU", "RELU6"):
            yield name, model(name, None, [x, value(4, 11)], [0], [1])
        yield "QUANTIZE", model("QUANTIZE", ("QuantizeOptions", {}), [x, value(4, 11)], [0], [1])
        yield (
            "DEQUANTIZE",
            model("DEQUANTIZE", ("DequantizeOptions", {}), [x, {"shape": (4, 11), "kind": "float32"}], [0], [1]),
        )
        real = {"shape": (4, 11), "kind": "float32"}
        yield "QUANTIZE of floats", model("QUANTIZE", ("QuantizeOptions", {}), [real, value(4, 11)], [0], [1])
        same = value(7, 14, scales=x["scales"][0], zero=x["zeros"][0])
        amounts = constant(np.array([[1, 2], [0, 3]], np.int32))
        yield "PAD", model("PAD", ("PadOptions", {}), [x, amounts, same], [0], [2])


def compare(content: bytes, kept: Any = None) -> dict[str, tuple[int, int]]:
    """How many results differ from each kind of kernels, of how many."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    import mycel as ms
    from mycel.formats.tflite.network import TFLiteGraph
    from mycel.formats.tflite.schema import graph_of

    net = TFLiteGraph(graph_of(content), "tflite")
    found: dict[str, tuple[int, int]] = {}
    for word, kind in (
        ("reference", OpResolverType.BUILTIN_REF),
        ("optimised", OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES),
    ):
        try:
            interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kind)
        except ValueError:
            # Not all have such a kernel.
            found[word] = (-1, 0)
            continue
        interpreter.allocate_tensors()
        differ = total = 0
        for turn in range(4):
            draw, given = np.random.default_rng(turn), []
            for info in interpreter.get_input_details():
                kind_of, shape = info["dtype"], info["shape"]
                x = draw.normal(size=shape) * 3 if kind_of is np.float32 else draw.integers(-128, 128, shape)
                given.append(x.astype(kind_of))
                interpreter.set_tensor(info["index"], given[-1])
            interpreter.invoke()
            wanted = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            made = net(*[ms.Tensor(x) for x in given]).asnumpy()
            assert made.shape == wanted.shape and made.dtype == wanted.dtype, (made.shape, wanted.shape)
            differ += int((made != wanted).sum())
            total += made.size
            if kept is not None and word == "reference":
                kept.append((given, wanted))
        found[word] = (differ, total)
    return found


def main(word: str = "") -> None:
    table: dict[str, Any] = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, content in cases():
        if word and not name.startswith(word):
            continue
        found = compare(content)
        row = table[name]
        row[0] += 1
        row[1] += found["reference"][0]
        row[2] += found["optimised"][0]
        row[3] += max(found["reference"][1], found["optimised"][1])
    print(f"{'operator':32}{'files':>6}{'differ from reference':>24}{'from optimised':>16}{'of':>9}")
    for name, (files, one, two, count) in table.items():
        print(f"{name:32}{files:6}{one:24}{two:16}{count:9}")


def keep(folder: str) -> None:
    """Write one file of each operator with LiteRT's results."""
    seen = set()
    for name, content in cases():
        if name in seen:
            continue
        seen.add(name)
        kept: list[Any] = []
        compare(content, kept)
        stem = Path(folder) / name.lower().replace(" ", "_").replace("(", "").replace(")", "")
        stem.with_suffix(".tflite").write_bytes(content)
        given, wanted = kept[0]
        np.savez_compressed(stem.with_suffix(".npz"), **{f"x{i}": x for i, x in enumerate(given)}, y0=wanted)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep"]:
        keep(sys.argv[2])
    else:
        main(*sys.argv[1:2])

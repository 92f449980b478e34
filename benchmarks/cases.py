"""What is compared: every operator and network with its inputs, the same in every framework.

A case names its work; each framework's side has a function or a network of that name. Inputs are
drawn by NumPy from the case's name, so that every process computes on the same numbers. Operators
are timed forward, and forward and backward together with a given gradient of the output.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np
from case_types import Array, Case
from workload_cases import workloads

__all__ = ["CASES", "Array", "Case", "checked_steps", "cotangent", "digest", "initial_weight", "inputs_of"]


_IMAGE = Array((8, 64, 56, 56))
_BIG, _ROWS = Array((1024, 1024)), Array((2048, 1024))


def _element_and_row_wise() -> list[Case]:
    A, big, rows = Array, _BIG, _ROWS
    return [
        Case("add", "element-wise", "x + y, 1024 x 1024", (big, big), (0, 1)),
        Case("chain", "element-wise", "tanh(x y + z) sigmoid(x) - exp(-|y|), 1024 x 1024", (big, big, big), (0, 1, 2)),
        Case("gelu", "element-wise", "GELU, 2048 x 1024", (rows,), (0,)),
        Case("bias_relu", "element-wise", "relu(x + b), 2048 x 1024", (rows, A((1024,))), (0, 1)),
        Case("select", "element-wise", "where(x > 0, x, y / 10), 1024 x 1024", (big, big), (0, 1)),
        Case(
            "power",
            "element-wise",
            "sqrt(u) + u ** 3 - log(u + 1), 1024 x 1024",
            (A((1024, 1024), kind="uniform"),),
            (0,),
            tolerance=1e-3,
        ),
        Case("sum_all", "reduction", "sum of 2048 x 1024", (rows,), (0,), tolerance=1e-3),
        Case("sum_rows", "reduction", "sums of the rows, 2048 x 1024", (rows,), (0,)),
        Case("sum_columns", "reduction", "sums of the columns, 2048 x 1024", (rows,), (0,)),
        Case("max_rows", "reduction", "maxima of the rows, 2048 x 1024", (rows,), (0,)),
        Case("variance", "reduction", "variances of the rows, 2048 x 1024", (rows,), (0,)),
        Case("softmax", "row-wise", "softmax, 2048 x 1024", (rows,), (0,)),
        Case(
            "cross_entropy",
            "row-wise",
            "log-softmax and cross-entropy, 1024 x 8000",
            (A((1024, 8000)), A((1024,), 8000)),
            (0,),
        ),
        Case(
            "layer_norm",
            "row-wise",
            "layer normalisation, 1024 x 256",
            (A((1024, 256)), A((256,)), A((256,))),
            (0, 1, 2),
        ),
        Case(
            "layer_norm_wide", "row-wise", "layer normalisation, 2048 x 1024", (rows, A((1024,)), A((1024,))), (0, 1, 2)
        ),
    ]


def _images() -> list[Case]:
    A, image = Array, _IMAGE
    return [
        Case(
            "batch_norm",
            "normalisation",
            "batch normalisation in training, 8 x 64 x 56 x 56",
            (image, A((64,)), A((64,))),
            (0, 1, 2),
            True,
        ),
        Case("conv3x3", "convolution", "3 x 3, 64 to 64, 8 x 56 x 56", (image, A((64, 64, 3, 3))), (0, 1), True, 1e-3),
        Case(
            "conv3x3_deep",
            "convolution",
            "3 x 3, 512 to 512, 8 x 7 x 7",
            (A((8, 512, 7, 7)), A((512, 512, 3, 3))),
            (0, 1),
            True,
            1e-3,
        ),
        Case(
            "conv1x1", "convolution", "1 x 1, 64 to 256, 8 x 56 x 56", (image, A((256, 64, 1, 1))), (0, 1), True, 1e-3
        ),
        Case(
            "conv7x7",
            "convolution",
            "7 x 7 by 2, 3 to 64, 8 x 224 x 224",
            (A((8, 3, 224, 224)), A((64, 3, 7, 7))),
            (0, 1),
            True,
            1e-3,
        ),
        Case(
            "depthwise",
            "convolution",
            "depthwise 3 x 3, 128, 8 x 56 x 56",
            (A((8, 128, 56, 56)), A((128, 1, 3, 3))),
            (0, 1),
            True,
            1e-3,
        ),
        Case(
            "transposed",
            "convolution",
            "transposed 4 x 4 by 2, 64 to 32, 8 x 28 x 28",
            (A((8, 64, 28, 28)), A((64, 32, 4, 4))),
            (0, 1),
            True,
            1e-3,
        ),
        Case("max_pool", "pooling", "maxima of 3 x 3 by 2, 8 x 64 x 112 x 112", (A((8, 64, 112, 112)),), (0,), True),
        Case("average_pool", "pooling", "means of 2 x 2, 8 x 64 x 56 x 56", (image,), (0,), True),
        Case("global_pool", "pooling", "means of images, 8 x 64 x 56 x 56", (image,), (0,), True),
    ]


def _matrices() -> list[Case]:
    A, big, rows = Array, _BIG, _ROWS
    return [
        Case("matmul", "matmul", "1024 x 1024 @ 1024 x 1024", (big, big), (0, 1)),
        Case("matmul_small", "matmul", "64 x 64 @ 64 x 64", (A((64, 64)), A((64, 64))), (0, 1)),
        Case("matmul_tall", "matmul", "8192 x 256 @ 256 x 64", (A((8192, 256)), A((256, 64))), (0, 1)),
        Case("matmul_batched", "matmul", "32 of 128 x 64 @ 64 x 128", (A((32, 128, 64)), A((32, 64, 128))), (0, 1)),
        Case("matmul_vector", "matmul", "2048 x 1024 @ 1024", (rows, A((1024,))), (0, 1)),
        Case(
            "dense",
            "matmul",
            "dense layer with bias, 1024 x 256 to 1024",
            (A((1024, 256)), A((1024, 256)), A((1024,))),
            (0, 1, 2),
        ),
        Case("attention", "attention", "8 x 4 heads, 128 x 64", (A((8, 4, 128, 64)),) * 3, (0, 1, 2)),
    ]


def _indexing_and_movement() -> list[Case]:
    A, big, rows = Array, _BIG, _ROWS
    return [
        Case("embedding", "indexing", "8 x 128 of 8000 x 256", (A((8, 128), 8000), A((8000, 256))), (1,)),
        Case("gather", "indexing", "256 of each row of 1024 x 1024", (big, A((1024, 256), 1024)), (0,)),
        Case(
            "scatter_add",
            "indexing",
            "1024 rows into 8000 x 256",
            (A((8000, 256)), A((1024,), 8000), A((1024, 256))),
            (0, 2),
        ),
        Case("sort", "ordering", "rows of 256 x 1024", (A((256, 1024), kind="distinct"),), (0,)),
        Case("top_k", "ordering", "16 of the rows of 256 x 1024", (A((256, 1024), kind="distinct"),), (0,)),
        Case("cumsum", "ordering", "rows of 1024 x 1024", (big,), (0,), tolerance=1e-3),
        Case("concat", "movement", "two of 1024 x 1024 by rows", (big, big), (0, 1)),
        Case("split", "movement", "product of the halves of the columns, 1024 x 1024", (big,), (0,)),
        Case("transpose", "movement", "heads: 8 x 128 x 4 x 64 to 8 x 4 x 128 x 64", (A((8, 128, 4, 64)),), (0,)),
        Case("transpose_matrix", "movement", "1024 x 1024", (big,), (0,)),
        Case("dropout", "random", "a tenth of 2048 x 1024", (rows,), (0,), random=True),
        Case("adam", "optimizer", "Adam, 24 parameters of 256 x 256 and 24 of 256", tolerance=1e-4),
        Case("momentum", "optimizer", "momentum, 24 parameters of 256 x 256 and 24 of 256", tolerance=1e-4),
    ]


def _networks() -> list[Case]:
    A = Array
    tokens = (A((8, 128), 8000), A((1024,), 8000))
    images = (A((8, 3, 224, 224)), A((8,), 1000))
    return [
        Case("lenet5", "network", "LeNet-5, batch 32", (A((32, 1, 32, 32)), A((32,), 10))),
        Case("bert_small", "network", "BERT of 4 layers of 256, 8 x 128 tokens", tokens),
        Case("resnet50", "network", "ResNet-50, batch 8", images, layouts=True, tolerance=1e-3),
        Case("bert_small_bf16", "network", "the same in bfloat16", tokens, tolerance=3e-2),
        Case("resnet50_bf16", "network", "the same in bfloat16", images, layouts=True, tolerance=1e-1),
    ]


EAGER = {
    "add": "x + y",
    "add_recorded": "x + y while a gradient is recorded",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "add_number": "x + 1.0",
    "mul_number": "2.0 * x",
    "neg": "-x",
    "square": "x ** 2",
    "greater": "x > y",
    "equal_number": "x == 0",
    "exp": "exp",
    "log": "log of |x|",
    "sqrt": "sqrt of |x|",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "relu": "relu",
    "gelu": "GELU",
    "maximum": "maximum",
    "clamp": "clamp",
    "where": "where",
    "sum": "sum",
    "sum_axis": "sums along an axis",
    "mean": "mean",
    "max_axis": "maxima along an axis",
    "argmax": "argmax",
    "var": "variance",
    "softmax": "softmax",
    "layer_norm": "layer normalisation",
    "cross_entropy": "cross-entropy",
    "matmul": "x @ y",
    "dense": "dense layer",
    "reshape": "reshape",
    "transposed": "x.T",
    "permute": "another order of axes",
    "expand": "a new axis",
    "row": "x[3]",
    "slice": "x[:, 2:30]",
    "take": "x[indices]",
    "set_row": "x[3] = y",
    "concat": "concat",
    "stack": "stack",
    "split": "split",
    "cast": "cast to float16",
    "clone": "copy",
    "zeros": "zeros",
    "item": "item of a sum",
    "from_list": "a tensor of a list",
    "cell": "call of a Cell of a dense layer and relu",
    "gradient": "gradient of sum(tanh(x w))",
    "momentum": "a step of momentum for two parameters",
}


def _eager() -> list[Case]:
    small, line = Array((32, 32)), Array((32,))
    taking = {
        "layer_norm": (small, line, line),
        "cross_entropy": (small, Array((32,), 32)),
        "dense": (small, small, line),
        "take": (small, Array((8,), 32)),
        "set_row": (small, line),
        "cell": (small, small, line),
        "momentum": (small, line),
    }
    return [
        Case(f"eager_{n}", "eager", f"{title}, 32 x 32", taking.get(n, (small, small))) for n, title in EAGER.items()
    ]


CASES = {
    case.name: case
    for make in (_element_and_row_wise, _images, _matrices, _indexing_and_movement, _networks, _eager, workloads)
    for case in make()
}


def inputs_of(case: Case) -> list[Any]:
    """Return the arrays of a case; the gradient of an operator's output is drawn by `cotangent`."""
    found: list[Any] = []
    for position, spec in enumerate(case.inputs):
        random = np.random.RandomState(zlib.crc32(f"{case.name.removesuffix('_bf16')}.{position}".encode()))
        if spec.kind == "flags":
            found.append(random.randint(0, spec.high, spec.shape).astype(np.float32))
        elif spec.kind == "labels":
            found.append(random.randint(1, spec.high + 1, spec.shape).astype(np.int32))
        elif spec.high:
            found.append(random.randint(0, spec.high, spec.shape).astype(np.int32))
        elif spec.kind == "uniform":
            found.append((random.uniform(0.1, 1.1, spec.shape) * spec.scale).astype(np.float32))
        elif spec.kind == "distinct":
            rows = np.tile(np.arange(spec.shape[-1], dtype=np.float32), (*spec.shape[:-1], 1)) / spec.shape[-1]
            found.append(np.take_along_axis(rows, random.rand(*spec.shape).argsort(-1), -1))
        else:
            # Weights, which are inputs of four dimensions behind the first, are scaled so that
            # outputs stay near one.
            scale = np.prod(spec.shape[1:]) ** -0.5 if case.group == "convolution" and position else spec.scale
            found.append((random.randn(*spec.shape) * scale).astype(np.float32))
    return found


def cotangent(shape: tuple[int, ...]) -> Any:
    """Return the gradient of an output."""
    return np.cos(np.arange(int(np.prod(shape))) * 0.37).astype(np.float32).reshape(shape)


def checked_steps() -> int:
    """Return how many training steps' losses are compared; run.py sets it by --steps."""
    return int(os.environ.get("MYCEL_BENCH_STEPS", "3"))


def digest(array: Any) -> list[Any]:
    """Return what an array is compared by: its shape, norm, two projections, and the share of
    zeros.
    """
    flat = np.asarray(array, np.float64).ravel()
    angles = np.arange(flat.size)
    return [
        list(np.shape(array)),
        float(np.linalg.norm(flat)),
        float(flat @ np.cos(angles * 0.011)),
        float(flat @ np.sin(angles * 1.7)),
        float(np.mean(flat == 0)) if flat.size else 0.0,
    ]


def initial_weight(name: str, shape: tuple[int, ...]) -> Any:
    """Return a network's parameter by its PyTorch name: normalisations start as nothing, biases at
    zero, the rest normal by its fan-in.

    The last normalisation of a residual block starts at a fifth: at one, rounding alone changes
    ResNet-50's gradients by a fiftieth, and losses could not be compared.
    """
    parts = name.split(".")
    normal = any(part.startswith(("bn", "norm")) for part in parts) or parts[-3:-1] == ["down", "1"]
    if normal or parts[-1] == "bias":
        start = 0.2 if parts[-2:] == ["bn3", "weight"] else float(normal and parts[-1] == "weight")
        return np.full(shape, start, np.float32)
    random = np.random.RandomState(zlib.crc32(name.encode()))
    scale = 0.02 if parts[0] in ("embed", "pos") else int(np.prod(shape[1:])) ** -0.5
    return (random.randn(*shape) * scale).astype(np.float32)

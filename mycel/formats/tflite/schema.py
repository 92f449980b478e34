"""TensorFlow Lite's FlatBuffers tables, parsed into records.

A file is a FlatBuffer with the identifier TFL3: operators by codes, buffers of bytes, and graphs of
tensors, of which operators take some and give others. The first graph is the network; operators of
control flow name others by their number. A tensor with a buffer is a constant; one with scales is
quantised: it stands for ``(value - zero point) * scale``, for each place along an axis where there
are several. Sizes that are open are those of its signature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation.files.flatbuffers import FlatBufferError, Table, root

__all__ = ["NAMES", "Graph", "Operator", "TFLiteError", "Tensor", "graph_of", "need_bounded"]

_KINDS = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float64",
    12: "uint64",
    15: "uint32",
    16: "uint16",
    17: "int8",
}
_INT4 = 17  # two in a byte, read as int8
_OTHERS = {5: "strings", 11: "complex128", 13: "resources", 14: "variants", 18: "bfloat16", 19: "int2"}
_INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


# The operators by their codes.
NAMES = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP
    FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
    LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
    SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
    UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX
    DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER
    GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL
    LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND
    LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE
    RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N
    GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF
    WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
    PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
    HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
    READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL
    GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM
    ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD
    STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP
    STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE
    STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL
    STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER
    STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER
    STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD
    STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE
    STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE
    STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
""".split()


class TFLiteError(ValueError):
    """The error for a file that is no TensorFlow Lite model."""


@dataclass
class Tensor:
    """A value: its name, sizes (-1: open), element type, bytes of a constant, and quantisation.

    `packed` says that two elements lie in a byte, and `kept` that it keeps its value between calls.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    content: bytes | None
    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int
    packed: bool = False
    kept: bool = False

    @property
    def is_quantised(self) -> bool:
        """Whether its integers stand for real numbers."""
        return bool(self.scales) and self.kind in _INTEGERS

    def array(self) -> NDArray[Any]:
        """Return the values of a constant; raise TFLiteError where bytes and shape do not agree."""
        content = self.content or b""
        kind = np.dtype(self.kind)
        if self.packed:
            return self._unpacked(content)
        if any(d < 0 for d in self.shape) or len(content) != math.prod(self.shape) * kind.itemsize:
            raise TFLiteError(
                f"tensor {self.name!r} has {len(content)} bytes, not those of {self.kind}{list(self.shape)}"
            )
        if self.kind == "bool":
            return np.asarray(np.frombuffer(content, np.uint8) != 0).reshape(self.shape)
        return np.array(np.frombuffer(content, kind)).reshape(self.shape)

    def _unpacked(self, content: bytes) -> NDArray[Any]:
        count = math.prod(max(d, 0) for d in self.shape)
        if len(content) != (count + 1) // 2:
            raise TFLiteError(f"tensor {self.name!r} has {len(content)} bytes, not those of int4{list(self.shape)}")
        halves = np.frombuffer(content, np.int8)
        found: NDArray[Any] = np.stack([(halves << 4).astype(np.int8) >> 4, halves >> 4], 1).reshape(-1)[:count]
        return found.reshape(self.shape)


@dataclass
class Operator:
    """The application of an operator, by its code, to tensors by number; -1 is none.

    `options` and `more` are the tables of its options, of which newer operators have the second,
    and `kinds` the element types of its results.
    """

    code: int
    custom: str
    inputs: list[int]
    outputs: list[int]
    options: Table | None
    more: Table | None = None
    kinds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The operator's name in TensorFlow Lite."""
        return self.custom or (NAMES[self.code] if 0 <= self.code < len(NAMES) else f"with code {self.code}")

    def option(self, field: int, form: str = "<b", default: int = 0) -> int:
        """Return a number among the options."""
        return default if self.options is None else self.options.number(field, form, default)

    def real(self, field: int) -> float:
        """Return a real number among the options."""
        return float(self.option(field, "<f"))


@dataclass
class Graph:
    """A graph of a file; the main one has all of them in `graphs`, with itself in front."""

    tensors: list[Tensor]
    operators: list[Operator]
    inputs: list[int]
    outputs: list[int]
    name: str = ""
    graphs: list[Graph] = field(default_factory=list)

    def all(self) -> Iterator[Graph]:
        """Yield the graphs of the file."""
        yield from self.graphs or [self]


def graph_of(content: bytes) -> Graph:
    """Return the graph in a file's content; raise TFLiteError for anything else."""
    if content[4:8] != b"TFL3":
        raise TFLiteError("it is no TensorFlow Lite model: its identifier is not TFL3")
    try:
        return _graph(root(content))
    except FlatBufferError as error:
        raise TFLiteError(f"it is damaged: {error}") from None


def _graph(model: Table) -> Graph:
    codes = [(max(c.number(0, "<b"), c.number(3)), c.text(1)) for c in model.tables(1)]
    buffers = [_Buffer(b) for b in model.tables(4)]
    graphs = [_one(graph, codes, buffers) for graph in model.tables(2)]
    if not graphs:
        raise TFLiteError("it has no graph")
    graphs[0].graphs = graphs
    need_bounded([t for g in graphs for t in g.tensors], len(model.content))
    return graphs[0]


def need_bounded(tensors: list[Tensor], size: int) -> None:
    """Raise TFLiteError where constants that share bytes take far more than the file has."""
    total = sum(len(t.content) for t in tensors if t.content is not None)
    if total > 16 * size + (1 << 20):
        raise TFLiteError(f"it has constants of {total} bytes in a file of {size}")


def _one(graph: Table, codes: list[tuple[int, str]], buffers: list[_Buffer]) -> Graph:
    tensors = [_tensor(t, buffers) for t in graph.tables(0)]
    operators = []
    for table in graph.tables(3):
        index = table.number(0, "<I")
        if index >= len(codes):
            raise TFLiteError(f"an operator has the code number {index} of {len(codes)}")
        operators.append(Operator(*codes[index], table.numbers(1), table.numbers(2), table.table(4), table.table(12)))
    made = Graph(tensors, operators, graph.numbers(1), graph.numbers(2), graph.text(4))
    for numbers in (made.inputs, made.outputs, *(o.outputs for o in operators)):
        if any(not 0 <= n < len(tensors) for n in numbers):
            raise TFLiteError(f"a tensor is named by a number out of {numbers}, and there are {len(tensors)}")
    for o in made.operators:
        o.kinds = tuple(tensors[n].kind for n in o.outputs)
    for made_of in [o.inputs for o in operators]:
        if any(not -1 <= n < len(tensors) for n in made_of):
            raise TFLiteError(f"a tensor is named by a number out of {made_of}, and there are {len(tensors)}")
    return made


class _Buffer:
    """The bytes of a buffer, which are copied once; they may lie behind the model's tables."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.held: bytes | None = None

    def content(self, name: str) -> bytes:
        """Return the bytes, for a tensor of a name."""
        if self.held is None:
            whole = self.table.content
            start, size = self.table.number(1, "<Q"), self.table.number(2, "<Q")
            if start > 1 and start + size > len(whole):
                raise TFLiteError(f"tensor {name!r} lies at bytes {start} to {start + size} of {len(whole)}")
            self.held = whole[start : start + size] if start > 1 else self.table.data(0)
        return self.held


def _tensor(table: Table, buffers: list[_Buffer]) -> Tensor:
    kind, number, name = table.number(1, "<b"), table.number(2, "<I"), table.text(3)
    if kind not in _KINDS:
        raise TFLiteError(f"tensor {name!r} has {_OTHERS.get(kind, f'elements of type {kind}')}, not supported")
    if number >= len(buffers):
        raise TFLiteError(f"tensor {name!r} has the buffer {number} of {len(buffers)}")
    content = buffers[number].content(name)
    if table.table(6) is not None:
        raise TFLiteError(f"tensor {name!r} is sparse, which is not supported")
    found, shape = table.table(4), tuple(table.numbers(0))
    scales: tuple[float, ...] = ()
    zeros: tuple[int, ...] = ()
    axis = 0
    if found is not None:
        scales, zeros = tuple(found.numbers(2, "f")), tuple(found.numbers(3, "q"))
        axis = found.number(6)
        if len(zeros) not in (0, len(scales)) or not all(math.isfinite(s) and s > 0 for s in scales):
            raise TFLiteError(f"tensor {name!r} has a quantisation of {len(scales)} scales, {len(zeros)} zero points")
        if len(scales) > 1 and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
            raise TFLiteError(f"tensor {name!r} has {len(scales)} scales along axis {axis} of {list(shape)}")
        zeros = zeros or (0,) * len(scales)
    empty, constant = math.prod(max(d, 0) for d in shape) == 0, content
    held = constant if constant or empty and number else None
    signature = tuple(table.numbers(7))
    if held is None and len(signature) == len(shape):
        shape = tuple(-1 if d < 0 else n for d, n in zip(signature, shape))
    return Tensor(name, shape, _KINDS[kind], held, scales, zeros, axis, kind == _INT4, bool(table.number(5, "<b")))

"""Numeric codes of element types in other formats and programs, by Mycel's names."""

from __future__ import annotations

__all__ = ["MINDSPORE", "ONNX"]

# MindSpore's TypeId, in its files, operators and headers of C++.
MINDSPORE = {
    "bool": 30,
    "int8": 32,
    "int16": 33,
    "int32": 34,
    "int64": 35,
    "uint8": 37,
    "uint16": 38,
    "uint32": 39,
    "uint64": 40,
    "float16": 42,
    "float32": 43,
    "float64": 44,
    "bfloat16": 45,
    "float8_e4m3fn": 46,
    "float8_e5m2": 47,
    "complex64": 51,
    "complex128": 52,
}

# TensorProto.DataType of ONNX, which tensors in MindIR files have as well.
ONNX = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
}

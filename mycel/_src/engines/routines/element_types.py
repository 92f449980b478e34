"""Element types of routines' arrays, and their names in annotations."""

from __future__ import annotations

__all__ = ["ARRAYS", "ELEMENTS"]

# The element types of arrays: LLVM's name in memory, the type once read, and how it gets there.
ELEMENTS = {
    "uint8": ("i8", "i32", "zext"),
    "int8": ("i8", "i32", "sext"),
    "bool": ("i8", "i32", "zext"),
    "uint16": ("i16", "i32", "zext"),
    "int16": ("i16", "i32", "sext"),
    "int32": ("i32", "i32", ""),
    "int64": ("i64", "i64", ""),
    "float32": ("float", "float", ""),
    "float64": ("double", "double", ""),
}
# Annotations of arrays, with their element types; None is any.
ARRAYS = {
    "Bytes": "uint8",
    "Shorts": "int16",
    "Ints": "int32",
    "Longs": "int64",
    "Floats": "float32",
    "Doubles": "float64",
    "Elements": None,
}

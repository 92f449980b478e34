"""The rules of ONNX operators, by families. Importing the package enters them."""

from __future__ import annotations

from mycel.formats.onnx.rules import attention as attention
from mycel.formats.onnx.rules import casts as casts
from mycel.formats.onnx.rules import control as control
from mycel.formats.onnx.rules import elementwise as elementwise
from mycel.formats.onnx.rules import images as images
from mycel.formats.onnx.rules import microsoft as microsoft
from mycel.formats.onnx.rules import normalization as normalization
from mycel.formats.onnx.rules import products as products
from mycel.formats.onnx.rules import quantization as quantization
from mycel.formats.onnx.rules import random as random
from mycel.formats.onnx.rules import recurrent as recurrent
from mycel.formats.onnx.rules import reductions as reductions
from mycel.formats.onnx.rules import regions as regions
from mycel.formats.onnx.rules import shapes as shapes
from mycel.formats.onnx.rules import signals as signals
from mycel.formats.onnx.rules import sizes as sizes
from mycel.formats.onnx.rules import text as text
from mycel.formats.onnx.rules import windows as windows

__all__: list[str] = []

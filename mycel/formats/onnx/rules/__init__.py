"""Import rules of ONNX operators, by families. Importing the package registers them."""

from __future__ import annotations

from mycel.formats.onnx.rules import attention as attention
from mycel.formats.onnx.rules import casts as casts
from mycel.formats.onnx.rules import control_flow as control_flow
from mycel.formats.onnx.rules import convolution_pooling as convolution_pooling
from mycel.formats.onnx.rules import data_movement as data_movement
from mycel.formats.onnx.rules import elementwise as elementwise
from mycel.formats.onnx.rules import image_sampling as image_sampling
from mycel.formats.onnx.rules import images as images
from mycel.formats.onnx.rules import matrix_products as matrix_products
from mycel.formats.onnx.rules import microsoft as microsoft
from mycel.formats.onnx.rules import normalization as normalization
from mycel.formats.onnx.rules import quantization as quantization
from mycel.formats.onnx.rules import random as random
from mycel.formats.onnx.rules import recurrent as recurrent
from mycel.formats.onnx.rules import reductions as reductions
from mycel.formats.onnx.rules import shape_arithmetic as shape_arithmetic
from mycel.formats.onnx.rules import signals as signals
from mycel.formats.onnx.rules import text as text

__all__: list[str] = []

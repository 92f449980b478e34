"""`integers`: a network with fake quantisation becomes one of integers, without data."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims.neural.quantisation import dequantize
from mycel._src.compiler.transforms.quantise.qdq_import import read_levels
from mycel._src.compiler.transforms.quantise.transposed_convolution import with_convolutions
from mycel._src.foundation import arguments
from mycel.quantisation.post_training import ROUNDINGS, Choice, lowered_network
from mycel.quantisation.quantised_network import Quantised, float_model

__all__ = ["integers"]


def integers(net: Any, *inputs: Any, rounding: str = "single") -> Quantised:
    """Return a network that computes with integers what a network computes with rounded values.

    Such a network was read from a file in which values go to levels and back, as ONNX's
    QuantizeLinear and DequantizeLinear say it, or was trained with rounding. What has no scale
    stays in floats, and is listed in the result's `report`. Inputs and results that are integers
    stay integers. Values are those of the network up to a level.

    * `net`: a Cell or function of tensors, which stays as it is.
    * `inputs`: example arguments, of which shapes and types count; sizes may be open.
    * `rounding`: "single", or "double" for the bits of TFLite's kernels.

    Raises Unsupported where nothing of the network has scales, and CompileError where it is no
    graph.

    >>> import mycel as ms, pathlib, tempfile
    >>> from mycel.quantisation import integers, quantise
    >>> net, x = ms.nn.Dense(4, 2), ms.ops.rand(16, 4)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.onnx"
    >>> ms.export(quantise(net, x), x, file_name=path, file_format="ONNX")
    >>> small = integers(ms.load(path), x)
    >>> bool(ms.ops.abs(small(x) - net(x)).max() < 0.03), small.report.floats
    (True, [])
    """
    arguments.one_of("integers", "rounding", rounding, ROUNDINGS)
    model = float_model(net, inputs, (dequantize,))
    read = read_levels(model.graph)
    return lowered_network(model, with_convolutions(read.graph), Choice(rounding=rounding), (read.inputs, read.outputs))

"""Post-training quantisation (`quantise`): a trained network becomes one of integers.

The network is staged outside of training and its parameters become constants. Normalisations fold
into weights; then come the corrections that were asked for, each graph → graph. Masks of attention
become as low as they need be (`attention_masks`). Ranges are observed on the data, values and
weights are rounded to their scales, and the rounded graph is lowered to arithmetic of integers.
What is measured of the result decides whether it is given at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.symbols import Symbol
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.neural.normalization import softmax
from mycel._src.compiler.prims.neural.quantisation import fake_quant, int_conv, int_matmul, quantize, requantize
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.cross_layer_equalisation import equalised
from mycel._src.compiler.transforms.quantise.fake_quantisation import inserted, points, recurrences_of, weights_of
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of
from mycel._src.compiler.transforms.quantise.integer_lowering import Ends, lowered
from mycel._src.compiler.transforms.quantise.scales import Scale, scale_for, weight_scale
from mycel._src.compiler.transforms.quantise.transposed_convolution import with_convolutions
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.compiled.jit import jit
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.exporting import LoadedGraph
from mycel.formats.graph_files.graph_file import Model
from mycel.quantisation.attention_masks import floor_of, shallow_masks
from mycel.quantisation.calibration import METHODS, Observer
from mycel.quantisation.quantised_network import Quantised, Report, constant_bytes, float_model, run
from mycel.quantisation.weight_rounding import adaround, as_matrix, corrected, from_matrix, gptq, hessians

__all__ = ["Refused", "quantise"]

Array = np.ndarray[Any, Any]
ROUNDINGS = ("single", "double")
WEIGHTS = ("nearest", "adaround", "gptq")
_RUNS = 15


class Refused(ValueError):
    """An error: a quantised network is worse or slower than was asked for.

    `report` has what was measured.
    """

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def quantise(
    net: Any,
    data: Any,
    *,
    bits: int = 8,
    weight_bits: int | Sequence[int] | None = None,
    method: str = "minmax",
    percentile: float = 99.99,
    per_channel: bool = True,
    symmetric: bool = False,
    rounding: str = "single",
    integer_ends: bool = False,
    equalise: bool = False,
    weights: str = "nearest",
    correct_biases: bool = False,
    measure: Callable[[Any], float] | None = None,
    at_least: float | None = None,
    faster_than: float | None = None,
) -> Quantised:
    """Return a network that computes with integers what a trained network computes with floats.

    Recurrent layers have products of integers, of weights in 8 bits or fewer with states in 8 bits,
    and gates in floats. Those by ReLU, or whose first states are given, stay in floats.

    Args:
        net (Cell | Callable[..., Any]): A Cell or function of tensors, which stays as it is.
        data (Tensor | Iterable[Tensor | tuple[Tensor, ...]]): Batches like those of use, on which
            ranges of values are observed: a tensor or array, a list of batches, or a dataset. A
            batch is a tensor, or a tuple of all arguments. Sizes of batches stay open, but for
            batches of one row where the network decides by that.
        bits (int): Bits of values, from 2 to 8. Default: 8.
        weight_bits (int | Sequence[int] | None): Bits of weights; None for the same; several for
            those of each layer, as `mixed_bits` gives. Default: None.
        method (str): How a range follows from what is observed: "minmax", "percentile", "mse" or
            "kl". Default: "minmax".
        percentile (float): The share that is kept by "percentile". Default: 99.99.
        per_channel (bool): Whether each channel of weights has a scale of its own. Default: True.
        symmetric (bool): Whether values have the zero point 0, as weights always do. Default:
            False.
        rounding (str): "single", or "double" for the bits of TFLite's kernels. Default: "single".
        integer_ends (bool): Whether inputs and outputs are integers as well
            (`Quantised.quantised_input`). Default: False.
        equalise (bool): Whether channels of neighbouring layers are scaled to use their integers
            equally well. Default: False.
        weights (str): How weights are rounded: to the "nearest" integer, or so that results on
            `data` change least, by "adaround" or "gptq"; layers of several groups always to the
            nearest. Default: "nearest".
        correct_biases (bool): Whether biases take back what rounding weights changes in the mean.
            Default: False.
        measure (Callable[[Any], float] | None): A function of a network that gives how good it is,
            of which more is better. Default: None.
        at_least (float | None): What is asked of `measure`. Default: None.
        faster_than (float | None): How many times as fast as `net` the result must be on the first
            batch, when both are compiled. Default: None.

    Returns:
        Quantised: The network of integers.

    Raises:
        Refused: Where the result is worse or slower than asked for, with what was measured.
        Unsupported, CompileError: For networks that are no graph.
        ValueError: For other arguments.

    Examples:
        >>> import mycel as ms
        >>> from mycel.quantisation import quantise
        >>> net = ms.nn.Dense(4, 2)
        >>> x = ms.ops.rand(16, 4)
        >>> small = quantise(net, x)
        >>> bool(ms.ops.abs(small(x) - net(x)).max() < 0.03), small.report.floats
        (True, [])
    """
    wanted = bits if weight_bits is None else tuple(weight_bits) if isinstance(weight_bits, Sequence) else weight_bits
    given = Choice(bits, wanted, method, percentile, per_channel, symmetric, rounding, integer_ends)
    given = replace(given, weights=weights, correct_biases=correct_biases)
    given.check()
    arguments.flag("quantise", "equalise", equalise)
    if at_least is not None and measure is None:
        raise ValueError("quantise: at_least asks for a measure; give the function that measures")
    batches = Batches(data)
    model = float_model(net, batches.examples())
    if model.conditions and any(t.ndim and t.shape[0] == 1 for row in batches for t in row):
        # It was decided by open sizes, which are not 1, as recurrent layers do.
        model = float_model(net, list(batches.rows[0]))
    graph = fold_normalisations(with_convolutions(model.graph))
    model.graph = equalised(graph) if equalise else graph
    made = finished(model, batches, given)
    check_result(net, made, batches, measure, at_least, faster_than)
    return made


@dataclass(frozen=True)
class Choice:
    """What was asked of a quantised network; the fields are arguments of `quantise`."""

    bits: int = 8
    weight_bits: int | tuple[int, ...] = 8
    method: str = "minmax"
    percentile: float = 99.99
    per_channel: bool = True
    symmetric: bool = False
    rounding: str = "single"
    integer_ends: bool = False
    weights: str = "nearest"
    correct_biases: bool = False

    def check(self) -> None:
        """Raise ValueError or TypeError for arguments that mean nothing."""
        several = self.weight_bits if isinstance(self.weight_bits, tuple) else (self.weight_bits,)
        for name, value in (("bits", self.bits), *[("weight_bits", b) for b in several]):
            if type(value) is not int or not 2 <= value <= 8:
                raise ValueError(f"quantise: {name} must be an int from 2 to 8, not {value!r}")
        arguments.one_of("quantise", "method", self.method, METHODS)
        arguments.one_of("quantise", "rounding", self.rounding, ROUNDINGS)
        arguments.one_of("quantise", "weights", self.weights, WEIGHTS)
        if not 50.0 < self.percentile <= 100.0:
            raise ValueError(f"quantise: percentile must be above 50 and at most 100, not {self.percentile!r}")
        for name in ("per_channel", "symmetric", "integer_ends", "correct_biases"):
            if type(getattr(self, name)) is not bool:
                raise TypeError(f"quantise: {name} must be a bool, not {getattr(self, name)!r}")


class Batches:
    """The batches of calibration, as tuples of tensors, which can be gone through again."""

    def __init__(self, data: Any) -> None:
        if isinstance(data, (Tensor, np.ndarray)):
            data = [data]
        elif hasattr(data, "create_tuple_iterator"):
            data = list(data.create_tuple_iterator(num_epochs=1))
        elif not isinstance(data, (list, tuple)):
            raise TypeError(f"quantise: data must be a tensor, a list of batches or a dataset, not {data!r:.80}")
        self.rows = [self._row(b) for b in data]
        if not self.rows:
            raise ValueError("quantise: data has no batch; give at least one")

    def _row(self, batch: Any) -> tuple[Tensor, ...]:
        row = batch if isinstance(batch, (tuple, list)) else (batch,)
        if not all(isinstance(v, (Tensor, np.ndarray)) for v in row):
            raise TypeError(f"quantise: a batch must be a tensor or a tuple of them, not {batch!r:.80}")
        if any(v.ndim and not v.shape[0] for v in row):
            raise ValueError("quantise: a batch has no rows; leave it out")
        return tuple(v if isinstance(v, Tensor) else Tensor.from_numpy(np.ascontiguousarray(v)) for v in row)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return iter(self.rows)

    def examples(self) -> list[Tensor]:
        """Return arguments of the types of the first batch, with open sizes of batches."""
        first = self.rows[0]
        batched = [t for t in first if t.ndim]
        if not batched or len({t.shape[0] for t in batched}) != 1:
            return list(first)
        size = Symbol(unique=True)
        return [Tensor(shape=[size, *t.shape[1:]], dtype=t.dtype) if t.ndim else t for t in first]


def observed(
    model: Model, nodes: Sequence[Node], batches: Batches, given: Choice, floors: dict[Node, float] | None = None
) -> dict[Node, Scale]:
    """Return the scales of `nodes` of the graph of `model`, from their values on `batches`, as was
    `given`.

    `floors` are the lowest values that count in sums with a mask, by the mask.
    """
    if not nodes:
        return {}
    network = run(model, nodes)
    seen = [Observer() for _ in nodes]
    lowest = [floor_of(n, floors or {}) for n in nodes]

    def values(row: tuple[Tensor, ...]) -> Iterator[tuple[Observer, Array]]:
        for observer, value, low in zip(seen, network(*row), lowest):
            array = value.asnumpy()
            yield observer, array if low is None else np.maximum(array, np.float32(low))

    for row in batches:
        for observer, array in values(row):
            observer.extend(array)
    if given.method != "minmax":
        for row in batches:
            for observer, array in values(row):
                observer.tally(array)
    return {node: _scale(node, observer, given) for node, observer in zip(nodes, seen)}


def _scale(node: Node, seen: Observer, given: Choice) -> Scale:
    # What cannot leave its range by definition has all of it, as in TFLite.
    if node.prim is softmax and given.bits == 8:
        return Scale(np.float32(1 / 256).reshape(()), -128, -128, 127)
    if node.prim is E.sigmoid:
        return scale_for(0.0, 1.0, given.bits, given.symmetric)
    if node.prim is E.tanh:
        return scale_for(-1.0, 1.0, given.bits, given.symmetric)
    return scale_for(*seen.range(given.method, given.bits, given.percentile), given.bits, given.symmetric)


def finished(model: Model, batches: Batches, given: Choice) -> Quantised:
    """Return the quantised network of a model of floats whose graph is folded."""
    floors = shallow_masks(model, batches)
    chosen = rounded_weights(model, batches, given)
    if given.correct_biases and chosen:
        model.graph, images = corrected(model, chosen, batches)
        chosen = {images[n]: found for n, found in chosen.items()}
    graph: Graph = model.graph
    chosen |= rounded_recurrences(graph, given)
    scales = observed(model, points(graph), batches, given, floors)
    return lowered_network(model, inserted(graph, scales, lambda node, array: chosen[node]), given)


def rounded_weights(model: Model, batches: Batches, given: Choice) -> dict[Node, tuple[Array, Scale]]:
    """Return the weights and scales of the layers of `model`, rounded as `given` on `batches`."""
    known = hessians(model, batches) if given.weights != "nearest" else {}
    found: dict[Node, tuple[Array, Scale]] = {}
    # Layers of a network that was trained with rounding have theirs.
    layers = [n for n in weights_of(model.graph) if array_of(n.inputs[1]) is not None]
    several = given.weight_bits if isinstance(given.weight_bits, tuple) else (given.weight_bits,) * len(layers)
    if len(several) != len(layers):
        raise ValueError(f"quantise: weight_bits has {len(several)} numbers, and the network {len(layers)} layers")
    for node, bits in zip(layers, several):
        array = array_of(node.inputs[1])
        assert array is not None
        axis = (0 if node.prim is conv else -1) if given.per_channel else None
        scale = weight_scale(array, axis, bits)
        if node in known:
            matrix = as_matrix(array, node)
            if given.weights == "adaround":
                array = from_matrix(adaround(matrix, known[node], scale), array, node)
            else:
                size = np.broadcast_to(scale.size.reshape(1, -1), (1, matrix.shape[1]))
                levels, _ = gptq(matrix, known[node], bits, len(matrix), size)
                array = from_matrix(levels * size, array, node)
        found[node] = array.astype(np.float32), scale
    return found


def rounded_recurrences(graph: Graph, given: Choice) -> dict[Node, tuple[Array, Scale]]:
    """Return the weights and scales of the states of recurrences, to the nearest levels.

    They have the bits of all weights, or 8 where layers have several, and are `per_channel` as
    `given`.
    """
    bits = 8 if isinstance(given.weight_bits, tuple) else given.weight_bits
    found: dict[Node, tuple[Array, Scale]] = {}
    for node in recurrences_of(graph):
        array = array_of(node.inputs[1])
        if array is not None:
            found[node] = array.astype(np.float32), weight_scale(array, 0 if given.per_channel else None, bits)
    return found


def lowered_network(model: Model, rounded: Graph, given: Choice, ends: Ends | None = None) -> Quantised:
    """Return the network of integers of a `model`, of its graph of `rounded` values.

    It has the integer `ends` or those of the choice that was `given`.
    """
    small = lowered(rounded, given.rounding, given.integer_ends if ends is None else ends)
    floats = [f"{n.op}{'' if n.where is None else f' at {n.where}'}: {why}" for n, why in small.floats]
    if not any(n.prim in (quantize, int_conv, int_matmul, requantize) for n in small.graph.nodes):
        reasons = f": {'; '.join(floats)}" if floats else ""
        raise Unsupported(
            "quantise: nothing of the network is computed with integers; convolutions, products, sums, averages and "
            f"what follows them are, in float32{reasons}"
        )
    bits = [bits_of(n.inputs[1]) for n in weights_of(rounded)]
    report = Report(constant_bytes(small.graph), constant_bytes(model.graph), floats, bits)
    simulated = LoadedGraph(replace(model, graph=rounded))
    return Quantised(model, small, simulated, report)


def bits_of(weight: Node) -> int:
    """Return how many bits the levels of weights have; 32 where they are not rounded."""
    if weight.prim is not fake_quant:
        return 32
    return int(weight.params["high"] - weight.params["low"]).bit_length()


def check_result(
    net: Any,
    made: Quantised,
    batches: Batches,
    measure: Callable[[Any], float] | None,
    at_least: float | None,
    faster_than: float | None,
) -> None:
    """Measure a quantised network; raise Refused where it is worse or slower than asked for.

    `net` is the network of floats and `made` the quantised one. `batches`, of which the first is
    timed, `measure`, `at_least` and `faster_than` are as for `quantise`.
    """
    report = made.report
    if measure is not None:
        report.measure, report.float_measure = float(measure(made)), float(measure(net))
        if at_least is not None and not report.measure >= at_least:
            raise Refused(
                f"quantise: the quantised network measures {report.measure:g}, the network of floats "
                f"{report.float_measure:g}, and at least {at_least:g} was asked for",
                report,
            )
    if faster_than is not None:
        row = next(iter(batches))
        before, after = _seconds(net, row), _seconds(made, row)
        report.speed = before / after
        if not report.speed > faster_than:
            raise Refused(
                f"quantise: the quantised network takes {after * 1e6:.0f} microseconds for a batch, the network of "
                f"floats {before * 1e6:.0f}: {report.speed:.2f} times as fast, and more than {faster_than:g} was "
                "asked for",
                report,
            )


def _seconds(net: Any, row: tuple[Tensor, ...]) -> float:
    """Return the least time that a compiled network takes for a batch."""
    compiled = jit(lambda *args: net(*args))
    found = []
    for _ in range(_RUNS + 2):
        start = time.perf_counter()
        result = compiled(*row)
        for value in result if isinstance(result, (tuple, list)) else (result,):
            value.asnumpy()
        found.append(time.perf_counter() - start)
    return min(found[2:])

"""Recurrent layers (Elman, 1990; Hochreiter and Schmidhuber, 1997; Cho et al., 2014) and their
single steps.

With p = x @ weight_ih.T + bias_ih and q = h @ weight_hh.T + bias_hh, split into the gates, a step
is

    RNN     h' = tanh(p + q), or relu
    GRU     r, z = sigmoid(p_r + q_r), sigmoid(p_z + q_z)
            n = tanh(p_n + r * q_n);  h' = n + z * (h - n)
    LSTM    i, f, g, o of p + q
            c' = sigmoid(f) * c + sigmoid(i) * tanh(g);  h' = sigmoid(o) * tanh(c')

The layers compute p for all times in one product and run the steps as one recurrence
(`ops.sequences.recurrence`). With `seq_length` a sequence that has ended keeps its state and gives
zeros. The reverse direction therefore starts at each sequence's own last element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.initializer import Uniform, initializer
from mycel.nn.layer.basic import Dropout
from mycel.ops._operands import input_of, need_matched, one_by_one
from mycel.ops.sequences.recurrence import GATES, step
from mycel.ops.sequences.recurrence import layer as one_layer

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]


def _weight(name: str, shape: tuple[int, ...], hidden: int, dtype: Any) -> Parameter:
    return Parameter(initializer(Uniform(1 / math.sqrt(hidden)), shape, dtype), name=name)


class _Step(Cell):
    """Base of single steps, with their weights.

    `input_size` and `hidden_size` are the numbers of features of inputs and states, `has_bias` adds
    the biases, and `dtype` is the element type of the parameters.
    """

    mode = "tanh"

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool, dtype: Any) -> None:
        super().__init__()
        owner = type(self).__name__
        self.input_size = arguments.integer(owner, "input_size", input_size, 1)
        self.hidden_size = arguments.integer(owner, "hidden_size", hidden_size, 1)
        self.has_bias = arguments.flag(owner, "has_bias", has_bias)
        rows = GATES[self.mode] * hidden_size
        self.weight_ih = _weight("weight_ih", (rows, input_size), hidden_size, dtype)
        self.weight_hh = _weight("weight_hh", (rows, hidden_size), hidden_size, dtype)
        self.bias_ih = _weight("bias_ih", (rows,), hidden_size, dtype) if has_bias else None
        self.bias_hh = _weight("bias_hh", (rows,), hidden_size, dtype) if has_bias else None

    def _next(self, x: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        owner = type(self).__name__
        if x.ndim != 2 or x.shape[1] != self.input_size:
            raise ValueError(f"{owner}: x must be (batch, {self.input_size}), not of shape {x.shape}")
        for state in states:
            if state.shape != (x.shape[0], self.hidden_size):
                raise ValueError(
                    f"{owner}: a state must be of shape {(x.shape[0], self.hidden_size)}, not {state.shape}"
                )
        need_matched(owner, x, self.weight_ih, "x", "weight_ih")
        biases = (self.bias_ih, self.bias_hh) if self.has_bias else ()
        return step(self.mode, x, states, (self.weight_ih, self.weight_hh, *biases))

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"input_size={self.input_size}, hidden_size={self.hidden_size}, has_bias={self.has_bias}"


class RNNCell(_Step):
    """One step of an Elman network (Elman, 1990): ``tanh(x @ weight_ih.T + bias_ih + h @
    weight_hh.T + bias_hh)``, or relu instead of tanh.

    x is (batch, input_size), `hx` and the result are (batch, hidden_size). Weights start uniformly
    in ±1 / sqrt(hidden_size).

    Args:
        input_size (int): The size of the features that come in.
        hidden_size (int): The size of the hidden state.
        has_bias (bool): Whether the biases are added. Default: True.
        nonlinearity (str): "tanh" or "relu". Default: "tanh".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: For other shapes and for a nonlinearity other than "tanh" and "relu".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.RNNCell(3, 4)(ms.ops.ones((2, 3)), ms.ops.zeros((2, 4))).shape
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = D.float32,
    ) -> None:
        self.mode = arguments.choice("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = nonlinearity

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        """Return the next state."""
        return self._next(x, _tensor("RNNCell", hx))[0]


class GRUCell(_Step):
    """One step of a gated recurrent unit (Cho et al., 2014), with the reset gate after the product
    with h.

    x is (batch, input_size), `hx` and the result are (batch, hidden_size); the weights hold the
    gates r, z, n.

    Args:
        input_size (int): The size of the features that come in.
        hidden_size (int): The size of the hidden state.
        has_bias (bool): Whether the biases are added. Default: True.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: For other shapes.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.GRUCell(3, 4)(ms.ops.ones((2, 3)), ms.ops.zeros((2, 4))).shape
        (2, 4)
    """

    mode = "gru"

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = D.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        """Return the next state."""
        return self._next(x, _tensor("GRUCell", hx))[0]


class LSTMCell(_Step):
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997).

    x is (batch, input_size), `hx` the pair (h, c) of (batch, hidden_size), and the result the next
    such pair; the weights hold the gates i, f, g, o.

    Args:
        input_size (int): The size of the features that come in.
        hidden_size (int): The size of the hidden state.
        has_bias (bool): Whether the biases are added. Default: True.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError: If `hx` is no pair.
        ValueError: For other shapes.

    Examples:
        >>> import mycel as ms
        >>> state = (ms.ops.zeros((2, 4)), ms.ops.zeros((2, 4)))
        >>> h, c = ms.nn.LSTMCell(3, 4)(ms.ops.ones((2, 3)), state)
        >>> h.shape, c.shape
        ((2, 4), (2, 4))
    """

    mode = "lstm"

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = D.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)

    def construct(self, x: Tensor, hx: Any) -> tuple[Tensor, ...]:
        """Return the next state."""
        return self._next(x, *_pair("LSTMCell", hx))


def _tensor(owner: str, hx: Any) -> Tensor:
    return arguments.instance(owner, "hx", hx, Tensor)


def _pair(owner: str, hx: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise TypeError(f"{owner}: hx must be the pair (h, c), not {type(hx).__name__}")
    return _tensor(owner, hx[0]), _tensor(owner, hx[1])


def _needed(layer: object, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
    """Return positional arguments of recurrent layers. Raises TypeError where sizes are missing."""
    missing = [n for n in ("input_size", "hidden_size")[len(args) :] if n not in kwargs]
    if missing:
        raise TypeError(f"{type(layer).__name__}: missing {' and '.join(map(repr, missing))}")
    return args


class _Recurrent(Cell):
    """Base of recurrent layers of one or two directions.

    `input_size` and `hidden_size` are the numbers of features of inputs and states, `num_layers` is
    the number of layers, and `has_bias` adds the biases. `batch_first` puts the batch before the
    time, `dropout` is the probability with which elements between layers are dropped in training,
    `bidirectional` adds the reverse direction, and `dtype` is the element type of the parameters.
    """

    mode = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.input_size = arguments.integer(owner, "input_size", input_size, 1)
        self.hidden_size = arguments.integer(owner, "hidden_size", hidden_size, 1)
        self.num_layers = one_by_one(owner, "layers", arguments.integer(owner, "num_layers", num_layers, 1))
        self.has_bias = arguments.flag(owner, "has_bias", has_bias)
        self.batch_first = arguments.flag(owner, "batch_first", batch_first)
        self.dropout = arguments.number(owner, "dropout", dropout, at_least=0, below=1)
        self.bidirectional = arguments.flag(owner, "bidirectional", bidirectional)
        self.dropout_op = Dropout(p=self.dropout)
        rows, directions = GATES[self.mode] * hidden_size, 1 + bidirectional
        kinds: list[tuple[str, Any]] = [
            ("weight_ih", lambda layer: (rows, hidden_size * directions if layer else input_size)),
            ("weight_hh", lambda layer: (rows, hidden_size)),
        ]
        if has_bias:
            kinds += [("bias_ih", lambda layer: (rows,)), ("bias_hh", lambda layer: (rows,))]
        lists: dict[str, list[Parameter]] = {}
        for kind, shape in kinds:
            for layer in range(num_layers):
                for direction in range(directions):
                    name = f"{kind}_l{layer}{'_reverse' if direction else ''}"
                    made = _weight(name, shape(layer), hidden_size, dtype)
                    setattr(self, name, made)
                    lists.setdefault(kind, []).append(made)
        self.__dict__["_lists"] = {kind: ParameterTuple(found) for kind, found in lists.items()}

    @property
    def w_ih_list(self) -> Any:
        """The weights of inputs, by layer and direction."""
        return self._lists["weight_ih"]

    @property
    def w_hh_list(self) -> Any:
        """The weights of states, by layer and direction."""
        return self._lists["weight_hh"]

    @property
    def b_ih_list(self) -> Any:
        """The biases of inputs, by layer and direction; an empty list without biases."""
        return self._lists.get("bias_ih", [])

    @property
    def b_hh_list(self) -> Any:
        """The biases of states, by layer and direction; an empty list without biases."""
        return self._lists.get("bias_hh", [])

    def construct(self, x: Tensor, hx: Any = None, seq_length: Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the last layer's outputs at all times, and the last state of every layer and
        direction.
        """
        x = input_of(self, x)
        owner = type(self).__name__
        if x.ndim != 3 or x.shape[2] != self.input_size:
            order = "batch, time" if self.batch_first else "time, batch"
            raise ValueError(f"{owner}: x must be ({order}, {self.input_size}), not of shape {x.shape}")
        if x.dtype.kind != "f":
            raise TypeError(f"{owner}: x must be of floating type, not {x.dtype.name}")
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        states = self._first_states(x, hx)
        mask = None
        if seq_length is not None:
            if not isinstance(seq_length, Tensor) or seq_length.shape != (x.shape[1],):
                raise ValueError(
                    f"{owner}: seq_length must be a tensor of one length for each of {x.shape[1]} sequences"
                )
            mask = ops.expand_dims(ops.arange(x.shape[0]), 1) < ops.expand_dims(seq_length, 0)
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for _ in range(1 + self.bidirectional):
                output, state = self._run(x, states, len(last), mask)
                outputs.append(output)
                last.append(state)
            x = ops.cat(outputs, 2) if self.bidirectional else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = self.dropout_op(x)
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
        joined = tuple(ops.stack(parts) for parts in zip(*last))
        return x, joined if self.mode == "lstm" else joined[0]

    def _first_states(self, x: Tensor, hx: Any) -> tuple[Tensor, ...]:
        owner = type(self).__name__
        shape = (self.num_layers * (1 + self.bidirectional), x.shape[1], self.hidden_size)
        if hx is None:
            return (ops.zeros(shape, x.dtype),) * (2 if self.mode == "lstm" else 1)
        states = _pair(owner, hx) if self.mode == "lstm" else (_tensor(owner, hx),)
        for state in states:
            if state.shape != shape:
                raise ValueError(f"{owner}: hx must be of shape {shape}, not {state.shape}")
        return tuple(cast(state, x.dtype) for state in states)

    def _run(self, x: Tensor, states: tuple[Tensor, ...], index: int, mask: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        suffix = f"_l{index // 2}{'_reverse' if index % 2 else ''}" if self.bidirectional else f"_l{index}"
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if self.has_bias else ("weight_ih", "weight_hh")
        weights = tuple(cast(getattr(self, name + suffix), x.dtype) for name in names)
        first = tuple(state[index] for state in states)
        reverse = self.bidirectional and index % 2 == 1
        output, *last = one_layer(self.mode, x, first, weights, mask, reverse)
        return output, tuple(last)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return (
            f"input_size={self.input_size}, hidden_size={self.hidden_size}, num_layers={self.num_layers}, "
            f"has_bias={self.has_bias}, "
            f"batch_first={self.batch_first}, dropout={self.dropout}, bidirectional={self.bidirectional}"
        )


class RNN(_Recurrent):
    """Layers of Elman networks (see `RNNCell`).

    The arguments are `input_size`, `hidden_size`, `num_layers` (1), `has_bias` (True),
    `batch_first` (False), `dropout` (0.0), `bidirectional` (False), `dtype` (float32) and, by name
    only, `nonlinearity` ("tanh", or "relu"). In training elements between layers are dropped with
    probability `dropout`. Raises TypeError or ValueError for arguments that do not fit.

    x is (time, batch, input_size), or (batch, time, input_size) with `batch_first`; `hx` is
    (num_layers * directions, batch, hidden_size), zeros where it is not given; `seq_length` is the
    length of each sequence. The results are the outputs, (time, batch, directions * hidden_size) or
    batch first, and the last states, of the shape of `hx`.

    >>> import mycel as ms
    >>> output, h = ms.nn.RNN(3, 4, bidirectional=True)(ms.ops.ones((5, 2, 3)))
    >>> output.shape, h.shape
    ((5, 2, 8), (2, 2, 4))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        rest = list(args)
        # MindSpore's order has the nonlinearity by keyword only.
        self.mode = arguments.choice("RNN", "nonlinearity", kwargs.pop("nonlinearity", "tanh"), ("tanh", "relu"))
        super().__init__(*_needed(self, rest, kwargs), **kwargs)


class GRU(_Recurrent):
    """Layers of gated recurrent units (see `GRUCell`); arguments and results are those of `RNN`,
    without a nonlinearity.

    >>> import mycel as ms
    >>> output, h = ms.nn.GRU(3, 4, num_layers=2, batch_first=True)(ms.ops.ones((2, 5, 3)))
    >>> output.shape, h.shape
    ((2, 5, 4), (2, 2, 4))
    """

    mode = "gru"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*_needed(self, args, kwargs), **kwargs)


class LSTM(_Recurrent):
    """Layers of long short-term memories (see `LSTMCell`); arguments and results are those of
    `RNN`, with pairs (h, c) as states.

    >>> import mycel as ms
    >>> output, (h, c) = ms.nn.LSTM(3, 4)(ms.ops.ones((5, 2, 3)))
    >>> output.shape, h.shape, c.shape
    ((5, 2, 4), (1, 2, 4), (1, 2, 4))
    """

    mode = "lstm"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*_needed(self, args, kwargs), **kwargs)

"""Attention and the transformer (Vaswani et al., "Attention is all you need", 2017).

For each head, of d = embed_dim / num_heads features,

    attention(q, k, v) = softmax(q k^T / sqrt(d) + mask) v

Queries are (length, batch, features), or (batch, length, features) with `batch_first`, or (length,
features) of one sample. A boolean (or uint8) mask is true at keys that are hidden; a mask of floats
is added. `attn_mask` is (queries, keys), or (batch * num_heads, queries, keys); `key_padding_mask`
is (batch, keys). Masks of both kinds may be mixed (MindSpore 2.10 on a CPU then does not hide
padding). A query for which all keys are hidden has weights of 0. Encoders and decoders copy the
layer that they are given, so that all of their layers start with the same values.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.initializer import XavierNormal, XavierUniform, initializer
from mycel.nn.layer.basic import Dense, Dropout
from mycel.nn.layer.container import CellList
from mycel.nn.layer.normalization import LayerNorm
from mycel.ops._operands import input_of, one_by_one
from mycel.ops.attention.scaled_dot_product import attend, opened

__all__ = [
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

MaybeTensor = Tensor | None


def _added(owner: str, name: str, mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask in the form in which it is added to the products."""
    if mask.dtype is D.bool_ or mask.dtype is D.uint8:
        hidden = cast(mask, D.bool_)
        return ops.where(hidden, ops.full((), -math.inf, dtype=like.dtype), ops.zeros((), like.dtype))
    if not mask.dtype.is_floating:
        raise TypeError(f"{owner}: {name} must be boolean or of floating type, not {mask.dtype.name}")
    return cast(mask, like.dtype)


class MultiheadAttention(Cell):
    """Attention in `num_heads` subspaces of the features, with projections before and after
    (Vaswani et al., 2017).

    Args:
        embed_dim (int): The number of features, which `num_heads` divides.
        num_heads (int): The number of heads.
        dropout (float): The probability with which weights are dropped in training. Default: 0.0.
        has_bias (bool): Whether the projections have biases. Default: True.
        add_bias_kv (bool): Whether a learnt key and value are appended. Default: False.
        add_zero_attn (bool): Whether a key and a value of zeros are appended. Default: False.
        kdim (int | None): The features of keys or values; None for `embed_dim`. Default: None.
        vdim (int | None): The features of keys or values; None for `embed_dim`. Default: None.
        batch_first (bool): Whether the batch comes before the length. Default: False.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: If `embed_dim` does not divide into the heads, and for shapes and masks that do
            not fit.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.ones((5, 2, 8))
        >>> y, weights = ms.nn.MultiheadAttention(8, 2)(x, x, x)
        >>> y.shape, weights.shape
        ((5, 2, 8), (2, 5, 5))
    """

    def __init__(
        self,
        embed_dim: Any,
        num_heads: Any,
        dropout: Any = 0.0,
        has_bias: Any = True,
        add_bias_kv: Any = False,
        add_zero_attn: Any = False,
        kdim: Any = None,
        vdim: Any = None,
        batch_first: Any = False,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        owner = "MultiheadAttention"
        self.embed_dim = arguments.integer(owner, "embed_dim", embed_dim, 1)
        self.num_heads = arguments.integer(owner, "num_heads", num_heads, 1)
        if embed_dim % num_heads:
            raise ValueError(f"{owner}: embed_dim {embed_dim} does not divide into num_heads {num_heads}")
        self.kdim = embed_dim if kdim is None else arguments.integer(owner, "kdim", kdim, 1)
        self.vdim = embed_dim if vdim is None else arguments.integer(owner, "vdim", vdim, 1)
        self.dropout = arguments.number(owner, "dropout", dropout, at_least=0, at_most=1)
        self.batch_first = arguments.flag(owner, "batch_first", batch_first)
        self.add_zero_attn = arguments.flag(owner, "add_zero_attn", add_zero_attn)
        self.head_dim = embed_dim // num_heads
        weight: Any = XavierUniform()
        if self.kdim == self.vdim == embed_dim:
            shapes: dict[str, Any] = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        else:
            columns = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
            shapes = {name: (embed_dim, n) for name, n in columns.items()}
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            shape = shapes.get(name)
            setattr(self, name, None if shape is None else Parameter(initializer(weight, shape, dtype), name=name))
        self.in_proj_bias = (
            Parameter(initializer("zeros", (3 * embed_dim,), dtype), name="in_proj_bias")
            if arguments.flag(owner, "has_bias", has_bias)
            else None
        )
        for name in ("bias_k", "bias_v"):
            made = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), name=name)
            setattr(self, name, made if arguments.flag(owner, "add_bias_kv", add_bias_kv) else None)
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=dtype)

    def construct(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: MaybeTensor = None,
        need_weights: bool = True,
        attn_mask: MaybeTensor = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, MaybeTensor]:
        """Return the attention and its weights.

        Args:
            query (Tensor): (length, batch, features), or with `batch_first` (batch, length,
                features).
            key (Tensor): (length, batch, features), or with `batch_first` (batch, length,
                features).
            value (Tensor): (length, batch, features), or with `batch_first` (batch, length,
                features).
            key_padding_mask (MaybeTensor): (batch, keys): which keys are left out (bool), or
                numbers that are added. Default: None.
            need_weights (bool): Whether the weights are returned; if not, None is. Default: True.
            attn_mask (MaybeTensor): (queries, keys), or (batch * heads, queries, keys): which are
                left out, or numbers that are added. Default: None.
            average_attn_weights (bool): Whether the weights are averaged over the heads; those of
                each head are (batch, num_heads, queries, keys). Default: True.

        Returns:
            tuple[Tensor, MaybeTensor]: The attention, of the shape of `query`, and its weights,
                (batch, queries, keys) or None.
        """
        query = input_of(self, query)
        single = query.ndim == 2
        if single:
            query, key, value = (ops.expand_dims(x, 1) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else ops.expand_dims(key_padding_mask, 0)
        elif self.batch_first:
            query, key, value = (ops.transpose(x, (1, 0, 2)) if x.ndim == 3 else x for x in (query, key, value))
        self._check(query, key, value)
        out, weights = self._attend(query, key, value, key_padding_mask, attn_mask, need_weights)
        if single:
            out = ops.squeeze(out, 1)
        elif self.batch_first:
            out = ops.transpose(out, (1, 0, 2))
        if weights is None:
            return out, None
        weights = ops.squeeze(weights, 0) if single else weights
        return out, ops.mean(weights, -3) if average_attn_weights else weights

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, x, features in (
            ("query", query, self.embed_dim),
            ("key", key, self.kdim),
            ("value", value, self.vdim),
        ):
            if x.ndim != 3 or x.shape[2] != features or x.shape[1] != query.shape[1]:
                order = "(batch, length, features)" if self.batch_first else "(length, batch, features)"
                raise ValueError(
                    f"MultiheadAttention: {name} must be {order} of one batch with {features} features; "
                    f"its shape (length and batch first) is {x.shape}, the query's {query.shape}"
                )
        if key.shape[0] != value.shape[0]:
            raise ValueError(
                f"MultiheadAttention: there must be as many keys as values, not {key.shape[0]} and {value.shape[0]}"
            )

    def _project(self, inputs: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        e = self.embed_dim
        query, key, value = inputs
        if self.in_proj_weight is None:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        elif query is key and key is value:
            return list(ops.split(ops.dense(query, self.in_proj_weight, self.in_proj_bias), e, -1))
        else:
            weights = list(ops.split(self.in_proj_weight, e, 0))
        biases = [None] * 3 if self.in_proj_bias is None else list(ops.split(self.in_proj_bias, e, 0))
        return [ops.dense(x, w, b) for x, w, b in zip(inputs, weights, biases)]

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        padding: MaybeTensor,
        attn_mask: MaybeTensor,
        need_weights: bool,
    ) -> tuple[Tensor, MaybeTensor]:
        """Return the attention (length, batch, features), and its weights if they are needed.

        `query`, `key` and `value` are (length, batch, features); `padding` and `attn_mask` are
        masks, in the forms of the module docstring.
        """
        n, batch, e = query.shape
        heads, d = self.num_heads, self.head_dim
        q, k, v = self._project((query, key, value))
        more = 0
        if self.bias_k is not None:
            k, v = (
                ops.cat((x, ops.broadcast_to(cast(b, x.dtype), (1, batch, e))), 0)
                for x, b in ((k, self.bias_k), (v, self.bias_v))
            )
            more += 1
        if self.add_zero_attn:
            k, v = (ops.cat((x, ops.zeros((1, batch, e), x.dtype)), 0) for x in (k, v))
            more += 1
        # (batch, heads, length, d)
        q, k, v = (ops.transpose(ops.reshape(x, (x.shape[0], batch, heads, d)), (1, 2, 0, 3)) for x in (q, k, v))
        mask = self._mask(q, key.shape[0], padding, attn_mask)
        empty: MaybeTensor = None
        if mask is not None:
            mask, empty = opened(ops.pad(mask, (0, more)) if more else mask)
        dropped = self.dropout if self.training else 0.0
        weights = None
        if need_weights or dropped == 1.0:
            scores = ops.matmul(q * (1 / math.sqrt(d)), ops.swapaxes(k, -1, -2))
            weights = ops.softmax(scores if mask is None else scores + mask, -1)
            weights = weights if empty is None else ops.where(empty, 0.0, weights)
            if dropped:
                weights = ops.dropout(weights, dropped, True)
            out = ops.matmul(weights, v)
        else:
            out = attend(q, k, v, 1 / math.sqrt(d), bias=mask, keep_prob=1.0 - dropped)
            out = out if empty is None else ops.where(empty, 0.0, out)
        out = ops.reshape(ops.transpose(out, (2, 0, 1, 3)), (n, batch, e))
        return self.out_proj(out), weights if need_weights else None

    def _mask(self, q: Tensor, keys: Any, padding: MaybeTensor, attn_mask: MaybeTensor) -> MaybeTensor:
        """Return the masks as one that is added to scores of `q`, or None without any."""
        owner = "MultiheadAttention"
        batch, heads, n, _ = q.shape
        total: MaybeTensor = None
        if attn_mask is not None:
            if attn_mask.shape not in ((n, keys), (batch * heads, n, keys)):
                raise ValueError(
                    f"{owner}: attn_mask must be {(n, keys)} or {(batch * heads, n, keys)}, not of shape "
                    f"{attn_mask.shape}"
                )
            total = _added(owner, "attn_mask", attn_mask, q)
            total = ops.reshape(total, (1, 1, n, keys) if total.ndim == 2 else (batch, heads, n, keys))
        if padding is not None:
            if padding.shape != (batch, keys):
                raise ValueError(f"{owner}: key_padding_mask must be {(batch, keys)}, not of shape {padding.shape}")
            hidden = ops.reshape(_added(owner, "key_padding_mask", padding, q), (batch, 1, 1, keys))
            total = hidden if total is None else total + hidden
        return total


def _activation(owner: str, given: Any) -> Any:
    if isinstance(given, str):
        return ops.relu if arguments.choice(owner, "activation", given, ("relu", "gelu")) == "relu" else ops.gelu
    if not callable(given):
        raise ValueError(f"{owner}: activation must be a name, a function or a Cell, not {given!r}")
    return given


class TransformerEncoderLayer(Cell):
    """Self-attention and two dense layers, each with a shortcut, followed by a layer normalisation,
    or preceded by it with `norm_first`.

    Args:
        d_model (int): The number of features.
        nhead (int): The number of heads.
        dim_feedforward (int): The width of the inner dense layer. Default: 2048.
        dropout (float): The probability with which elements are dropped in training. Default: 0.1.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): "relu", "gelu", a function or a
            Cell. Default: "relu".
        layer_norm_eps (float): Added to variances. Default: 1e-05.
        batch_first (bool): Whether the batch comes before the length. Default: False.
        norm_first (bool): Whether the layer normalisation comes before its part instead of after
            it. Default: False.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError, ValueError: For arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.TransformerEncoderLayer(8, 2, 16)(ms.ops.ones((5, 2, 8))).shape
        (5, 2, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        self.norm_first = bool(norm_first)
        self.activation = _activation("TransformerEncoderLayer", activation)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=bool(batch_first), dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)

    def construct(self, src: Tensor, src_mask: MaybeTensor = None, src_key_padding_mask: MaybeTensor = None) -> Tensor:
        """Return the encoded sequence."""
        if self.norm_first:
            src = src + self._attention(self.norm1(src), src_mask, src_key_padding_mask)
            return src + self._feed_forward(self.norm2(src))
        src = self.norm1(src + self._attention(src, src_mask, src_key_padding_mask))
        return self.norm2(src + self._feed_forward(src))

    def _attention(self, x: Tensor, mask: MaybeTensor, padding: MaybeTensor) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask)[0])

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.dense2(self.dropout(self.activation(self.dense1(x)))))


class TransformerDecoderLayer(Cell):
    """Self-attention, attention to the encoder's results (`memory`), and two dense layers, each
    with a shortcut and a layer normalisation after it, or before it with `norm_first`.

    Args:
        d_model (int): The number of features.
        nhead (int): The number of heads.
        dim_feedforward (int): The width of the inner dense layer. Default: 2048.
        dropout (float): The probability with which elements are dropped in training. Default: 0.1.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): "relu", "gelu", a function or a
            Cell. Default: "relu".
        layer_norm_eps (float): Added to variances. Default: 1e-05.
        batch_first (bool): Whether the batch comes before the length. Default: False.
        norm_first (bool): Whether the layer normalisation comes before its part instead of after
            it. Default: False.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> layer = ms.nn.TransformerDecoderLayer(8, 2, 16)
        >>> layer(ms.ops.ones((3, 2, 8)), ms.ops.ones((5, 2, 8))).shape
        (3, 2, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        self.norm_first = bool(norm_first)
        self.activation = _activation("TransformerDecoderLayer", activation)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=bool(batch_first), dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=bool(batch_first), dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm3 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)
        self.dropout3 = Dropout(p=dropout)

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: MaybeTensor = None,
        memory_mask: MaybeTensor = None,
        tgt_key_padding_mask: MaybeTensor = None,
        memory_key_padding_mask: MaybeTensor = None,
    ) -> Tensor:
        """Return the decoded sequence of the target `tgt` and the encoder's results `memory`.

        Args:
            tgt (Tensor): The target, (length, batch, features) or with `batch_first` (batch,
                length, features).
            memory (Tensor): The results of the encoder, of the form of the target.
            tgt_mask (MaybeTensor): The mask of the target's self-attention. Default: None.
            memory_mask (MaybeTensor): The mask of the attention to the encoder's results. Default:
                None.
            tgt_key_padding_mask (MaybeTensor): Which elements of the target are padding. Default:
                None.
            memory_key_padding_mask (MaybeTensor): Which elements of the encoder's results are
                padding. Default: None.

        Returns:
            Tensor: The decoded sequence, of the shape of `tgt`.
        """
        if self.norm_first:
            tgt = tgt + self._attention(self.norm1(tgt), tgt_mask, tgt_key_padding_mask)
            tgt = tgt + self._look(self.norm2(tgt), memory, memory_mask, memory_key_padding_mask)
            return tgt + self._feed_forward(self.norm3(tgt))
        tgt = self.norm1(tgt + self._attention(tgt, tgt_mask, tgt_key_padding_mask))
        tgt = self.norm2(tgt + self._look(tgt, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(tgt + self._feed_forward(tgt))

    def _attention(self, x: Tensor, mask: MaybeTensor, padding: MaybeTensor) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask)[0])

    def _look(self, x: Tensor, memory: Tensor, mask: MaybeTensor, padding: MaybeTensor) -> Tensor:
        return self.dropout2(self.multihead_attn(x, memory, memory, padding, False, mask)[0])

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout3(self.dense2(self.dropout(self.activation(self.dense1(x)))))


def _copies(owner: str, layer: Any, count: int) -> CellList:
    arguments.instance(owner, "the layer", layer, Cell)
    return CellList(
        [
            copy.deepcopy(layer)
            for _ in range(one_by_one(owner, "layers", arguments.integer(owner, "num_layers", count, 1)))
        ]
    )


class TransformerEncoder(Cell):
    """A chain of `num_layers` copies of an encoder layer, followed by `norm`.

    >>> import mycel as ms
    >>> layer = ms.nn.TransformerEncoderLayer(8, 2, 16)
    >>> ms.nn.TransformerEncoder(layer, 2)(ms.ops.ones((5, 2, 8))).shape
    (5, 2, 8)
    """

    def __init__(self, encoder_layer: Any, num_layers: Any, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(self, src: Tensor, src_mask: MaybeTensor = None, src_key_padding_mask: MaybeTensor = None) -> Tensor:
        """Return the encoded sequence."""
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """A chain of `num_layers` copies of a decoder layer, followed by `norm`.

    >>> import mycel as ms
    >>> layer = ms.nn.TransformerDecoderLayer(8, 2, 16)
    >>> ms.nn.TransformerDecoder(layer, 2)(ms.ops.ones((3, 2, 8)), ms.ops.ones((5, 2, 8))).shape
    (3, 2, 8)
    """

    def __init__(self, decoder_layer: Any, num_layers: Any, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: MaybeTensor = None,
        memory_mask: MaybeTensor = None,
        tgt_key_padding_mask: MaybeTensor = None,
        memory_key_padding_mask: MaybeTensor = None,
    ) -> Tensor:
        """Return the decoded sequence of the target `tgt` and the encoder's results `memory`.

        Args:
            tgt (Tensor): The target, (length, batch, features) or with `batch_first` (batch,
                length, features).
            memory (Tensor): The results of the encoder, of the form of the target.
            tgt_mask (MaybeTensor): The mask of the target's self-attention. Default: None.
            memory_mask (MaybeTensor): The mask of the attention to the encoder's results. Default:
                None.
            tgt_key_padding_mask (MaybeTensor): Which elements of the target are padding. Default:
                None.
            memory_key_padding_mask (MaybeTensor): Which elements of the encoder's results are
                padding. Default: None.

        Returns:
            Tensor: The decoded sequence, of the shape of `tgt`.
        """
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """An encoder of the source and a decoder of the target (Vaswani et al., 2017), each followed by
    a layer normalisation.

    Weights of two and more dimensions start as XavierUniform.

    Args:
        d_model (int): The number of features. Default: 512.
        nhead (int): The number of heads. Default: 8.
        num_encoder_layers (int): The number of layers of the encoder. Default: 6.
        num_decoder_layers (int): The number of layers of the decoder. Default: 6.
        dim_feedforward (int): The width of the inner dense layer. Default: 2048.
        dropout (float): The probability with which elements are dropped in training. Default: 0.1.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): "relu", "gelu", a function or a
            Cell. Default: "relu".
        custom_encoder (Cell | None): An encoder to use instead. Default: None.
        custom_decoder (Cell | None): A decoder to use instead. Default: None.
        layer_norm_eps (float): Added to variances. Default: 1e-05.
        batch_first (bool): Whether the batch comes before the length. Default: False.
        norm_first (bool): Whether the layer normalisation comes before its part instead of after
            it. Default: False.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        ValueError: If source and target do not have `d_model` features and the same batch.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.Transformer(8, 2, 1, 1, 16)
        >>> net(ms.ops.ones((5, 2, 8)), ms.ops.ones((3, 2, 8))).shape
        (3, 2, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Cell | None = None,
        custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__()
        given = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*given), num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*given), num_decoder_layers, norm)
        for p in self.get_parameters():
            if p.ndim > 1:
                p.set_data(initializer(XavierUniform(), p.shape, p.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: MaybeTensor = None,
        tgt_mask: MaybeTensor = None,
        memory_mask: MaybeTensor = None,
        src_key_padding_mask: MaybeTensor = None,
        tgt_key_padding_mask: MaybeTensor = None,
        memory_key_padding_mask: MaybeTensor = None,
    ) -> Tensor:
        """Return the decoded target, given the source `src` and the target `tgt`.

        Args:
            src (Tensor): The source, (length, batch, features) or with `batch_first` (batch,
                length, features).
            tgt (Tensor): The target, (length, batch, features) or with `batch_first` (batch,
                length, features).
            src_mask (MaybeTensor): The mask of the source's self-attention. Default: None.
            tgt_mask (MaybeTensor): The mask of the target's self-attention. Default: None.
            memory_mask (MaybeTensor): The mask of the attention to the encoder's results. Default:
                None.
            src_key_padding_mask (MaybeTensor): Which elements of the source are padding. Default:
                None.
            tgt_key_padding_mask (MaybeTensor): Which elements of the target are padding. Default:
                None.
            memory_key_padding_mask (MaybeTensor): Which elements of the encoder's results are
                padding. Default: None.

        Returns:
            Tensor: The decoded sequence, of the shape of `tgt`.
        """
        src = input_of(self, src)
        tgt = input_of(self, tgt)
        axis = 0 if self.batch_first else 1
        if src.ndim not in (2, 3) or src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[axis] != tgt.shape[axis]):
            raise ValueError(
                f"Transformer: src and tgt must have 2 or 3 dimensions and one batch; their shapes are {src.shape} and "
                f"{tgt.shape}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(
                f"Transformer: src and tgt must have {self.d_model} features; their shapes are {src.shape} and "
                f"{tgt.shape}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)

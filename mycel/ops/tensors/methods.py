"""The methods of tensors that compute, attached when `mycel.ops` is imported.

Most are the functions of `mycel.ops` themselves, whose first parameter is the tensor. The others
differ from the function of their name: they accept both of MindSpore's spellings
(``axis``/``keepdims`` and ``dim``/``keepdim``), take sizes as separate arguments, or return one
value where the function returns two.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import indexing, views
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.mask_indices import is_open
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel._src.tensors.core.view_cache import indexing as by_routes
from mycel._src.tensors.core.view_cache import viewing
from mycel.ops import (
    activation,
    arrange,
    array,
    bessel,
    blocks,
    complex_numbers,
    creation,
    elementwise,
    gather_scatter,
    logic,
    masked_selection,
    math,
    pairwise,
    properties,
    reduction,
    removable_singularities,
    segments,
    sorting,
    special,
    splits,
)
from mycel.ops import variants as extended
from mycel.ops._operands import (
    axis_of,
    check_sizes,
    flat,
    operand,
    reshaped,
    run,
    shape_of,
)
from mycel.ops.algebra import decompositions, diagonals, linalg, linear_systems
from mycel.ops.sparse import sparse_matrices as sparse
from mycel.ops.tensors import attributes as tensor_attributes
from mycel.ops.tensors import in_place_methods as tensor_writes
from mycel.ops.tensors import indexing_methods as tensor_positions
from mycel.ops.tensors import reductions as tensor_reductions
from mycel.ops.tensors.signatures import OTHER_NAMES, SPELLINGS, also_named, as_method, bound

# Functions whose first parameter is the tensor and whose others agree with the method's.
_SAME: dict[Any, str] = {
    elementwise: """abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
        atan2 atanh ceil cos cosh digamma div divide eq erf erfc erfinv exp exp2 expm1 floor floor_divide fmod ge
        greater greater_equal gt inv isfinite isinf isnan le less less_equal lgamma log log10 log1p log2 lt maximum
        minimum mul multiply ne neg negative not_equal positive pow reciprocal remainder round rsqrt sigmoid sign sin
        sinh sqrt square sub subtract tan tanh true_divide trunc""",
    logic: """bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor invert logical_and
        logical_not logical_or logical_xor""",
    math: """addcdiv addcmul approximate_equal clamp clip copysign deg2rad float_power fmax fmin frac gcd heaviside
        isclose isneginf isposinf isreal lcm ldexp lerp logaddexp logaddexp2 logit nan_to_num rad2deg sgn signbit""",
    removable_singularities: "hypot sinc xdivy xlogy",
    complex_numbers: "angle conj imag real",
    decompositions: "cholesky eigvals geqrf orgqr svd",
    linear_systems: """cholesky_inverse cholesky_solve det inverse log_matrix_determinant logdet lstsq lu_solve
        matrix_determinant slogdet""",
    pairwise: "cov",
    bessel: "i0",
    blocks: "col2im nextafter renorm",
    diagonals: "diagflat diagonal_scatter",
    special: "igamma igammac mvlgamma",
    activation: "hardshrink relu soft_shrink",
    reduction: "amax amin aminmax nanmean",
    linalg: "addbmm addmm addmv addr baddbmm bmm cross dot ger inner kron matmul matrix_power mm outer",
    array: "adjoint expand_as expand_dims moveaxis movedim ravel swapaxes swapdims t view_as",
    splits: "chunk dsplit hsplit split tensor_split unbind vsplit",
    arrange: "diag diagonal flip fliplr flipud narrow repeat_interleave reverse roll rot90 tril triu",
    properties: "is_complex is_floating_point type_as",
    gather_scatter: """gather_elements gather_nd index_fill index_select inplace_update scatter select_scatter
        slice_scatter""",
    masked_selection: "argwhere masked_fill masked_scatter masked_select nonzero",
    segments: "unsorted_segment_max unsorted_segment_min unsorted_segment_prod unique_consecutive",
    sorting: "bincount cummax cummin cumprod diff histc logcumsumexp msort nanmedian nanquantile quantile top_k topk",
}
_RENAMED = {
    "scatter_sub": gather_scatter.tensor_scatter_sub,
    "scatter_mul": gather_scatter.tensor_scatter_mul,
    "scatter_div": gather_scatter.tensor_scatter_div,
    "scatter_max": gather_scatter.tensor_scatter_max,
    "scatter_min": gather_scatter.tensor_scatter_min,
    "unsqueeze": array.unsqueeze,
    "unsorted_segment_sum": segments.unsorted_segment_sum,
    "fill": creation.fills,
    "fills": creation.fills,
    "fill_diagonal": extended.fill_diagonal,
    "unique_with_pad": extended.unique_with_pad,
    "to_coo": sparse.dense_to_sparse_coo,
    "to_csr": sparse.dense_to_sparse_csr,
}


def _named(method: Any, name: str, text: str) -> Any:
    """Return a method with its name and docstring."""
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", text
    return method


def _qr(self: Tensor, some: bool = True) -> Any:
    """Return orthonormal columns Q and upper triangular R whose product is the matrix.

    Q is square unless `some`. See `mycel.ops.qr`.
    """
    arguments.flag("qr", "some", some)
    return decompositions.qr(self, "reduced" if some else "complete")


def _ormqr(self: Tensor, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """Return a tensor multiplied by the product Q of reflections, whose vectors this one holds, as
    `mycel.ops.geqrf` gives them.

    Args:
        input2 (Tensor): The factors of the reflections.
        input3 (Tensor): What is multiplied.
        left (bool): Whether the product comes from the left instead of the right. Default: True.
        transpose (bool): Whether it is Q^H. Default: False.

    Returns:
        Tensor: The product, of the shape of what is multiplied.
    """
    arguments.flag("ormqr", "left", left)
    arguments.flag("ormqr", "transpose", transpose)
    return decompositions.ormqr(self, input2, input3, left, transpose)


def _triangular_solve(
    self: Tensor, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the solution x of the triangular system A x = this tensor, or A^T x = this tensor with
    `transpose`, and A.

    Args:
        A (Tensor): The triangular matrix.
        upper (bool): Whether it is an upper triangle. Default: True.
        transpose (bool): Whether A^T is meant. Default: False.
        unitriangular (bool): Whether the diagonal counts as ones. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The solution, and A.
    """
    return linear_systems.triangular_solve(self, A, upper, transpose, unitriangular)


# Shapes.


def _sizes(given: tuple[Any, ...]) -> Any:
    """Return sizes that are given as one sequence or as separate arguments."""
    return given[0] if len(given) == 1 and not isinstance(given[0], builtins.int) else given


@viewing
def _reshape(self: Tensor, *shape: Any) -> Tensor:
    """Return the same elements under another shape, given as one sequence or as sizes.

    See `mycel.ops.reshape`.
    """
    return array.reshape(self, _sizes(shape))


@viewing
def _view(self: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """Return the same elements under another shape, or, for an element type, a tensor of the same
    bytes as numbers of that type, whose last size fits them.

    Raises ValueError where the last axis has no whole number of them.
    """
    if dtype is not None and shape:
        raise TypeError("view: give a shape or dtype, and not both")
    kind = shape[0] if len(shape) == 1 else dtype
    if isinstance(kind, D.DType):
        return tensor_attributes.as_bytes_of(self, kind)
    return array.reshape(self, _sizes(shape))


def _reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the same elements under the shape of another tensor."""
    return array.reshape(self, operand("reshape_as", other).shape)


def _resize(self: Tensor, *new_shape: Any) -> Tensor:
    """Return the elements in order under another shape: the first ones, or followed by zeros."""
    shape = shape_of("resize", _sizes(new_shape))
    count = product(check_sizes("resize", shape))
    line = flat(self)
    if count <= self.size:
        return reshaped(line[:count], shape)
    return reshaped(arrange.pad(line, (0, count - self.size)), shape)


@viewing
def _transpose(self: Tensor, *axes: Any, **named: Any) -> Tensor:
    """Return the tensor with its axes in another order.

    ``transpose()`` reverses them, ``transpose(dim0, dim1)`` exchanges two, and a permutation is
    given as one sequence or, for tensors of other than two dimensions, as separate numbers.
    """
    if named:
        axes = tuple(bound("transpose", ("dim0", "dim1"), axes, named))
    if not axes or axes == (None,):
        return views.permuted(self, tuple(reversed(builtins.range(self.ndim))))
    if len(axes) == 1:
        return array.transpose(self, axes if isinstance(axes[0], int) else axes[0])
    return array.swapaxes(self, *axes) if len(axes) == 2 else array.transpose(self, axes)


@viewing
def _permute(self: Tensor, *axis: Any, **named: Any) -> Tensor:
    """Return the tensor with its axes in another order, given as one sequence, which may be named
    `dims`, or as numbers.

    See `mycel.ops.permute`.
    """
    return array.permute(self, _sizes(tuple(bound("permute", ("dims",), axis, named)) if named else axis))


@viewing
def _flatten(self: Tensor, order: Any = "C", *more: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with the axes from `start_dim` (0) to `end_dim` joined into one.

    Args:
        order (str): "C" is row-major; "F" reverses the axes first. Default: "C".
        *more (Any): `end_dim`, where `start_dim` is given by position instead of `order`.
        start_dim (int): The first axis; 0 unless given. Default: 0.
        end_dim (int): The last axis. Default: -1.

    Returns:
        Tensor: The same elements.
    """
    if isinstance(order, builtins.int):
        start_dim, end_dim, order = order, more[0] if more else end_dim, "C"
    if self.ndim < 2:
        return array.ravel(self)
    return array.flatten(self, order, start_dim=start_dim, end_dim=end_dim)


@viewing
def _squeeze(self: Tensor, axis: Any = tensor_reductions.UNSET, *, dim: Any = tensor_reductions.UNSET) -> Tensor:
    """Return the tensor without axes of size 1. See `mycel.ops.squeeze`."""
    return array.squeeze(self, tensor_reductions.axes("squeeze", axis, dim))


def _broadcast_to(self: Tensor, *shape: Any) -> Tensor:
    """Return the tensor broadcast to a shape, given as one sequence or as sizes.

    See `mycel.ops.broadcast_to`.
    """
    return array.broadcast_to(self, _sizes(shape))


def _tile(self: Tensor, *given: Any, reps: Any = None, dims: Any = None) -> Tensor:
    """Return the tensor repeated along its axes. See `mycel.ops.tile`."""
    named = [counts for counts in (reps, dims) if counts is not None]
    if len(named) + bool(given) != 1:
        raise TypeError("tile: give the numbers of repetitions once, as sizes, as reps or as dims")
    return arrange.tile(self, _sizes(given) if given else named[0])


def _repeat(self: Tensor, *repeats: Any) -> Tensor:
    """Return the tensor repeated along its axes, as `tile`, with at least one number for
    each axis.
    """
    counts = shape_of("repeat", _sizes(repeats))
    if len(counts) < self.ndim:
        raise ShapeError(
            f"repeat: {len(counts)} numbers for {self.ndim} dimensions; use repeat_interleave to repeat elements"
        )
    return arrange.tile(self, counts)


def _sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Return sums of the tensor that have a shape which broadcasts to its own."""
    shape = shape_of("sum_to_size", _sizes(size))
    if len(shape) > self.ndim or broadcast_shapes(shape, self.shape) != self.shape:
        raise ShapeError(f"sum_to_size: {shape} does not broadcast to {self.shape}")
    extra = self.ndim - len(shape)
    axes = tuple(i for i in builtins.range(self.ndim) if i < extra or shape[i - extra] != self.shape[i])
    return reshaped(run(R.reduce_sum, self, axes=axes, keepdims=False), shape) if axes else self


# Types.


@fused
def _astype(self: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """Return the same values in another element type; `float` is float64, as in NumPy.

    Raises TypeError where `dtype` is no type.
    """
    kind = D.float64 if dtype is float or dtype == "float" else D.from_any(dtype)
    return (
        run(E.identity if self.dtype is kind else E.cast, self, **({} if self.dtype is kind else {"dtype": kind}))
        if copy
        else cast(self, kind)
    )


def _to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    other: Tensor | None = None,
) -> Tensor:
    """Return the same values in another element type, given as a type or by a tensor that has it.

    Args:
        *args (Any): A type or a tensor, and `non_blocking` and `copy`.
        dtype (DType | None): The type. Default: None.
        device (str | None): Must be the CPU. Default: None.
        non_blocking (bool): Has no effect. Default: False.
        copy (bool): Whether the result is always a new tensor. Default: False.
        other (Tensor | None): A tensor that has the type. Default: None.

    Returns:
        Tensor: The same values.
    """
    for given in args if other is None else (*args, other):
        if isinstance(given, Tensor):
            dtype = given.dtype
        elif isinstance(given, builtins.str) and given.lower().split(":")[0] in ("cpu", "gpu", "cuda", "ascend", "npu"):
            device = given
        elif not isinstance(given, builtins.bool):
            dtype = given
    if device is not None and not builtins.str(device).lower().startswith("cpu"):
        raise ValueError(f"to: device {device!r} is not available in this build; use 'CPU'")
    result = self if dtype is None else cast(self, D.from_any(dtype))
    return run(E.identity, result) if copy and result is self else result


def _type(self: Tensor, dtype: Any = None) -> Any:
    """Return the name of the element type, or the same values in another."""
    return builtins.str(self.dtype) if dtype is None else properties.cast(self, dtype)


def _product(name: str, reflected: bool) -> Any:
    """Return the method `name` of the matrix product, with the operands exchanged if
    `reflected`.
    """

    def compute(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, np.ndarray, list, tuple)):
            return NotImplemented
        return linalg.matmul(other, self) if reflected else linalg.matmul(self, other)

    return _named(compute, name, "Return the matrix product.")


def _convert(name: str, kind: D.DType) -> Any:
    """Return the method `name` that converts to an element type."""
    return _named(lambda self: cast(self, kind), name, f"Return the same values as {kind.name}.")


def _copy(self: Tensor) -> Tensor:
    """Return a tensor of its own with the same values."""
    return run(E.identity, self)


def _reversed_sequences(self: Tensor, seq_lengths: Any, seq_dim: int = 0, batch_dim: int = 0) -> Tensor:
    """Return the tensor with its first elements along an axis in reverse order, as many as
    `seq_lengths` says.

    See `mycel.ops.reverse_sequence`.
    """
    return blocks.reverse_sequence(self, seq_lengths, seq_dim, batch_dim)


def _itself(name: str, text: str) -> Any:
    """Return the method `name` that returns the tensor itself."""
    return _named(lambda self: self, name, text)


def _value(self: Tensor) -> Tensor:
    """Return the tensor itself, or a tensor that shares the values of a parameter."""
    return self if type(self) is Tensor else views.whole(self)


def _is_contiguous(self: Tensor) -> bool:
    """Return True: elements always lie in row-major order."""
    return True


def _is_signed(self: Tensor) -> bool:
    """Return whether the element type has a sign."""
    return self.dtype.is_signed


def _dim(self: Tensor) -> int:
    """Return the number of dimensions."""
    return self.ndim


def _numel(self: Tensor) -> Any:
    """Return the number of elements."""
    return self.size


def _stride(self: Tensor, dim: int | None = None) -> Any:
    """Return the number of elements from one to the next along each dimension, or along `dim`."""
    steps = [s // self.itemsize for s in self.strides]
    return steps if dim is None else steps[axis_of("stride", dim, self.ndim)]


def _unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements (or parts along `dim`) in increasing order.

    Args:
        sorted (bool): Has no effect: elements are in order always. Default: True.
        return_inverse (bool): Whether positions in the result are returned, int64. Default: False.
        return_counts (bool): Whether counts are returned, int64. Default: False.
        dim (int | None): The axis of the parts; None for all elements. Default: None.

    Returns:
        Tensor | tuple[Tensor, ...]: The elements, and what else is asked for.
    """
    arguments.flag("unique", "return_inverse", return_inverse)
    if dim is None and is_open(self):
        values, inverse, counts, _ = segments.distinct(self)
        further = [t for t, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
        return (values, *further) if further else values
    if dim is not None:
        dim = axis_of("unique", dim, self.ndim)
    _, first, places, numbers = np.unique(
        self.asnumpy(), return_index=True, return_inverse=True, return_counts=True, axis=dim
    )
    places = places.reshape(self.shape if dim is None else (-1,))
    x, axis = (flat(self), 0) if dim is None else (self, dim)
    extra = [Tensor(a.astype(np.int64)) for a, wanted in ((places, return_inverse), (numbers, return_counts)) if wanted]
    found = run(I.take, x, Tensor(first), axis=axis)
    return (found, *extra) if extra else found


def _equal(self: Tensor, other: Any) -> Tensor:
    """Return whether elements are equal. See `mycel.ops.equal`."""
    return elementwise.equal(self, other)


def _allclose(self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are close (`mycel.ops.isclose`).

    Args:
        other (Tensor): The elements y.
        rtol (float): The tolerance relative to y. Default: 1e-05.
        atol (float): The absolute tolerance. Default: 1e-08.
        equal_nan (bool): Whether NaN is close to NaN. Default: False.

    Returns:
        bool: Whether all are close.
    """
    return bool(reduction.all(math.isclose(self, other, rtol, atol, equal_nan)))


def _trace(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Return the sum of a diagonal of the matrices over two axes.

    Args:
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        axis1 (int): The axis of the rows. Default: 0.
        axis2 (int): The axis of the columns. Default: 1.
        dtype (DType | None): The type to add in; None for that of the tensor, or int64 of integers
            other than uint64. Default: None.

    Returns:
        Tensor: The sums; of booleans, by default, whether any holds.
    """
    line = arrange.diagonal(self, offset, axis1, axis2)
    if dtype is None and line.dtype.is_integer and line.dtype is not D.uint64:
        dtype = D.int64
    line = line if dtype is None else properties.cast(line, dtype)
    return run(R.reduce_any if line.dtype is D.bool_ else R.reduce_sum, line, axes=(line.ndim - 1,), keepdims=False)


def _new(name: str) -> Any:
    """Return the method that makes a tensor by a function of `mycel.ops`, in the type of the
    tensor.
    """
    function = getattr(creation, name)

    def method(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None) -> Tensor:
        if size is not None:
            if sizes:
                raise TypeError(f"new_{name}: the size is given twice, as {size!r} and as {sizes!r}")
            sizes = (size,)
        if len(sizes) > 1 and dtype is None and isinstance(sizes[-1], D.DType):
            sizes, dtype = sizes[:-1], sizes[-1]
        shape = check_sizes(f"new_{name}", shape_of(f"new_{name}", _sizes(tuple(sizes))))
        return function(shape, self.dtype if dtype is None else dtype)

    text = f"Return `mycel.ops.{name}` of the sizes, one by one or as `size`, in the type of the tensor unless"
    return _named(method, f"new_{name}", f"{text}\n`dtype` is given.")


def _new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Return `mycel.ops.full` in the type of the tensor unless `dtype` is given."""
    return creation.full(size, fill_value, dtype=self.dtype if dtype is None else dtype)


def _property(name: str, compute: Callable[[Any], Any], text: str) -> None:
    """Attach a property to tensors."""
    setattr(Tensor, name, property(compute, doc=text))


@viewing
def _kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the k-th smallest values along `dim`, k counting from 1, and their positions (int64),
    as ``(values, indices)``.

    Raises TypeError for a `k`, `dim` or `keepdim` of another type, ValueError for a `k` beyond the
    axis.

    >>> import mycel as ms
    >>> ms.Tensor([[3.0, 1.0, 2.0]]).kthvalue(2).values.tolist()
    [2.0]
    """
    for name, value in (("k", k), ("dim", dim)):
        arguments.integer("kthvalue", name, value, numpy=False)
    arguments.flag("kthvalue", "keepdim", keepdim)
    return sorting.kthvalue(self, k, dim, keepdim)


def _reversed_axes(self: Tensor) -> Tensor:
    """Return the tensor with its axes in reverse order."""
    return views.permuted(self, tuple(reversed(builtins.range(self.ndim))))


_METHODS: dict[str, Any] = {
    **tensor_reductions.methods,
    **tensor_positions.methods,
    "reshape": _reshape,
    "view": _view,
    "reshape_as": _reshape_as,
    "resize": _resize,
    "transpose": _transpose,
    "permute": _permute,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "broadcast_to": _broadcast_to,
    "expand": _broadcast_to,
    "tile": _tile,
    "add": tensor_writes.added,
    "sub": tensor_writes.subtracted,
    "repeat": _repeat,
    "sum_to_size": _sum_to_size,
    "astype": _astype,
    "to": _to,
    "type": _type,
    "copy": _copy,
    "clone": _copy,
    "contiguous": _itself("contiguous", "Return the tensor itself: elements always lie in row-major order."),
    "value": _value,
    "is_contiguous": _is_contiguous,
    "is_signed": _is_signed,
    "dim": _dim,
    "ndimension": _dim,
    "numel": _numel,
    "nelement": _numel,
    "stride": _stride,
    "qr": _qr,
    "ormqr": _ormqr,
    "triangular_solve": _triangular_solve,
    "unique": _unique,
    "equal": _equal,
    "allclose": _allclose,
    "trace": _trace,
    "new_zeros": _new("zeros"),
    "new_ones": _new("ones"),
    "new_empty": _new("empty"),
    "new_full": _new_full,
    "reverse_sequence": _reversed_sequences,
    "kthvalue": _kthvalue,
}
_CONVERSIONS = {
    "float": D.float32,
    "half": D.float16,
    "double": D.float64,
    "bfloat16": D.bfloat16,
    "int": D.int32,
    "long": D.int64,
    "short": D.int16,
    "byte": D.uint8,
    "bool": D.bool_,
}


def _attach() -> None:
    """Give tensors their methods and properties."""
    for name, method in (("__getitem__", by_routes(indexing.get)), ("__setitem__", indexing.put)):
        setattr(Tensor, name, method)
    for module, names in _SAME.items():
        for name in names.split():
            setattr(Tensor, name, as_method(getattr(module, name), OTHER_NAMES.get(name)))
    for name, function in _RENAMED.items():
        setattr(Tensor, name, as_method(function))
    tensor_writes.attach(tensor_positions.written)
    tensor_attributes.attach()
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
    for name, others in SPELLINGS.items():
        setattr(Tensor, name, also_named(getattr(Tensor, name), others))
    for name, kind in _CONVERSIONS.items():
        setattr(Tensor, name, _convert(name, kind))
    for name, order in (("__matmul__", False), ("__rmatmul__", True)):
        setattr(Tensor, name, _product(name, order))
    _property("T", _reversed_axes, "The axes in reverse order.")
    _property("mT", lambda self: array.swapaxes(self, -1, -2), "The last two axes exchanged.")
    _property("H", lambda self: _reversed_axes(complex_numbers.conj(self)), "The matrix transposed and conjugated.")
    _property("mH", lambda self: array.adjoint(self), "The last two axes exchanged, and complex numbers conjugated.")
    _property("device", lambda self: "CPU", "Where the tensor lies: 'CPU'.")
    if not isinstance(getattr(Tensor, "data", None), property):
        _property("data", lambda self: self, "The tensor itself.")


_attach()

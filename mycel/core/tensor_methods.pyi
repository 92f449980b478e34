"""What tensors get from the public libraries, for editors and type checkers. `make stubs` writes this file."""

import builtins
from collections.abc import Callable, Sequence
from mycel.core.hooks import TensorHookHandle
from mycel.core.storage import UntypedStorage
from mycel.core.tensor import Tensor
from mycel.ops.sparse.tensors import COOTensor, CSRTensor
from typing import Any, Optional, Union

class TensorMethods:
    """What tensors get from the public libraries."""

    @property
    def H(self) -> Any:
        """A matrix transposed and conjugated."""

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""

    def abs(self) -> Tensor:
        """The absolute value of each element; of complex numbers in the type of their parts."""

    def absolute(self) -> Tensor:
        """The absolute value of each element."""

    def acos(self) -> Tensor:
        """The arc cosine of each element."""

    def acosh(self) -> Tensor:
        """The inverse hyperbolic cosine of each element."""

    def add(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return ``self + alpha * other``. See `mycel.ops.add`."""

    def add_(self, other: Any) -> Tensor:
        """The tensor itself, after writing the result of `add` into it."""

    def addbmm(self, batch1: Any, batch2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``."""

    def addcdiv(self, tensor1: Any, tensor2: Any, value: Any = ...) -> Tensor:
        """Return ``input + value * tensor1 / tensor2``."""

    def addcmul(self, tensor1: Any, tensor2: Any, value: Any = ...) -> Tensor:
        """Return ``input + value * tensor1 * tensor2``."""

    def addmm(self, mat1: Any, mat2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * (mat1 @ mat2)``."""

    def addmm_(self, mat1: Any, mat2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """The tensor itself, after writing the result of `addmm` into it."""

    def addmv(self, mat: Any, vec: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * (mat @ vec)``."""

    def addr(self, vec1: Any, vec2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * x + alpha * outer(vec1, vec2)``."""

    def adjoint(self) -> Tensor:
        """Return the last two axes exchanged, and complex numbers conjugated."""

    def all(
        self,
        axis: Any = ...,
        keep_dims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keepdims: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.all`."""

    def allclose(
        self,
        other: Any,
        rtol: builtins.float = ...,
        atol: builtins.float = ...,
        equal_nan: builtins.bool = ...,
    ) -> builtins.bool:
        """Return whether all elements are close (`mycel.ops.isclose`). It needs the values."""

    def amax(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        initial: Any = ...,
        where: Any = ...,
    ) -> Tensor:
        """Return the largest element over `axis` (None: all axes), and of `initial`; only of
        those where `where` holds. NaN wins."""

    def amin(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        initial: Any = ...,
        where: Any = ...,
    ) -> Tensor:
        """Return the smallest element over `axis` (None: all axes), and of `initial`; only of
        those where `where` holds. NaN wins."""

    def aminmax(
        self,
        *,
        axis: Optional[builtins.int] = ...,
        keepdims: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest element over `axis` (None: all axes)."""

    def angle(self) -> Tensor:
        """Return the angle of each element in radians: of a complex number in (-pi, pi]; 0 or pi
        for a real one, NaN for NaN."""

    def any(
        self,
        axis: Any = ...,
        keep_dims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keepdims: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.any`."""

    def approximate_equal(self, other: Any, tolerance: builtins.float = ...) -> Tensor:
        """Return whether ``|x - y| < tolerance``."""

    def arccos(self) -> Tensor:
        """The arc cosine of each element."""

    def arccosh(self) -> Tensor:
        """The inverse hyperbolic cosine of each element."""

    def arcsin(self) -> Tensor:
        """The arc sine of each element."""

    def arcsinh(self) -> Tensor:
        """The inverse hyperbolic sine of each element."""

    def arctan(self) -> Tensor:
        """The arc tangent of each element."""

    def arctan2(self, other: Any) -> Tensor:
        """The angle of the point (other, input) in (-pi, pi]."""

    def arctanh(self) -> Tensor:
        """The inverse hyperbolic tangent of each element."""

    def argmax(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.argmax`."""

    def argmax_with_value(self, axis: builtins.int = ..., keep_dims: builtins.bool = ...) -> Any:
        """Return the largest element along an axis, and its position."""

    def argmin(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.argmin`."""

    def argmin_with_value(self, axis: builtins.int = ..., keep_dims: builtins.bool = ...) -> Any:
        """Return the smallest element along an axis, and its position."""

    def argsort(
        self,
        axis: Any = ...,
        descending: builtins.bool = ...,
        *,
        dim: Any = ...,
        stable: builtins.bool = ...,
    ) -> Any:
        """See `mycel.ops.argsort`; sorting is stable in any case."""

    def argwhere(self) -> Tensor:
        """Return the int64 positions of the elements that are not 0, one row each."""

    def asin(self) -> Tensor:
        """The arc sine of each element."""

    def asinh(self) -> Tensor:
        """The inverse hyperbolic sine of each element."""

    def assign_value(self, value: Any) -> Tensor:
        """Return the tensor itself, after taking the values, the shape and the type of another;
        of a tensor with views and of a parameter only those that fit."""

    def assign_value_cpp(self, value: Tensor) -> Tensor:
        """Take over a copy of another tensor's value, shape and type, and return the tensor."""

    def astype(self, dtype: Any, copy: builtins.bool = ...) -> Tensor:
        """Return the same values in another element type; `float` is float64, as in NumPy."""

    def atan(self) -> Tensor:
        """The arc tangent of each element."""

    def atan2(self, other: Any) -> Tensor:
        """The angle of the point (other, input) in (-pi, pi]."""

    def atanh(self) -> Tensor:
        """The inverse hyperbolic tangent of each element."""

    def baddbmm(self, batch1: Any, batch2: Any, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * batch1 @ batch2``, of stacks of matrices, or of two
        matrices."""

    def bernoulli(self, *, generator: Any = ...) -> Tensor:
        """Return 1 with the probability that each element names and else 0, in the tensor's
        type."""

    def bernoulli_(self, p: Any = ..., *, generator: Any = ...) -> Tensor:
        """The tensor itself, after writing random numbers into it; from `generator` or the
        default one."""

    def bfloat16(self) -> Any:
        """The same values as bfloat16."""

    def bincount(self, weights: Any = ..., minlength: builtins.int = ...) -> Tensor:
        """Return how often each number 0, 1, ... occurs (float32), or the sum of the weights
        with it."""

    def bitwise_and(self, other: Any) -> Tensor:
        """The bits that are set in both."""

    def bitwise_left_shift(self, other: Any) -> Tensor:
        """The bits moved up by as many places."""

    def bitwise_not(self) -> Tensor:
        """Return all bits inverted; logical not for booleans. TypeError for other types."""

    def bitwise_or(self, other: Any) -> Tensor:
        """The bits that are set in either."""

    def bitwise_right_shift(self, other: Any) -> Tensor:
        """The bits moved down by as many places."""

    def bitwise_xor(self, other: Any) -> Tensor:
        """The bits that are set in exactly one."""

    def bmm(self, mat2: Any) -> Tensor:
        """Return the products of two equally long stacks of matrices, over the last two axes."""

    def bool(self) -> Any:
        """The same values as bool."""

    def broadcast_to(self, *shape: Any) -> Tensor:
        """Return repeated to a shape, given as one sequence or as sizes."""

    def byte(self) -> Any:
        """The same values as uint8."""

    def cauchy(self, median: builtins.float = ..., sigma: builtins.float = ...) -> Tensor:
        """Return numbers of the Cauchy distribution of a median and a scale, in the tensor's
        shape and type (float32 for integers); `sigma` is positive."""

    def ceil(self) -> Tensor:
        """The smallest whole number not below each element."""

    def cholesky(self, upper: builtins.bool = ...) -> Tensor:
        """Return the Cholesky factor of Hermitian positive definite matrices: lower triangular L
        with L L^H = A, or with `upper` U with U^H U = A."""

    def cholesky_inverse(self, upper: builtins.bool = ...) -> Tensor:
        """Return the inverse of A, where `input_x` is its Cholesky factor, lower triangular or
        `upper`."""

    def cholesky_solve(self, input2: Any, upper: builtins.bool = ...) -> Tensor:
        """Return the solution x of A x = `input`, where `input2` is the Cholesky factor of A,
        lower triangular or `upper`."""

    def choose(self, choices: Any, mode: str = ...) -> Tensor:
        """At each place the element of the choice that the tensor's integer there names."""

    def chunk(self, chunks: builtins.int, axis: builtins.int = ...) -> tuple[Tensor, ...]:
        """At most `chunks` parts along an axis, all of one size but the last."""

    def clamp(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Return each element limited from below and above by numbers or tensors, which
        broadcast; `max` wins where they cross."""

    def clamp_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """The tensor itself, after writing the result of `clamp` into it."""

    def clip(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Return the same as `clamp`."""

    def clone(self) -> Tensor:
        """Return a tensor of its own with the same values."""

    def col2im(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any,
        padding_value: Any,
        stride: Any,
    ) -> Tensor:
        """Return columns (N, C, KH KW, positions) added up into images (N, C, H, W) of
        `output_size`, as `fold` does."""

    def conj(self) -> Tensor:
        """Return the complex conjugate of each element; real tensors are given as they are."""

    @property
    def const_arg(self) -> Any:
        """Whether `set_const_arg` marked the tensor."""

    def contiguous(self) -> Any:
        """The tensor itself: elements always lie in row-major order."""

    @staticmethod
    def convert_bytes_to_tensor(bytes_str: bytes, dims: Any, data_type: Any) -> Tensor:
        """Return the tensor of a shape and type whose bytes these are."""

    def copy(self) -> Tensor:
        """Return a tensor of its own with the same values."""

    def copy_(self, src: Any, non_blocking: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, after writing the values of `src`, broadcast and converted,
        into it."""

    def copysign(self, other: Any) -> Tensor:
        """Return the size of x with the sign of the other operand."""

    def cos(self) -> Tensor:
        """The cosine of each element in radians."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine of each element."""

    def count_nonzero(
        self,
        axis: Any = ...,
        keep_dims: builtins.bool = ...,
        dtype: Any = ...,
        *,
        dim: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.count_nonzero`."""

    def cov(
        self,
        *,
        correction: builtins.int = ...,
        fweights: Any = ...,
        aweights: Any = ...,
    ) -> Tensor:
        """Return the covariances of variables (rows) over observations (columns), divided by the
        number less `correction`."""

    def cross(self, other: Any, dim: Optional[builtins.int] = ...) -> Tensor:
        """Return the vector product along an axis of size 3 (the first such axis unless `dim`
        names one); the others broadcast."""

    def cummax(self, axis: builtins.int) -> tuple[Tensor, Tensor]:
        """Return the largest element so far along an axis, and its int64 position (the latest of
        equals)."""

    def cummin(self, axis: builtins.int) -> tuple[Tensor, Tensor]:
        """Return the smallest element so far along an axis, and its int32 position (the latest
        of equals); int64 where int32 has no numbers for all positions."""

    def cumprod(self, dim: builtins.int, dtype: Any = ...) -> Tensor:
        """Return the running products along an axis, in `dtype`, or the type of `input`; of
        integers in int64."""

    def cumsum(self, axis: Any = ..., dtype: Any = ..., *, dim: Any = ...) -> Tensor:
        """See `mycel.ops.cumsum`; without an axis of the flattened tensor."""

    @property
    def data(self) -> Any:
        """The tensor itself."""

    def data_ptr(self) -> builtins.int:
        """Return the address of the first element."""

    def data_sync(self, need_wait: builtins.bool = ...) -> None:
        """Nothing: values are where they are computed."""

    def deg2rad(self) -> Tensor:
        """Return degrees as radians."""

    def delete_(self, non_blocking: builtins.bool = ...) -> Tensor:
        """Free the memory of the values, which cannot be used any more, and return the tensor."""

    delta_seed: builtins.int

    def det(self) -> Tensor:
        """Return determinants of square matrices. The derivative is that of matrices with an
        inverse."""

    @property
    def device(self) -> Any:
        """Where the tensor lies: 'CPU'."""

    def diag(self) -> Tensor:
        """Return a tensor of twice the dimensions with the elements of `input` on its diagonal:
        for a vector, a matrix."""

    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """Return the matrix with all elements of the input on the diagonal `offset`."""

    def diagonal(
        self,
        offset: builtins.int = ...,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """Return a diagonal of the matrices over the axes `dim1` and `dim2`, as a new last axis."""

    def diagonal_scatter(
        self,
        src: Any,
        offset: builtins.int = ...,
        dim1: builtins.int = ...,
        dim2: builtins.int = ...,
    ) -> Tensor:
        """Return the input with `src` on the diagonal `offset` of the matrices over two axes."""

    def diff(
        self,
        n: builtins.int = ...,
        axis: builtins.int = ...,
        prepend: Any = ...,
        append: Any = ...,
    ) -> Tensor:
        """Return the n-th differences of neighbours along an axis, with `prepend` and `append`
        joined on first."""

    def digamma(self) -> Tensor:
        """The derivative of `lgamma` at each element."""

    def dim(self) -> builtins.int:
        """Return the number of dimensions."""

    def div(self, other: Any, *, rounding_mode: Optional[str] = ...) -> Tensor:
        """Return the quotient; float32 for integers."""

    def div_(self, other: Any, *, rounding_mode: Optional[str] = ...) -> Tensor:
        """The tensor itself, after writing the result of `div` into it."""

    def divide(self, other: Any, *, rounding_mode: Optional[str] = ...) -> Tensor:
        """Return the same as `div`."""

    def dot(self, other: Any) -> Tensor:
        """Return the sum of products over the last axis of `input` and the second last (or only)
        of `other`."""

    def double(self) -> Any:
        """The same values as float64."""

    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Return `tensor_split` along axis 2."""

    def eigvals(self) -> Tensor:
        """Return the complex eigenvalues of square matrices, in no particular order."""

    def eq(self, other: Any) -> Tensor:
        """Whether two elements are equal."""

    def equal(self, other: Any) -> Tensor:
        """Return whether elements are equal. See `mycel.ops.equal`."""

    def erf(self) -> Tensor:
        """The error function of each element."""

    def erfc(self) -> Tensor:
        """1 - erf(x) of each element x."""

    def erfinv(self) -> Tensor:
        """The inverse of erf at each element."""

    def erfinv_(self) -> Tensor:
        """The tensor itself, after writing the result of `erfinv` into it."""

    def exp(self) -> Tensor:
        """e raised to each element."""

    def exp2(self) -> Tensor:
        """2 raised to each element."""

    def exp_(self) -> Tensor:
        """The tensor itself, after writing the result of `exp` into it."""

    def expand(self, *shape: Any) -> Tensor:
        """Return repeated to a shape, given as one sequence or as sizes."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Return `input` broadcast to the shape of `other`."""

    def expand_dims(self, axis: builtins.int) -> Tensor:
        """Return a new axis of size 1 at `axis`."""

    def expm1(self) -> Tensor:
        """e raised to each element, less 1, exact near 0."""

    def exponential_(self, lambd: Any = ..., *, generator: Any = ...) -> Tensor:
        """The tensor itself, after writing random numbers into it; from `generator` or the
        default one."""

    def fill(self, value: Any) -> Tensor:
        """Return `value` in the shape and type of `x`."""

    def fill_(self, value: Any) -> Tensor:
        """Return the tensor itself, after writing one value everywhere."""

    def fill_diagonal(self, fill_value: builtins.float, wrap: builtins.bool = ...) -> Tensor:
        """Return a new tensor with one value at the places all of whose positions are equal."""

    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = ...) -> Tensor:
        """The tensor itself, after writing the result of `fill_diagonal` into it."""

    def fills(self, value: Any) -> Tensor:
        """Return `value` in the shape and type of `x`."""

    def flatten(
        self,
        order: Any = ...,
        *more: Any,
        start_dim: builtins.int = ...,
        end_dim: builtins.int = ...,
    ) -> Tensor:
        """Return the axes from `start_dim` (0) to `end_dim` joined into one."""

    def flip(self, dims: Any) -> Tensor:
        """Return the axes `dims` in the opposite direction."""

    def fliplr(self) -> Tensor:
        """Return axis 1 in the opposite direction."""

    def flipud(self) -> Tensor:
        """Return axis 0 in the opposite direction."""

    def float(self) -> Any:
        """The same values as float32."""

    def float_power(self, other: Any) -> Tensor:
        """Return the first operand raised to the second in float64."""

    def floor(self) -> Tensor:
        """The largest whole number not above each element."""

    def floor_(self) -> Tensor:
        """The tensor itself, after writing the result of `floor` into it."""

    def floor_divide(self, other: Any) -> Tensor:
        """The largest whole number not above the quotient."""

    def floor_divide_(self, other: Any) -> Tensor:
        """The tensor itself, after writing the result of `floor_divide` into it."""

    def flush_from_cache(self) -> None:
        """Nothing: there is no cache of parameters."""

    def fmax(self, other: Any) -> Tensor:
        """Return the larger of two elements; a number rather than NaN."""

    def fmin(self, other: Any) -> Tensor:
        """Return the smaller of two elements; a number rather than NaN."""

    def fmod(self, other: Any) -> Tensor:
        """The remainder of the division, with the sign of the dividend."""

    def fold(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = ...,
        padding: Any = ...,
        stride: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.fold`."""

    def frac(self) -> Tensor:
        """Return each element less its whole part."""

    @staticmethod
    def from_dlpack(dlpack: Any) -> Tensor:
        """Return a tensor of the memory in a DLPack capsule, or of an object with
        ``__dlpack__``."""

    def gather(self, *args: Any, **named: Any) -> Tensor:
        """Return ``gather(input_indices, axis, batch_dims=0)`` as `mycel.ops.gather`, or
        ``gather(dim, index)`` as `mycel.ops.gather_elements`."""

    def gather_elements(self, dim: builtins.int, index: Any) -> Tensor:
        """Return each element at the place of `index` with the position along `dim` replaced by
        the index there."""

    def gather_nd(self, indices: Any) -> Tensor:
        """Return ``input_x[indices[..., 0], ..., indices[..., k - 1]]``: each row of indices
        names a place in the first k axes."""

    def gcd(self, other: Any) -> Tensor:
        """Return the greatest common divisor of integers, by Euclid's algorithm with as many
        steps as the type can need."""

    def ge(self, other: Any) -> Tensor:
        """Whether the first element is not smaller."""

    def geqrf(self) -> tuple[Tensor, Tensor]:
        """Return LAPACK's form of a QR decomposition: R above, the reflections' vectors below
        the diagonal, and their factors tau."""

    def ger(self, vec2: Any) -> Tensor:
        """Return the same as `outer`."""

    def get_bytes(self) -> bytes:
        """Return a copy of the tensor's bytes, in row-major order."""

    def greater(self, other: Any) -> Tensor:
        """Whether the first element is larger."""

    def greater_equal(self, other: Any) -> Tensor:
        """Whether the first element is not smaller."""

    def gt(self, other: Any) -> Tensor:
        """Whether the first element is larger."""

    def half(self) -> Any:
        """The same values as float16."""

    def hardshrink(self, lambd: builtins.float = ...) -> Tensor:
        """Return x where |x| > lambd, else 0."""

    def heaviside(self, values: Any) -> Tensor:
        """Return 0 for negative elements, 1 for positive ones, `values` at 0."""

    def histc(
        self,
        bins: builtins.int = ...,
        min: builtins.float = ...,
        max: builtins.float = ...,
    ) -> Tensor:
        """Return how many elements fall into each of `bins` equal intervals of [min, max] (of
        the elements' own range where both are 0)."""

    def hooks(self) -> list[Callable[..., Any]]:
        """Return the registered hooks, in order."""

    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Return `tensor_split` along axis 1; along axis 0 for vectors."""

    def hypot(self, other: Any) -> Tensor:
        """Return sqrt(x**2 + y**2) without overflow; the derivative at the origin is 0."""

    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, order 0."""

    def igamma(self, other: Any) -> Tensor:
        """Return the regularized lower incomplete gamma function P(input, other)."""

    def igammac(self, other: Any) -> Tensor:
        """Return the regularized upper incomplete gamma function, 1 - `igamma`, exact where it
        is small."""

    def imag(self) -> Tensor:
        """Return the imaginary part of each element: complex64 gives float32, complex128
        float64; zeros for real tensors."""

    def index(self, indices: Any) -> Tensor:
        """Return the elements at the places that index tensors or masks, one for each leading
        axis, name; None takes a whole axis."""

    def index_add(self, *args: Any, alpha: Any = ..., **named: Any) -> Tensor:
        """Return ``index_add(dim, index, source, *, alpha=1)`` or ``index_add(indices, y,
        axis)``: a new tensor. See `mycel.ops.index_add`."""

    def index_add_(self, dim: builtins.int, index: Any, source: Any, *, alpha: Any = ...) -> Tensor:
        """The tensor itself, after writing the result of `index_add` into it."""

    def index_copy_(self, dim: builtins.int, index: Any, tensor: Any) -> Tensor:
        """The tensor itself, after writing the result of `index_copy` into it."""

    def index_fill(self, axis: builtins.int, index: Any, value: Any) -> Tensor:
        """Return `x` with `value` at the positions that indices name along an axis."""

    def index_fill_(self, axis: builtins.int, index: Any, value: Any) -> Tensor:
        """The tensor itself, after writing the result of `index_fill` into it."""

    def index_put(self, indices: Any, values: Any, accumulate: builtins.bool = ...) -> Tensor:
        """Return a new tensor with values written (with `accumulate` added) at the places that
        index tensors, one for each leading axis, name."""

    def index_put_(self, indices: Any, values: Any, accumulate: builtins.bool = ...) -> Tensor:
        """The tensor itself, after writing the result of `index_put` into it."""

    def index_select(self, axis: builtins.int, index: Any) -> Tensor:
        """Return the parts along an axis that a vector of indices names."""

    @property
    def init(self) -> Any:
        """The initializer that is still to draw the values, if any."""

    @init.setter
    def init(self, value: Any) -> None: ...

    @property
    def init_finished(self) -> Any:
        """Whether the tensor has its values."""

    @property
    def init_flag(self) -> builtins.bool:
        """A mark that programs set on tensors whose values were drawn; it has no effect here."""

    @init_flag.setter
    def init_flag(self, value: Any) -> None: ...

    def inner(self, other: Any) -> Tensor:
        """Return the sum of products over the last axes of both."""

    def inplace_update(self, v: Any, indices: Any) -> Tensor:
        """Return `x` with the rows (axis 0) that `indices` name replaced by those of `v`."""

    def int(self) -> Any:
        """The same values as int32."""

    def inv(self) -> Tensor:
        """Return 1 / x of each element x; float32 for integers."""

    def inverse(self) -> Tensor:
        """Return the inverses of square matrices; singular ones give infinities or NaN."""

    def invert(self) -> Tensor:
        """Return all bits inverted; the same as `bitwise_not`."""

    def is_complex(self) -> builtins.bool:
        """Return whether the element type is complex."""

    def is_contiguous(self) -> builtins.bool:
        """True: elements always lie in row-major order."""

    def is_floating_point(self) -> builtins.bool:
        """Return whether the element type is floating."""

    def is_init(self) -> builtins.bool:
        """Return whether the tensor was drawn by an initializer and has its values."""

    @property
    def is_meta(self) -> Any:
        """False: tensors have values."""

    def is_pinned(self) -> builtins.bool:
        """False: there is no device that memory could be pinned for."""

    def is_shared(self) -> builtins.bool:
        """False: no other process has this memory."""

    def is_signed(self) -> builtins.bool:
        """Return whether the element type has a sign."""

    def isclose(
        self,
        other: Any,
        rtol: builtins.float = ...,
        atol: builtins.float = ...,
        equal_nan: builtins.bool = ...,
    ) -> Tensor:
        """Return whether ``|x - y| <= atol + rtol * |y|``; with `equal_nan` NaN is close to NaN."""

    def isfinite(self) -> Tensor:
        """Whether each element is neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Whether each element is infinite."""

    def isnan(self) -> Tensor:
        """Whether each element is NaN."""

    def isneginf(self) -> Tensor:
        """Return whether each element is -inf."""

    def isposinf(self) -> Tensor:
        """Return whether each element is +inf."""

    def isreal(self) -> Tensor:
        """Return whether the imaginary part of each element is 0; that of real numbers is."""

    def itemset(self, *args: Any) -> Tensor:
        """Return a new tensor with one element set: ``itemset(value)``, ``itemset(index,
        value)`` with a flat index, or ``itemset(i, j, value)``."""

    def kron(self, other: Any) -> Tensor:
        """Return the Kronecker product: every element of `input` times all of `other`, in
        blocks."""

    def kthvalue(
        self,
        k: builtins.int,
        dim: builtins.int = ...,
        keepdim: builtins.bool = ...,
    ) -> Any:
        """Return the k-th smallest values along `dim`, k counting from 1, and their positions
        (int64), as ``(values, indices)``."""

    def lcm(self, other: Any) -> Tensor:
        """Return the least common multiple of integers."""

    def ldexp(self, other: Any) -> Tensor:
        """Return x * 2**y."""

    def le(self, other: Any) -> Tensor:
        """Whether the first element is not larger."""

    def lerp(self, end: Any, weight: Any) -> Tensor:
        """Return ``input + weight * (end - input)``."""

    def less(self, other: Any) -> Tensor:
        """Whether the first element is smaller."""

    def less_equal(self, other: Any) -> Tensor:
        """Whether the first element is not larger."""

    def lgamma(self) -> Tensor:
        """log |gamma(x)| of each element x."""

    def log(self) -> Tensor:
        """The natural logarithm of each element; NaN below 0, -inf at 0."""

    def log10(self) -> Tensor:
        """The logarithm of base 10 of each element."""

    def log1p(self) -> Tensor:
        """log(1 + x) of each element x, exact near 0."""

    def log2(self) -> Tensor:
        """The logarithm of base 2 of each element."""

    def log_(self) -> Tensor:
        """The tensor itself, after writing the result of `log` into it."""

    def log_matrix_determinant(self) -> tuple[Tensor, Tensor]:
        """Return the sign and the logarithm of the magnitude of determinants: `slogdet`."""

    def log_normal(self, mean: builtins.float = ..., std: builtins.float = ...) -> Tensor:
        """Return exp(x) with x normal of a mean and a standard deviation, in the tensor's shape
        and type (float32 for integers); `std` is positive."""

    def logaddexp(self, other: Any) -> Tensor:
        """Return log(exp(x) + exp(y)) without overflow."""

    def logaddexp2(self, other: Any) -> Tensor:
        """Return log2(2**x + 2**y) without overflow."""

    def logcumsumexp(self, axis: builtins.int) -> Tensor:
        """Return the logarithms of the running sums of exponentials along an axis, with the
        largest element taken out."""

    def logdet(self) -> Tensor:
        """Return the logarithm of determinants: NaN where a real one is negative, -inf where it
        is 0."""

    def logical_and(self, other: Any) -> Tensor:
        """Whether both elements are true."""

    def logical_not(self) -> Tensor:
        """Return whether each element is false (0 for numbers)."""

    def logical_or(self, other: Any) -> Tensor:
        """Whether either element is true."""

    def logical_xor(self, other: Any) -> Tensor:
        """Whether exactly one element is true."""

    def logit(self, eps: Optional[builtins.float] = ...) -> Tensor:
        """Return log(x / (1 - x)), with x limited to [eps, 1 - eps] where `eps` is given."""

    def logsumexp(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keep_dims: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.logsumexp`."""

    def long(self) -> Any:
        """The same values as int64."""

    def lstsq(self, A: Any) -> Tensor:
        """Return the x that makes ||`input` x - `A`|| least; of several, where there are more
        columns than rows, the shortest."""

    def lt(self, other: Any) -> Tensor:
        """Whether the first element is smaller."""

    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Tensor:
        """Return the solution x of A x = `b`, where `LU_data` holds both triangles of A's LU
        decomposition and `LU_pivots` its row exchanges, counted from 1."""

    @property
    def mH(self) -> Any:
        """The last two axes exchanged, and complex numbers conjugated."""

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        """Return `input_x` with `value` where the mask holds, in its own type; the mask
        broadcasts."""

    def masked_fill_(self, mask: Any, value: Any) -> Tensor:
        """The tensor itself, after writing the result of `masked_fill` into it."""

    def masked_scatter(self, mask: Any, source: Any) -> Tensor:
        """Return `input` with the elements of `source`, in order, where the mask holds."""

    def masked_scatter_(self, mask: Any, source: Any) -> Tensor:
        """The tensor itself, after writing the result of `masked_scatter` into it."""

    def masked_select(self, mask: Any) -> Tensor:
        """Return the elements where the mask holds, in order; both broadcast."""

    def matmul(self, other: Any) -> Tensor:
        """Return the matrix product over the last two axes; the axes before broadcast."""

    def matrix_determinant(self) -> Tensor:
        """Return determinants of square matrices: `det`."""

    def matrix_power(self, n: builtins.int) -> Tensor:
        """Return `input @ input @ ...` n times by repeated squaring; the identity for 0."""

    def max(
        self,
        dim: Any = ...,
        keepdim: Any = ...,
        *,
        axis: Any = ...,
        keepdims: Any = ...,
        initial: Any = ...,
        where: Any = ...,
        return_indices: builtins.bool = ...,
    ) -> Any:
        """The extreme over all elements or, by `axis` or with `keepdims`, over some; by `dim`
        (also positionally) with its position, as `mycel.ops.max`."""

    def maximum(self, other: Any) -> Tensor:
        """The larger of two elements; NaN if either is."""

    def mean(
        self,
        axis: Any = ...,
        keep_dims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keepdims: Any = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """Return the mean over an axis, several, or all. See `mycel.ops.mean`."""

    def median(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Any:
        """See `mycel.ops.median`."""

    def min(
        self,
        dim: Any = ...,
        keepdim: Any = ...,
        *,
        axis: Any = ...,
        keepdims: Any = ...,
        initial: Any = ...,
        where: Any = ...,
        return_indices: builtins.bool = ...,
    ) -> Any:
        """The extreme over all elements or, by `axis` or with `keepdims`, over some; by `dim`
        (also positionally) with its position, as `mycel.ops.min`."""

    def minimum(self, other: Any) -> Tensor:
        """The smaller of two elements; NaN if either is."""

    def mm(self, mat2: Any) -> Tensor:
        """Return the product of two matrices; ValueError for other ranks."""

    def move_to(self, to: str, blocking: builtins.bool = ...) -> Tensor:
        """Return a copy on the device named: "CPU". ValueError for others."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Return axes moved to new places; the others keep their order."""

    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Return the same as `moveaxis`."""

    def msort(self) -> Tensor:
        """Return the elements sorted along axis 0."""

    def mul(self, other: Any) -> Tensor:
        """The product of two tensors, element by element."""

    def mul_(self, other: Any) -> Tensor:
        """The tensor itself, after writing the result of `mul` into it."""

    def multinomial(
        self,
        num_samples: builtins.int,
        replacement: builtins.bool = ...,
        seed: Optional[builtins.int] = ...,
    ) -> Tensor:
        """See `mycel.ops.multinomial`."""

    def multiply(self, value: Any) -> Tensor:
        """The product of two tensors, element by element."""

    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Return the logarithm of the multivariate gamma function of dimension `p`: p(p - 1)/4
        log pi + the sum over j < p of lgamma(x - j/2)."""

    def nan_to_num(
        self,
        nan: Optional[builtins.float] = ...,
        posinf: Optional[builtins.float] = ...,
        neginf: Optional[builtins.float] = ...,
    ) -> Tensor:
        """Return NaN replaced by `nan` (0), inf by `posinf` and -inf by `neginf` (the largest
        and smallest of the type)."""

    def nanmean(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        dtype: Any = ...,
    ) -> Tensor:
        """Return `mean` of the elements that are not NaN; NaN where there are none."""

    def nanmedian(
        self,
        axis: builtins.int = ...,
        keepdims: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the lower median of the elements along an axis that are not NaN, and its int64
        position."""

    def nanquantile(
        self,
        q: Any,
        axis: Optional[builtins.int] = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Return `quantile` of the elements that are not NaN."""

    def nansum(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.nansum`."""

    def narrow(self, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """Return `length` elements along an axis from `start`."""

    def ndimension(self) -> builtins.int:
        """Return the number of dimensions."""

    def ne(self, other: Any) -> Tensor:
        """Whether two elements differ."""

    def neg(self) -> Tensor:
        """Each element with its sign reversed."""

    def negative(self) -> Tensor:
        """Each element with its sign reversed."""

    def nelement(self) -> Any:
        """Return the number of elements."""

    def new_empty(self, *size: Any, dtype: Any = ...) -> Tensor:
        """`mycel.ops.empty` in the type of the tensor unless `dtype` is given."""

    def new_full(self, size: Any, fill_value: Any, *, dtype: Any = ...) -> Tensor:
        """Return `mycel.ops.full` in the type of the tensor unless `dtype` is given."""

    def new_ones(self, *size: Any, dtype: Any = ...) -> Tensor:
        """`mycel.ops.ones` in the type of the tensor unless `dtype` is given."""

    def new_zeros(self, *size: Any, dtype: Any = ...) -> Tensor:
        """`mycel.ops.zeros` in the type of the tensor unless `dtype` is given."""

    def nextafter(self, other: Any) -> Tensor:
        """Return the next floating-point number from each element of `input` towards `other`."""

    def nonzero(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Return the int64 positions of the elements that are not 0, one row each; with
        `as_tuple` one vector for each axis."""

    def norm(
        self,
        ord: Any = ...,
        dim: Any = ...,
        keepdim: builtins.bool = ...,
        *,
        dtype: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.norm`."""

    def normal_(self, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Tensor:
        """The tensor itself, after writing random numbers into it; from `generator` or the
        default one."""

    def not_equal(self, other: Any) -> Tensor:
        """Whether two elements differ."""

    def numel(self) -> Any:
        """Return the number of elements."""

    def offload(self, file_path: str) -> builtins.bool:
        """Write the values to a file, as plain bytes, free their memory, and return True."""

    def offload_file_path(self) -> str:
        """Return the empty string: values are in memory."""

    def orgqr(self, input2: Any) -> Tensor:
        """Return the first columns of the product of the reflections that `geqrf` gives, `input`
        with their vectors and `input2` their factors."""

    def ormqr(
        self,
        input2: Any,
        input3: Any,
        left: builtins.bool = ...,
        transpose: builtins.bool = ...,
    ) -> Tensor:
        """Return `input3` multiplied by the product of the reflections of `mycel.ops.geqrf`,
        which this tensor and `input2` are."""

    def outer(self, vec2: Any) -> Tensor:
        """Return the products of every element of one vector with every element of another."""

    @property
    def param_info(self) -> Any:
        """The attributes of a parameter; None for a tensor that is no parameter."""

    @property
    def parent_tensor_(self) -> Optional[Tensor]:
        """The tensor whose elements a view shares, which is no view itself; None for a tensor
        with elements of its own."""

    def permute(self, *axis: Any) -> Tensor:
        """Return the axes in another order, given as one sequence or as numbers."""

    def pin_memory(self) -> Tensor:
        """Raise RuntimeError: there is no device that memory could be pinned for."""

    def positive(self) -> Tensor:
        """Return the argument itself."""

    def pow(self, exponent: Any) -> Tensor:
        """The first operand raised to the second."""

    def pow_(self, exponent: Any) -> Tensor:
        """The tensor itself, after writing the result of `pow` into it."""

    def prod(
        self,
        axis: Any = ...,
        keep_dims: Any = ...,
        dtype: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keepdims: Any = ...,
    ) -> Tensor:
        """Return the product over an axis, several, or all. See `mycel.ops.prod`."""

    def ptp(self, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor:
        """Return the largest less the smallest element over an axis, several, or all."""

    def put_(self, index: Any, source: Any, accumulate: builtins.bool = ...) -> Tensor:
        """The tensor itself, after writing the result of `put` into it."""

    def qr(self, some: builtins.bool = ...) -> Any:
        """Return orthonormal columns Q and upper triangular R with Q R the matrix."""

    def quantile(
        self,
        q: Any,
        axis: Optional[builtins.int] = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Return the q-quantiles along an axis (of all elements without one), between neighbours
        by linear interpolation; NaN where there is one."""

    def rad2deg(self) -> Tensor:
        """Return radians as degrees."""

    def random_(
        self,
        from_: builtins.int = ...,
        to: Optional[builtins.int] = ...,
        *,
        generator: Any = ...,
    ) -> Tensor:
        """The tensor itself, after writing random numbers into it; from `generator` or the
        default one."""

    def random_categorical(
        self,
        num_sample: builtins.int,
        seed: builtins.int = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.random_categorical`."""

    def ravel(self) -> Tensor:
        """Return all elements along one axis, in row-major order."""

    def real(self) -> Tensor:
        """Return the real part of each element: complex64 gives float32, complex128 float64."""

    def reciprocal(self) -> Tensor:
        """Return 1 / x of each element x; float32 for integers."""

    def register_hook(self, hook: Callable[[Tensor], Optional[Tensor]]) -> TensorHookHandle:
        """Call ``hook(gradient)`` when the gradient by this tensor is known; what it returns,
        unless None, replaces the gradient."""

    def relu(self, inplace: builtins.bool = ...) -> Tensor:
        """Return max(x, 0) of each element x; the derivative at 0 is 0."""

    def relu_(self, inplace: builtins.bool = ...) -> Tensor:
        """The tensor itself, after writing the result of `relu` into it."""

    def remainder(self, other: Any) -> Tensor:
        """The remainder of the division, with the sign of the divisor."""

    def remainder_(self, other: Any) -> Tensor:
        """The tensor itself, after writing the result of `remainder` into it."""

    @staticmethod
    def remove_hook(handle_id: builtins.int) -> None:
        """Unregister the hook whose handle has this `id`, if it is still registered."""

    def renorm(self, p: Any, axis: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Return the parts along an axis whose `p`-norm is above `maxnorm` scaled down to it."""

    def repeat(self, *repeats: Any) -> Tensor:
        """Return repeated as a whole: as `tile`, with at least one number for each axis."""

    def repeat_interleave(self, repeats: Any, axis: Optional[builtins.int] = ...) -> Tensor:
        """Return each element along an axis `repeats` times in a row; without `axis` of the
        flattened tensor."""

    def requires_grad_(self, requires_grad: builtins.bool = ...) -> Tensor:
        """Set whether a parameter is trained; the tensor itself."""

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements under another shape, given as one sequence or as sizes."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Return the same elements under the shape of another tensor."""

    def resize(self, *new_shape: Any) -> Tensor:
        """Return the elements in order under another shape, cut off or followed by zeros where
        the number differs."""

    def reverse(self, axis: Any) -> Tensor:
        """Return the axes `axis` in the opposite direction."""

    def reverse_sequence(
        self,
        seq_lengths: Any,
        seq_dim: builtins.int = ...,
        batch_dim: builtins.int = ...,
    ) -> Tensor:
        """Return the first elements along an axis in reverse order, as many as `seq_lengths`
        says."""

    def roll(self, shifts: Any, dims: Any = ...) -> Tensor:
        """Return the elements moved on by `shifts` places along the axes `dims`, around the end;
        of the flattened tensor without `dims`."""

    def rot90(self, k: builtins.int, dims: Any) -> Tensor:
        """Return a quarter turn, k times, in the plane of two axes, from the first towards the
        second."""

    def round(self, *, decimals: builtins.int = ...) -> Tensor:
        """Return the nearest number with `decimals` decimals, ties to even."""

    def rsqrt(self) -> Tensor:
        """1 / sqrt(x) of each element x."""

    def scatter(self, axis: builtins.int, index: Any, src: Any) -> Tensor:
        """Return a new tensor with each element of `src` at its own place with the position
        along an axis replaced by the index there."""

    def scatter_(self, axis: builtins.int, index: Any, src: Any) -> Tensor:
        """The tensor itself, after writing the result of `scatter` into it."""

    def scatter_add(self, *args: Any, **named: Any) -> Tensor:
        """Return ``scatter_add(indices, updates)`` as `tensor_scatter_add`, or
        ``scatter_add(dim, index, src)`` along one axis."""

    def scatter_add_(self, dim: builtins.int, index: Any, src: Any) -> Tensor:
        """The tensor itself, after writing the result of `scatter_add` into it."""

    def scatter_div(self, indices: Any, updates: Any) -> Tensor:
        """A new tensor: `input_x` divided by `updates` at the places that rows of `indices` name
        in its first axes."""

    def scatter_max(self, indices: Any, updates: Any) -> Tensor:
        """A new tensor: `input_x` raised to at least `updates` at the places that rows of
        `indices` name in its first axes."""

    def scatter_min(self, indices: Any, updates: Any) -> Tensor:
        """A new tensor: `input_x` lowered to at most `updates` at the places that rows of
        `indices` name in its first axes."""

    def scatter_mul(self, indices: Any, updates: Any) -> Tensor:
        """A new tensor: `input_x` multiplied by `updates` at the places that rows of `indices`
        name in its first axes."""

    def scatter_sub(self, indices: Any, updates: Any) -> Tensor:
        """A new tensor: `input_x` decreased by `updates` at the places that rows of `indices`
        name in its first axes."""

    def searchsorted(self, v: Any, side: str = ..., sorter: Any = ...) -> Tensor:
        """Return where values would be put into the tensor, which is sorted."""

    def select(self, *args: Any, **named: Any) -> Tensor:
        """Return ``select(dim, index)``: the part at one position along an axis;
        ``select(condition, y)``: as `where`."""

    def select_scatter(self, src: Any, axis: builtins.int, index: builtins.int) -> Tensor:
        """Return `input` with the part at one position along an axis replaced by `src`."""

    def set_(
        self,
        source: Any = ...,
        storage_offset: builtins.int = ...,
        size: Optional[Sequence[builtins.int]] = ...,
        stride: Optional[Sequence[builtins.int]] = ...,
    ) -> Tensor:
        """Make the tensor share the elements of another one, or of a storage, and return it."""

    def set_const_arg(self, const_arg: builtins.bool = ...) -> Tensor:
        """Mark the tensor as a constant argument; the tensor itself."""

    def set_dtype(self, dtype: Any) -> Any:
        """Convert the values to another element type in place, and return the type."""

    def set_init_flag(self, flag: builtins.bool) -> None:
        """Set `init_flag`. Raises TypeError for values other than True and False."""

    def sgn(self) -> Tensor:
        """Return -1, 0 or 1 by the sign of each element; z / abs(z), or 0, for complex numbers."""

    def short(self) -> Any:
        """The same values as int16."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)) of each element x, without overflow."""

    def sigmoid_(self) -> Tensor:
        """The tensor itself, after writing the result of `sigmoid` into it."""

    def sign(self) -> Tensor:
        """-1, 0 or 1 by the sign of each element."""

    def sign_(self) -> Tensor:
        """The tensor itself, after writing the result of `sign` into it."""

    def signbit(self) -> Tensor:
        """Return whether the sign is negative; also that of -0."""

    def sin(self) -> Tensor:
        """The sine of each element in radians."""

    def sinc(self) -> Tensor:
        """Return sin(pi x) / (pi x), and 1 at 0."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine of each element."""

    def slice_scatter(
        self,
        src: Any,
        axis: builtins.int = ...,
        start: Optional[builtins.int] = ...,
        end: Optional[builtins.int] = ...,
        step: builtins.int = ...,
    ) -> Tensor:
        """Return `input` with ``start:end:step`` along an axis replaced by `src`."""

    def slogdet(self) -> tuple[Tensor, Tensor]:
        """Return the sign (or the direction, for complex matrices) and the logarithm of the
        magnitude of determinants."""

    def soft_shrink(self, lambd: builtins.float = ...) -> Tensor:
        """Return the same as `softshrink`."""

    def softmax(self, axis: builtins.int = ..., dtype: Any = ..., *, dim: Any = ...) -> Tensor:
        """See `mycel.ops.softmax`."""

    def sort(
        self,
        axis: Any = ...,
        descending: builtins.bool = ...,
        *,
        dim: Any = ...,
        stable: builtins.bool = ...,
    ) -> Any:
        """See `mycel.ops.sort`; sorting is stable in any case."""

    def split(
        self,
        split_size_or_sections: Union[builtins.int, Sequence[builtins.int]],
        axis: builtins.int = ...,
    ) -> tuple[Tensor, ...]:
        """Return parts of one size along an axis (the last may be smaller), or of the sizes
        listed, which must add up."""

    def sqrt(self) -> Tensor:
        """The square root of each element; NaN below 0."""

    def square(self) -> Tensor:
        """Return each element times itself."""

    def squeeze(self, axis: Any = ..., *, dim: Any = ...) -> Tensor:
        """Without axes of size 1. See `mycel.ops.squeeze`."""

    def std(
        self,
        axis: Any = ...,
        ddof: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        correction: Any = ...,
        keepdim: Any = ...,
        unbiased: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.std`; `correction` is another name of `ddof`."""

    def storage(self) -> UntypedStorage:
        """Return the bytes of the tensor."""

    def storage_offset(self) -> builtins.int:
        """Return 0: the first element is the first of its storage."""

    def stride(self, dim: Optional[builtins.int] = ...) -> Any:
        """Return elements from one to the next along each dimension, or along one."""

    def sub(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return ``self - alpha * other``. See `mycel.ops.sub`."""

    def sub_(self, other: Any) -> Tensor:
        """The tensor itself, after writing the result of `sub` into it."""

    def subtract(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return ``input - alpha * other``."""

    def sum(
        self,
        axis: Any = ...,
        dtype: Any = ...,
        keepdims: Any = ...,
        initial: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor:
        """Return the sum over an axis, several, or all. See `mycel.ops.sum`; `initial` is added."""

    def sum_to_size(self, *size: Any) -> Tensor:
        """Return summed so that it has a shape that broadcasts to its own."""

    def svd(self, full_matrices: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
        """Return singular values s in descending order, U and V with A = U diag(s) V^H; without
        `compute_uv` s alone."""

    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Return two axes exchanged."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Return the same as `swapaxes`."""

    @property
    def symbolic_shape(self) -> Any:
        """The shape that a tensor was declared with, if it has a `Symbol`; else None."""

    def t(self) -> Tensor:
        """Return a matrix transposed; vectors and scalars as they are."""

    def take(self, indices: Any, axis: Optional[builtins.int] = ..., mode: str = ...) -> Tensor:
        """Return the elements (of the flattened tensor, or along an axis) at positions."""

    def tan(self) -> Tensor:
        """The tangent of each element in radians."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent of each element."""

    def tanh_(self) -> Tensor:
        """The tensor itself, after writing the result of `tanh` into it."""

    def tensor_split(
        self,
        indices_or_sections: Union[builtins.int, Sequence[builtins.int]],
        axis: builtins.int = ...,
    ) -> tuple[Tensor, ...]:
        """So many parts along an axis, the first of them one longer where it does not divide; or
        cuts at the positions listed."""

    def tile(self, *given: Any, reps: Any = ..., dims: Any = ...) -> Tensor:
        """Return repeated as a whole, so many times along each axis. See `mycel.ops.tile`."""

    def to(
        self,
        *args: Any,
        dtype: Any = ...,
        device: Any = ...,
        non_blocking: builtins.bool = ...,
        copy: builtins.bool = ...,
    ) -> Tensor:
        """Return the same values in another element type, given as a type or by a tensor that
        has it."""

    def to_(self, device: Optional[str] = ..., non_blocking: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, which is on the CPU. Raises ValueError for other devices."""

    def to_coo(self) -> COOTensor:
        """Return what is not 0 in a matrix by coordinates (int32), in row-major order."""

    def to_csr(self) -> CSRTensor:
        """Return what is not 0 in a matrix by rows (int32). How much that is is decided by data."""

    def to_dlpack(self) -> Any:
        """See `mycel.to_dlpack`."""

    def top_k(self, k: builtins.int, sorted: builtins.bool = ...) -> tuple[Tensor, Tensor]:
        """Return the k largest elements along the last axis in order, and their int32 positions."""

    def topk(
        self,
        k: builtins.int,
        dim: Optional[builtins.int] = ...,
        largest: builtins.bool = ...,
        sorted: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the k largest (or smallest) elements along an axis (the last one) in order, and
        their int32 positions."""

    def trace(
        self,
        offset: builtins.int = ...,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """Return the sum of a diagonal of the matrices over two axes, in `dtype`; of integers
        but uint64 in int64, of booleans whether any holds."""

    def transpose(self, *axes: Any) -> Tensor:
        """Return the axes in another order."""

    def triangular_solve(
        self,
        A: Any,
        upper: builtins.bool = ...,
        transpose: builtins.bool = ...,
        unitriangular: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the solution x of the triangular system A x = this tensor, or of A^T x with
        `transpose`, and A."""

    def tril(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the elements of matrices on and below a diagonal (0 the main one, above it
        positive); zeros elsewhere."""

    def triu(self, diagonal: builtins.int = ...) -> Tensor:
        """Return the elements of matrices on and above a diagonal (0 the main one, above it
        positive); zeros elsewhere."""

    def true_divide(self, divisor: Any) -> Tensor:
        """Return the quotient; float32 for integers."""

    def trunc(self) -> Tensor:
        """Each element without its fraction."""

    def type(self, dtype: Any = ...) -> Any:
        """Return the name of the element type, or the same values in another."""

    def type_as(self, other: Tensor) -> Tensor:
        """Return `input` in the element type of `other`."""

    def unbind(self, dim: builtins.int = ...) -> tuple[Tensor, ...]:
        """Return the same as `unstack`."""

    def unfold(
        self,
        kernel_size: Any,
        dilation: Any = ...,
        padding: Any = ...,
        stride: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.unfold`."""

    def uniform(
        self,
        from_: builtins.float = ...,
        to: builtins.float = ...,
        generator: Any = ...,
    ) -> Tensor:
        """Return new numbers spread evenly over [from_, to), in the tensor's shape and type;
        ValueError where `from_` is larger than `to`."""

    def uniform_(self, from_: Any = ..., to: Any = ..., *, generator: Any = ...) -> Tensor:
        """The tensor itself, after writing random numbers into it; from `generator` or the
        default one."""

    def unique(
        self,
        sorted: builtins.bool = ...,
        return_inverse: builtins.bool = ...,
        return_counts: builtins.bool = ...,
        dim: Optional[builtins.int] = ...,
    ) -> Any:
        """Return the distinct elements (or parts along `dim`) in increasing order; also
        positions and counts (int64)."""

    def unique_consecutive(
        self,
        return_inverse: builtins.bool = ...,
        return_counts: builtins.bool = ...,
        dim: Optional[builtins.int] = ...,
    ) -> Any:
        """Return the elements (or parts along `dim`) without those equal to the one before; also
        positions and counts (int64)."""

    def unique_with_pad(self, pad_num: Any) -> tuple[Tensor, Tensor]:
        """Return the distinct elements of a vector in the order in which they come, followed by
        `pad_num` up to its length, and each element's position among them."""

    def unsorted_segment_max(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """For each segment the largest of the parts of `x` with its number; the smallest value
        of the type for an empty one."""

    def unsorted_segment_min(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """For each segment the smallest of the parts of `x` with its number; the largest value
        of the type for an empty one."""

    def unsorted_segment_prod(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """For each segment the product of the parts of `x` with its number; 1 for an empty one."""

    def unsorted_segment_sum(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """For each segment the sum of the parts of `input_x` with its number; 0 for an empty
        one, and negative numbers belong nowhere."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Return a new axis of size 1 at `dim`."""

    def untyped_storage(self) -> UntypedStorage:
        """Return the bytes of the tensor."""

    def value(self) -> Tensor:
        """Return the tensor itself; of a parameter its values, as a tensor that shares them."""

    def var(
        self,
        axis: Any = ...,
        ddof: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        correction: Any = ...,
        keepdim: Any = ...,
        unbiased: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.var`; `correction` is another name of `ddof`."""

    def view(self, *shape: Any) -> Tensor:
        """Return the same elements under another shape; given a data type, the same bytes in
        that type."""

    def view_as(self, other: Tensor) -> Tensor:
        """Return `input` under the shape of `other`."""

    @property
    def virtual_flag(self) -> builtins.bool:
        """A mark that programs set on tensors that stand for others; it has no effect here."""

    @virtual_flag.setter
    def virtual_flag(self, value: Any) -> None: ...

    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Return `tensor_split` along axis 0."""

    def wait_pipeline(self) -> None:
        """Return at once: there is nothing to wait for, as operations are complete when they
        return."""

    def where(self, condition: Any, y: Any) -> Tensor:
        """Return the tensor where the condition holds, else `y`."""

    def xdivy(self, y: Any) -> Tensor:
        """Return x / y, and 0 where x is 0 unless y is NaN."""

    def xlogy(self, other: Any) -> Tensor:
        """Return x * log(y), and 0 where x is 0 unless y is NaN."""

    def zero_(self) -> Tensor:
        """Return the tensor itself, after writing zeros everywhere."""

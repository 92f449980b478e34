"""What tensors get from the public libraries, for editors and type checkers. `make stubs` writes this file."""

import builtins
from collections.abc import Callable, Sequence
from mycel._src.tensors.core.autograd.gradient_hooks import TensorHookHandle
from mycel._src.tensors.core.storage import UntypedStorage
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.sparse.tensors import COOTensor, CSRTensor
from typing import Any

class TensorMethods:
    """What tensors get from the public libraries."""

    @property
    def H(self) -> Any:
        """The matrix transposed and conjugated."""

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""

    def abs(self) -> Tensor:
        """Return the absolute value of each element, which is real for complex numbers."""

    def absolute(self) -> Tensor:
        """Return the absolute value of each element."""

    def acos(self) -> Tensor:
        """Return the arc cosine of each element."""

    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine of each element."""

    def add(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return ``self + alpha * other``. See `mycel.ops.add`."""

    def add_(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `add` into it."""

    def addbmm(self, batch1: Any, batch2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * sum_b(batch1[b] @ batch2[b])``."""

    def addcdiv(self, tensor1: Any, tensor2: Any, value: Any = ...) -> Tensor:
        """Return ``input + value * tensor1 / tensor2``."""

    def addcmul(self, tensor1: Any, tensor2: Any, value: Any = ...) -> Tensor:
        """Return ``input + value * tensor1 * tensor2``."""

    def addmm(self, mat1: Any, mat2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * (mat1 @ mat2)``."""

    def addmm_(self, mat1: Any, mat2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `addmm` into it."""

    def addmv(self, mat: Any, vec: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * (mat @ vec)``."""

    def addr(self, vec1: Any, vec2: Any, *, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * x + alpha * outer(vec1, vec2)``."""

    def adjoint(self) -> Tensor:
        """Exchange the last two axes and conjugate complex numbers."""

    def all(
        self,
        axis: Any = ...,
        keep_dims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keepdims: Any = ...,
    ) -> Tensor:
        """Return `mycel.ops.all` of the tensor."""

    def allclose(
        self,
        other: Any,
        rtol: builtins.float = ...,
        atol: builtins.float = ...,
        equal_nan: builtins.bool = ...,
    ) -> builtins.bool:
        """Return whether all elements are close (`mycel.ops.isclose`)."""

    def amax(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        initial: Any = ...,
        where: Any = ...,
    ) -> Tensor:
        """Return the largest element of `input` over `axis` (None: all axes), kept at size 1
        with `keepdims`."""

    def amin(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        initial: Any = ...,
        where: Any = ...,
    ) -> Tensor:
        """Return the smallest element of `input` over `axis` (None: all axes), kept at size 1
        with `keepdims`."""

    def aminmax(
        self,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest element over `axis` (None: all axes)."""

    def angle(self) -> Tensor:
        """Return the angle of each element in radians: in (-pi, pi] for a complex number, 0 or
        pi for a real one, NaN for NaN."""

    def any(
        self,
        axis: Any = ...,
        keep_dims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keepdims: Any = ...,
    ) -> Tensor:
        """Return `mycel.ops.any` of the tensor."""

    def approximate_equal(self, other: Any, tolerance: builtins.float = ...) -> Tensor:
        """Return whether ``|x - y| < tolerance``."""

    def arccos(self) -> Tensor:
        """Return the arc cosine of each element."""

    def arccosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine of each element."""

    def arcsin(self) -> Tensor:
        """Return the arc sine of each element."""

    def arcsinh(self) -> Tensor:
        """Return the inverse hyperbolic sine of each element."""

    def arctan(self) -> Tensor:
        """Return the arc tangent of each element."""

    def arctan2(self, other: Any) -> Tensor:
        """Return the angle of the point (other, input) in (-pi, pi]."""

    def arctanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent of each element."""

    def argmax(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor:
        """Return `mycel.ops.argmax` of the tensor."""

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
        """Return `mycel.ops.argmin` of the tensor."""

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
        """Return `mycel.ops.argsort` of the tensor."""

    def argwhere(self) -> Tensor:
        """Return the int64 positions of the elements that are not 0, one row for each."""

    def asin(self) -> Tensor:
        """Return the arc sine of each element."""

    def asinh(self) -> Tensor:
        """Return the inverse hyperbolic sine of each element."""

    def assign_value(self, value: Any) -> Tensor:
        """Return the tensor itself, after taking over the values, the shape and the type of
        another one."""

    def assign_value_cpp(self, value: Tensor) -> Tensor:
        """Take over a copy of another tensor's value, shape and type, and return the tensor."""

    def astype(self, dtype: Any, copy: builtins.bool = ...) -> Tensor:
        """Return the same values in another element type; `float` is float64, as in NumPy."""

    def atan(self) -> Tensor:
        """Return the arc tangent of each element."""

    def atan2(self, other: Any) -> Tensor:
        """Return the angle of the point (other, input) in (-pi, pi]."""

    def atanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent of each element."""

    def baddbmm(self, batch1: Any, batch2: Any, beta: Any = ..., alpha: Any = ...) -> Tensor:
        """Return ``beta * input + alpha * batch1 @ batch2``, for stacks of matrices or for two
        matrices."""

    def bernoulli(self, *, generator: Any = ...) -> Tensor:
        """Return 1 with the probability that each element names and 0 otherwise, in the tensor's
        type."""

    def bernoulli_(self, p: Any = ..., *, generator: Any = ...) -> Tensor:
        """Return the tensor itself, after writing random numbers from `generator` or the default
        one."""

    def bfloat16(self) -> Any:
        """Return the same values as bfloat16."""

    def bincount(self, weights: Any = ..., minlength: builtins.int = ...) -> Tensor:
        """Return how often each number 0, 1, ... occurs (float32), or the sum of the `weights`
        at its places."""

    def bitwise_and(self, other: Any) -> Tensor:
        """Return the bits that are set in both operands."""

    def bitwise_left_shift(self, other: Any) -> Tensor:
        """Shift the bits of `input` left by `other`."""

    def bitwise_not(self) -> Tensor:
        """Invert all bits of integers; booleans are negated. Raises TypeError for other types."""

    def bitwise_or(self, other: Any) -> Tensor:
        """Return the bits that are set in either operand."""

    def bitwise_right_shift(self, other: Any) -> Tensor:
        """Shift the bits of `input` right by `other`."""

    def bitwise_xor(self, other: Any) -> Tensor:
        """Return the bits that are set in exactly one operand."""

    def bmm(self, mat2: Any) -> Tensor:
        """Return the products of two equally long stacks of matrices, over the last two axes."""

    def bool(self) -> Any:
        """Return the same values as bool."""

    def broadcast_to(self, *shape: Any) -> Tensor:
        """Return the tensor broadcast to a shape, given as one sequence or as sizes."""

    def byte(self) -> Any:
        """Return the same values as uint8."""

    def cauchy(self, median: builtins.float = ..., sigma: builtins.float = ...) -> Tensor:
        """Return numbers from the Cauchy distribution with median `median` and scale `sigma`,
        which is positive."""

    def ceil(self) -> Tensor:
        """Round each element up to a whole number."""

    def cholesky(self, upper: builtins.bool = ...) -> Tensor:
        """Return the Cholesky factor of Hermitian positive definite matrices A: lower triangular
        L with L L^H = A, or with `upper` U with U^H U = A."""

    def cholesky_inverse(self, upper: builtins.bool = ...) -> Tensor:
        """Return the inverse of A, where `input_x` is the Cholesky factor of A."""

    def cholesky_solve(self, input2: Any, upper: builtins.bool = ...) -> Tensor:
        """Return the solution x of A x = `input`, where `input2` is the Cholesky factor of A."""

    def choose(self, choices: Any, mode: str = ...) -> Tensor:
        """Return at each place the element of that choice which the tensor's integer there
        names."""

    def chunk(self, chunks: builtins.int, axis: builtins.int = ...) -> tuple[Tensor, ...]:
        """Split a tensor along an axis into at most `chunks` parts, all of one size but the
        last."""

    def clamp(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Limit each element from below and above by numbers or tensors, which broadcast; `max`
        wins where the bounds cross."""

    def clamp_(self, min: Any = ..., max: Any = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `clamp` into it."""

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
        """Add columns up into images, as `fold` does."""

    def conj(self) -> Tensor:
        """Return the complex conjugate of each element; real tensors are returned as they are."""

    @property
    def const_arg(self) -> Any:
        """Whether `set_const_arg` marked the tensor."""

    def contiguous(self) -> Any:
        """Return the tensor itself: elements always lie in row-major order."""

    @staticmethod
    def convert_bytes_to_tensor(bytes_str: bytes, dims: Any, data_type: Any) -> Tensor:
        """Return the tensor of a shape and type that has these bytes."""

    def copy(self) -> Tensor:
        """Return a tensor of its own with the same values."""

    def copy_(self, src: Any, non_blocking: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, after writing the values of `src`, broadcast and converted,
        into it."""

    def copysign(self, other: Any) -> Tensor:
        """Return the absolute value of `x` with the sign of `other`."""

    def cos(self) -> Tensor:
        """Return the cosine of each element in radians."""

    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine of each element."""

    def count_nonzero(
        self,
        axis: Any = ...,
        keep_dims: builtins.bool = ...,
        dtype: Any = ...,
        *,
        dim: Any = ...,
    ) -> Tensor:
        """Return the number of elements that are not 0, over axes."""

    def cov(
        self,
        *,
        correction: builtins.int = ...,
        fweights: Any = ...,
        aweights: Any = ...,
    ) -> Tensor:
        """Return the covariances of the variables (rows) of `input` over the observations
        (columns), divided by their number minus `correction`."""

    def cross(self, other: Any, dim: builtins.int | None = ...) -> Tensor:
        """Return the vector product along an axis of size 3; the others broadcast."""

    def cummax(self, axis: builtins.int) -> tuple[Tensor, Tensor]:
        """Return the largest element so far along an axis, and its int64 position (the last of
        equal ones)."""

    def cummin(self, axis: builtins.int) -> tuple[Tensor, Tensor]:
        """Return the smallest element so far along an axis, and its int32 position (the last of
        equal ones)."""

    def cumprod(self, dim: builtins.int, dtype: Any = ...) -> Tensor:
        """Return the running products along an axis, in `dtype` or the type of `input`; integers
        are multiplied in int64."""

    def cumsum(self, axis: Any = ..., dtype: Any = ..., *, dim: Any = ...) -> Tensor:
        """Return the running sums along an axis, or of the flattened tensor without one."""

    @property
    def data(self) -> Any:
        """The tensor itself."""

    def data_ptr(self) -> builtins.int:
        """Return the address of the first element."""

    def data_sync(self, need_wait: builtins.bool = ...) -> None:
        """Do nothing: values are where they are computed."""

    def deg2rad(self) -> Tensor:
        """Convert degrees to radians."""

    def delete_(self, non_blocking: builtins.bool = ...) -> Tensor:
        """Free the memory of the values, which cannot be used any more, and return the tensor."""

    delta_seed: builtins.int

    def det(self) -> Tensor:
        """Return the determinants of square matrices."""

    @property
    def device(self) -> Any:
        """Where the tensor lies: 'CPU'."""

    def diag(self) -> Tensor:
        """Return a tensor of twice as many dimensions with the elements of `input` on its
        diagonal and zeros elsewhere; for a vector, a matrix."""

    def diagflat(self, offset: builtins.int = ...) -> Tensor:
        """Return the matrix with all elements of the input on the diagonal `offset`."""

    def diagonal(
        self,
        offset: builtins.int = ...,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """Return a diagonal of the matrices in `input`, as a new last axis."""

    def diagonal_scatter(
        self,
        src: Any,
        offset: builtins.int = ...,
        dim1: builtins.int = ...,
        dim2: builtins.int = ...,
    ) -> Tensor:
        """Return the input with `src` on the diagonal `offset` of the matrices over the axes
        `dim1` and `dim2`."""

    def diff(
        self,
        n: builtins.int = ...,
        axis: builtins.int = ...,
        prepend: Any = ...,
        append: Any = ...,
    ) -> Tensor:
        """Return the `n`-th differences of neighbours in `x` along `axis`."""

    def digamma(self) -> Tensor:
        """Return the derivative of `lgamma` at each element."""

    def dim(self) -> builtins.int:
        """Return the number of dimensions."""

    def div(self, other: Any, *, rounding_mode: str | None = ...) -> Tensor:
        """Return the quotient of two tensors, element by element; float32 for integers."""

    def div_(self, other: Any, *, rounding_mode: str | None = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `div` into it."""

    def divide(self, other: Any, *, rounding_mode: str | None = ...) -> Tensor:
        """Return the same as `div`."""

    def dot(self, other: Any) -> Tensor:
        """Return the sum of products over the last axis of `input` and the second last (or only)
        of `other`."""

    def double(self) -> Any:
        """Return the same values as float64."""

    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Split a tensor along axis 2, as `tensor_split` does."""

    def eigvals(self) -> Tensor:
        """Return the complex eigenvalues of square matrices, in no particular order."""

    def eq(self, other: Any) -> Tensor:
        """Return whether two elements are equal."""

    def equal(self, other: Any) -> Tensor:
        """Return whether elements are equal. See `mycel.ops.equal`."""

    def erf(self) -> Tensor:
        """Return the error function of each element."""

    def erfc(self) -> Tensor:
        """Return 1 - erf(x) of each element x."""

    def erfinv(self) -> Tensor:
        """Return the inverse of erf at each element."""

    def erfinv_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `erfinv` into it."""

    def exp(self) -> Tensor:
        """Return e raised to each element."""

    def exp2(self) -> Tensor:
        """Return 2 raised to each element."""

    def exp_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `exp` into it."""

    def expand(self, *shape: Any) -> Tensor:
        """Return the tensor broadcast to a shape, given as one sequence or as sizes."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Return `input` broadcast to the shape of `other`."""

    def expand_dims(self, axis: builtins.int) -> Tensor:
        """Insert a new axis of size 1 at `axis`."""

    def expm1(self) -> Tensor:
        """Return exp(x) - 1 of each element x, exact near 0."""

    def exponential_(self, lambd: Any = ..., *, generator: Any = ...) -> Tensor:
        """Return the tensor itself, after writing random numbers from `generator` or the default
        one."""

    def fill(self, value: Any) -> Tensor:
        """Return a tensor of the shape and type of `x` filled with `value`."""

    def fill_(self, value: Any) -> Tensor:
        """Return the tensor itself, after writing one value everywhere."""

    def fill_diagonal(self, fill_value: builtins.float, wrap: builtins.bool = ...) -> Tensor:
        """Return a new tensor with `fill_value` on the diagonal, where the positions along all
        axes are equal."""

    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `fill_diagonal` into it."""

    def fills(self, value: Any) -> Tensor:
        """Return a tensor of the shape and type of `x` filled with `value`."""

    def flatten(
        self,
        order: Any = ...,
        *more: Any,
        start_dim: builtins.int = ...,
        end_dim: builtins.int = ...,
    ) -> Tensor:
        """Return the tensor with the axes from `start_dim` (0) to `end_dim` joined into one."""

    def flip(self, dims: Any) -> Tensor:
        """Reverse the order of the elements along the axes `dims`."""

    def fliplr(self) -> Tensor:
        """Reverse the order of the elements along axis 1."""

    def flipud(self) -> Tensor:
        """Reverse the order of the elements along axis 0."""

    def float(self) -> Any:
        """Return the same values as float32."""

    def float_power(self, other: Any) -> Tensor:
        """Raise the first operand to the power of the second in float64."""

    def floor(self) -> Tensor:
        """Round each element down to a whole number."""

    def floor_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `floor` into it."""

    def floor_divide(self, other: Any) -> Tensor:
        """Return the quotient, rounded down."""

    def floor_divide_(self, other: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `floor_divide` into it."""

    def flush_from_cache(self) -> None:
        """Do nothing: there is no cache of parameters."""

    def fmax(self, other: Any) -> Tensor:
        """Return the larger of two elements; a number is chosen before NaN."""

    def fmin(self, other: Any) -> Tensor:
        """Return the smaller of two elements; a number is chosen before NaN."""

    def fmod(self, other: Any) -> Tensor:
        """Return the remainder of the division, with the sign of the dividend."""

    def fold(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = ...,
        padding: Any = ...,
        stride: Any = ...,
    ) -> Tensor:
        """Return patches added up in an image."""

    def frac(self) -> Tensor:
        """Return each element minus its whole part, which is rounded towards 0."""

    @staticmethod
    def from_dlpack(dlpack: Any) -> Tensor:
        """Return a tensor of the memory in a DLPack capsule, or of an object with
        ``__dlpack__``."""

    def gather(self, *args: Any, **named: Any) -> Tensor:
        """Return the elements at positions."""

    def gather_elements(self, dim: builtins.int, index: Any) -> Tensor:
        """Return, for each element of `index`, the element of `input` at the same position, but
        at the index along `dim`."""

    def gather_nd(self, indices: Any) -> Tensor:
        """Return ``input_x[indices[..., 0], ..., indices[..., k - 1]]``: each row of `indices`
        is a position in the first k axes."""

    def gcd(self, other: Any) -> Tensor:
        """Return the greatest common divisor of integers."""

    def ge(self, other: Any) -> Tensor:
        """Return whether the first element is at least the second."""

    def geqrf(self) -> tuple[Tensor, Tensor]:
        """Return LAPACK's form of a QR decomposition: one matrix with R above and the vectors of
        reflections below the diagonal, and the factors tau of the reflections."""

    def ger(self, vec2: Any) -> Tensor:
        """Return the products of every element of one vector with every element of another, as
        `outer`."""

    def get_bytes(self) -> bytes:
        """Return a copy of the tensor's bytes, in row-major order."""

    def greater(self, other: Any) -> Tensor:
        """Return whether the first element is greater than the second."""

    def greater_equal(self, other: Any) -> Tensor:
        """Return whether the first element is at least the second."""

    def gt(self, other: Any) -> Tensor:
        """Return whether the first element is greater than the second."""

    def half(self) -> Any:
        """Return the same values as float16."""

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
        """Return how many elements fall into each of `bins` equal intervals."""

    def hooks(self) -> list[Callable[..., Any]]:
        """Return the registered hooks, in order."""

    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Split a tensor along axis 1, or a vector along axis 0, as `tensor_split` does."""

    def hypot(self, other: Any) -> Tensor:
        """Return sqrt(x**2 + y**2) without overflow; the derivative at the origin is 0."""

    def i0(self) -> Tensor:
        """Return the modified Bessel function of the first kind, order 0."""

    def igamma(self, other: Any) -> Tensor:
        """Return the regularized lower incomplete gamma function P(input, other). Abramowitz and
        Stegun, 6.5.1."""

    def igammac(self, other: Any) -> Tensor:
        """Return the regularized upper incomplete gamma function, 1 - `igamma`, exact where it
        is small."""

    def imag(self) -> Tensor:
        """Return the imaginary part of each element: float32 for complex64, float64 for
        complex128."""

    def index(self, indices: Any) -> Tensor:
        """Return the elements at positions."""

    def index_add(self, *args: Any, alpha: Any = ..., **named: Any) -> Tensor:
        """Return a new tensor with parts added at positions of an axis: ``index_add(dim, index,
        source, *, alpha=1)`` or ``index_add(indices, y, axis)``."""

    def index_add_(self, dim: builtins.int, index: Any, source: Any, *, alpha: Any = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `index_add` into it."""

    def index_copy_(self, dim: builtins.int, index: Any, tensor: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `index_copy` into it."""

    def index_fill(self, axis: builtins.int, index: Any, value: Any) -> Tensor:
        """Return `x` with `value` at the positions `index` along `axis`."""

    def index_fill_(self, axis: builtins.int, index: Any, value: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `index_fill` into it."""

    def index_put(self, indices: Any, values: Any, accumulate: builtins.bool = ...) -> Tensor:
        """Return a new tensor with values written at positions, or added there with
        `accumulate`."""

    def index_put_(self, indices: Any, values: Any, accumulate: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `index_put` into it."""

    def index_select(self, axis: builtins.int, index: Any) -> Tensor:
        """Return the slices of `input` along `axis` at the positions in the vector `index`."""

    @property
    def init(self) -> Any:
        """Return the initializer that is still to draw the values, if any."""

    @init.setter
    def init(self, value: Any) -> None: ...

    @property
    def init_finished(self) -> Any:
        """Whether the tensor has its values."""

    @property
    def init_flag(self) -> builtins.bool:
        """Return a mark that programs set on tensors whose values were drawn; nothing depends on
        it."""

    @init_flag.setter
    def init_flag(self, value: Any) -> None: ...

    def inner(self, other: Any) -> Tensor:
        """Return the sum of products over the last axes of both."""

    def inplace_update(self, v: Any, indices: Any) -> Tensor:
        """Return `x` with the rows (axis 0) at `indices` replaced by those of `v`."""

    def int(self) -> Any:
        """Return the same values as int32."""

    def inv(self) -> Tensor:
        """Return 1 / x of each element x; float32 for integers."""

    def inverse(self) -> Tensor:
        """Return the inverses of square matrices; singular ones give infinities or NaN."""

    def invert(self) -> Tensor:
        """Return the same as `bitwise_not`."""

    def is_complex(self) -> builtins.bool:
        """Return whether the element type is complex."""

    def is_contiguous(self) -> builtins.bool:
        """Return True: elements always lie in row-major order."""

    def is_floating_point(self) -> builtins.bool:
        """Return whether the element type is floating."""

    def is_init(self) -> builtins.bool:
        """Return whether the tensor was drawn by an initializer and has its values."""

    @property
    def is_meta(self) -> Any:
        """False: tensors have values."""

    def is_pinned(self) -> builtins.bool:
        """Return False: there is no device that memory could be pinned for."""

    def is_shared(self) -> builtins.bool:
        """Return False: no other process has this memory."""

    def is_signed(self) -> builtins.bool:
        """Return whether the element type has a sign."""

    def isclose(
        self,
        other: Any,
        rtol: builtins.float = ...,
        atol: builtins.float = ...,
        equal_nan: builtins.bool = ...,
    ) -> Tensor:
        """Return whether ``|x - y| <= atol + rtol * |y|`` for the elements x of `input` and y of
        `other`."""

    def isfinite(self) -> Tensor:
        """Return whether each element is neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Return whether each element is infinite."""

    def isnan(self) -> Tensor:
        """Return whether each element is NaN."""

    def isneginf(self) -> Tensor:
        """Return whether each element is -inf."""

    def isposinf(self) -> Tensor:
        """Return whether each element is +inf."""

    def isreal(self) -> Tensor:
        """Return whether the imaginary part of each element is 0, as it is for real numbers."""

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
        """Return whether the first element is at most the second."""

    def lerp(self, end: Any, weight: Any) -> Tensor:
        """Return ``input + weight * (end - input)``."""

    def less(self, other: Any) -> Tensor:
        """Return whether the first element is less than the second."""

    def less_equal(self, other: Any) -> Tensor:
        """Return whether the first element is at most the second."""

    def lgamma(self) -> Tensor:
        """Return log |gamma(x)| of each element x."""

    def log(self) -> Tensor:
        """Return the natural logarithm of each element; NaN below 0, -inf at 0."""

    def log10(self) -> Tensor:
        """Return the logarithm of base 10 of each element."""

    def log1p(self) -> Tensor:
        """Return log(1 + x) of each element x, exact near 0."""

    def log2(self) -> Tensor:
        """Return the logarithm of base 2 of each element."""

    def log_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `log` into it."""

    def log_matrix_determinant(self) -> tuple[Tensor, Tensor]:
        """Return the sign and the logarithm of the magnitude of determinants, as `slogdet`."""

    def log_normal(self, mean: builtins.float = ..., std: builtins.float = ...) -> Tensor:
        """Return exp(x) for x from the normal distribution with mean `mean` and standard
        deviation `std`, which is positive."""

    def logaddexp(self, other: Any) -> Tensor:
        """Return log(exp(x) + exp(y)) without overflow."""

    def logaddexp2(self, other: Any) -> Tensor:
        """Return log2(2**x + 2**y) without overflow."""

    def logcumsumexp(self, axis: builtins.int) -> Tensor:
        """Return the logarithms of the running sums of exponentials along an axis, without
        overflow."""

    def logdet(self) -> Tensor:
        """Return the logarithm of determinants: NaN where a real one is negative, -inf where it
        is 0."""

    def logical_and(self, other: Any) -> Tensor:
        """Return whether both elements are true."""

    def logical_not(self) -> Tensor:
        """Return whether each element is false (0 for numbers)."""

    def logical_or(self, other: Any) -> Tensor:
        """Return whether either element is true."""

    def logical_xor(self, other: Any) -> Tensor:
        """Return whether exactly one element is true."""

    def logit(self, eps: builtins.float | None = ...) -> Tensor:
        """Return log(x / (1 - x)), where x is first limited to [eps, 1 - eps] if `eps` is given."""

    def logsumexp(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        keep_dims: Any = ...,
    ) -> Tensor:
        """Return the logarithms of sums of exponentials over axes."""

    def long(self) -> Any:
        """Return the same values as int64."""

    def lstsq(self, A: Any) -> Tensor:
        """Return the x that minimises ||`input` x - `A`||, and of several the shortest."""

    def lt(self, other: Any) -> Tensor:
        """Return whether the first element is less than the second."""

    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Tensor:
        """Return the solution x of A x = `b` from the LU decomposition of A."""

    @property
    def mH(self) -> Any:
        """The last two axes exchanged, and complex numbers conjugated."""

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""

    def masked_fill(self, mask: Any, value: Any) -> Tensor:
        """Return `input_x` with `value` where the mask holds, in the type of `input_x`; the mask
        broadcasts."""

    def masked_fill_(self, mask: Any, value: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `masked_fill` into it."""

    def masked_scatter(self, mask: Any, source: Any) -> Tensor:
        """Return `input` with the elements of `source`, in order, where the mask holds."""

    def masked_scatter_(self, mask: Any, source: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `masked_scatter` into it."""

    def masked_select(self, mask: Any) -> Tensor:
        """Return the elements where the mask holds, in order; the tensor and the mask broadcast."""

    def matmul(self, other: Any) -> Tensor:
        """Return the matrix product over the last two axes; the axes before broadcast."""

    def matrix_determinant(self) -> Tensor:
        """Return the determinants of square matrices, as `det`."""

    def matrix_power(self, n: builtins.int) -> Tensor:
        """Return the product of `n` factors `input`, by repeated squaring; the identity for 0,
        and for a negative `n` the product of factors of the inverse."""

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
        """Return the maximum over all elements, or over `axis`; over `dim` (also given by
        position) with its position, as `mycel.ops.max`."""

    def maximum(self, other: Any) -> Tensor:
        """Return the larger of two elements; NaN if either is."""

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
        """Return the mean over an axis, several, or all."""

    def median(
        self,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Any:
        """Return the medians along an axis, and their positions."""

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
        """Return the minimum over all elements, or over `axis`; over `dim` (also given by
        position) with its position, as `mycel.ops.min`."""

    def minimum(self, other: Any) -> Tensor:
        """Return the smaller of two elements; NaN if either is."""

    def mm(self, mat2: Any) -> Tensor:
        """Return the product of two matrices."""

    def move_to(self, to: str, blocking: builtins.bool = ...) -> Tensor:
        """Return a copy on the device `to`: "CPU"."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Move axes to new places; the other axes keep their order."""

    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Return the same as `moveaxis`."""

    def msort(self) -> Tensor:
        """Return the elements sorted along axis 0."""

    def mul(self, other: Any) -> Tensor:
        """Return the product of two tensors, element by element."""

    def mul_(self, other: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `mul` into it."""

    def multinomial(
        self,
        num_samples: builtins.int,
        replacement: builtins.bool = ...,
        seed: builtins.int | None = ...,
    ) -> Tensor:
        """Return positions drawn with the given weights. See `mycel.ops.multinomial`."""

    def multiply(self, value: Any) -> Tensor:
        """Return the product of two tensors, element by element."""

    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Return the logarithm of the multivariate gamma function of dimension `p`."""

    def nan_to_num(
        self,
        nan: builtins.float | None = ...,
        posinf: builtins.float | None = ...,
        neginf: builtins.float | None = ...,
    ) -> Tensor:
        """Return a tensor with NaN and infinities replaced."""

    def nanmean(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        dtype: Any = ...,
    ) -> Tensor:
        """Return the mean of those elements of `input` over `axis` (None: all axes) that are not
        NaN."""

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
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Return the `q`-quantiles of those elements of `input` along `axis` that are not NaN."""

    def nansum(
        self,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """Return the sum over axes, with NaN as 0."""

    def narrow(self, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """Return the `length` elements of `input` along `axis` that begin at `start`."""

    def ndimension(self) -> builtins.int:
        """Return the number of dimensions."""

    def ne(self, other: Any) -> Tensor:
        """Return whether two elements differ."""

    def neg(self) -> Tensor:
        """Return each element with its sign reversed."""

    def negative(self) -> Tensor:
        """Return each element with its sign reversed."""

    def nelement(self) -> Any:
        """Return the number of elements."""

    def new_empty(self, *sizes: Any, size: Any = ..., dtype: Any = ...) -> Tensor:
        """Return `mycel.ops.empty` of the sizes, one by one or as `size`, in the type of the
        tensor unless `dtype` is given."""

    def new_full(self, size: Any, fill_value: Any, *, dtype: Any = ...) -> Tensor:
        """Return `mycel.ops.full` in the type of the tensor unless `dtype` is given."""

    def new_ones(self, *sizes: Any, size: Any = ..., dtype: Any = ...) -> Tensor:
        """Return `mycel.ops.ones` of the sizes, one by one or as `size`, in the type of the
        tensor unless `dtype` is given."""

    def new_zeros(self, *sizes: Any, size: Any = ..., dtype: Any = ...) -> Tensor:
        """Return `mycel.ops.zeros` of the sizes, one by one or as `size`, in the type of the
        tensor unless `dtype` is given."""

    def nextafter(self, other: Any) -> Tensor:
        """Return the next floating-point number from each element of `input` towards `other`."""

    def nonzero(self, *, as_tuple: builtins.bool = ...) -> Any:
        """Return the int64 positions of the elements that are not 0, one row for each."""

    def norm(
        self,
        ord: Any = ...,
        dim: Any = ...,
        keepdim: builtins.bool = ...,
        *,
        dtype: Any = ...,
    ) -> Tensor:
        """Return the norm of vectors (one axis, or all elements) or of matrices (two axes)."""

    def normal_(self, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Tensor:
        """Return the tensor itself, after writing random numbers from `generator` or the default
        one."""

    def not_equal(self, other: Any) -> Tensor:
        """Return whether two elements differ."""

    def numel(self) -> Any:
        """Return the number of elements."""

    def offload(self, file_path: str) -> builtins.bool:
        """Write the values to a file, as plain bytes, free their memory, and return True."""

    def offload_file_path(self) -> str:
        """Return the empty string: values are in memory."""

    def orgqr(self, input2: Any) -> Tensor:
        """Return the first columns of the product of reflections."""

    def ormqr(
        self,
        input2: Any,
        input3: Any,
        left: builtins.bool = ...,
        transpose: builtins.bool = ...,
    ) -> Tensor:
        """Return a tensor multiplied by the product Q of reflections, whose vectors this one
        holds, as `mycel.ops.geqrf` gives them."""

    def outer(self, vec2: Any) -> Tensor:
        """Return the products of every element of one vector with every element of another."""

    @property
    def param_info(self) -> Any:
        """The attributes of a parameter; None for a tensor that is no parameter."""

    @property
    def parent_tensor_(self) -> Tensor | None:
        """Return the tensor whose elements a view shares, which is no view itself."""

    def permute(self, *axis: Any, **named: Any) -> Tensor:
        """Return the tensor with its axes in another order, given as one sequence, which may be
        named `dims`, or as numbers."""

    def pin_memory(self) -> Tensor:
        """Raise RuntimeError: there is no device that memory could be pinned for."""

    def positive(self) -> Tensor:
        """Return the argument itself."""

    def pow(self, exponent: Any) -> Tensor:
        """Raise the first operand to the power of the second."""

    def pow_(self, exponent: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `pow` into it."""

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
        """Return the product over an axis, several, or all."""

    def ptp(self, axis: Any = ..., keepdims: builtins.bool = ...) -> Tensor:
        """Return the largest less the smallest element over an axis, several, or all."""

    def put_(self, index: Any, source: Any, accumulate: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `put` into it."""

    def qr(self, some: builtins.bool = ...) -> Any:
        """Return orthonormal columns Q and upper triangular R whose product is the matrix."""

    def quantile(
        self,
        q: Any,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Return quantiles along an axis, by linear interpolation between neighbours."""

    def rad2deg(self) -> Tensor:
        """Convert radians to degrees."""

    def random_(
        self,
        from_: builtins.int = ...,
        to: builtins.int | None = ...,
        *,
        generator: Any = ...,
    ) -> Tensor:
        """Return the tensor itself, after writing random numbers from `generator` or the default
        one."""

    def random_categorical(
        self,
        num_sample: builtins.int,
        seed: builtins.int = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """See `mycel.ops.random_categorical`."""

    def ravel(self) -> Tensor:
        """Flatten a tensor to one axis, in row-major order."""

    def real(self) -> Tensor:
        """Return the real part of each element: float32 for complex64, float64 for complex128."""

    def reciprocal(self) -> Tensor:
        """Return 1 / x of each element x; float32 for integers."""

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> TensorHookHandle:
        """Call ``hook(gradient)`` when the gradient by this tensor is known; what it returns,
        unless None, replaces the gradient."""

    def relu(self, inplace: builtins.bool = ...) -> Tensor:
        """Return max(x, 0) of each element x; the derivative at 0 is 0."""

    def relu_(self, inplace: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `relu` into it."""

    def remainder(self, other: Any) -> Tensor:
        """Return the remainder of the division, with the sign of the divisor."""

    def remainder_(self, other: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `remainder` into it."""

    @staticmethod
    def remove_hook(handle_id: builtins.int) -> None:
        """Unregister the hook whose handle has this `id`, if it is still registered."""

    def renorm(self, p: Any, axis: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Scale down the slices of `input` along `axis` whose `p`-norm is above `maxnorm`, so
        that it is `maxnorm`."""

    def repeat(self, *repeats: Any) -> Tensor:
        """Return the tensor repeated along its axes, as `tile`, with at least one number for
        each axis."""

    def repeat_interleave(self, repeats: Any, axis: builtins.int | None = ...) -> Tensor:
        """Repeat each element along `axis` `repeats` times in a row; without `axis` the tensor
        is flattened first."""

    def requires_grad_(self, requires_grad: builtins.bool = ...) -> Tensor:
        """Set whether a parameter is trained, and return the tensor itself."""

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements under another shape, given as one sequence or as sizes."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Return the same elements under the shape of another tensor."""

    def resize(self, *new_shape: Any) -> Tensor:
        """Return the elements in order under another shape: the first ones, or followed by
        zeros."""

    def reverse(self, axis: Any) -> Tensor:
        """Reverse the order of the elements along the axes `axis`."""

    def reverse_sequence(
        self,
        seq_lengths: Any,
        seq_dim: builtins.int = ...,
        batch_dim: builtins.int = ...,
    ) -> Tensor:
        """Return the tensor with its first elements along an axis in reverse order, as many as
        `seq_lengths` says."""

    def roll(self, shifts: Any, dims: Any = ...) -> Tensor:
        """Shift the elements by `shifts` places along the axes `dims`; those that leave at the
        end come back at the start."""

    def rot90(self, k: builtins.int, dims: Any) -> Tensor:
        """Rotate by 90 degrees, `k` times, in the plane of the two axes `dims`, from the first
        towards the second."""

    def round(self, *, decimals: builtins.int = ...) -> Tensor:
        """Round to `decimals` decimals, ties to even."""

    def rsqrt(self) -> Tensor:
        """Return 1 / sqrt(x) of each element x."""

    def scatter(self, axis: builtins.int, index: Any, src: Any) -> Tensor:
        """Return a copy of `input` with each element of `src` written at its own position, but
        at the index in `index` along `axis`."""

    def scatter_(self, axis: builtins.int, index: Any, src: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `scatter` into it."""

    def scatter_add(self, *args: Any, **named: Any) -> Tensor:
        """Return a new tensor with elements added at positions."""

    def scatter_add_(self, dim: builtins.int, index: Any, src: Any) -> Tensor:
        """Return the tensor itself, after writing the result of `scatter_add` into it."""

    def scatter_div(self, indices: Any, updates: Any) -> Tensor:
        """Return a new tensor: `input_x` divided by `updates` at the positions that are the rows
        of `indices`."""

    def scatter_max(self, indices: Any, updates: Any) -> Tensor:
        """Return a new tensor: `input_x` raised to at least `updates` at the positions that are
        the rows of `indices`."""

    def scatter_min(self, indices: Any, updates: Any) -> Tensor:
        """Return a new tensor: `input_x` lowered to at most `updates` at the positions that are
        the rows of `indices`."""

    def scatter_mul(self, indices: Any, updates: Any) -> Tensor:
        """Return a new tensor: `input_x` multiplied by `updates` at the positions that are the
        rows of `indices`."""

    def scatter_sub(self, indices: Any, updates: Any) -> Tensor:
        """Return a new tensor: `input_x` decreased by `updates` at the positions that are the
        rows of `indices`."""

    def searchsorted(self, v: Any, side: str = ..., sorter: Any = ...) -> Tensor:
        """Return the positions at which values would be put into the tensor, which is sorted."""

    def select(self, *args: Any, **named: Any) -> Tensor:
        """Return the part at one position of an axis, ``select(dim, index)``."""

    def select_scatter(self, src: Any, axis: builtins.int, index: builtins.int) -> Tensor:
        """Return `input` with the slice at position `index` along `axis` replaced by `src`."""

    def set_(
        self,
        source: Any = ...,
        storage_offset: builtins.int = ...,
        size: Sequence[builtins.int] | None = ...,
        stride: Sequence[builtins.int] | None = ...,
    ) -> Tensor:
        """Make the tensor share the elements of another one, or of a storage, and return it."""

    def set_const_arg(self, const_arg: builtins.bool = ...) -> Tensor:
        """Mark the tensor as a constant argument, and return the tensor itself."""

    def set_dtype(self, dtype: Any) -> Any:
        """Convert the values to another element type in place, and return the type."""

    def set_init_flag(self, flag: builtins.bool) -> None:
        """Set `init_flag`. Raises TypeError for values other than True and False."""

    def sgn(self) -> Tensor:
        """Return -1, 0 or 1 by the sign of each element; z / abs(z), or 0, for complex numbers."""

    def short(self) -> Any:
        """Return the same values as int16."""

    def sigmoid(self) -> Tensor:
        """Return 1 / (1 + exp(-x)) of each element x, without overflow."""

    def sigmoid_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `sigmoid` into it."""

    def sign(self) -> Tensor:
        """Return -1, 0 or 1 by the sign of each element."""

    def sign_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `sign` into it."""

    def signbit(self) -> Tensor:
        """Return whether the sign of each element is negative, as it also is for -0."""

    def sin(self) -> Tensor:
        """Return the sine of each element in radians."""

    def sinc(self) -> Tensor:
        """Return sin(pi x) / (pi x), and 1 at 0."""

    def sinh(self) -> Tensor:
        """Return the hyperbolic sine of each element."""

    def slice_scatter(
        self,
        src: Any,
        axis: builtins.int = ...,
        start: builtins.int | None = ...,
        end: builtins.int | None = ...,
        step: builtins.int = ...,
    ) -> Tensor:
        """Return `input` with the slice ``start:end:step`` along `axis` replaced by `src`."""

    def slogdet(self) -> tuple[Tensor, Tensor]:
        """Return the sign of determinants (for complex matrices their direction) and the
        logarithm of their magnitude."""

    def soft_shrink(self, lambd: builtins.float = ...) -> Tensor:
        """Return the same as `softshrink`."""

    def softmax(self, axis: builtins.int = ..., dtype: Any = ..., *, dim: Any = ...) -> Tensor:
        """Return the soft-max along an axis. See `mycel.ops.softmax`."""

    def sort(
        self,
        axis: Any = ...,
        descending: builtins.bool = ...,
        *,
        dim: Any = ...,
        stable: builtins.bool = ...,
    ) -> Any:
        """Return `mycel.ops.sort` of the tensor."""

    def split(
        self,
        split_size_or_sections: builtins.int | Sequence[builtins.int],
        axis: builtins.int = ...,
    ) -> tuple[Tensor, ...]:
        """Split a tensor along an axis into parts of one size (the last may be smaller), or of
        the sizes in a sequence, which must add up to the size of the axis."""

    def sqrt(self) -> Tensor:
        """Return the square root of each element; NaN below 0."""

    def square(self) -> Tensor:
        """Return the square of each element."""

    def squeeze(self, axis: Any = ..., *, dim: Any = ...) -> Tensor:
        """Return the tensor without axes of size 1. See `mycel.ops.squeeze`."""

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
        """Return `mycel.ops.std` of the tensor."""

    def storage(self) -> UntypedStorage:
        """Return the bytes of the tensor."""

    def storage_offset(self) -> builtins.int:
        """Return 0: the first element is the first of its storage."""

    def stride(self, dim: builtins.int | None = ...) -> Any:
        """Return the number of elements from one to the next along each dimension, or along
        `dim`."""

    def sub(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return ``self - alpha * other``. See `mycel.ops.sub`."""

    def sub_(self, other: Any, *, alpha: Any = ...) -> Tensor:
        """Return the tensor itself, after writing the result of `sub` into it."""

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
        """Return the sum over an axis, several, or all, plus `initial`."""

    def sum_to_size(self, *size: Any) -> Tensor:
        """Return sums of the tensor that have a shape which broadcasts to its own."""

    def svd(self, full_matrices: builtins.bool = ..., compute_uv: builtins.bool = ...) -> Any:
        """Return singular values s in descending order, U and V with A = U diag(s) V^H."""

    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Exchange two axes."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Return the same as `swapaxes`."""

    @property
    def symbolic_shape(self) -> Any:
        """Return the shape that a tensor was declared with, if it has a `Symbol`; else None."""

    def t(self) -> Tensor:
        """Transpose a matrix; vectors and scalars are returned as they are."""

    def take(self, indices: Any, axis: builtins.int | None = ..., mode: str = ...) -> Tensor:
        """Return the elements at positions of the flattened tensor, or of an axis."""

    def tan(self) -> Tensor:
        """Return the tangent of each element in radians."""

    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent of each element."""

    def tanh_(self) -> Tensor:
        """Return the tensor itself, after writing the result of `tanh` into it."""

    def tensor_split(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int],
        axis: builtins.int = ...,
    ) -> tuple[Tensor, ...]:
        """Split a tensor along an axis into a number of parts, or at the positions in a
        sequence."""

    def tile(self, *given: Any, reps: Any = ..., dims: Any = ...) -> Tensor:
        """Return the tensor repeated along its axes. See `mycel.ops.tile`."""

    def to(
        self,
        *args: Any,
        dtype: Any = ...,
        device: Any = ...,
        non_blocking: builtins.bool = ...,
        copy: builtins.bool = ...,
        other: Tensor | None = ...,
    ) -> Tensor:
        """Return the same values in another element type, given as a type or by a tensor that
        has it."""

    def to_(self, device: str | None = ..., non_blocking: builtins.bool = ...) -> Tensor:
        """Return the tensor itself, which is on the CPU. Raises ValueError for other devices."""

    def to_coo(self) -> COOTensor:
        """Return the elements of a matrix that are not 0 as a COO tensor with int32 indices, in
        row-major order."""

    def to_csr(self) -> CSRTensor:
        """Return the elements of a matrix that are not 0 as a CSR tensor with int32 indices."""

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule of the tensor. See `mycel.to_dlpack`."""

    def top_k(self, k: builtins.int, sorted: builtins.bool = ...) -> tuple[Tensor, Tensor]:
        """Return the k largest elements along the last axis in order, and their int32 positions."""

    def topk(
        self,
        k: builtins.int,
        dim: builtins.int | None = ...,
        largest: builtins.bool = ...,
        sorted: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the `k` largest elements along an axis, in order, and their positions."""

    def trace(
        self,
        offset: builtins.int = ...,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
        dtype: Any = ...,
    ) -> Tensor:
        """Return the sum of a diagonal of the matrices over two axes."""

    def transpose(self, *axes: Any, **named: Any) -> Tensor:
        """Return the tensor with its axes in another order."""

    def triangular_solve(
        self,
        A: Any,
        upper: builtins.bool = ...,
        transpose: builtins.bool = ...,
        unitriangular: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """Return the solution x of the triangular system A x = this tensor, or A^T x = this
        tensor with `transpose`, and A."""

    def tril(self, diagonal: builtins.int = ...) -> Tensor:
        """Keep the elements of matrices on and below a diagonal and set the others to 0."""

    def triu(self, diagonal: builtins.int = ...) -> Tensor:
        """Keep the elements of matrices on and above a diagonal and set the others to 0."""

    def true_divide(self, divisor: Any) -> Tensor:
        """Return the quotient of two tensors, element by element; float32 for integers."""

    def trunc(self) -> Tensor:
        """Round each element towards 0."""

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
        """Return the patches of an image."""

    def uniform(
        self,
        from_: builtins.float = ...,
        to: builtins.float = ...,
        generator: Any = ...,
    ) -> Tensor:
        """Return uniform numbers in [`from_`, `to`), in the tensor's shape and type."""

    def uniform_(self, from_: Any = ..., to: Any = ..., *, generator: Any = ...) -> Tensor:
        """Return the tensor itself, after writing random numbers from `generator` or the default
        one."""

    def unique(
        self,
        sorted: builtins.bool = ...,
        return_inverse: builtins.bool = ...,
        return_counts: builtins.bool = ...,
        dim: builtins.int | None = ...,
    ) -> Any:
        """Return the distinct elements (or parts along `dim`) in increasing order."""

    def unique_consecutive(
        self,
        return_inverse: builtins.bool = ...,
        return_counts: builtins.bool = ...,
        dim: builtins.int | None = ...,
    ) -> Any:
        """Return the elements (or slices along an axis) without those equal to the one before."""

    def unique_with_pad(self, pad_num: Any) -> tuple[Tensor, Tensor]:
        """Return the distinct elements of a vector in the order of their first occurrence, and
        each element's position among them."""

    def unsorted_segment_max(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """Return, for each segment, the maximum of the slices of `x` with its number in
        `segment_ids`."""

    def unsorted_segment_min(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """Return, for each segment, the minimum of the slices of `x` with its number in
        `segment_ids`."""

    def unsorted_segment_prod(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """Return, for each segment, the product of the slices of `x` with its number in
        `segment_ids`; 1 for an empty segment."""

    def unsorted_segment_sum(self, segment_ids: Any, num_segments: Any) -> Tensor:
        """Return, for each segment, the sum of the slices of `input_x` with its number in
        `segment_ids`."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert a new axis of size 1 at `dim`."""

    def untyped_storage(self) -> UntypedStorage:
        """Return the bytes of the tensor."""

    def value(self) -> Tensor:
        """Return the tensor itself, or a tensor that shares the values of a parameter."""

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
        """Return `mycel.ops.var` of the tensor."""

    def view(self, *shape: Any, dtype: Any = ...) -> Tensor:
        """Return the same elements under another shape, or, for an element type, a tensor of the
        same bytes as numbers of that type, whose last size fits them."""

    def view_as(self, other: Tensor) -> Tensor:
        """Return `input` with the shape of `other`."""

    @property
    def virtual_flag(self) -> builtins.bool:
        """Return a mark that programs set on tensors that stand for others; nothing depends on
        it."""

    @virtual_flag.setter
    def virtual_flag(self, value: Any) -> None: ...

    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Split a tensor along axis 0, as `tensor_split` does."""

    def wait_pipeline(self) -> None:
        """Return at once: there is nothing to wait for, as operations are complete when they
        return."""

    def where(self, condition: Any, y: Any) -> Tensor:
        """Return the tensor where the condition holds, else `y`."""

    def xdivy(self, y: Any) -> Tensor:
        """Return x / y, and 0 where x is 0 and y is not NaN."""

    def xlogy(self, other: Any) -> Tensor:
        """Return x * log(y), and 0 where x is 0 and y is not NaN."""

    def zero_(self) -> Tensor:
        """Return the tensor itself, after writing zeros everywhere."""

"""Optimisation: minima of functions of one tensor, line searches, and the assignment problem.

SciPy's algorithms control the search; values and exact gradients are Mycel's, compiled once if the
function can be compiled. The algorithms need numbers, so a compiled function that calls them runs
in segments.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.staging.compiled.jit import jit
from mycel._src.staging.derivatives import value_and_grad
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import floating, number_of, operand, size_of

__all__ = ["line_search", "linear_sum_assignment", "minimize"]

METHODS = {"BFGS": "BFGS", "LBFGS": "L-BFGS-B"}
# What SciPy calls the options of MindSpore that have other names there.
_RENAMED = {"history_size": "maxcor", "line_search_maxiter": "maxls"}
_ONLY_BFGS = ("norm", "xrtol", "c1", "c2", "hess_inv0", "return_all")
_OPTIONS = frozenset(
    (*_RENAMED, *_ONLY_BFGS, "disp", "eps", "ftol", "gtol", "iprint", "maxcor", "maxfun", "maxiter", "maxls")
)


class OptimizeResults(NamedTuple):
    """The results of `minimize`.

    Args:
        x (Tensor): The position.
        success (bool): Whether it converged.
        status (int): SciPy's status.
        fun (Tensor): The value.
        jac (Tensor): The gradient.
        hess_inv (Tensor | None): The inverse Hessian (BFGS), else None.
        nfev (int): The number of values.
        njev (int): The number of gradients.
        nit (int): The number of iterations.
    """

    x: Tensor
    success: bool
    status: int
    fun: Tensor
    jac: Tensor
    hess_inv: Tensor | None
    nfev: int
    njev: int
    nit: int


class LineSearchResults(NamedTuple):
    """The results of `line_search`.

    Args:
        failed (bool): Whether no step was found.
        nit (int): The number of iterations.
        nfev (int): The number of values.
        ngev (int): The number of gradients.
        k (int): The number of iterations.
        a_k (Tensor): The step.
        f_k (Tensor): The value there.
        g_k (Tensor): The gradient there.
        status (int): 0 if both Wolfe conditions hold.
    """

    failed: bool
    nit: int
    nfev: int
    ngev: int
    k: int
    a_k: Tensor
    f_k: Tensor
    g_k: Tensor
    status: int


class _Function:
    """A function of one tensor and its gradient, computed together as float64 arrays of one
    dimension.

    `start` gives the shape and type of the tensor, `args` are further arguments of the function,
    and `jac` is its gradient, or None to differentiate it. `name` is the one in errors.
    """

    def __init__(self, name: str, function: Any, start: Tensor, args: tuple[Any, ...], jac: Any) -> None:
        for word, given in (("the function", function), ("jac", jac)):
            if given is not None or word != "jac":
                arguments.function(name, word, given)
        if not start.size:
            raise ShapeError(f"{name}: there is nothing to search in a tensor of shape {start.shape}")
        self.name, self.shape, self.dtype, self.args = name, start.shape, start.dtype, args
        self.both = jit(value_and_grad(function)) if jac is None else None
        self.function, self.jac = function, jac
        self.values = self.gradients = 0
        self.known: tuple[bytes, float, np.ndarray] | None = None

    def tensor(self, flat: np.ndarray) -> Tensor:
        return cast(Tensor(np.asarray(flat, np.float64).reshape(self.shape)), self.dtype)

    def at(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        key = np.asarray(flat, np.float64).tobytes()
        if self.known is None or self.known[0] != key:
            x = self.tensor(flat)
            if self.both is not None:
                value, gradient = self.both(x, *self.args)
            else:
                value, gradient = self.function(x, *self.args), self.jac(x, *self.args)
            value, gradient = operand(self.name, value), operand(self.name, gradient)
            if value.size != 1:
                raise ShapeError(f"{self.name}: the function must give one number, not a tensor of shape {value.shape}")
            if gradient.size != x.size:
                raise ShapeError(f"{self.name}: a gradient of shape {gradient.shape} is none of {x.shape}")
            self.known = key, float(value), gradient.asnumpy().astype(np.float64).ravel()
        return self.known[1], self.known[2]

    def value(self, flat: np.ndarray) -> float:
        self.values += 1
        return self.at(flat)[0]

    def gradient(self, flat: np.ndarray) -> np.ndarray:
        self.gradients += 1
        return self.at(flat)[1]


def _options(given: dict[str, Any], method: str) -> dict[str, Any]:
    """Return options as SciPy has them for a method; None is its own default."""
    known = {name: value for name, value in given.items() if value is not None}
    for name in known:
        if name not in _OPTIONS:
            raise TypeError(f"minimize: there is no option {name!r}; the options are {', '.join(sorted(_OPTIONS))}")
    if method == "BFGS":
        return {name: value for name, value in known.items() if name not in _RENAMED}
    return {_RENAMED.get(name, name): value for name, value in known.items() if name not in _ONLY_BFGS}


def minimize(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> OptimizeResults:
    """Return a local minimum of a function.

    Searches in float16 and float32 stop at the precision of the type.

    Args:
        func (Callable[..., Any]): A differentiable function of a tensor that returns one number.
        x0 (Tensor): Where the search begins.
        args (tuple): Further arguments of the function. Default: ().
        method (str | None): "BFGS" or "LBFGS", in upper or lower case; None for the first. Default:
            None.
        jac (Callable[..., Any] | None): A function for the gradient; None for the automatic one.
            Default: None.
        hess (None): Must be None. Default: None.
        hessp (None): Must be None. Default: None.
        bounds (None): Must be None. Default: None.
        constraints (tuple | None): Must be None. Default: ().
        tol (float | None): The tolerance at which the search ends. Default: None.
        callback (Callable[..., Any] | None): Called with x after each iteration. Default: None.
        options (dict[str, Any] | None): SciPy's, or MindSpore's: `maxiter`, `norm`, `gtol`,
            `line_search_maxiter`, `history_size`. Default: None.

    Returns:
        OptimizeResults: The minimum.

    Raises:
        ValueError: For other methods and for `hess`, `hessp`, `bounds` or `constraints`, which
            these methods do not take.

    Examples:
        >>> import mycel as ms
        >>> distance = lambda x: ((x - 1.0) ** 2).sum()
        >>> found = ms.scipy.optimize.minimize(distance, ms.ops.zeros((2,)), method="BFGS")
        >>> [round(v, 4) for v in found.x.tolist()]
        [1.0, 1.0]
    """
    from scipy.optimize import minimize as find

    for name, value in (("hess", hess), ("hessp", hessp), ("bounds", bounds), ("constraints", constraints or None)):
        if value is not None:
            raise ValueError(f"minimize: {name} is not used by BFGS and LBFGS, which are supported")
    for word, given, kind in (("method", method, str), ("options", options, dict)):
        arguments.optional("minimize", word, given, kind)
    chosen = METHODS.get("BFGS" if method is None else method.upper())
    if chosen is None:
        raise ValueError(f"minimize: method must be 'BFGS' or 'LBFGS', not {method!r}")
    start = floating("minimize", x0)
    if callback is not None:
        arguments.function("minimize", "callback", callback, "a function or None")
    f = _Function("minimize", func, start, tuple(args) if isinstance(args, (tuple, list)) else (args,), jac)
    precision = (
        {D.float64: None, D.float32: 1e-5}.get(start.dtype, 1e-2) if tol is None else number_of("minimize", "tol", tol)
    )
    told = (lambda flat: callback(f.tensor(flat))) if callback is not None else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = find(
            f.value,
            start.asnumpy().astype(np.float64).ravel(),
            jac=f.gradient,
            method=chosen,
            tol=precision,
            callback=told,
            options=_options(options or {}, chosen),
        )
    value, gradient = f.at(found.x)
    inverse = cast(Tensor(np.asarray(found.hess_inv)), start.dtype) if chosen == "BFGS" else None
    return OptimizeResults(
        f.tensor(found.x),
        bool(found.success),
        int(found.status),
        cast(Tensor(np.float64(value)), start.dtype),
        f.tensor(gradient),
        inverse,
        f.values,
        f.gradients,
        int(found.nit),
    )


def line_search(
    f: Callable[..., Any],
    xk: Any,
    pk: Any,
    jac: Any = None,
    gfk: Any = None,
    old_fval: Any = None,
    old_old_fval: Any = None,
    c1: float = 0.0001,
    c2: float = 0.9,
    maxiter: int = 20,
) -> LineSearchResults:
    """Return a step length along a direction that fulfils the strong Wolfe conditions.

    Args:
        f (Callable[..., Any]): The function.
        xk (Tensor): The position.
        pk (Tensor): The direction.
        jac (Callable[..., Any] | None): A function for the gradient; None for the automatic one.
            Default: None.
        gfk (Tensor | None): The gradient at `xk`, if it is known. Default: None.
        old_fval (Tensor | float | None): The value at `xk`, if it is known. Default: None.
        old_old_fval (Tensor | float | None): The value before. Default: None.
        c1 (float): The constant of sufficient decrease. Default: 0.0001.
        c2 (float): The constant of curvature. Default: 0.9.
        maxiter (int): After how many iterations without a step `failed` is true and the step is 0.
            Default: 20.

    Returns:
        LineSearchResults: The step, and what is known there.

    Examples:
        >>> import mycel as ms
        >>> x, p = ms.Tensor([0.0]), ms.Tensor([1.0])
        >>> ms.scipy.optimize.line_search(lambda x: ((x - 1.0) ** 2).sum(), x, p).failed
        False
    """
    from scipy.optimize import line_search as find

    name = "line_search"
    start, way = floating(name, xk), floating(name, pk)
    function = _Function(name, f, start, (), jac)
    flat = start.asnumpy().astype(np.float64).ravel()

    def number(parameter: str, value: Any) -> float | None:
        return None if value is None else float(number_of(name, parameter, value))

    known = None if gfk is None else operand(name, gfk).asnumpy().astype(np.float64).ravel()
    if way.size != start.size or known is not None and known.size != start.size:
        raise ShapeError(f"{name}: pk and gfk must have the {start.size} elements of xk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step, values, gradients, *_ = find(
            function.value,
            function.gradient,
            flat,
            way.asnumpy().astype(np.float64).ravel(),
            known,
            number("old_fval", old_fval),
            number("old_old_fval", old_old_fval),
            c1=number("c1", c1),
            c2=number("c2", c2),
            maxiter=arguments.int64(name, "maxiter", maxiter),
        )
    failed = step is None
    place = flat + (0.0 if failed else step) * way.asnumpy().astype(np.float64).ravel()
    value, gradient = function.at(place)
    return LineSearchResults(
        failed,
        int(gradients),
        int(values),
        int(gradients),
        int(gradients) + 1,
        cast(Tensor(np.float64(0.0 if failed else step)), start.dtype),
        cast(Tensor(np.float64(value)), start.dtype),
        function.tensor(gradient),
        int(failed),
    )


def linear_sum_assignment(cost_matrix: Any, maximize: Any, dimension_limit: Any = None) -> tuple[Tensor, Tensor]:
    """Return pairs of rows and columns, each used once, with the least sum of costs, or the largest
    with `maximize`.

    `cost_matrix` is (m, n); only its first `dimension_limit` columns count, by default all, and
    `maximize` is a bool or a tensor of one. The int64 results have min(m, n) elements, with
    ascending rows, and -1 where there are fewer pairs.

    >>> import mycel as ms
    >>> costs = ms.Tensor([[4.0, 1.0], [2.0, 0.0]])
    >>> [t.tolist() for t in ms.scipy.optimize.linear_sum_assignment(costs, False)]
    [[0, 1], [1, 0]]
    """
    from scipy.optimize import linear_sum_assignment as assign

    costs = operand("linear_sum_assignment", cost_matrix)
    if isinstance(maximize, Tensor) and maximize.dtype is D.bool_ and maximize.size == 1:
        maximize = bool(maximize)
    arguments.flag("linear_sum_assignment", "maximize", maximize)
    if costs.ndim != 2:
        raise ShapeError(f"linear_sum_assignment: takes a matrix, not a tensor of shape {costs.shape}")
    count = (
        costs.shape[1]
        if dimension_limit is None
        else min(size_of("linear_sum_assignment", dimension_limit), costs.shape[1])
    )
    rows, columns = assign(costs.asnumpy()[:, :count], maximize=maximize)
    result = np.full((2, min(costs.shape)), -1, np.int64)
    result[0, : len(rows)], result[1, : len(columns)] = rows, columns
    return Tensor(result[0]), Tensor(result[1])


class LinearSumAssignment:
    """The function `linear_sum_assignment` as an object.

    >>> import mycel as ms
    >>> assign = ms.scipy.optimize.LinearSumAssignment()
    >>> pairs = assign(ms.Tensor([[4.0, 1.0], [2.0, 0.0]]), 2, False)
    >>> [t.tolist() for t in pairs]
    [[0, 1], [1, 0]]
    """

    def __call__(self, cost_matrix: Any, dimension_limit: Any, maximize: Any) -> tuple[Tensor, Tensor]:
        return linear_sum_assignment(cost_matrix, maximize, dimension_limit)


__dir__ = _listing(__name__)

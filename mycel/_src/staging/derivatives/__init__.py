"""Derivatives of functions and Cells, to any order, in eager and compiled code alike.

Each transformation marks its inputs in the context in force (a new recording, an outer one, or a
graph being staged), calls the function, and asks the context to pull cotangents back from the
outputs, or to push tangents forward to them. In GRAPH_MODE a transformation called from plain
Python is compiled as a whole.
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel._src.staging.derivatives.gradient import get_grad as get_grad
from mycel._src.staging.derivatives.gradient import grad as grad
from mycel._src.staging.derivatives.gradient import stop_gradient as stop_gradient
from mycel._src.staging.derivatives.gradient import value_and_grad as value_and_grad
from mycel._src.staging.derivatives.jacobians import jacfwd as jacfwd
from mycel._src.staging.derivatives.jacobians import jacrev as jacrev
from mycel._src.staging.derivatives.jvp_vjp import derivative as derivative
from mycel._src.staging.derivatives.jvp_vjp import jet as jet
from mycel._src.staging.derivatives.jvp_vjp import jvp as jvp
from mycel._src.staging.derivatives.jvp_vjp import linearize as linearize
from mycel._src.staging.derivatives.jvp_vjp import vjp as vjp
from mycel._src.staging.derivatives.recomputation import recompute as recompute

__all__ = [
    "derivative",
    "get_grad",
    "grad",
    "jacfwd",
    "jacrev",
    "jet",
    "jvp",
    "linearize",
    "recompute",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

__dir__ = _listing(__name__)

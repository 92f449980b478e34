"""Operations that update parameters: the steps of optimizers as objects, which write the new values into the parameters that they are given.

A row of the table names the operation, its inputs (those with a star are written), a rule of `mycel.ops.updates` (or one made of it here), and what the rule takes:
the parameter, its gradient, the states, then numbers, each an input or a parameter of the object. Where there are `indices`, gradients have the rows of the parameter
that these name, rows named twice add up, and the rule sees those rows only. What is returned are the written parameters, in the order of the inputs, or the
first of them. Numbers are as float32 holds them, unless the parameter is float64, so that ``1 - beta`` is that of tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.tensor import Tensor, cast
from mycel.ops import elementwise as E
from mycel.ops import updates as R
from mycel.ops.creation import zeros_like
from mycel.ops.operations.primitive import NEEDED, definer
from mycel.ops.state import updated

__all__: list[str] = []

define = definer(globals())


def _number(given: Any, wide: bool = False) -> Any:
    """A number as float32 has it, a tensor of one element as one without dimensions."""
    if isinstance(given, float):
        return given if wide else float(np.float32(given))
    return given.reshape(()) if isinstance(given, Tensor) and given.shape == (1,) else given


def _row(name: str, inputs: str, rule: Callable[..., Any], takes: str, text: str, gives: str = "all", **parameters: Any) -> None:  # fmt: skip
    """A class of the table; `gives` is "all", "first", or "one" for a tuple of the first."""
    names = inputs.replace("*", "").split()
    written = [t[1:] for t in inputs.split() if t.startswith("*")]
    wanted = takes.split()
    parameter, gradient = wanted[:2]
    targets = [parameter, *wanted[2 : len(written) + 1]]
    assert set(targets) == set(written), f"{name} writes {written}, but its rule gives {targets}"
    by_rows = "indices" in names and "indices" not in wanted

    def update(p: Any, *values: Any) -> Any:
        if len(values) != len(names):
            raise TypeError(f"{name}: takes {len(names)} inputs ({', '.join(names)}), not {len(values)}")
        given = dict(zip(names, values))
        for t in written:
            arguments.instance(name, t, given[t], Tensor, "a Parameter or a Tensor")
        p_, g = given[parameter], given[gradient]
        if "indices" not in names and g.shape != p_.shape:
            raise ShapeError(f"{name}: {gradient} has shape {g.shape}, but {parameter} has {p_.shape}")
        states = tuple(given[t] for t in targets[1:])
        wide = p_.dtype is D.float64
        rest = [_number(given[t] if t in given else getattr(p, t), wide) for t in wanted[2 + len(states) :]]
        found = R.on_rows(rule, p_, g, given["indices"], states, *rest) if by_rows else rule(p_, g, *states, *rest)
        for t, new in zip(targets, found):
            given[t] = updated(given[t], cast(new, given[t].dtype))
        results = tuple(given[t] for t in written)
        return results if gives == "all" else results[:1] if gives == "one" else results[0]

    define(name, update if parameters else functools.partial(update, None), text, **parameters)


LOCK: dict[str, Any] = {"use_locking": False}

# Adam and its relatives.


def _adam(p: Any, g: Any, m: Any, v: Any, lr: Any, power1: Any, power2: Any, *rest: Any) -> R.Values:
    return R.adam(p, g, m, v, R.adam_rate(lr, power1, power2), *rest)


def _amsgrad(p: Any, g: Any, m: Any, v: Any, top: Any, lr: Any, power1: Any, power2: Any, beta1: Any, beta2: Any, eps: Any) -> R.Values:  # fmt: skip
    return R.adam(p, g, m, v, R.adam_rate(lr, power1, power2), beta1, beta2, eps, top=top)


def _adam_of_rows(p: Any, g: Any, m: Any, v: Any, indices: Any, *rest: Any) -> R.Values:
    return _adam(p, R.summed(g, indices, p), m, v, *rest)


def _adamax(p: Any, g: Any, m: Any, u: Any, lr: Any, power1: Any, *rest: Any) -> R.Values:
    return R.adamax(p, g, m, u, lr / (1 - power1), *rest)


def _cast_decayed(p: Any, g: Any, m: Any, v: Any, norm: Any, *rest: Any) -> R.Values:
    return R.adam_decayed(cast(p, m.dtype), cast(g, m.dtype) / norm, m, v, *rest)


_DECAYED = "var gradient m v lr beta1 beta2 epsilon decay"
_POWERS = "beta1_power beta2_power lr beta1 beta2 epsilon"
_ADAM = "lr beta1_power beta2_power beta1 beta2 epsilon"
_NESTEROV: dict[str, Any] = {**LOCK, "use_nesterov": False}

_row(
    "Adam", f"*var *m *v {_POWERS} gradient", _adam, f"var gradient m v {_ADAM} use_nesterov",
    "Adam (Kingma and Ba, 2014), or Nesterov's form of it.", **_NESTEROV,
)  # fmt: skip
_row(
    "FusedSparseLazyAdam", f"*var *m *v {_POWERS} gradient indices", _adam, f"var gradient m v {_ADAM} use_nesterov",
    "`Adam` of the rows that the gradient has.", **_NESTEROV,
)  # fmt: skip
_row(
    "FusedSparseAdam", f"*var *m *v {_POWERS} gradient indices", _adam_of_rows, f"var gradient m v indices {_ADAM} use_nesterov",
    "`Adam` with a gradient that has some rows; in the others it is 0.", **_NESTEROV,
)  # fmt: skip
_row(
    "ApplyAdamWithAmsgrad", "*var *m *v *vhat beta1_power beta2_power lr grad", _amsgrad, f"var grad m v vhat {_ADAM}",
    "Adam with the largest second moment (Reddi et al., 2018).", beta1=0.9, beta2=0.999, epsilon=1e-8, **LOCK,
)  # fmt: skip
_row(
    "ApplyAdamWithAmsgradV2", f"*var *m *v *vhat {_POWERS} grad", _amsgrad, f"var grad m v vhat {_ADAM}",
    "Adam with the largest second moment (Reddi et al., 2018).", **LOCK,
)  # fmt: skip
_row(
    "AdamWeightDecay", "*var *m *v lr beta1 beta2 epsilon decay gradient", R.adam_decayed, _DECAYED,
    "Adam with decoupled weight decay (Loshchilov and Hutter, 2017).", **LOCK,
)  # fmt: skip
_row(
    "FusedCastAdamWeightDecay", "*var *m *v lr beta1 beta2 epsilon decay gradient global_norm", _cast_decayed,
    _DECAYED.replace("m v", "m v global_norm"), "`AdamWeightDecay` of a gradient divided by its norm, computed in the type of m.", **LOCK,
)  # fmt: skip
_row(
    "ApplyAdaMax", "*var *m *v beta1_power lr beta1 beta2 epsilon grad", _adamax, "var grad m v lr beta1_power beta1 beta2 epsilon",
    "Adam with the largest instead of the mean square (Kingma and Ba, 2014).",
)  # fmt: skip


def _adam_step(o: Any, m: Any, v: Any, *values: Any) -> Tensor:
    *numbers, g = values
    power1, power2, lr, beta1, beta2, eps = (_number(n) for n in numbers)
    step, new_m, new_v = _adam(zeros_like(m), g, m, v, lr, power1, power2, beta1, beta2, eps, o.use_nesterov)
    m._replace(new_m)
    v._replace(new_v)
    return step


define("AdamNoUpdateParam", _adam_step, "The step of `Adam`, to be added to the parameter; m and v are updated.", **_NESTEROV)  # fmt: skip

# Steps by the squares of past gradients.

_row(
    "ApplyAdadelta", "*var *accum *accum_update lr rho epsilon grad", R.adadelta, "var grad accum accum_update lr rho epsilon",
    "Adadelta (Zeiler, 2012).",
)  # fmt: skip
_row(
    "SparseApplyAdadelta", "*var *accum *accum_update lr rho grad indices", R.adadelta, "var grad accum accum_update lr rho epsilon",
    "Adadelta of rows.", epsilon=NEEDED, **LOCK,
)  # fmt: skip
_row(
    "ApplyAdagrad", "*var *accum lr grad", lambda p, g, a, lr, slots: R.adagrad(p, g, a, lr, None, slots), "var grad accum lr update_slots",
    "AdaGrad (Duchi et al., 2011).", update_slots=True,
)  # fmt: skip
_row(
    "ApplyAdagradV2", "*var *accum lr grad", R.adagrad, "var grad accum lr epsilon update_slots",
    "AdaGrad with `epsilon` added to the root.", epsilon=NEEDED, update_slots=True,
)  # fmt: skip
_row(
    "SparseApplyAdagrad", "*var *accum grad indices", lambda p, g, a, lr, slots: R.adagrad(p, g, a, lr, None, slots),
    "var grad accum lr update_slots", "AdaGrad of rows.", lr=NEEDED, update_slots=True, **LOCK,
)  # fmt: skip
_row(
    "SparseApplyAdagradV2", "*var *accum grad indices", R.adagrad, "var grad accum lr epsilon update_slots",
    "AdaGrad of rows with `epsilon` added to the root.", lr=NEEDED, epsilon=NEEDED, **LOCK, update_slots=True,
)  # fmt: skip
_row(
    "ApplyAdagradDA", "*var *gradient_accumulator *gradient_squared_accumulator grad lr l1 l2 global_step", R.adagrad_da,
    "var grad gradient_accumulator gradient_squared_accumulator lr l1 l2 global_step",
    "AdaGrad by dual averaging (Duchi et al., 2011).", "first", **LOCK,
)  # fmt: skip
_row(
    "ApplyProximalAdagrad", "*var *accum lr l1 l2 grad", R.proximal_adagrad, "var grad accum lr l1 l2",
    "AdaGrad with a proximal step (Duchi and Singer, 2009).", **LOCK,
)  # fmt: skip
for _name in ("SparseApplyProximalAdagrad", "FusedSparseProximalAdagrad"):
    _row(
        _name, "*var *accum lr l1 l2 grad indices", R.proximal_adagrad, "var grad accum lr l1 l2",
        "AdaGrad with a proximal step, of rows.", **LOCK,
    )  # fmt: skip
_row(
    "ApplyRMSProp", "*var *mean_square *moment learning_rate grad decay momentum epsilon", R.rmsprop,
    "var grad mean_square moment learning_rate decay momentum epsilon", "RMSProp (Tieleman and Hinton, 2012) with momentum.", "first", **LOCK,
)  # fmt: skip
_row(
    "ApplyCenteredRMSProp", "*var *mean_gradient *mean_square *moment grad learning_rate decay momentum epsilon", R.centred_rmsprop,
    "var grad mean_square moment mean_gradient learning_rate decay momentum epsilon", "Centred RMSProp (Graves, 2013).", "first", **LOCK,
)  # fmt: skip
_row(
    "SparseApplyRMSProp", "*var *ms *mom lr grad indices", R.rmsprop, "var grad ms mom lr rho momentum epsilon",
    "RMSProp of rows.", rho=NEEDED, momentum=NEEDED, epsilon=NEEDED, **LOCK,
)  # fmt: skip
_row(
    "ApplyFtrl", "*var *accum *linear grad lr l1 l2 lr_power", R.ftrl, "var grad accum linear lr l1 l2 lr_power",
    "Follow the regularized leader (McMahan et al., 2013).", "first", **LOCK,
)  # fmt: skip
for _name in ("FusedSparseFtrl", "SparseApplyFtrl"):
    _row(
        _name, "*var *accum *linear grad indices", R.ftrl, "var grad accum linear lr l1 l2 lr_power",
        "Follow the regularized leader, of rows.", lr=NEEDED, l1=NEEDED, l2=NEEDED, lr_power=NEEDED, **LOCK,
    )  # fmt: skip
_row(
    "SparseApplyFtrlV2", "*var *accum *linear grad indices", R.ftrl, "var grad accum linear lr l1 l2 lr_power l2_shrinkage",
    "Follow the regularized leader, of rows, with ``2 * l2_shrinkage * var`` added to the gradient of `linear`.",
    lr=NEEDED, l1=NEEDED, l2=NEEDED, l2_shrinkage=NEEDED, lr_power=NEEDED, **LOCK,
)  # fmt: skip

# Descent, with momentum and by signs.


def _momentum(p: Any, g: Any, v: Any, scale: float, *rest: Any) -> R.Values:
    return R.momentum(p, g * scale, v, *rest)


def _decayed_momentum(p: Any, g: Any, v: Any, decay: Any, scale: Any, *rest: Any) -> R.Values:
    return R.momentum(p, (g + decay * p) * scale, v, *rest)


def _sgd(p: Any, g: Any, v: Any, first: Any, decay: float, lr: Any, weight: Any, damp: float, nesterov: bool) -> R.Values:  # fmt: skip
    return R.sgd(p, g + decay * p if decay else g, v, first, lr, weight, 1 - damp, nesterov)


def _add_sign(p: Any, g: Any, m: Any, lr: Any, beta: Any, alpha: Any, decay: Any) -> R.Values:
    return R.signed(p, g, m, lr, beta, lambda agreement: alpha + decay * agreement)


def _power_sign(p: Any, g: Any, m: Any, lr: Any, beta: Any, base: Any, decay: Any) -> R.Values:
    return R.signed(p, g, m, lr, beta, lambda agreement: E.exp(base * decay * agreement))


_row("ApplyGradientDescent", "*var alpha delta", lambda p, g, lr: (p - lr * g,), "var delta alpha", "``var -= alpha * delta``.", "first")  # fmt: skip
_row(
    "ApplyProximalGradientDescent", "*var alpha l1 l2 delta", lambda p, g, lr, *penalty: (R.proximal(p - lr * g, lr, *penalty),),
    "var delta alpha l1 l2", "Descent with a proximal step (Duchi and Singer, 2009).", "first",
)  # fmt: skip
_row(
    "ApplyMomentum", "*variable *accumulation learning_rate gradient momentum", _momentum,
    "variable gradient accumulation gradient_scale learning_rate momentum use_nesterov",
    "Gradient descent with momentum (Sutskever et al., 2013).", "first", use_nesterov=False, **LOCK, gradient_scale=1.0,
)  # fmt: skip
_row(
    "ApplyKerasMomentum", "*var *accum lr grad momentum", R.keras_momentum, "var grad accum lr momentum use_nesterov",
    "Momentum that holds the step itself.", **_NESTEROV,
)  # fmt: skip
_row(
    "FusedWeightScaleApplyMomentum", "weight_decay loss_scale *variable *accumulation learning_rate gradient momentum", _decayed_momentum,
    "variable gradient accumulation weight_decay loss_scale learning_rate momentum",
    "`ApplyMomentum` of the gradient ``(gradient + weight_decay * variable) * loss_scale``.", "first",
)  # fmt: skip
_row(
    "SGD", "*parameters gradient learning_rate *accum momentum *stat", _sgd,
    "parameters gradient accum stat weight_decay learning_rate momentum dampening nesterov",
    "Gradient descent with momentum, whose first step, where `stat` is above 0, is not dampened.", "first",
    dampening=0.0, weight_decay=0.0, nesterov=False,
)  # fmt: skip
_row(
    "ApplyAddSign", "*var *m lr alpha sign_decay beta grad", _add_sign, "var grad m lr beta alpha sign_decay",
    "AddSign: steps scaled by ``alpha + sign_decay * sign(grad) * sign(m)`` (Bello et al., 2017).",
)  # fmt: skip
_row(
    "ApplyPowerSign", "*var *m lr logbase sign_decay beta grad", _power_sign, "var grad m lr beta logbase sign_decay",
    "PowerSign: steps scaled by ``exp(logbase * sign_decay * sign(grad) * sign(m))`` (Bello et al., 2017).",
)  # fmt: skip

# Layers as a whole.


def _lars(o: Any, weight: Any, gradient: Any, squares: Any, slopes: Any, decay: Any, lr: Any) -> Tensor:
    return R.lars(weight, gradient, squares, slopes, _number(decay), _number(lr), o.hyperpara, o.epsilon, o.use_clip)


def _adafactor(
    p: Any, g: Any, m: Any, row: Any, column: Any, v: Any, lr: Any, eps: Any, threshold: Any, beta1: Any, beta2: Any, decay: Any,
    scaled: bool, first_moment: bool, decays: bool, norm: Any = None,
) -> R.Values:  # fmt: skip
    g = g if norm is None else g / norm
    found = R.adafactor(
        p, g, m if first_moment else None, row, column, v, lr, (eps[0], eps[1]), threshold, beta1, beta2, decay if decays else 0.0, scaled
    )  # fmt: skip
    return tuple(old if new is None else new for old, new in zip((p, m, row, column, v), found))


_STATES = "exp_avg exp_avg_sq_row exp_avg_sq_col exp_avg_sq"
_FACTORS = (
    f"epsilon clip_threshold beta1 beta2 weight_decay learning_rate gradient *param *{_STATES.replace(' ', ' *')}"
)
_OPTIONS: dict[str, Any] = {
    "enable_scale_parameter": False,
    "enable_first_moment": False,
    "enable_weight_decay": False,
}
_TAKES = f"param gradient {_STATES} learning_rate epsilon clip_threshold beta1 beta2 weight_decay {' '.join(_OPTIONS)}"

define("LARSUpdate", _lars, "The gradient scaled to the layer (You et al., 2017), from the sums of squares of weight and gradient.", epsilon=1e-5, hyperpara=0.001, use_clip=False)  # fmt: skip
_row("FusedAdaFactor", _FACTORS, _adafactor, _TAKES, "Adafactor (Shazeer and Stern, 2018); gives a tuple of the parameter.", "one", **_OPTIONS)  # fmt: skip
_row("FusedAdaFactorWithGlobalNorm", f"{_FACTORS} global_norm", _adafactor, f"{_TAKES} global_norm", "`FusedAdaFactor` of a gradient divided by its norm.", "one", **_OPTIONS)  # fmt: skip

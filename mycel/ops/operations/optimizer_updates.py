"""Operations that update parameters: the steps of optimizers as objects, which write the new values
into the parameters that they are given.

`mycel.ops.operations.update_classes` says how a class names what it takes.
"""

from __future__ import annotations

from typing import Any

from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import elementwise, optimizer_updates
from mycel.ops.creation import zeros_like
from mycel.ops.operations.attributes import real
from mycel.ops.operations.inputs import NUMBER
from mycel.ops.operations.primitive import Primitive, need_one_shape, operations_of
from mycel.ops.operations.update_classes import number, update

__all__: list[str] = []


LOCK: dict[str, Any] = {"use_locking": False}

# Adam and its relatives.


def _adam(p: Any, g: Any, m: Any, v: Any, lr: Any, power1: Any, power2: Any, *rest: Any) -> optimizer_updates.Values:
    return optimizer_updates.adam(p, g, m, v, optimizer_updates.adam_rate(lr, power1, power2), *rest)


def _amsgrad(
    p: Any, g: Any, m: Any, v: Any, top: Any, lr: Any, power1: Any, power2: Any, beta1: Any, beta2: Any, eps: Any
) -> optimizer_updates.Values:
    return optimizer_updates.adam(
        p, g, m, v, optimizer_updates.adam_rate(lr, power1, power2), beta1, beta2, eps, top=top
    )


def _adam_of_rows(p: Any, g: Any, m: Any, v: Any, indices: Any, *rest: Any) -> optimizer_updates.Values:
    return _adam(p, optimizer_updates.summed(g, optimizer_updates.without_strays(indices, p), p), m, v, *rest)


def _adamax(p: Any, g: Any, m: Any, u: Any, lr: Any, power1: Any, *rest: Any) -> optimizer_updates.Values:
    return optimizer_updates.adamax(p, g, m, u, lr / (1 - power1), *rest)


def _cast_decayed(p: Any, g: Any, m: Any, v: Any, norm: Any, *rest: Any) -> optimizer_updates.Values:
    return optimizer_updates.adam_decayed(cast(p, m.dtype), cast(g, m.dtype) / norm, m, v, *rest)


_DECAYED = "var gradient m v lr beta1 beta2 epsilon decay"
_POWERS = "beta1_power beta2_power lr beta1 beta2 epsilon"
_ADAM = "lr beta1_power beta2_power beta1 beta2 epsilon"
_NESTEROV: dict[str, Any] = {**LOCK, "use_nesterov": False}


class Adam(
    Primitive,
    compute=update(f"*var *m *v {_POWERS} gradient", _adam, f"var gradient m v {_ADAM} use_nesterov"),
    **_NESTEROV,
):
    """Adam (Kingma and Ba, 2014), or Nesterov's form of it."""


class FusedSparseLazyAdam(
    Primitive,
    compute=update(
        f"*var *m *v {_POWERS} gradient indices",
        _adam,
        f"var gradient m v {_ADAM} use_nesterov",
        whole=True,
        strays=True,
    ),
    **_NESTEROV,
):
    """Adam for the rows of the parameter that the gradient has."""


class FusedSparseAdam(
    Primitive,
    compute=update(
        f"*var *m *v {_POWERS} gradient indices",
        _adam_of_rows,
        f"var gradient m v indices {_ADAM} use_nesterov",
        whole=True,
    ),
    **_NESTEROV,
):
    """Adam with a gradient that has some rows, and is 0 in the others."""


class ApplyAdamWithAmsgrad(
    Primitive,
    compute=update("*var *m *v *vhat beta1_power beta2_power lr grad", _amsgrad, f"var grad m v vhat {_ADAM}"),
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    **LOCK,
):
    """Adam with the largest second moment (Reddi et al., 2018).

    Args:
        beta1 (float | Tensor): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float | Tensor): The weight of the running average of the squared gradient. Default:
            0.999.
        epsilon (float): Added to the denominator. Default: 1e-08.
        use_locking (bool): Has no effect. Default: False.
    """


class ApplyAdamWithAmsgradV2(
    Primitive,
    compute=update(
        f"*var *m *v *vhat {_POWERS} grad",
        _amsgrad,
        f"var grad m v vhat {_ADAM}",
        whole=True,
        many=_POWERS,
    ),
    **LOCK,
):
    """Adam with the largest second moment (Reddi et al., 2018)."""


class AdamWeightDecay(
    Primitive,
    compute=update("*var *m *v lr beta1 beta2 epsilon decay gradient", optimizer_updates.adam_decayed, _DECAYED),
    **LOCK,
):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""


class FusedCastAdamWeightDecay(
    Primitive,
    compute=update(
        "*var *m *v lr beta1 beta2 epsilon decay gradient global_norm",
        _cast_decayed,
        _DECAYED.replace("m v", "m v global_norm"),
    ),
    **LOCK,
):
    """`AdamWeightDecay` of a gradient divided by its norm, computed in the type of m."""


class ApplyAdaMax(
    Primitive,
    compute=update(
        "*var *m *v beta1_power lr beta1 beta2 epsilon grad",
        _adamax,
        "var grad m v lr beta1_power beta1 beta2 epsilon",
        name="ApplyAdaMax",
    ),
):
    """Adam with the largest instead of the mean square (Kingma and Ba, 2014)."""


def _adam_step(o: Any, m: Any, v: Any, *values: Any) -> Tensor:
    *numbers, g = values
    power1, power2, lr, beta1, beta2, eps = (number(n) for n in numbers)
    step, new_m, new_v = _adam(zeros_like(m), g, m, v, lr, power1, power2, beta1, beta2, eps, o.use_nesterov)
    m._replace(new_m)
    v._replace(new_v)
    return step


class AdamNoUpdateParam(Primitive, compute=_adam_step, **_NESTEROV, inputs=(Tensor, Tensor, *[(Tensor, float)] * 6)):
    """The step of `Adam`, to be added to the parameter; m and v are updated."""


# Steps by the squares of past gradients.


class ApplyAdadelta(
    Primitive,
    compute=update(
        "*var *accum *accum_update lr rho epsilon grad",
        optimizer_updates.adadelta,
        "var grad accum accum_update lr rho epsilon",
        name="ApplyAdadelta",
    ),
):
    """Adadelta (Zeiler, 2012)."""


class SparseApplyAdadelta(
    Primitive,
    compute=update(
        "*var *accum *accum_update lr rho grad indices",
        optimizer_updates.adadelta,
        "var grad accum accum_update lr rho epsilon",
    ),
    epsilon=real(),
    **LOCK,
):
    """Adadelta of rows."""


class ApplyAdagrad(
    Primitive,
    compute=update(
        "*var *accum lr grad",
        lambda p, g, a, lr, slots: optimizer_updates.adagrad(p, g, a, lr, None, slots),
        "var grad accum lr update_slots",
    ),
    update_slots=True,
):
    """AdaGrad (Duchi et al., 2011)."""


class ApplyAdagradV2(
    Primitive,
    compute=update("*var *accum lr grad", optimizer_updates.adagrad, "var grad accum lr epsilon update_slots"),
    epsilon=real(),
    update_slots=True,
):
    """AdaGrad with `epsilon` added to the root."""


class SparseApplyAdagrad(
    Primitive,
    compute=update(
        "*var *accum grad indices",
        lambda p, g, a, lr, slots: optimizer_updates.adagrad(p, g, a, lr, None, slots),
        "var grad accum lr update_slots",
    ),
    lr=real(),
    update_slots=True,
    **LOCK,
):
    """AdaGrad of rows."""


class SparseApplyAdagradV2(
    Primitive,
    compute=update("*var *accum grad indices", optimizer_updates.adagrad, "var grad accum lr epsilon update_slots"),
    lr=real(),
    epsilon=real(),
    **LOCK,
    update_slots=True,
):
    """AdaGrad of rows with `epsilon` added to the root.

    Args:
        lr (float | Tensor): The learning rate.
        epsilon (float): Added to the denominator.
        use_locking (bool): Has no effect. Default: False.
        update_slots (bool): Whether the accumulator is updated. Default: True.
    """


class ApplyAdagradDA(
    Primitive,
    compute=update(
        "*var *gradient_accumulator *gradient_squared_accumulator grad lr l1 l2 global_step",
        optimizer_updates.adagrad_da,
        "var grad gradient_accumulator gradient_squared_accumulator lr l1 l2 global_step",
        "first",
    ),
    inputs=(Tensor, Tensor, Tensor, Tensor, (Tensor, float), (Tensor, float), (Tensor, float), (Tensor, int)),
    **LOCK,
):
    """AdaGrad by dual averaging (Duchi et al., 2011)."""


class ApplyProximalAdagrad(
    Primitive,
    compute=update("*var *accum lr l1 l2 grad", optimizer_updates.proximal_adagrad, "var grad accum lr l1 l2"),
    **LOCK,
):
    """AdaGrad with a proximal step (Duchi and Singer, 2009)."""


class SparseApplyProximalAdagrad(
    Primitive,
    compute=update("*var *accum lr l1 l2 grad indices", optimizer_updates.proximal_adagrad, "var grad accum lr l1 l2"),
    **LOCK,
):
    """AdaGrad with a proximal step, of rows."""


class FusedSparseProximalAdagrad(
    Primitive,
    compute=update(
        "*var *accum lr l1 l2 grad indices",
        optimizer_updates.proximal_adagrad,
        "var grad accum lr l1 l2",
        whole=True,
        strays=True,
    ),
    **LOCK,
):
    """AdaGrad with a proximal step, of rows."""


class ApplyRMSProp(
    Primitive,
    compute=update(
        "*var *mean_square *moment learning_rate grad decay momentum epsilon",
        optimizer_updates.rmsprop,
        "var grad mean_square moment learning_rate decay momentum epsilon",
        "first",
        many="learning_rate",
    ),
    **LOCK,
):
    """RMSProp (Tieleman and Hinton, 2012) with momentum."""


class ApplyCenteredRMSProp(
    Primitive,
    compute=update(
        "*var *mean_gradient *mean_square *moment grad learning_rate decay momentum epsilon",
        optimizer_updates.centred_rmsprop,
        "var grad mean_square moment mean_gradient learning_rate decay momentum epsilon",
        "first",
        many="learning_rate",
    ),
    **LOCK,
):
    """Centred RMSProp (Graves, 2013)."""


class SparseApplyRMSProp(
    Primitive,
    compute=update(
        "*var *ms *mom lr grad indices", optimizer_updates.rmsprop, "var grad ms mom lr rho momentum epsilon"
    ),
    rho=real(),
    momentum=real(),
    epsilon=real(),
    **LOCK,
):
    """RMSProp of rows.

    Args:
        rho (float): The weight of the running average.
        momentum (float): The weight of the steps before.
        epsilon (float): Added to the denominator.
        use_locking (bool): Has no effect. Default: False.
    """


class ApplyFtrl(
    Primitive,
    compute=update(
        "*var *accum *linear grad lr l1 l2 lr_power",
        optimizer_updates.ftrl,
        "var grad accum linear lr l1 l2 lr_power",
        "first",
        whole=True,
    ),
    **LOCK,
):
    """Follow the regularized leader (McMahan et al., 2013)."""


class FusedSparseFtrl(
    Primitive,
    compute=update(
        "*var *accum *linear grad indices",
        optimizer_updates.ftrl,
        "var grad accum linear lr l1 l2 lr_power",
        strays=True,
    ),
    lr=real(above=0),
    l1=real(at_least=0),
    l2=real(at_least=0),
    lr_power=real(at_most=0),
    **LOCK,
):
    """Follow the regularized leader, of rows.

    Args:
        lr (float | Tensor): The learning rate.
        l1 (float): The strength of the L1 regularisation.
        l2 (float): The strength of the L2 regularisation.
        lr_power (float): The power of the learning rate, at most 0.
        use_locking (bool): Has no effect. Default: False.
    """


class SparseApplyFtrl(
    Primitive,
    compute=update(
        "*var *accum *linear grad indices",
        optimizer_updates.ftrl,
        "var grad accum linear lr l1 l2 lr_power",
        strays=True,
    ),
    lr=real(above=0),
    l1=real(at_least=0),
    l2=real(at_least=0),
    lr_power=real(at_most=0),
    **LOCK,
):
    """Follow the regularized leader, of rows.

    Args:
        lr (float | Tensor): The learning rate.
        l1 (float): The strength of the L1 regularisation.
        l2 (float): The strength of the L2 regularisation.
        lr_power (float): The power of the learning rate, at most 0.
        use_locking (bool): Has no effect. Default: False.
    """


class SparseApplyFtrlV2(
    Primitive,
    compute=update(
        "*var *accum *linear grad indices",
        optimizer_updates.ftrl,
        "var grad accum linear lr l1 l2 lr_power l2_shrinkage",
    ),
    lr=real(above=0),
    l1=real(at_least=0),
    l2=real(at_least=0),
    l2_shrinkage=real(),
    lr_power=real(at_most=0),
    **LOCK,
):
    """Follow the regularized leader, of rows, with ``2 * l2_shrinkage * var`` added to the gradient
    of `linear`.

    Args:
        lr (float | Tensor): The learning rate.
        l1 (float): The strength of the L1 regularisation.
        l2 (float): The strength of the L2 regularisation.
        l2_shrinkage (float): The factor of the shrinkage.
        lr_power (float): The power of the learning rate, at most 0.
        use_locking (bool): Has no effect. Default: False.
    """


# Descent, with momentum and by signs.


def _momentum(p: Any, g: Any, v: Any, scale: float, *rest: Any) -> optimizer_updates.Values:
    return optimizer_updates.momentum(p, g * scale, v, *rest)


def _decayed_momentum(p: Any, g: Any, v: Any, decay: Any, scale: Any, *rest: Any) -> optimizer_updates.Values:
    return optimizer_updates.momentum(p, (g + decay * p) * scale, v, *rest)


def _sgd(
    p: Any, g: Any, v: Any, first: Any, decay: float, lr: Any, weight: Any, damp: float, nesterov: bool
) -> optimizer_updates.Values:
    return optimizer_updates.sgd(p, g + decay * p if decay else g, v, first, lr, weight, 1 - damp, nesterov)


def _add_sign(p: Any, g: Any, m: Any, lr: Any, beta: Any, alpha: Any, decay: Any) -> optimizer_updates.Values:
    return optimizer_updates.signed(p, g, m, lr, beta, lambda agreement: alpha + decay * agreement)


def _power_sign(p: Any, g: Any, m: Any, lr: Any, beta: Any, base: Any, decay: Any) -> optimizer_updates.Values:
    return optimizer_updates.signed(p, g, m, lr, beta, lambda agreement: elementwise.exp(base * decay * agreement))


class ApplyGradientDescent(
    Primitive,
    compute=update(
        "*var alpha delta", lambda p, g, lr: (p - lr * g,), "var delta alpha", "first", name="ApplyGradientDescent"
    ),
):
    """Gradient descent: ``var -= alpha * delta``."""


class ApplyProximalGradientDescent(
    Primitive,
    compute=update(
        "*var alpha l1 l2 delta",
        lambda p, g, lr, *penalty: (optimizer_updates.proximal(p - lr * g, lr, *penalty),),
        "var delta alpha l1 l2",
        "first",
        name="ApplyProximalGradientDescent",
    ),
):
    """Descent with a proximal step (Duchi and Singer, 2009)."""


class ApplyMomentum(
    Primitive,
    compute=update(
        "*variable *accumulation learning_rate gradient momentum",
        _momentum,
        "variable gradient accumulation gradient_scale learning_rate momentum use_nesterov",
        "first",
    ),
    use_nesterov=False,
    **LOCK,
    gradient_scale=1.0,
):
    """Gradient descent with momentum (Sutskever et al., 2013)."""


class ApplyKerasMomentum(
    Primitive,
    compute=update(
        "*var *accum lr grad momentum", optimizer_updates.keras_momentum, "var grad accum lr momentum use_nesterov"
    ),
    **_NESTEROV,
):
    """Gradient descent with a momentum that holds the step itself."""


class FusedWeightScaleApplyMomentum(
    Primitive,
    compute=update(
        "weight_decay loss_scale *variable *accumulation learning_rate gradient momentum",
        _decayed_momentum,
        "variable gradient accumulation weight_decay loss_scale learning_rate momentum",
        "first",
        name="FusedWeightScaleApplyMomentum",
    ),
):
    """`ApplyMomentum` of the gradient ``(gradient + weight_decay * variable) * loss_scale``."""


class SGD(
    Primitive,
    compute=update(
        "*parameters gradient learning_rate *accum momentum *stat",
        _sgd,
        "parameters gradient accum stat weight_decay learning_rate momentum dampening nesterov",
        "first",
    ),
    dampening=0.0,
    weight_decay=0.0,
    nesterov=False,
):
    """Gradient descent with momentum; the first step, where `stat` is above 0, is not dampened."""


class ApplyAddSign(
    Primitive,
    compute=update(
        "*var *m lr alpha sign_decay beta grad",
        _add_sign,
        "var grad m lr beta alpha sign_decay",
        name="ApplyAddSign",
        whole=True,
    ),
):
    """AddSign: steps scaled by ``alpha + sign_decay * sign(grad) * sign(m)`` (Bello et
    al., 2017).
    """


class ApplyPowerSign(
    Primitive,
    compute=update(
        "*var *m lr logbase sign_decay beta grad",
        _power_sign,
        "var grad m lr beta logbase sign_decay",
        name="ApplyPowerSign",
        whole=True,
    ),
):
    """PowerSign: steps scaled by ``exp(logbase * sign_decay * sign(grad) * sign(m))`` (Bello et
    al., 2017).
    """


# Layers as a whole.


def _lars(o: Any, weight: Any, gradient: Any, squares: Any, slopes: Any, decay: Any, lr: Any) -> Tensor:
    need_one_shape("LARSUpdate", weight=weight, gradient=gradient)
    need_one_shape("LARSUpdate", squares=squares, slopes=slopes)
    return optimizer_updates.lars(
        weight, gradient, squares, slopes, number(decay), number(lr), o.hyperpara, o.epsilon, o.use_clip
    )


def _adafactor(
    p: Any,
    g: Any,
    m: Any,
    row: Any,
    column: Any,
    v: Any,
    lr: Any,
    eps: Any,
    threshold: Any,
    beta1: Any,
    beta2: Any,
    decay: Any,
    scaled: bool,
    first_moment: bool,
    decays: bool,
    norm: Any = None,
) -> optimizer_updates.Values:
    g = g if norm is None else g / norm
    found = optimizer_updates.adafactor(
        p,
        g,
        m if first_moment else None,
        row,
        column,
        v,
        lr,
        (eps[0], eps[1]),
        threshold,
        beta1,
        beta2,
        decay if decays else 0.0,
        scaled,
    )
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


class LARSUpdate(
    Primitive,
    compute=_lars,
    epsilon=1e-5,
    hyperpara=0.001,
    use_clip=False,
    inputs=(Tensor, Tensor, Tensor, Tensor, NUMBER, NUMBER),
):
    """The gradient scaled for the layer (You et al., 2017), from the sums of squares of weight and
    gradient.
    """


class FusedAdaFactor(Primitive, compute=update(_FACTORS, _adafactor, _TAKES, "one", plain=False), **_OPTIONS):
    """Adafactor (Shazeer and Stern, 2018); the result is a tuple of the parameter."""


class FusedAdaFactorWithGlobalNorm(
    Primitive,
    compute=update(f"{_FACTORS} global_norm", _adafactor, f"{_TAKES} global_norm", "one", plain=False),
    **_OPTIONS,
):
    """`FusedAdaFactor` of a gradient divided by its norm."""


__all__.extend(operations_of(globals()))

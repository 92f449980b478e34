"""The update rules of optimizers as functions of tensors, each written once.

A rule takes a parameter `p`, its gradient `g`, its states, and numbers or tensors without
dimensions. It returns the new parameter and the new states in the order in which they were given,
and writes nothing. In all rules `lr` is the learning rate, `eps` the small number that keeps a
divisor away from 0, and `nesterov` turns on Nesterov's look-ahead. The optimizers of `mycel.nn` and
`mycel.experimental`, and the operations that update parameters in place
(`mycel.ops.operations.optimizer_updates`), supply the numbers and write the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import elementwise
from mycel.ops.creation import ones_like, zeros_like
from mycel.ops.gather_scatter import gather, read_or_zeros, write
from mycel.ops.logic import logical_and
from mycel.ops.masked_selection import where
from mycel.ops.reduction import sum as total
from mycel.ops.segments import unsorted_segment_sum

__all__ = [
    "adadelta",
    "adagrad",
    "adagrad_da",
    "adafactor",
    "adam",
    "adam_rate",
    "adam_decayed",
    "adamax",
    "average",
    "centred_rmsprop",
    "descend",
    "ftrl",
    "keras_momentum",
    "lars",
    "lamb",
    "momentum",
    "on_rows",
    "proximal",
    "proximal_adagrad",
    "rmsprop",
    "rprop",
    "sgd",
    "signed",
    "summed",
]

Values = tuple[Tensor, ...]
sqrt, maximum, absolute, sign = elementwise.sqrt, elementwise.maximum, elementwise.abs, elementwise.sign


def average(running: Tensor, value: Tensor, weight: Any) -> Tensor:
    """Return the running average of `running` and `value`, where `weight` is the share of
    `running`.
    """
    return running * weight + value * (1 - weight)


def adam_rate(lr: Any, power1: Any, power2: Any) -> Any:
    """Return Adam's learning rate with bias correction, ``lr * sqrt(1 - power2) / (1 - power1)``.

    `power1` and `power2` are the powers of beta1 and beta2 after the steps so far.
    """
    root = math.sqrt(1 - power2) if isinstance(power2, (int, float)) else sqrt(1 - power2)
    return lr * root / (1 - power1)


def adam(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    rate: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    nesterov: bool = False,
    top: Tensor | None = None,
    spread: Any = 1.0,
) -> Values:
    """Update by Adam: m and v average g and g**2; ``p -= rate * m / (spread * sqrt(v) + eps)``.
    Kingma and Ba, 2014.

    `p` is the parameter and `g` its gradient; `m` and `v` are the states. `rate` is the learning
    rate with bias correction, `beta1` and `beta2` are the shares that m and v keep, and `spread`
    corrects v. With `nesterov` m is averaged with g once more (Dozat, 2016). With `top`, the
    largest v so far, that is used instead of v, and is the last result (Reddi et al., 2018).
    """
    m, v = average(m, g, beta1), average(v, g * g, beta2)
    direction = average(m, g, beta1) if nesterov else m
    kept = () if top is None else (maximum(top, v),)
    length = sqrt(kept[0] if kept else v)
    length = length if isinstance(spread, float) and spread == 1.0 else length * spread
    return p - rate * direction / (length + eps), m, v, *kept


def adam_decayed(
    p: Tensor, g: Tensor, m: Tensor, v: Tensor, lr: Any, beta1: Any, beta2: Any, eps: Any, decay: Any
) -> Values:
    """Update by Adam without bias correction and with decoupled weight decay (Loshchilov and
    Hutter, 2017).

    `p`, `g`, `m`, `v`, `beta1`, `beta2` and `eps` are those of `adam`; `lr` is the learning rate
    and `decay` the weight decay.
    """
    m, v = average(m, g, beta1), average(v, g * g, beta2)
    update = m / (sqrt(v) + eps)
    update = update if isinstance(decay, float) and decay == 0.0 else update + decay * p
    return p - lr * update, m, v


def lamb(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    decay: Any,
    correct1: Any,
    correct2: Any,
) -> Values:
    """Update by LAMB: Adam with a step in proportion to the parameter's norm, where neither norm is
    0 (You et al., "Large batch optimization", 2019).

    `p`, `g`, `m`, `v`, `beta1`, `beta2` and `eps` are those of `adam`; `lr` is the learning rate
    and `decay` the weight decay. `correct1` and `correct2` divide m and v to correct their bias.
    """
    m, v = average(m, g, beta1), average(v, g * g, beta2)
    update = m / correct1 / (sqrt(v / correct2) + eps)
    update = update if isinstance(decay, float) and decay == 0.0 else update + decay * p
    ratio = _ratio(total(p * p), total(update * update))
    return p - lr * ratio * update, m, v


def _ratio(squares: Any, slopes: Any, eps: Any = None, weight: Any = 0.0) -> Tensor:
    """Return ``|p| / (|u| + weight * |p| + eps)`` from sums of squares; 1 where a norm is 0."""
    size, length = sqrt(squares), sqrt(slopes)
    usable = logical_and(size > 0, length > 0)
    below = length if eps is None else length + weight * size + eps
    return where(usable, size / where(usable, below, ones_like(below)), ones_like(below))


def adamax(
    p: Tensor, g: Tensor, m: Tensor, u: Tensor, rate: Any, beta1: Any, beta2: Any, eps: Any, within: bool = False
) -> Values:
    """Update by AdaMax: Adam with the largest instead of the mean square (Kingma and Ba, 2014,
    section 7).

    `p`, `g` and `m` are those of `adam` and `u` is the decaying maximum of |g|; `rate` is the
    learning rate with bias correction, and `beta1` and `beta2` are the shares that m and u keep.
    `eps` is added to u, or with `within` to |g| before the maximum.
    """
    size = absolute(g)
    m, u = average(m, g, beta1), maximum(u * beta2, size + eps if within else size)
    return p - rate * m / (u if within else u + eps), m, u


def adadelta(p: Tensor, g: Tensor, a: Tensor, u: Tensor, lr: Any, rho: Any, eps: Any) -> Values:
    """Update by AdaDelta: steps d as large as the earlier steps were (Zeiler, 2012).

    `p` is the parameter and `g` its gradient; `a` and `u` average g**2 and d**2 and keep the share
    `rho`. `lr` is the learning rate, and `eps` is added to a and u.
    """
    a = average(a, g * g, rho)
    d = sqrt(u + eps) / sqrt(a + eps) * g
    return p - lr * d, a, average(u, d * d, rho)


def adagrad(p: Tensor, g: Tensor, a: Tensor, lr: Any, eps: Any | None = None, accumulate: bool = True) -> Values:
    """Update by AdaGrad: ``a += g**2; p -= lr * g / (sqrt(a) + eps)`` (Duchi et al., 2011).

    Without `accumulate` a stays as it is.
    """
    a = a + g * g if accumulate else a
    root = sqrt(a)
    return p - lr * g / (root if eps is None else root + eps), a


def adagrad_da(p: Tensor, g: Tensor, a: Tensor, s: Tensor, lr: Any, l1: Any, l2: Any, step: Any) -> Values:
    """Update by AdaGrad with dual averaging: p is a function of the sums a and s of g and g**2
    alone (Duchi et al., 2011).

    `p` is not read; `g` is the gradient, and `a` and `s` are the states. `lr` is the learning rate,
    `l1` and `l2` are the penalties, and `step` is the number of the step.
    """
    a, s = a + g, s + g * g
    pulled = sign(a) * maximum(absolute(a) - l1 * step, 0.0)
    return -lr * pulled / (l2 * step * lr + sqrt(s)), a, s


def proximal(q: Tensor, rate: Any, l1: Any, l2: Any) -> Tensor:
    """Return the proximal step from `q` at the learning rate `rate` for the penalty ``l1 * |p| + l2
    / 2 * p**2`` (Duchi and Singer, 2009).
    """
    return sign(q) * maximum(absolute(q) - rate * l1, 0.0) / (1 + rate * l2)


def proximal_adagrad(p: Tensor, g: Tensor, a: Tensor, lr: Any, l1: Any, l2: Any) -> Values:
    """Update by AdaGrad followed by a proximal step of the same rate.

    `p` is the parameter, `g` its gradient and `a` the sum of g**2; `lr` is the learning rate, and
    `l1` and `l2` are the penalties of `proximal`.
    """
    a = a + g * g
    rate = lr / sqrt(a)
    return proximal(p - rate * g, rate, l1, l2), a


def rmsprop(p: Tensor, g: Tensor, s: Tensor, v: Tensor, lr: Any, decay: Any, momentum: Any, eps: Any) -> Values:
    """Update by RMSProp with momentum: ``v = momentum * v + lr * g / sqrt(s + eps); p -= v``
    (Tieleman and Hinton, 2012).

    `s` averages g**2 and keeps the share `decay`.
    """
    s = average(s, g * g, decay)
    v = momentum * v + lr * g / sqrt(s + eps)
    return p - v, s, v


def centred_rmsprop(
    p: Tensor, g: Tensor, s: Tensor, v: Tensor, mean: Tensor, lr: Any, decay: Any, momentum: Any, eps: Any
) -> Values:
    """Update by RMSProp with the square of the mean gradient subtracted from s (Graves, 2013).

    `p`, `g`, `s`, `v`, `lr`, `decay`, `momentum` and `eps` are those of `rmsprop`; `mean` averages
    g as s does g**2.
    """
    s, mean = average(s, g * g, decay), average(mean, g, decay)
    v = momentum * v + lr * g / sqrt(s - mean * mean + eps)
    return p - v, s, v, mean


def ftrl(
    p: Tensor, g: Tensor, n: Tensor, z: Tensor, lr: Any, l1: Any, l2: Any, power: Any, shrink: Any = None
) -> Values:
    """Update by FTRL-Proximal, follow the regularized leader (McMahan et al., 2013): p is a
    function of the sums n of g**2 and z of adjusted gradients.

    `lr` is the learning rate, `l1` and `l2` are the penalties, and n to the power of minus `power`
    scales the learning rate. With `shrink`, ``2 * shrink * p`` is added to the gradient in z, not
    in n.
    """
    after = n + g * g
    root, before = elementwise.pow(after, -power), elementwise.pow(n, -power)
    z = z + (g if shrink is None else g + 2 * shrink * p) - (root - before) / lr * p
    q = (sign(z) * l1 - z) / (root / lr + 2 * l2)
    return where(absolute(z) > l1, q, zeros_like(q)), after, z


def momentum(p: Tensor, g: Tensor, v: Tensor, lr: Any, weight: Any, nesterov: bool = False) -> Values:
    """Update by gradient descent with momentum: ``v = weight * v + g; p -= lr * v`` (Polyak, 1964;
    Sutskever et al., 2013).

    With `nesterov` the step is along ``weight * v + g``.
    """
    v = v * weight + g
    return p - lr * (g + v * weight if nesterov else v), v


def keras_momentum(p: Tensor, g: Tensor, v: Tensor, lr: Any, weight: Any, nesterov: bool = False) -> Values:
    """Update by momentum whose state is the step itself: ``v = weight * v - lr * g; p += v``.

    With `nesterov` the step is ``weight * v - lr * g``, of the new v.
    """
    v = v * weight - g * lr
    return p + (v * weight - g * lr if nesterov else v), v


def descend(p: Tensor, g: Tensor, lr: Any) -> Values:
    """Update by gradient descent: ``p -= lr * g``."""
    return (p - lr * g,)


def sgd(p: Tensor, g: Tensor, v: Tensor, first: Tensor, lr: Any, weight: Any, fresh: Any, nesterov: bool) -> Values:
    """Update `p` by momentum whose first step, where `first` is above 0, sets v to g; later ones
    add ``fresh * g``.

    `lr` is the learning rate and `weight` the share that v keeps; with `nesterov` the step is along
    ``weight * v + g``.
    """
    v = where(first > 0, g, v * weight + g * fresh)
    return p - lr * (g + v * weight if nesterov else v), v, zeros_like(first)


def rprop(
    p: Tensor, g: Tensor, before: Tensor, size: Tensor, shrink: float, grow: float, least: Any, most: Any
) -> Values:
    """Update by resilient backpropagation (Riedmiller and Braun, 1993): an element of `p` rests for
    one step after its gradient `g` changes sign.

    `before` is the gradient of the step before and `size` holds the step of each element. A step is
    multiplied by `grow` where the sign stays and by `shrink` where it changes, and is limited to
    [`least`, `most`].
    """
    turn = g * before
    size = where(turn > 0, size * grow, where(turn < 0, size * shrink, size))
    size = elementwise.minimum(maximum(size, least), most)
    g = where(turn < 0, zeros_like(g), g)
    return p - sign(g) * size, g, size


def signed(p: Tensor, g: Tensor, m: Tensor, lr: Any, beta: Any, scale: Callable[[Tensor], Tensor]) -> Values:
    """Update by steps scaled by whether gradient and mean gradient agree in sign (Bello et al.,
    "Neural optimizer search", 2017).

    `p` is the parameter and `g` its gradient; `m` averages g and keeps the share `beta`. `lr` is
    the learning rate, and `scale` takes the product of the two signs to the factor of the step.
    """
    m = average(m, g, beta)
    return p - lr * scale(sign(g) * sign(m)) * g, m


def lars(
    p: Tensor, g: Tensor, squares: Any, slopes: Any, decay: Any, lr: Any, coefficient: float, eps: float, clip: bool
) -> Tensor:
    """Return the gradient with weight decay, scaled to the layer by LARS (You et al., 2017).

    `p` is the parameter and `g` its gradient; `squares` and `slopes` are the sums of p**2 and of
    g**2. `decay` is the weight decay, `lr` the learning rate, `coefficient` the factor of the ratio
    of the norms, and `eps` is added to its divisor. With `clip` the scale is divided by lr and is
    at most 1.
    """
    usable = logical_and(squares > 0, slopes > 0)
    rate = where(usable, coefficient * _ratio(squares, slopes, eps, decay), ones_like(slopes))
    rate = elementwise.minimum(rate / lr, 1.0) if clip else rate
    return rate * (g + decay * p)


def _rms(x: Tensor) -> Tensor:
    return sqrt(total(x * x) / x.size)


def adafactor(
    p: Tensor,
    g: Tensor,
    m: Tensor | None,
    row: Tensor | None,
    column: Tensor | None,
    v: Tensor | None,
    lr: Any,
    eps: tuple[Any, Any],
    threshold: Any,
    beta1: Any,
    beta2: Any,
    decay: Any,
    scaled: bool,
) -> tuple[Tensor | None, ...]:
    """Update by Adafactor: Adam whose v is a product of means over rows and columns where there are
    at least two dimensions (Shazeer and Stern, 2018).

    `p` is the parameter, `g` its gradient, and `m` the first moment or None; `row` and `column` are
    the means, and `v` is the second moment where they are None. `lr` is the learning rate;
    ``eps[0]`` is added to g**2. An update whose root mean square is above `threshold` is scaled
    down to it. `beta1` and `beta2` are the shares that the moments keep, and `decay` is the weight
    decay. With `scaled` the learning rate is multiplied by the root mean square of p, or by
    ``eps[1]`` if that is larger.
    """
    rate = lr * maximum(_rms(p), eps[1]) if scaled else lr
    squared = g * g + eps[0]
    if g.ndim >= 2 and row is not None and column is not None:
        row = average(row, total(squared, -1) / g.shape[-1], beta2)
        column = average(column, total(squared, -2) / g.shape[-2], beta2)
        share = row / (total(row, -1, keepdim=True) / row.shape[-1])
        update = g / sqrt(share.expand_dims(-1)) / sqrt(column.expand_dims(-2))
    else:
        assert v is not None
        v = average(v, squared, beta2)
        update = g / sqrt(v)
    update = update / maximum(_rms(update) / threshold, 1.0) * rate
    if m is not None:
        m = average(m, update, beta1)
        update = m
    p = p if isinstance(decay, float) and decay == 0.0 else p - p * decay * rate
    return p - update, m, row, column, v


def summed(g: Tensor, indices: Tensor, p: Tensor) -> Tensor:
    """Return the gradient of the whole of `p` from rows of it; rows that are named twice add up."""
    if p.ndim == 0:
        raise ShapeError("a sparse gradient updates rows, of which a parameter without axes has none")
    return unsorted_segment_sum(g, indices, p.shape[0])


def without_strays(indices: Tensor, p: Tensor) -> Tensor:
    """Return indices with -1, which sums leave out, for rows that `p` does not have."""
    return where(logical_and(indices >= 0, indices < p.shape[0]), indices, -1)


def on_rows(
    rule: Callable[..., Values],
    p: Tensor,
    g: Tensor,
    indices: Tensor,
    states: Values,
    *numbers: Any,
    strays: bool = False,
) -> Values:
    """Apply a rule ``rule(p, g, *states, *numbers)`` to the rows that `indices` name.

    Gradients of the same row are added. The other rows stay as they are. With `strays` indices of
    rows that `p` does not have are left out.
    """
    sums = summed(g, without_strays(indices, p) if strays else indices, p)
    # Negative ones would count from the end.
    indices = where(indices < 0, p.shape[0], indices) if strays else indices
    read, bounds = (read_or_zeros, "drop") if strays else (gather, "wrap")
    rows = [read(x, indices, 0) for x in (p, sums, *states)]
    found, places = rule(*rows, *numbers), indices.expand_dims(-1)
    return tuple(
        write("optimizer", x, places, new.astype(x.dtype), "set", bounds) for x, new in zip((p, *states), found)
    )

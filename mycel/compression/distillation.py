"""Knowledge distillation: soft targets, features, attention and relations of a teacher network.

    soft targets   T^2 * KL(softmax(t / T) || softmax(s / T))              Hinton et al., 2015
    hint           mean (P(s) - t)^2, P a projection that is learnt        Romero et al., 2015
    attention      mean (a(s) - a(t))^2, a(x) = m / |m|, m = sum_c x_c^2   Zagoruyko et al., 2017
    relation       Huber of distances and angles between examples          Park et al., 2019

Features are results of layers inside of the networks, called by name. They are taken from copies of
the Cells that share their parameters and have hooks on those layers, so that the networks stay as
they are. The teacher is outside of training, no gradient goes there, and its parameters belong to
nobody's optimizer or checkpoint.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.basic import Dense
from mycel.nn.layer.conv import Conv1d, Conv2d, Conv3d

__all__ = ["Distilled", "Features", "attention_loss", "hint_loss", "relation_loss", "soft_target_loss"]

_KINDS = ("hint", "attention", "relation")
_SMALL = 1e-12


def soft_target_loss(student: Tensor, teacher: Tensor, temperature: float = 4.0) -> Tensor:
    """Return how far a student's answers are from its teacher's, as a scalar.

    `student` and `teacher` are logits of the same shape with classes along the last axis;
    `temperature` divides both. It is the relative entropy times the square of the temperature, in
    the mean over all other axes. Raises ValueError for other shapes and temperatures.

    >>> import mycel as ms
    >>> from mycel.compression import soft_target_loss
    >>> x = ms.Tensor([[1.0, 2.0]])
    >>> float(soft_target_loss(x, x)), round(float(soft_target_loss(x, -x, 1.0)), 4)
    (0.0, 0.4621)
    """
    arguments.real("soft_target_loss", "temperature", temperature, above=0)
    if tuple(student.shape) != tuple(teacher.shape) or not student.ndim:
        raise ValueError(f"soft_target_loss: logits must have one shape, not {student.shape} and {teacher.shape}")
    ours = ops.log_softmax(student / temperature, -1)
    theirs = ops.log_softmax(ops.stop_gradient(teacher) / temperature, -1)
    made: Tensor = (ops.exp(theirs) * (theirs - ours)).sum(-1).mean() * temperature**2
    return made


def hint_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Return the mean square of the difference of features of one shape, as a scalar.

    No gradient goes to `teacher`. Raises ValueError where `student` has another shape.

    >>> import mycel as ms
    >>> from mycel.compression import hint_loss
    >>> float(hint_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 4.0])))
    2.0
    """
    if tuple(student.shape) != tuple(teacher.shape):
        raise ValueError(f"hint_loss: features must have one shape, not {student.shape} and {teacher.shape}")
    made: Tensor = ((student - ops.stop_gradient(teacher)) ** 2).mean()
    return made


def attention_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Return how different the places are that features are strong at, as a scalar.

    `student` and `teacher` are (N, C, *spatial), with the same N and spatial axes. Raises
    ValueError for other shapes.

    >>> import mycel as ms
    >>> from mycel.compression import attention_loss
    >>> x = ms.ops.rand(2, 3, 4, 4)
    >>> float(attention_loss(x, 2.0 * x)) < 1e-12
    True
    """
    ours, theirs = tuple(student.shape), tuple(teacher.shape)
    if len(ours) < 3 or ours[:1] + ours[2:] != theirs[:1] + theirs[2:]:
        raise ValueError(
            f"attention_loss: features must be (N, C, *spatial) of one N and space, not {ours} and {theirs}"
        )
    made: Tensor = ((_attention(student) - _attention(ops.stop_gradient(teacher))) ** 2).mean()
    return made


def _attention(x: Tensor) -> Tensor:
    strength = (x * x).mean(1).reshape(x.shape[0], -1)
    made: Tensor = strength / ops.sqrt((strength * strength).sum(1, keepdims=True) + _SMALL)
    return made


def relation_loss(student: Tensor, teacher: Tensor, distance: float = 1.0, angle: float = 2.0) -> Tensor:
    """Return how differently examples lie to each other.

    Args:
        student (Tensor): Features (N, ...) of the same N examples, of any sizes.
        teacher (Tensor): Features (N, ...) of the same N examples, of any sizes.
        distance (float): The weight of distances of pairs, over their mean. Default: 1.0.
        angle (float): The weight of angles of triples. Default: 2.0.

    Returns:
        Tensor: A scalar.

    Raises:
        ValueError: If N differs.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import relation_loss
        >>> x = ms.Tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
        >>> float(relation_loss(3.0 * x, x)) < 1e-9
        True
    """
    if student.shape[0] != teacher.shape[0]:
        raise ValueError(
            f"relation_loss: features of {student.shape[0]} and {teacher.shape[0]} examples do not compare"
        )
    ours, theirs = (_relations(x.reshape(x.shape[0], -1)) for x in (student, ops.stop_gradient(teacher)))
    return _huber(ours[0] - theirs[0]) * distance + _huber(ours[1] - theirs[1]) * angle


def _relations(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return distances over their mean, and the cosines of angles at each example."""
    apart = ops.expand_dims(x, 0) - ops.expand_dims(x, 1)
    squares = (apart * apart).sum(-1)
    other = squares > 0
    lengths = ops.where(other, ops.sqrt(ops.where(other, squares, ops.ones_like(squares))), ops.zeros_like(squares))
    count = ops.maximum(other.astype(x.dtype).sum(), ops.ones_like(lengths[0, 0]))
    away = apart / ops.expand_dims(ops.where(other, lengths, ops.ones_like(lengths)), -1)
    mean = lengths.sum() / count
    return lengths / ops.maximum(mean, ops.full_like(mean, _SMALL)), ops.matmul(away, away.swapaxes(1, 2))


def _huber(x: Tensor) -> Tensor:
    size = ops.abs(x)
    made: Tensor = ops.where(size < 1, 0.5 * x * x, size - 0.5).mean()
    return made


class Features(Cell):
    """A network that also gives the results of layers inside of it.

    * `net`: a Cell, which stays as it is; its parameters are shared.
    * `layers`: names of cells inside, as in ``net.cells_and_names()``.

    The result is that of `net` and a tuple of those of the layers; a layer that is called several
    times gives the last one. Raises ValueError for names that are not there, and where a layer was
    not called.

    >>> import mycel as ms
    >>> from mycel.compression import Features
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU(), ms.nn.Dense(3, 2))
    >>> result, (inside,) = Features(net, ["1"])(ms.ops.ones((5, 4)))
    >>> result.shape, inside.shape
    ((5, 2), (5, 3))
    """

    def __init__(self, net: Cell, layers: Sequence[str]) -> None:
        super().__init__(auto_prefix=False)
        arguments.instance("Features", "net", net, Cell, "a Cell")
        self.layers = tuple(layers)
        known = {name for name, _ in net.cells_and_names()}
        for name in self.layers:
            if name not in known:
                raise ValueError(f"Features: there is no layer {name!r} in {type(net).__name__}; see cells_and_names()")
        self.seen: dict[str, Any] = {}
        shared = {id(p): p for p in (*net.get_parameters(), *net.buffers())}
        # A copy of the Cells over the same tensors.
        self.inner = copy.deepcopy(net, dict(shared))
        found = dict(self.inner.cells_and_names())
        for name in self.layers:
            found[name].register_forward_hook(_Keeps(self.seen, name))

    def construct(self, *args: Any) -> Any:
        """Return the network's result and those of the layers."""
        self.seen.clear()
        result = self.inner(*args)
        features = []
        for name in self.layers:
            if name not in self.seen:
                raise ValueError(f"Features: the network did not call its layer {name!r}")
            features.append(self.seen[name])
        self.seen.clear()
        return result, tuple(features)


class _Keeps:
    """A hook that keeps a result."""

    def __init__(self, seen: dict[str, Any], name: str) -> None:
        self.seen, self.name = seen, name

    def __call__(self, cell: Cell, args: Any, result: Any) -> None:
        self.seen[self.name] = result


class Distilled(Cell):
    """The loss of a student that learns from labels and from a teacher, as a Cell.

    A call takes the inputs, then the label, and gives the loss; so it is trained by
    ``Model(Distilled(...), optimizer=...)`` with an optimizer of its `trainable_params()`, or as
    the network of `TrainOneStepCell`.

    Args:
        student (Cell): The Cell that learns.
        teacher (Cell): A Cell that takes the same inputs, whose parameters stay.
        loss_fn (Callable[..., Tensor] | None): The loss of results and labels, or None: then calls
            have no label. Default: None.
        hard (float): The weight of that loss; 0 leaves it out. Default: 0.1.
        soft (float): The weight of the teacher's answers; 0 leaves them out. Default: 0.9.
        temperature (float): The temperature of `soft_target_loss`. Default: 4.0.
        features (Sequence[tuple[str, str, str, float]]): What layers inside are to learn, as tuples
            (layer of the student, layer of the teacher, kind, weight), where a kind is "hint",
            "attention" or "relation". Default: ().
        inputs (Sequence[Any] | None): Example inputs, for "hint": where numbers of channels differ,
            the student's features get a projection, whose parameters are trained too. Default:
            None.

    Raises:
        ValueError, TypeError: For arguments that mean nothing.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import Distilled
        >>> student, teacher = ms.nn.Dense(4, 3), ms.nn.Dense(4, 3)
        >>> loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        >>> net = Distilled(student, teacher, loss)
        >>> net(ms.ops.ones((2, 4)), ms.Tensor([0, 1], ms.int32)).shape, len(net.trainable_params())
        ((), 2)
    """

    def __init__(
        self,
        student: Cell,
        teacher: Cell,
        loss_fn: Callable[..., Tensor] | None = None,
        *,
        hard: float = 0.1,
        soft: float = 0.9,
        temperature: float = 4.0,
        features: Sequence[tuple[str, str, str, float]] = (),
        inputs: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(auto_prefix=False)
        for name, cell in (("student", student), ("teacher", teacher)):
            arguments.instance("Distilled", name, cell, Cell, "a Cell")
        self.hard = arguments.real("Distilled", "hard", hard, at_least=0)
        self.soft = arguments.real("Distilled", "soft", soft, at_least=0)
        self.temperature = arguments.real("Distilled", "temperature", temperature, above=0)
        self.kinds: list[str] = []
        self.weights: list[float] = []
        for entry in features:
            if not isinstance(entry, (tuple, list)) or len(entry) != 4 or entry[2] not in _KINDS:
                raise ValueError(
                    "Distilled: features are (layer of the student, layer of the teacher, kind, weight) with a kind "
                    f"of {', '.join(_KINDS)}, not {entry!r}"
                )
            self.kinds.append(entry[2])
            self.weights.append(arguments.real("Distilled", "a weight of features", entry[3], at_least=0))
        if not (self.hard and loss_fn is not None) and not self.soft and not any(self.weights):
            raise ValueError("Distilled: nothing is to be learnt; give a loss_fn, soft, or features")
        self.loss_fn = loss_fn
        self.learner = Features(student, [e[0] for e in features])
        # No part of this Cell, whose parameters and modes are those of the learner.
        self.__dict__["student"] = student
        self.__dict__["_teacher"] = Features(teacher, [e[1] for e in features]).set_train(False)
        self.projections = self._projected(inputs)

    def _projected(self, inputs: Sequence[Any] | None) -> list[Cell | None]:
        """Return a projection for each hint that needs one, which is a part of this Cell."""
        made: list[Cell | None] = [None] * len(self.kinds)
        if "hint" not in self.kinds:
            return made
        if inputs is None:
            raise ValueError("Distilled: a 'hint' asks for example inputs; give inputs")
        _, ours = self.learner.set_train(False)(*inputs)
        _, theirs = self._teacher(*inputs)
        for k, (kind, a, b) in enumerate(zip(self.kinds, ours, theirs)):
            if kind == "hint" and tuple(a.shape) != tuple(b.shape):
                made[k] = layer = _projection(tuple(a.shape), tuple(b.shape))
                for parameter in layer.get_parameters():
                    parameter.name = f"projection{k}.{parameter.name}"
                self.insert_child_to_cell(f"projection{k}", layer)
        return made

    def construct(self, *args: Any) -> Tensor:
        """Return the loss, a scalar."""
        inputs = args if self.loss_fn is None else args[:-1]
        found, ours = self.learner(*inputs)
        wanted, theirs = self._teacher(*inputs)
        total: Any = 0.0
        if self.loss_fn is not None and self.hard:
            total = total + self.loss_fn(found, args[-1]) * self.hard
        if self.soft:
            total = total + soft_target_loss(found, wanted, self.temperature) * self.soft
        for kind, weight, projection, a, b in zip(self.kinds, self.weights, self.projections, ours, theirs):
            if kind == "hint":
                term = hint_loss(a if projection is None else projection(a), b)
            elif kind == "attention":
                term = attention_loss(a, b)
            else:
                term = relation_loss(a, b)
            total = total + term * weight
        made: Tensor = total
        return made


def _projection(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Cell:
    """Return a layer from features of one shape to features of another number of channels."""
    if len(ours) == len(theirs) >= 3 and ours[2:] == theirs[2:] and len(ours) <= 5:
        # (N, C, *spatial); of sequences (N, T, D) the last axis is meant where T is the same.
        if len(ours) > 3 or ours[1] != theirs[1]:
            layer = {3: Conv1d, 4: Conv2d, 5: Conv3d}[len(ours)]
            made: Cell = layer(ours[1], theirs[1], 1, has_bias=True)
            return made
    if len(ours) == len(theirs) and ours[:-1] == theirs[:-1]:
        return Dense(ours[-1], theirs[-1])
    raise ValueError(
        f"Distilled: features of shape {ours} have no projection to {theirs}; their channels alone may differ"
    )

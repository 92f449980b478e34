"""Layout specifications of users: which tensor axes are divided along which mesh axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.partition import BY_SIZE, WHOLE, Fusing, Sharding, sharding
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.parameter import Parameter

__all__ = ["Counting", "Layouts", "Spec", "grown", "one_part"]

Spec = Sequence[None | str | Sequence[str]]
Given = Sequence[Sharding | None]
Counting = Callable[[Sequence[str]], int]
Decided = tuple[Graph, Given, Mapping[Node, Sharding]]
OfParameters = Mapping[str, Spec] | Callable[[Parameter], Spec | None] | None


def one_part(axes: Sequence[str]) -> int:
    """Return that a call gives one part of an axis."""
    return 1


def grown(mesh: Mesh, shape: Sequence[Any], spec: Spec, given: Counting) -> tuple[Any, ...]:
    """Return the shape of a whole tensor on a `mesh`, of which calls give parts of `shape`.

    `spec` is its layout; of the parts along some mesh axes a call gives as many as `given` says.
    Raises ShapeError where that does not divide into so many parts.
    """
    whole = list(shape)
    for axis, names in enumerate(spec):
        if names is not None:
            axes = (names,) if isinstance(names, str) else tuple(names)
            count = given(axes)
            if whole[axis] % count:
                raise ShapeError(
                    f"axis {axis} of size {whole[axis]} is what this process gives for {count} of its devices, and "
                    "does not divide among them"
                )
            whole[axis] = whole[axis] // count * mesh.count(axes)
    return tuple(whole)


@dataclass(frozen=True)
class Layouts:
    """The layouts of a function's tensors on a mesh.

    A layout is a tuple with an entry for each axis of the tensor: None, the name of a mesh axis, or
    a tuple of names.

    Args:
        mesh (Mesh): The mesh.
        inputs (Sequence[Sequence[None | str | Sequence[str]] | None]): A layout for each tensor in
            the arguments, in their order, None where it is whole; arguments beyond are whole.
            Default: ().
        parameters (OfParameters): A function from a parameter to its layout or None, or a table by
            name; the states of an optimizer, which are named as ``moments.weight``, go with their
            parameter unless the table names them. Default: None.
        parts (bool): Whether calls are given this rank's part of each tensor in the arguments that
            is divided, instead of all of it. Default: False.
        fusing (Fusing): Which collectives are joined to one message; messages go while others are
            computed, so that smaller ones may begin earlier. Default: Fusing(sums=None,
            scatters=None, gathers=None, cuts=()).
        gather_again (bool | Callable[[Parameter], bool]): Whether a divided parameter is gathered
            for the backward pass once more, which takes a message, instead of kept whole from the
            forward pass, which takes memory; for all parameters or as a function of one. It also is
            where `Parameter.parallel_optimizer_comm_recompute` is True. Default: False.
        wide_sums (str): Which sums of floats of 16 bits the ranks make in float32, which takes
            twice the bytes: those of "gradients", "all" of them, or "" for none. Default: "".

    Raises:
        ValueError: For another one.
    """

    mesh: Mesh
    inputs: Sequence[Spec | None] = ()
    parameters: OfParameters = None
    parts: bool = False
    fusing: Fusing = BY_SIZE
    gather_again: bool | Callable[[Parameter], bool] = False
    wide_sums: str = ""

    def __post_init__(self) -> None:
        arguments.one_of("Layouts", "wide_sums", self.wide_sums, ("", "gradients", "all"))

    def of_input(self, number: int, type: TensorType) -> Sharding:
        """Return the layout of a tensor in the arguments, of the whole tensor's `type`."""
        spec = self.inputs[number] if number < len(self.inputs) else None
        return WHOLE if spec is None else self._made(type, spec, f"argument {number}")

    def decided(self, graph: Graph, inputs: Given, outputs: Given, tied: Mapping[int, int]) -> Decided:
        """Return a graph to divide that does the same, the layouts of its inputs, and divisions
        that are decided.

        Args:
            graph (Graph): The graph.
            inputs (Sequence[Sharding | None]): The layouts asked for.
            outputs (Sequence[Sharding | None]): The layouts of the graph's outputs, None where they
                are open.
            tied (Mapping[int, int]): The inputs that outputs replace.

        Returns:
            tuple[Graph, Sequence[Sharding | None], Mapping[Node, Sharding]]: The three of them.
        """
        return graph, inputs, {}

    def divided(self, parameters: Mapping[str, tuple[Parameter, Sharding]]) -> None:
        """Take note of the layouts that a divided program has given its parameters, by name."""

    def made(self, version: Any, parts: Any) -> None:
        """Take note of a version of a function and how it was divided
        (`version_partition.VersionParts`).
        """

    def of_captured(self, tensor: Any, type: TensorType) -> Sharding | None:
        """Return the layout of a tensor from outside: a parameter, or a whole one.

        None is as its first user has it.
        """
        if not isinstance(tensor, Parameter) or self.parameters is None:
            return WHOLE
        asked = self.parameters
        spec = asked(tensor) if callable(asked) else _named(asked, tensor.name)
        return WHOLE if spec is None else self._made(type, spec, f"parameter {tensor.name!r}")

    def again(self, tensor: Any) -> bool:
        """Return whether a tensor from outside is gathered for the backward pass once more."""
        if not isinstance(tensor, Parameter):
            return False
        asked = self.gather_again
        return tensor.parallel_optimizer_comm_recompute or (asked(tensor) if callable(asked) else asked)

    def whole_shape(self, number: int, shape: Sequence[Any], given: Counting = one_part) -> tuple[Any, ...]:
        """Return the shape of a whole argument of which calls are given parts of `shape`.

        Of those along some mesh axes a call gives as many as `given` says.
        """
        spec = self.inputs[number] if self.parts and number < len(self.inputs) else None
        if spec is None:
            return tuple(shape)
        if len(spec) > len(shape):
            raise ShapeError(f"argument {number} has {len(shape)} axes, its layout {tuple(spec)} has {len(spec)}")
        return grown(self.mesh, shape, spec, given)

    def _made(self, type: TensorType, spec: Spec, what: str) -> Sharding:
        try:
            return sharding(self.mesh, type.shape, spec)  # type: ignore[arg-type]
        except ShapeError as error:
            raise ShapeError(f"the layout {tuple(spec)} of {what}, {type}: {error}") from error


def _named(table: Mapping[str, Spec], name: str) -> Spec | None:
    while name not in table and "." in name:
        name = name.partition(".")[2]
    return table.get(name)

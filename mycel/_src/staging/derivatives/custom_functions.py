"""`CustomFunction`: a class with a derivative of its own; `no_gradients`: stops derivatives."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation.errors import GradientError, Unsupported
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.gradient_hooks import attach, call_user, gradient_like, zeros_of
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["CustomFunction", "no_gradients", "refused"]


class CustomFunction:
    """A function of tensors with a derivative of its own: subclasses define `forward` and
    `backward`, and are called by `apply`.

    Both are static methods whose first argument is an object of the class, the call's own: it may
    hold attributes, and `save_for_backward` keeps tensors. `backward` gets a gradient for each
    output, None for one that is no tensor, and returns a gradient, or None, for each argument. A
    class that defines `setup_context` too is called as ``forward(*args)`` and then
    ``setup_context(ctx, args, output)``.

    >>> import mycel as ms
    >>> from mycel._src.staging.derivatives.custom_functions import CustomFunction
    >>> class Square(CustomFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return gradient * x * 20
    >>> float(ms.grad(Square.apply)(ms.Tensor(3.0)))
    60.0
    """

    setup_context: Any = None

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._without: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._fills = True
        self.needs_input_grad: tuple[bool, ...] = ()

    @staticmethod
    def forward(*args: Any) -> Any:
        """Compute the outputs; subclasses define it."""
        raise NotImplementedError("forward is not defined; define it to say what apply() computes")

    @staticmethod
    def backward(*args: Any) -> Any:
        """Compute the gradients by the arguments of `forward`; subclasses define it."""
        raise NotImplementedError("backward is not defined; define it to say what the gradients are")

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, in place of those kept before.

        Raises RuntimeError for what is neither a tensor nor None.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise RuntimeError(f"save_for_backward: takes tensors and None, not {type(t).__name__}")
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that `save_for_backward` kept."""
        return self._saved

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Note that outputs are constants for differentiation."""
        self._without = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Note that `forward` writes into arguments, which are to be returned as outputs."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether `backward` gets zeros, or else None, for an output that nothing depends on.

        Compiled functions always give zeros.
        """
        self._fills = bool(value)

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Return the outputs of `forward` for these arguments."""
        made = cls()
        context = eager.current_context()
        made.needs_input_grad = tuple([context is not None and isinstance(a, Tensor) for a in args])
        if context is not None and context.staging is not None:
            context.staging.created(made)
            output = made._forward(args)
        else:
            with eager.use_context(None):
                output = made._forward(args)
        if context is None:
            return output
        operands = [a for a in args if isinstance(a, Tensor)]
        outputs = output if isinstance(output, tuple) else (output,)
        chosen = [i for i, v in enumerate(outputs) if isinstance(v, Tensor) and not any(v is w for w in made._without)]
        values = [outputs[i] for i in chosen]
        if not operands or not values:
            return output
        rule = Rule(functools.partial(made._gradients, args, outputs, chosen))
        rule.fills = made._fills
        result = list(outputs)
        for i, t in zip(chosen, attach(values, operands, rule)):
            result[i] = t
            if any(outputs[i] is d for d in made._dirty):
                outputs[i]._replace(t)
        return tuple(result) if isinstance(output, tuple) else result[0]

    def _forward(self, args: tuple[Any, ...]) -> Any:
        if self.setup_context is None:
            return call_user(type(self).forward, self, *args)
        output = call_user(type(self).forward, *args)
        call_user(type(self).setup_context, self, args, output)
        return output

    def _gradients(
        self,
        args: tuple[Any, ...],
        outputs: tuple[Any, ...],
        chosen: Sequence[int],
        values: Sequence[Tensor],
        cotangents: Sequence[Tensor | None],
    ) -> list[Tensor | None]:
        """Return the gradients by the tensors among `args`.

        `outputs` are what `forward` returned, and `cotangents` those of the outputs at the
        positions `chosen`; `values`, these outputs, is not used.
        """
        given: list[Tensor | None] = [None] * len(outputs)
        for i, c in zip(chosen, cotangents):
            given[i] = c
        if self._fills:
            for i, v in enumerate(outputs):
                if given[i] is None and isinstance(v, Tensor):
                    given[i] = zeros_of(v._type)
        found = call_user(type(self).backward, self, *given)
        grads = found if isinstance(found, tuple) else (found,)
        name = f"{type(self).__name__}.backward"
        if len(grads) < len(args) or any(g is not None for g in grads[len(args) :]):
            raise GradientError(
                f"{name} returned {len(grads)} gradients for {len(args)} arguments; give one, or None, for each"
            )
        result: list[Tensor | None] = []
        for i, (argument, g) in enumerate(zip(args, grads)):
            if isinstance(argument, Tensor):
                result.append(None if g is None else gradient_like(f"{name}, for argument {i},", g, argument))
            elif g is not None:
                raise GradientError(f"{name}: argument {i} is no tensor and has no gradient; return None for it")
        return result


class _Local(threading.local):
    depth = 0


_local = _Local()


class no_gradients:
    """A block, or with parentheses a decorator of functions, through which no derivative passes.

    What is computed within it is constant for a gradient around it, and no gradient can be taken
    there. Compiled functions refuse it; `stop_gradient` does the same for one tensor.

    >>> import mycel as ms
    >>> from mycel._src.staging.derivatives.custom_functions import no_gradients
    >>> def f(x):
    ...     with no_gradients():
    ...         y = x * x
    ...     return y * x
    >>> float(ms.grad(f)(ms.Tensor(3.0)))
    9.0
    """

    def __enter__(self) -> None:
        context = eager.current_context()
        if context is not None and context.is_staging:
            raise Unsupported("a block without gradients is not compiled; use stop_gradient on the values instead")
        self._block = eager.use_context(None)
        self._block.__enter__()
        _local.depth += 1

    def __exit__(self, *error: object) -> None:
        _local.depth -= 1
        self._block.__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)

        return run


def refused() -> bool:
    """Return whether a block without gradients is in force in this thread."""
    return _local.depth > 0

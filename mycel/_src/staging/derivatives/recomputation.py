"""`recompute` (gradient checkpointing): the backward pass computes a part's values anew.

It saves memory for more work (`prims.control_flow.recompute`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.core import eager

__all__ = ["recompute"]


def recompute(
    block: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = True,
    output_recompute: bool = False,
    early_stop: bool = True,
    context_fn: Any = None,
    **kwargs: Any,
) -> Any:
    """Call a Cell or function so that a gradient keeps only its inputs, and the backward pass
    computes the values inside anew.

    Values, gradients of any order, random numbers and writes to parameters are those of a plain
    call; the memory of a training step shrinks, at the cost of one more forward pass through
    `block`. A loop inside keeps about as many states as the square root of its number of rounds.
    Inside an eagerly recorded block, hooks and Cells that define `bprop` make the block keep its
    values. After Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost",
    2016.

    Args:
        block (Callable[..., Any]): The Cell or function.
        *args (Any): Its arguments.
        use_reentrant (bool): Chooses among MindSpore's ways of doing this; has no effect here.
            Default: True.
        output_recompute (bool): Chooses among MindSpore's ways of doing this; has no effect here.
            Default: False.
        early_stop (bool): Chooses among MindSpore's ways of doing this; has no effect here.
            Default: True.
        context_fn (None): Must be None: which operations are kept cannot be chosen. Default: None.
        **kwargs (Any): Its arguments by name.

    Returns:
        Any: What `block` returns.

    Raises:
        ValueError: For a `context_fn`, as which operations are kept cannot be chosen.

    Examples:
        >>> import mycel as ms
        >>> def f(x):
        ...     return ms.recompute(lambda v: (v * v).exp(), x).sum()
        >>> ms.grad(f)(ms.Tensor([0.0, 1.0])).asnumpy().round(4).tolist()
        [0.0, 5.436600208282471]
    """
    arguments.function("recompute", "block", block, "a Cell or a function")
    if context_fn is not None:
        raise ValueError(
            "recompute: context_fn is not supported, as which operations are kept cannot be chosen; leave it out"
        )
    context = eager.current_context()
    if context is None:
        return block(*args, **kwargs)
    return context.differentiating.recompute(lambda *a, **k: context.invoke(block, a, k), args, kwargs)

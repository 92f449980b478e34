"""Hooks of Cells (forward and backward), a Cell's own `bprop`, and `recompute`.

Forward hooks are called before and after `construct`.
"""

from __future__ import annotations

import functools
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.forward_reuse import record_call
from mycel._src.tensors.core.autograd.gradient_hooks import attach_bprop, by_position, watch_cell
from mycel._src.tensors.core.autograd.saved_tensors import saved_tensors_hooks
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["CellHooks", "HookHandle", "WithKwargs", "state_epoch"]


class _Epoch:
    """A counter that moves whenever an attribute of any cell is set."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


state_epoch = _Epoch()


class HookHandle:
    """The handle of a registered hook, whose `remove` unregisters it."""

    def __init__(self, table: dict[int, Any], key: int) -> None:
        self._table, self._key = table, key

    def remove(self) -> None:
        """Unregister the hook; a second call does nothing."""
        self._table.pop(self._key, None)
        state_epoch.value += 1


class WithKwargs:
    """A forward hook that is called with the keyword arguments too, unless `plain`.

    With `always` it is called also where `construct` raises.
    """

    def __init__(self, function: Any, plain: bool = False, always: bool = False) -> None:
        self.function, self.plain, self.always = function, plain, always

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _has_defaults(function: Any) -> bool:
    return bool(getattr(function, "__defaults__", None))


class CellHooks:
    """The part of `Cell` that registers and runs hooks."""

    _pre_hooks: Any
    _hooks: Any
    _backward_pre_hooks: Any
    _backward_hooks: Any
    _recomputed: bool
    _saved_hooks: Any = None
    construct: Any
    run_with_hooks: Any
    get_parameters: Any

    def _add_hook(self, table: str, hook: Any, prepend: bool = False) -> HookHandle:
        target = getattr(hook, "function", hook)
        arguments.function(type(self).__name__, "a hook", target)
        hooks = self.__dict__[table]
        key = max(hooks, default=-1) + 1
        hooks[key] = hook
        if prepend:
            hooks.move_to_end(key, last=False)
        state_epoch.value += 1
        return HookHandle(hooks, key)

    def register_forward_pre_hook(
        self, hook_fn: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs)`` before `construct`; what it returns, unless None, replaces
        the inputs.

        With `prepend` the hook is called before those that are registered already, and with
        `with_kwargs` as ``hook_fn(cell, args, kwargs)``, which returns both. Returns a handle whose
        `remove()` unregisters the hook. Raises TypeError for what is not callable.
        """
        return self._add_hook("_pre_hooks", (hook_fn if not with_kwargs else WithKwargs(hook_fn)), prepend)

    def register_forward_hook(
        self, hook_fn: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> HookHandle:
        """Call ``hook_fn(cell, inputs, output)`` after `construct`; what it returns, unless None,
        replaces the output.

        `prepend` and `with_kwargs` are those of `register_forward_pre_hook`; with `always_call` the
        hook is called also where `construct` raises, with an output of None. Returns a handle whose
        `remove()` unregisters the hook. Raises TypeError for what is not callable.
        """
        wrapped = WithKwargs(hook_fn) if with_kwargs else hook_fn
        if always_call:
            wrapped = WithKwargs(hook_fn, plain=not with_kwargs, always=True)
        return self._add_hook("_hooks", wrapped, prepend)

    def register_backward_pre_hook(self, hook_fn: Any) -> HookHandle:
        """Call ``hook_fn(cell, grad_output)`` before the gradient goes back through the cell; what
        it returns, unless None, replaces `grad_output`.

        `grad_output` is a tuple with one gradient for each output of floating type. Returns a
        handle whose `remove()` unregisters the hook. Raises TypeError for what is not callable.
        """
        return self._add_hook("_backward_pre_hooks", hook_fn)

    def register_backward_hook(self, hook_fn: Any) -> HookHandle:
        """Call ``hook_fn(cell, grad_input, grad_output)`` after the gradient went back through the
        cell; what it returns, unless None, replaces `grad_input`.

        Both are tuples with one gradient for each input or output of floating type; the gradient by
        an input on which no derivative depends is None. Returns a handle whose `remove()`
        unregisters the hook. Raises TypeError for what is not callable.

        >>> import mycel as ms
        >>> net = ms.nn.ReLU()
        >>> scale = lambda cell, grad_input, grad_output: (grad_input[0] * 10,)
        >>> handle = net.register_backward_hook(scale)
        >>> ms.grad(net)(ms.Tensor([1.0, -1.0])).asnumpy().tolist()
        [10.0, 0.0]
        """
        return self._add_hook("_backward_hooks", hook_fn)

    @property
    def enable_backward_hook(self) -> bool:
        """Whether a backward hook is registered here."""
        return bool(self._backward_hooks or self._backward_pre_hooks)

    def recompute(
        self,
        *,
        use_reentrant: bool = True,
        output_recompute: bool = False,
        early_stop: bool = True,
        context_fn: Any = None,
        **kwargs: Any,
    ) -> None:
        """Let gradients compute the values inside `construct` anew instead of keeping them, as
        `mycel.recompute` does for one call.

        `use_reentrant`, `output_recompute` and `early_stop` have no effect here, and neither have
        MindSpore's `mp_comm_recompute`, `parallel_optimizer_comm_recompute` and
        `recompute_slice_activation`. Raises TypeError for options that are no flags, ValueError for
        other options and for a `context_fn`, as which operations are kept cannot be chosen.

        >>> import mycel as ms
        >>> net = ms.nn.Sigmoid()
        >>> net.recompute()
        >>> float(ms.grad(net)(ms.Tensor(0.0)))
        0.25
        """
        flags = ("mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation")
        arguments.flag("recompute", "output_recompute", output_recompute)
        for name, value in kwargs.items():
            if name not in flags:
                raise ValueError(f"recompute: there is no option {name!r}; the options are {', '.join(flags)}")
            arguments.flag("recompute", name, value)
        if context_fn is not None:
            raise ValueError(
                "recompute: context_fn is not supported, as which operations are kept cannot be chosen; leave it out"
            )
        self._recomputed = True

    def register_saved_tensors_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Let `construct` run within `mycel.saved_tensors_hooks` of these hooks.

        Raises TypeError for hooks that cannot be called.

        >>> import mycel as ms
        >>> net = ms.nn.Sigmoid()
        >>> net.register_saved_tensors_hooks(lambda t: t.asnumpy().copy(), ms.Tensor)
        >>> float(ms.grad(net)(ms.Tensor(0.0)))
        0.25
        """
        saved_tensors_hooks(pack_hook, unpack_hook)
        self.__dict__["_saved_hooks"] = (pack_hook, unpack_hook)
        state_epoch.value += 1

    def _after(self, invoke: Any, hook: Any, args: Any, kwargs: Any, output: Any) -> Any:
        if not isinstance(hook, WithKwargs):
            return invoke(hook, self, args, output)
        if hook.plain:
            return invoke(hook.function, self, args, output)
        return invoke(hook.function, self, args, kwargs, output)

    def _after_hooks(self, invoke: Any, args: Any, kwargs: Any, output: Any) -> Any:
        """Return the output after the forward hooks."""
        for hook in self._hooks.values():
            changed = self._after(invoke, hook, args, kwargs, output)
            if changed is not None:
                output = changed
        return output

    def _after_failure(self, invoke: Any, args: Any, kwargs: Any, error: Exception) -> None:
        """Call the forward hooks that are called also where `construct` raises.

        Raises TypeError if the `error` of a Cell of the library is due to an argument that is no
        tensor.
        """
        for hook in self._hooks.values():
            if isinstance(hook, WithKwargs) and hook.always:
                self._after(invoke, hook, args, kwargs, None)
        if isinstance(error, AttributeError) and type(self).__module__.startswith("mycel."):
            for value in args:
                if value is error.obj and not isinstance(value, Tensor):
                    raise TypeError(f"{type(self).__name__}: takes tensors, not {type(value).__name__}") from None

    def _call_recorded(self, args: tuple[Any, ...]) -> Any:
        """Call the cell, and keep the recording for the gradient that `set_grad` announced."""
        own = self.__dict__
        own["_recorded_call"] = None
        known = own.get("_parameters_known")
        if known is None or known[0] != state_epoch.value:
            known = own["_parameters_known"] = (state_epoch.value, list(self.get_parameters()))
        out, own["_recorded_call"] = record_call(self, args, known[1])
        return out

    def _differentiated(self, construct: Any, args: Any, kwargs: Any, finish: Any = None) -> Any:
        """Return ``construct(*args, **kwargs)`` with what the user defines of its derivative:
        `bprop`, backward hooks, and hooks on saved values.

        `finish`, unless None, changes the output before backward hooks are attached to it.
        """
        if self._saved_hooks is not None:
            with saved_tensors_hooks(*self._saved_hooks):
                return self._own_derivative(construct, args, kwargs, finish)
        return self._own_derivative(construct, args, kwargs, finish)

    def _own_derivative(self, construct: Any, args: Any, kwargs: Any, finish: Any) -> Any:
        bprop = getattr(type(self), "bprop", None)
        before, after = self._backward_pre_hooks, self._backward_hooks
        context = eager.local.context
        if self._recomputed and context is not None:
            plain = construct
            recompute = context.differentiating.recompute
            construct = lambda *a, **k: recompute(plain, a, k)
        if context is None or (bprop is None and not before and not after):
            output = construct(*args, **kwargs)
            return output if finish is None else finish(output)
        if bprop is not None and (kwargs or _has_defaults(type(self).construct)):
            args = by_position(self, args, kwargs)

        def run(*given: Any) -> Any:
            if bprop is None:
                output = construct(*given, **kwargs)
            else:
                output = attach_bprop(self, functools.partial(bprop, self), given, construct(*given))
            return output if finish is None else finish(output)

        if not before and not after:
            return run(*args)
        return watch_cell(self, list(before.values()), list(after.values()), args, run)

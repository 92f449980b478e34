"""`state_dict`: a Cell's parameters, buffers and extra state by paths of attributes.

`state_dict` and `load_state_dict` walk the tree of Cells once; a Cell takes part through
`get_extra_state` and `set_extra_state`, and observers through hooks around both walks. Loading
writes into the parameters that are there, so that optimizers and compiled code go on seeing them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.migration_hints import OF_CELLS
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["CellState", "IncompatibleKeys"]

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The keys of the state that `load_state_dict` did not find, and those that it did
    not expect.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class _Handle:
    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Unregister the hook; a second call does nothing."""
        self._hooks[:] = [h for h in self._hooks if h is not self._hook]


class CellState:
    """The part of `Cell` that collects and loads its state, and finds its parts by path."""

    # Finding parts.

    def get_sub_cell(self, target: str) -> Any:
        """Return the Cell at a path such as "block.0"; the Cell itself for "".

        Raises AttributeError where there is none.

        >>> import mycel as ms
        >>> ms.nn.SequentialCell(ms.nn.ReLU()).get_sub_cell("0")
        ReLU()
        """
        arguments.text("get_sub_cell", "target", target)
        found: Any = self
        for name in target.split(".") if target else ():
            cells = found.__dict__["_cells"]
            if cells.get(name) is None:
                what = "is not a Cell" if hasattr(found, name) else "does not exist"
                raise AttributeError(f"get_sub_cell: {target!r}: {name!r} in a {type(found).__name__} {what}")
            found = cells[name]
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path such as "norm.steps". Raises AttributeError if there is none.

        >>> import mycel as ms
        >>> net = ms.nn.Cell()
        >>> net.register_buffer("steps", ms.Tensor(3))
        >>> int(net.get_buffer("steps"))
        3
        """
        path, _, name = target.rpartition(".")
        owner = self.get_sub_cell(path)
        if name not in owner.__dict__["_buffers"]:
            what = "is not a buffer" if hasattr(owner, name) else "does not exist"
            raise AttributeError(f"get_buffer: {target!r}: {name!r} in a {type(owner).__name__} {what}")
        found: Tensor = owner.__dict__[name]
        return found

    # State.

    # What programs for other frameworks look for, with what to write instead.
    _names_elsewhere = OF_CELLS

    def __getattr__(self, name: str) -> Any:
        # Programs enter parameters and cells into the tables themselves, too.
        for table in ("_params", "_cells"):
            found = self.__dict__.get(table, {}).get(name)
            if found is not None:
                return found
        hint = type(self)._names_elsewhere.get(name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{f'; {hint}' if hint else ''}")

    def get_extra_state(self) -> Any:
        """Return the state of a Cell beside its parameters and buffers.

        Subclasses define it together with `set_extra_state`.
        """
        raise RuntimeError(f"{type(self).__name__} does not define get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError(f"{type(self).__name__} does not define set_extra_state(), which its state needs")

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return parameters, persistent buffers and extra state by path.

        They are entered in `destination` or in a new OrderedDict, with `prefix` before each path.
        The parameters are those of the Cell and not copies, whatever `keep_vars` is. The three may
        also be given by position, as in older programs.

        >>> import mycel as ms
        >>> list(ms.nn.Dense(2, 3).state_dict())
        ['weight', 'bias']
        """
        given = [destination, prefix, keep_vars]
        given[: len(args)] = args[:3]
        found, prefix, keep_vars = given
        found = OrderedDict() if found is None else found
        self._collect(found, prefix, keep_vars)
        return found

    def _collect(self, found: Any, prefix: str, keep_vars: bool) -> None:
        for hook in self._state_hooks("_state_pre"):
            hook(self, prefix, keep_vars)
        for name, value in self._own_state():
            found[prefix + name] = value
        if type(self).get_extra_state is not CellState.get_extra_state:
            found[prefix + _EXTRA] = self.get_extra_state()
        for name, cell in self.__dict__["_cells"].items():
            if cell is not None:
                cell._collect(found, f"{prefix}{name}.", keep_vars)
        for hook in self._state_hooks("_state_post"):
            hook(self, found, prefix, {})

    def _own_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs of attribute and parameter.

        Members of a `ParameterTuple` have the names that they had when it was assigned.
        """
        attributes = self.__dict__
        own, tuples = attributes["_params"], attributes["_tuples"]
        for name, value in attributes.items():
            if name in own:
                yield name, value
            elif name in tuples:
                yield from zip(tuples[name], value)
        for name, value in own.items():
            if name not in attributes and value is not None:
                yield name, value

    def _own_state(self) -> list[tuple[str, Tensor]]:
        own = self.__dict__
        buffers = [(n, own.get(n)) for n in own["_buffers"] if n not in own.get("_transient", ())]
        return [*self._own_parameters(), *[(n, b) for n, b in buffers if b is not None]]

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Copy parameters, buffers and extra state from a dictionary such as `state_dict` gives.

        Returns the missing and the unexpected keys. Raises TypeError for what is no mapping,
        RuntimeError for values of another shape or type, and with `strict` for missing or
        unexpected keys.

        >>> import mycel as ms
        >>> ms.nn.Dense(2, 3).load_state_dict(ms.nn.Dense(2, 3).state_dict())
        <All keys matched successfully>
        """
        arguments.mapping("load_state_dict", "state_dict", state_dict)
        missing: list[str] = []
        errors: list[str] = []
        used: set[str] = set()
        unexpected: list[str] = []
        state = OrderedDict(state_dict)
        self._load(state, "", strict, missing, unexpected, errors, used)
        unexpected += [k for k in state if k not in used and k not in unexpected]
        found = IncompatibleKeys(missing, unexpected)
        for hook in self._state_hooks("_load_post"):
            hook(self, found)
        if strict:
            errors += [f"missing: {', '.join(found.missing_keys)}"] if found.missing_keys else []
            errors += [f"not expected: {', '.join(found.unexpected_keys)}"] if found.unexpected_keys else []
        if errors:
            raise RuntimeError(
                f"load_state_dict: {type(self).__name__} cannot take this state:\n  " + "\n  ".join(errors)
            )
        return found

    def _load(
        self, state: Any, prefix: str, strict: bool, missing: Any, unexpected: Any, errors: Any, used: Any
    ) -> None:
        for hook in self._state_hooks("_load_pre"):
            hook(self, state, prefix, {}, strict, missing, unexpected, errors)
        for name, value in self._own_state():
            key = prefix + name
            used.add(key)
            if key not in state:
                missing.append(key)
                continue
            try:
                self._take(name, value, state[key])
            except (TypeError, ValueError) as error:
                errors.append(f"{key}: {error}")
        if type(self).set_extra_state is not CellState.set_extra_state:
            used.add(prefix + _EXTRA)
            if prefix + _EXTRA in state:
                self.set_extra_state(state[prefix + _EXTRA])
            else:
                missing.append(prefix + _EXTRA)
        for name, cell in self.__dict__["_cells"].items():
            if cell is not None:
                cell._load(state, f"{prefix}{name}.", strict, missing, unexpected, errors, used)

    def _take(self, name: str, target: Any, value: Any) -> None:
        if not isinstance(value, (Tensor, np.ndarray)):
            raise TypeError(f"the value must be a tensor, not {type(value).__name__}")
        if tuple(value.shape) != target.shape:
            raise ValueError(f"the value has shape {tuple(value.shape)}, the Cell's {target.shape}")
        if name in self.__dict__["_buffers"]:
            array = value.asnumpy() if isinstance(value, Tensor) else value
            setattr(self, name, Tensor(array, target.dtype))
        else:
            target.set_data(value if isinstance(value, Tensor) else Tensor(value))

    # Hooks.

    def _state_hooks(self, table: str) -> list[Any]:
        return list(self.__dict__.get(table, ()))

    def _add_state_hook(self, table: str, hook: Callable[..., Any]) -> _Handle:
        arguments.function(type(self).__name__, "a hook", hook)
        hooks = self.__dict__.setdefault(table, [])
        hooks.append(hook)
        return _Handle(hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> _Handle:
        """Call ``hook(cell, prefix, keep_vars)`` before `state_dict` collects this Cell's state."""
        return self._add_state_hook("_state_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> _Handle:
        """Call ``hook(cell, state_dict, prefix, local_metadata)`` after `state_dict` has collected
        this Cell's state.
        """
        return self._add_state_hook("_state_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> _Handle:
        """Call ``hook(cell, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` before this Cell loads.
        """
        return self._add_state_hook("_load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> _Handle:
        """Call ``hook(cell, incompatible_keys)`` after `load_state_dict`.

        The hook may change the keys that are reported.
        """
        return self._add_state_hook("_load_post", hook)

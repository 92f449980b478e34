"""`mindspore.common._register_for_tensor`: the operations behind methods of tensors, by name."""

from __future__ import annotations

from typing import Any

from mycel import ops

__all__: list[str] = []


class Registry:
    """Operations by name: `get` gives one."""

    def get(self, key: str) -> Any:
        """Return the operation of a name; AttributeError for a name that there is not."""
        if key in self.__dict__:
            return self.__dict__[key]
        raise AttributeError(f"there is no operation {key!r}")


class _Operations(Registry):
    """The operations of `mycel.ops`, and those that were set as attributes."""

    def get(self, key: str) -> Any:
        return self.__dict__[key] if key in self.__dict__ else getattr(ops, key)


tensor_operator_registry = _Operations()

"""Functions inside MindSpore with names of `mint`'s functions ("amax_ext") or of views
("narrow_view"): they are those of `mycel.mint`.

Results that share memory with their operands in MindSpore do so here too.
"""

from __future__ import annotations

from typing import Any

from mycel import mint, ops

__all__: list[str] = []

_ENDINGS = ("_ext_view", "_ext", "_view")


def __getattr__(name: str) -> Any:
    ending = next((e for e in _ENDINGS if name.endswith(e)), None)
    if ending is not None:
        for module in (mint, mint.nn.functional, ops):
            found = getattr(module, name[: -len(ending)], None)
            if callable(found):
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""`mindspore.common.parameter`: the name of a parameter without a name."""

from __future__ import annotations

__all__: list[str] = []

PARAMETER_NAME_DEFAULT = "Parameter"

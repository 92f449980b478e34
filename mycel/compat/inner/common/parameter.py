"""`mindspore.common.parameter`: names and keys of parameters."""

from __future__ import annotations

import itertools

__all__: list[str] = []

PARAMETER_NAME_DEFAULT = "Parameter"
_keys = itertools.count()


def _get_unique_parameter_key() -> int:
    """Return a number that no call before has returned: 0 at first."""
    return next(_keys)

"""Channel coupling: positions of axes (*atoms*) that are removed together, joined as a union-find.

Each position along an axis of a value belongs to an atom: a number, of which several may have been
joined. Positions that an operation meets together, as a channel of a result and that of what is
added to it, are joined. An atom that is locked cannot be removed, for a reason; what is joined with
it cannot either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Atoms", "Axis"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Axis:
    """The atoms along an axis.

    `zero` says that the value is zero at the positions of an atom whose parameters are.
    """

    atoms: Array
    zero: bool = False


class Atoms:
    """Atoms, those that are joined as one, and the reasons why some are locked.

    >>> atoms = Atoms()
    >>> a, b = atoms.fresh(2), atoms.fresh(2)
    >>> atoms.join(a, b)
    >>> atoms.lock(b[:1], "it is seen outside")
    >>> atoms.locked(a).tolist(), (atoms.roots(a) == atoms.roots(b)).all()
    ([True, False], np.True_)
    """

    def __init__(self) -> None:
        self._parent: Array = np.zeros(0, np.int64)
        self._reasons: dict[int, str] = {}

    def fresh(self, count: int) -> Array:
        """Return new atoms."""
        made = np.arange(len(self._parent), len(self._parent) + count)
        self._parent = np.concatenate([self._parent, made])
        return made

    def roots(self, atoms: Array) -> Array:
        """Return the one that stands for each atom and all that are joined with it."""
        found = self._parent[atoms]
        while True:
            further = self._parent[found]
            if (further == found).all():
                self._parent[atoms] = found
                return found
            found = further

    def join(self, a: Array, b: Array) -> None:
        """Join the atoms of `a` with those of `b`, which broadcast."""
        a, b = np.broadcast_arrays(self.roots(np.asarray(a)), self.roots(np.asarray(b)))
        pairs = np.unique(np.stack([a.reshape(-1), b.reshape(-1)], 1)[(a != b).reshape(-1)], axis=0)
        for one, other in pairs.tolist():
            one, other = self._root(one), self._root(other)
            if one == other:
                continue
            low, high = min(one, other), max(one, other)
            self._parent[high] = low
            reason = self._reasons.pop(high, None)
            if reason is not None:
                self._reasons.setdefault(low, reason)

    def _root(self, atom: int) -> int:
        while self._parent[atom] != atom:
            atom = int(self._parent[atom])
        return atom

    def lock(self, atoms: Array, reason: str) -> None:
        """Lock atoms for a reason; the first one counts."""
        for root in np.unique(self.roots(np.asarray(atoms))).tolist():
            self._reasons.setdefault(root, reason)

    def among(self, roots: Array) -> Array:
        """Return for each atom there is whether the one that stands for it is among `roots`."""
        chosen = np.zeros(len(self._parent), bool)
        chosen[np.asarray(roots, np.int64)] = True
        found: Array = chosen[self.roots(np.arange(len(self._parent)))]
        return found

    def locked(self, atoms: Array) -> Array:
        """Return which atoms are locked."""
        keys = np.fromiter(self._reasons, np.int64, len(self._reasons))
        return np.isin(self.roots(np.asarray(atoms)), keys)

    def reason(self, atoms: Array) -> str | None:
        """Return why the first locked one of `atoms` is; None where none is."""
        for root in self.roots(np.asarray(atoms)).tolist():
            if root in self._reasons:
                return self._reasons[root]
        return None

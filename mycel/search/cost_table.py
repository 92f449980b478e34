"""Cost tables by device: measured operators, and interpolated costs of others.

An operator that is in a table costs what was measured. Another one is interpolated within its kind:
a sum of products, weights, inputs, outputs and a constant, with factors that are not negative and
whose relative errors are least, times the mean relative error of the measured operators near it in
the logarithms of these sizes. How far that is off is measured too: each row is left out, and
interpolated from the others.

Within a network an operator costs something else than alone: values stay in the order in which the
next one reads them, and steps fuse. `fitted` finds a factor for each kind by whole networks that
were counted, and how far predictions of networks are off that the factors were not found by.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mycel._src.foundation.files.atomic_files import write
from mycel.search.cost_measurement import Cost, device_named, measure_operator
from mycel.search.operators import KINDS, Operator

__all__ = ["Prediction", "Table"]

FORMAT, NEAR, FEWEST, PULL = "mycel-costs-1", 3, 3, 0.1
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Prediction:
    """Instructions that a table says, with the relative error to expect of them.

    `measured` is the share of the instructions that rows of the table gave; the others are
    interpolated.
    """

    instructions: int
    error: float
    measured: float


def _features(operator: Operator) -> Array:
    sizes = [operator.macs, operator.weights, operator.read, operator.written]
    return np.array([1.0, *[float(n) for n in sizes]])


def _place(operator: Operator) -> Array:
    """Return where an operator lies among others: logarithms of its sizes, and how rows divide.

    Code for vectors and for rims makes two operators of one size differ: kernels, strides, and
    widths that 4 divides count as much as a doubled size.
    """
    sizes = np.log2(1 + _features(operator)[1:])
    width = -(-operator.width // operator.stride[1])
    rows = [np.log2(width), np.log2(operator.kernel[1]), operator.stride[1], operator.kernel[0] > 1]
    return np.array([*sizes / 2, *map(float, rows), 2.0 * (width % 4 == 0), 2.0 * (operator.written % 4 == 0)])


def _factors(shares: Array) -> Array:
    """Return factors of kinds by which rows of shares add up to 1."""
    wanted = np.ones(len(shares))
    together = float((shares.sum(1) @ wanted) / np.square(shares.sum(1)).sum())
    pull = PULL * np.eye(shares.shape[1])
    factors, _ = nnls(np.vstack([shares, pull]), np.concatenate([wanted, PULL * together * np.ones(len(pull))]))
    made: Array = factors
    return made


class Table:
    """What operators cost on a device.

    Args:
        device (str): The device.
        rows (Mapping[Operator, Cost]): The operators that were measured.
        factors (Mapping[str, float] | None): What an operator of each kind costs within a network,
            as shares of what it costs alone (1 where there is none). Default: None.
        off (float): The relative error that is left. Default: 0.0.

    Examples:
        >>> sizes = (4, 8, 16, 32)
        >>> rows = {Operator("dense", n, 4): Cost(100 + 20 * n, 0, 0, 0, 0, 4 * n) for n in sizes}
        >>> table = Table("cortex-m4", rows)
        >>> table.predict([Operator("dense", 8, 4)]).instructions
        260
        >>> 0.99 < table.predict([Operator("dense", 12, 4)]).instructions / 340 < 1.01
        True
    """

    def __init__(
        self,
        device: str,
        rows: Mapping[Operator, Cost],
        factors: Mapping[str, float] | None = None,
        off: float = 0.0,
    ) -> None:
        self.device, self.rows = device_named("Table", device), dict(rows)
        self.factors, self.off = {k: float(f) for k, f in (factors or {}).items()}, float(off)
        self._errors: dict[str, float] = {}

    @classmethod
    def measure(
        cls,
        device: str,
        operators: Iterable[Operator],
        told: Callable[[Operator, Cost], None] = lambda operator, cost: None,
    ) -> Table:
        """Return a table of operators measured on a device.

        `told` is called with each as it is done. A sum that costs nothing beside what it is
        measured with has no row. Raises as `mycel.search.measure` does.
        """
        rows = {}
        for operator in sorted(set(operators)):
            cost = measure_operator(operator, device)
            told(operator, cost)
            if cost.instructions:
                rows[operator] = cost
        return cls(device, rows)

    def error(self, kind: str) -> float:
        """Return the root mean square of relative errors of interpolation within a kind.

        Each row of the kind is left out once. It is infinite where there are too few rows.
        """
        if kind not in self._errors:
            rows = self._of(kind)
            far = [
                self._interpolated(operator, [row for row in rows if row[0] != operator]) / max(1, count) - 1
                for operator, count in rows
                if len(rows) > FEWEST
            ]
            self._errors[kind] = float(np.sqrt(np.mean(np.square(far)))) if far else float("inf")
        return self._errors[kind]

    def predict(self, operators: Sequence[Operator]) -> Prediction:
        """Return the instructions of a network of these operators.

        Errors of kinds are taken to be the same for all operators of a kind, and independent
        between kinds and of `off`. Raises ValueError for a kind with fewer than three rows.
        """
        total, known, off = 0.0, 0.0, dict.fromkeys(KINDS, 0.0)
        for operator in operators:
            factor = self.factors.get(operator.kind, 1.0)
            if operator in self.rows:
                count = factor * self.rows[operator].instructions
                known += count
            else:
                rows = self._of(operator.kind)
                if len(rows) < FEWEST:
                    raise ValueError(
                        f"Table: {len(rows)} rows of {operator.kind} for {self.device} are too few to interpolate "
                        f"{operator}; measure at least {FEWEST}"
                    )
                count = factor * self._interpolated(operator, rows)
                off[operator.kind] += count * self.error(operator.kind)
            total += count
        error = float(np.hypot(np.sqrt(sum(e * e for e in off.values() if e)) / total, self.off)) if total else 0.0
        return Prediction(round(total), error, known / total if total else 1.0)

    def fitted(self, networks: Sequence[tuple[Sequence[Operator], int]]) -> Table:
        """Return the table with factors of kinds by networks, each with instructions as counted.

        They have the least relative error, with a weak pull to the factor of all kinds together.
        `off` is the root mean square of relative errors of each network by the others. Raises
        ValueError for fewer than two networks.
        """
        if len(networks) < 2:
            raise ValueError(f"Table: factors are fitted by at least two networks, not {len(networks)}")
        alone = Table(self.device, self.rows)
        shares = np.array(
            [
                [alone.predict([o for o in operators if o.kind == kind]).instructions / count for kind in KINDS]
                for operators, count in networks
            ]
        )
        far = [float(shares[k] @ _factors(np.delete(shares, k, 0))) - 1 for k in range(len(networks))]
        found = dict(zip(KINDS, _factors(shares).tolist()))
        return Table(self.device, self.rows, found, float(np.sqrt(np.mean(np.square(far)))))

    def figures(self, operators: Sequence[Operator]) -> dict[str, float]:
        """Return what `search` asks of `predict`, for a network of these operators.

        Instructions and their error are those of `predict`. RAM and flash are least amounts, by
        which nothing is refused wrongly: the largest tensor, and all weights.
        """
        if not operators:
            raise ValueError("Table: there must be at least one operator")
        found = self.predict(operators)
        return {
            "instructions": float(found.instructions),
            "error": found.error,
            "ram": float(max(max(o.read if o.kind != "add" else o.read // 2, o.written) for o in operators)),
            "flash": float(sum(o.weights for o in operators)),
            "macs": float(sum(o.macs for o in operators)),
        }

    def _of(self, kind: str) -> list[tuple[Operator, int]]:
        return [(operator, cost.instructions) for operator, cost in self.rows.items() if operator.kind == kind]

    @staticmethod
    def _interpolated(operator: Operator, rows: Sequence[tuple[Operator, int]]) -> float:
        counts = np.array([max(1, count) for _, count in rows], np.float64)
        sizes = np.array([_features(o) for o, _ in rows])
        factors, _ = nnls(sizes / counts[:, None], np.ones(len(rows)))
        wanted = _features(operator)
        base = float(wanted @ factors)
        ratios = np.log(counts / np.maximum(1, sizes @ factors))
        here = _place(operator)
        far = np.array([np.abs(_place(o) - here).sum() for o, _ in rows])
        near = np.argsort(far, kind="stable")[:NEAR]
        weights = 1 / (0.1 + far[near]) ** 2
        return float(base * np.exp((weights * ratios[near]).sum() / weights.sum()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file of JSON, whole or not at all."""
        rows = {operator.key: cost.record() for operator, cost in sorted(self.rows.items())}
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(cost)}" for key, cost in rows.items())
        head = f'{{"format": {json.dumps(FORMAT)}, "device": {json.dumps(self.device)},\n'
        head += f' "factors": {json.dumps(self.factors)}, "off": {json.dumps(self.off)}, "rows": {{\n'
        write(path, (head + lines + "\n}}\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Table:
        """Return the table in a file that `save` wrote.

        Raises ValueError where the file holds none.
        """
        try:
            found = json.loads(Path(path).read_bytes())
            if not isinstance(found, dict) or found.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            rows = {Operator.read_key(key): Cost(**cost) for key, cost in found["rows"].items()}
            return cls(found["device"], rows, found["factors"], found["off"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"Table: {os.fspath(path)} holds no table of costs: {error}") from error

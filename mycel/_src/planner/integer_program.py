"""The planning problem as an integer program, solved by HiGHS.

A binary variable says of each alternative whether it is chosen, and one is chosen of each item. For
each user of a link *flows* say which layout is made from which alternative of the source: they sum
up to the source's choice on one side and to the user's choice on the other, so they are integers
where the choices are. A link of one user costs by its flows. With several users a variable for each
pair is at least the flow of each, so that a layout is paid for once. Columns that are equal are one
layout, and rows that are equal one alternative, as far as a link is concerned.

The bytes of a moment are linear in the same variables. Moments are many and few of them matter: a
solution that exceeds the limit at some moment adds the constraint of the fullest one, until none
does. The last solution is the optimum, as the constraints left out do not bind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.planner.optimisation_problem import Link, Problem

__all__ = ["Found", "solve"]

Array = np.ndarray[Any, Any]
ROUNDS = 40


@dataclass(frozen=True)
class Found:
    """An assignment, and a bound below which no assignment lies; no assignment where none fits.

    `ended` tells whether the solver came to its end within the time.
    """

    choices: list[int] | None
    bound: float
    ended: bool


@dataclass
class _Rows:
    """Linear constraints as they are collected: lower <= sum of values x variables <= upper."""

    rows: list[Array] = field(default_factory=list)
    columns: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, columns: Any, values: Any, lower: float, upper: float) -> None:
        """Add a constraint: `values` times the variables `columns` lie from `lower` to `upper`."""
        columns = np.asarray(columns, np.int64)
        self.rows.append(np.full(len(columns), len(self.lower)))
        self.columns.append(columns)
        self.values.append(np.broadcast_to(np.asarray(values, float), columns.shape))
        self.lower.append(lower)
        self.upper.append(upper)


class _Program:
    """Variables, their costs and constraints; `offsets` has the first variable of each item."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        counts = [i.count for i in problem.items]
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        self.costs: list[Array] = [np.asarray(i.seconds, float) for i in problem.items]
        self.variables = int(self.offsets[-1])
        self.binary = self.variables
        self.rows = _Rows()
        for i, count in enumerate(counts):
            self.rows.add(self.offsets[i] + np.arange(count), 1.0, 1, 1)
        # Of each link: the variable of each pair of an alternative and a layout, -1 for none.
        self.pairs = [self._link(link) for link in problem.links]

    def _new(self, costs: Array) -> Array:
        first = self.variables
        self.costs.append(costs.ravel())
        self.variables += costs.size
        made: Array = first + np.arange(costs.size).reshape(costs.shape)
        return made

    def _link(self, link: Link) -> tuple[Array, Array, Array]:
        """Add the flows of a link; return pairs' variables, and the groups of rows and columns."""
        tables = [link.seconds] if link.bytes is None else [link.seconds, link.bytes]
        stacked = np.stack([np.asarray(t, float) for t in tables])
        _, row_of = np.unique(stacked.transpose(1, 0, 2).reshape(stacked.shape[1], -1), axis=0, return_inverse=True)
        _, column_of = np.unique(stacked.transpose(2, 0, 1).reshape(stacked.shape[2], -1), axis=0, return_inverse=True)
        row_of, column_of = row_of.ravel(), column_of.ravel()
        if len(link.users) > 1:
            # Layouts that cost alike are still made one by one.
            column_of = np.arange(link.seconds.shape[1])
        rows, columns = int(row_of.max()) + 1, int(column_of.max()) + 1
        table = np.zeros((rows, columns))
        table[row_of[:, None], column_of[None, :]] = link.seconds
        if len(link.users) == 1 and link.users[0] != link.source:
            pairs = self._new(table)
            self._flow(pairs, link, 0, row_of, column_of)
            return pairs, row_of, column_of
        pairs = self._new(table)
        for k, user in enumerate(link.users):
            if user == link.source:
                self._own(pairs, link, k, row_of, column_of)
                continue
            flows = self._new(np.zeros_like(table))
            self._flow(flows, link, k, row_of, column_of)
            for pair, flow in zip(pairs.ravel(), flows.ravel()):
                self.rows.add([pair, flow], [1.0, -1.0], 0, np.inf)
        return pairs, row_of, column_of

    def _flow(self, flows: Array, link: Link, k: int, row_of: Array, column_of: Array) -> None:
        source, user = self.offsets[link.source], self.offsets[link.users[k]]
        for r in range(flows.shape[0]):
            chosen = source + np.flatnonzero(row_of == r)
            self._balance(flows[r], chosen)
        wanted = column_of[link.wants[k]]
        for c in range(flows.shape[1]):
            self._balance(flows[:, c], user + np.flatnonzero(wanted == c))

    def _balance(self, flows: Array, chosen: Array) -> None:
        values = np.concatenate([np.ones(len(flows)), -np.ones(len(chosen))])
        self.rows.add(np.concatenate([flows, chosen]), values, 0, 0)

    def _own(self, pairs: Array, link: Link, k: int, row_of: Array, column_of: Array) -> None:
        """Let a link whose user is its source cost what the source's own choice asks for."""
        source, wanted = self.offsets[link.source], column_of[link.wants[k]]
        for a, layout in enumerate(wanted):
            self.rows.add([pairs[row_of[a], layout], source + a], [1.0, -1.0], 0, np.inf)

    def held(self, moment: int) -> tuple[Array, Array]:
        """Return the variables and their bytes at a moment."""
        bytes_ = np.zeros(self.variables)
        for i, item in enumerate(self.problem.items):
            for hold in item.holds:
                if hold.first <= moment <= hold.last:
                    bytes_[self.offsets[i] : self.offsets[i + 1]] += hold.bytes
        for link, (pairs, row_of, column_of) in zip(self.problem.links, self.pairs):
            if link.bytes is not None and link.first <= moment <= link.last:
                table = np.zeros(pairs.shape)
                table[row_of[:, None], column_of[None, :]] = link.bytes
                bytes_[pairs.ravel()] += table.ravel()
        columns = np.flatnonzero(bytes_)
        return columns, bytes_[columns]

    def limit_at(self, moment: int) -> None:
        """Add the constraint of a moment."""
        columns, bytes_ = self.held(moment)
        limit = self.problem.limit
        assert limit is not None
        scale = max(limit, 1.0)
        self.rows.add(columns, bytes_ / scale, -np.inf, limit / scale)

    def run(self, gap: float, seconds: float) -> Found:
        """Solve the program as it is."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_matrix

        rows = self.rows
        shape = (len(rows.lower), self.variables)
        where = (np.concatenate(rows.rows), np.concatenate(rows.columns))
        matrix = coo_matrix((np.concatenate(rows.values), where), shape=shape).tocsr()
        costs = np.concatenate(self.costs)
        # The solver's tolerances are absolute.
        scale = float(np.abs(costs).max()) or 1.0
        integrality = np.zeros(self.variables)
        integrality[: self.binary] = 1
        result = milp(
            costs / scale * 1e4,
            constraints=LinearConstraint(matrix, rows.lower, rows.upper),
            integrality=integrality,
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": gap, "time_limit": seconds},
        )
        bound = result.mip_dual_bound if result.mip_dual_bound is not None else -np.inf
        if result.x is None:
            return Found(None, np.inf if result.status == 2 else bound * scale / 1e4, result.status in (0, 2))
        chosen = [int(np.argmax(result.x[a:b])) for a, b in zip(self.offsets, self.offsets[1:])]
        return Found(chosen, bound * scale / 1e4, result.status == 0)


def solve(problem: Problem, gap: float = 0.0, seconds: float = 60.0, moments: Sequence[int] = ()) -> Found:
    """Return the cheapest assignment of `problem` within its limit, up to the relative `gap`.

    `seconds` limits each call of the solver, whose result is then the best that it has. `moments`
    are those whose constraints are there from the beginning.
    """
    if not problem.items:
        return Found([], 0.0, True)
    program = _Program(problem)
    known = set()
    for m in moments:
        known.add(m)
        program.limit_at(m)
    for _ in range(ROUNDS):
        found = program.run(gap, seconds)
        if found.choices is None or problem.fits(found.choices):
            return found
        moment = problem.memory(found.choices)[1]
        if moment in known:
            return Found(None, found.bound, False)
        known.add(moment)
        program.limit_at(moment)
    return Found(None, found.bound, False)

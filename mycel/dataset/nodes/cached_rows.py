"""Nodes that read their rows through a cache: which rows they keep, under which key.

Where the chain below a node with a cache leads over `map`s to a source that reads rows by number,
rows are kept by these numbers, in whatever order and shard an epoch asks for them. Other rows are
kept by their places in an epoch, which must be the same in every one. Functions that draw random
numbers, and orders that change, are refused.

The key is a digest of what each dataset was made with: classes, arguments, the code of functions,
the dates and sizes of files that arguments name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from mycel.dataset.caching.dataset_cache import Kept
from mycel.dataset.execution import code_pickling
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.threaded_stages import Broken, Piece, Plan
from mycel.dataset.nodes.graph_description import arguments_of
from mycel.dataset.nodes.node import Node
from mycel.dataset.rows.column_blocks import Block, join
from mycel.dataset.transforms.base import Transform

# Arguments that say where, when and in what order rows are made, and not what they are.
_CHOICE = {"sampler", "shuffle", "num_samples", "num_shards", "shard_id"}
_OUTER = {"num_parallel_workers", "cache", "python_multiprocessing", "callbacks", "max_rowsize", "offload"} | {
    "input_dataset",
    "datasets",
}


def check_cached(node: Node, where: str) -> None:
    """Raise ValueError where rows below a cache depend on the epoch."""
    for found in _below(node):
        for operation in getattr(found, "operations", ()):
            if isinstance(operation, Transform) and operation.random:
                raise ValueError(
                    f"{where}: {type(operation).__name__} draws random numbers, so its rows cannot be kept in a cache; "
                    "apply it in a map after the one with the cache"
                )
    if node.is_synced or node.calls_back:
        raise ValueError(
            f"{where}: rows in a cache are not made again, so neither sync_wait nor callbacks can be below it or with "
            "it; put them after it"
        )
    if by_number(node) is None and node.is_shuffled():
        raise ValueError(
            f"{where}: rows below a cache must have the same order in every epoch; use shuffle=False there, "
            "and shuffle after it"
        )


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _below(child)


def by_number(node: Node) -> tuple[Any, list[Any]] | None:
    """Return the source below a chain of maps that reads by number, and the maps from it up."""
    maps: list[Any] = []
    at: Any = node
    while getattr(at, "applied", None) is not None and not at.callbacks:
        maps.append(at)
        at = at.children[0]
    reads = getattr(at, "reads_by_number", None)
    return (at, maps[::-1]) if reads is not None and reads() else None


def _stamp(value: Any) -> Any:
    """Return the dates and sizes of files that an argument names."""
    if isinstance(value, (list, tuple)):
        return [_stamp(part) for part in value]
    if isinstance(value, str) and value and os.path.exists(value):
        found = os.stat(value)
        return found.st_mtime_ns, found.st_size
    return None


def _data_of(source: Any) -> dict[str, Any]:
    """Return the data in memory that a source reads."""
    if hasattr(source, "_data"):
        return {"data": source._data()}
    return {name: getattr(source, name, None) for name in ("source", "column_names", "column_types", "collate_fn")}


def key_of(node: Node, where: str) -> str:
    """Return the key of the rows of a node.

    Raises TypeError where a function or an object of the user's cannot be pickled.
    """
    digest = hashlib.sha256()
    source = by_number(node)
    for found in _below(node):
        given = arguments_of(found)
        # Which rows come, and in which order, is what places in an epoch count.
        kept = _CHOICE if source is None else set()
        named = {name: value for name, value in given.items() if name in kept or name not in _CHOICE | _OUTER}
        if type(found)._in_memory:
            named.update(_data_of(found))
        # Folders and patterns stand for files that the dataset knows.
        files = getattr(found, "_shards", ())
        stamps = _stamp([*named.values(), *files])
        try:
            content = code_pickling.dumps((type(found), sorted(named.items()), list(files), stamps), False)[0]
        except Exception as error:
            raise TypeError(
                f"{where}: a cache cannot tell these rows from others, as what makes them cannot be pickled "
                f"({type(error).__name__}: {error})"
            ) from error
        digest.update(content)
    return digest.hexdigest()


def kept_of(node: Node, run: Run, where: str) -> Kept:
    """Return the rows of a node in its cache, once for each iterator."""

    def make() -> Kept:
        cache = node.cache
        return Kept(cache, key_of(node, where), where)

    if run.scope is None:
        return make()
    noted = -id(node)
    if noted not in run.scope.notes:
        run.scope.notes[noted] = make()
    found: Kept = run.scope.notes[noted]
    return found


class Numbered:
    """The rows of one pass over a `node`, kept by their numbers in its source."""

    def __init__(self, node: Any, run: Run, where: str) -> None:
        found = by_number(node)
        assert found is not None
        self.node, self.run = node, run
        self.source, self.maps = found
        self.kept = kept_of(node, run, where)
        self.order = self.source.sampler.draw(self.source._total(), run, self.source._labels)
        self.read: Callable[[list[int], int], Block] = self.source._reader(run)
        self.works = [self._through(node) for node in self.maps]

    def _through(self, node: Any) -> Callable[[Block, int], Block]:
        """Return what a map does to rows, in its worker processes where it has some."""
        workers = node._workers(self.run) if node._apart else 0
        if workers:
            work: Callable[[Block, int], Block] = node._work(self.run, workers)
            return work
        key, seeded, applied = self.run.key(node._height, 6), self.run.seeded, node.applied
        return lambda block, start: applied.through(block, start, key, seeded)

    def pieces(self, skip: int) -> Iterator[Piece]:
        """Yield the numbers of the rows that are asked for together."""
        start = skip
        while start < len(self.order):
            rows = self.order[start : start + min(self.kept.at_once, self.run.block)]
            yield rows, start, len(rows)
            start += len(rows)

    def _compute(self, rows: list[int]) -> Block:
        block = self.read(rows, rows[0])
        for work in self.works:
            block = work(block, rows[0])
        return block

    def made(self, rows: Any) -> Block:
        """Return rows by their numbers; raise Broken with those before one that fails."""
        try:
            return self.kept.rows(rows.tolist(), self._compute)
        except Broken as broken:
            if len(rows) == 1:
                raise broken.error from None
        blocks: list[Block] = []
        try:
            for row in rows.tolist():
                blocks.append(self.kept.rows([row], self._compute))
        except Broken as broken:
            raise Broken(join(blocks) if blocks else None, broken.error) from None
        except Exception as error:
            raise Broken(join(blocks) if blocks else None, error) from None
        return join(blocks)

    def plan(self, skip: int) -> Plan:
        """Return the plan of a node, with the workers of all nodes that it stands for."""
        assert self.run.scope is not None
        workers = self.source._asked(self.run) if self.run.ahead else 0
        workers = max(workers, *(node._workers(self.run) for node in self.maps)) if self.maps else workers
        apart = any(node._apart for node in self.maps)
        for node in self.maps:
            if not node._apart:
                workers = node.threads(workers)
        plan = Plan(lambda pace: self.pieces(skip), light=True)
        counter = self.run.scope.counter(self.node)
        return plan.then(lambda rows, _: self.made(rows), workers, counter, apart=apart and workers > 0)

    def blocks(self, skip: int) -> Iterator[Block]:
        """Yield the rows in the thread that asks for them."""
        for rows, _, _ in self.pieces(skip):
            try:
                yield self.made(rows)
            except Broken as broken:
                if broken.before is not None:
                    yield broken.before
                failure = broken.error
            else:
                continue
            raise failure


def plan_of(node: Any, run: Run, skip: int, where: str) -> Plan | None:
    """Return the plan of a node whose rows are kept by their numbers; None for others.

    * `node`, `run`, `skip`: as in `Node._plan`.
    * `where`: what messages call the node.
    """
    if node.cache is None or run.scope is None or by_number(node) is None:
        return None
    return Numbered(node, run, where).plan(skip)


def blocks_of(
    node: Any, run: Run, skip: int, where: str, made: Callable[[int], Iterator[Block]]
) -> Iterator[Block] | None:
    """Return the blocks of a node with a cache; None for one without.

    * `node`, `run`, `skip`: as in `Node._blocks`.
    * `where`: what messages call the node.
    * `made`: gives the blocks as the node makes them, from a row on.
    """
    if node.cache is None or run.scope is None or run.probes:
        return None
    if by_number(node) is None:
        return _placed(kept_of(node, run, where), skip, made)
    numbered = Numbered(node, run, where)
    if run.ahead:
        plan = numbered.plan(skip)
        if plan.is_shared:
            flow: Iterator[Block] = node._flow(plan, run)
            return flow
    node._alone(run)
    return numbered.blocks(skip)


def _placed(kept: Kept, skip: int, made: Callable[[int], Iterator[Block]]) -> Iterator[Block]:
    """Yield rows that are kept by their places in an epoch, and make those after the first gap."""
    at, gap = skip, False
    while not gap and (kept.count is None or at < kept.count):
        for block in kept.find(range(at, at + kept.at_once)):
            gap = block is None
            if block is None:
                break
            yield block
            at += 1
    if not gap:
        return
    if kept.count is not None and at >= kept.count:
        return
    for block in made(at):
        kept.keep(range(at, at + block.count), block)
        at += block.count
        yield block
    kept.keep([], None, at)

"""Metrics of language: BLEU and perplexity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import IndexRangeError
from mycel.train.metrics.base import Metric, rearrange_inputs

__all__ = ["BleuScore", "Perplexity"]


class BleuScore(Metric):
    """The BLEU score of translations, over everything seen (Papineni et al., "BLEU", ACL 2002).

    It is the geometric mean of the clipped precisions of n-grams of 1 to `n_gram` (at most 4)
    tokens. If the c tokens of the candidates are fewer than the r tokens of the references nearest
    in length, it is multiplied by exp(1 - r/c). `smooth` adds one to numerators and denominators
    (Lin and Och, ACL 2004). It is 0 if no n-gram of some length matches. `update` takes candidates,
    a list of lists of tokens, and for each a list of references. Raises TypeError and ValueError
    for other options.

    >>> BleuScore(n_gram=2)([["a", "b", "c"]], [[["a", "b", "c"], ["b"]]])
    1.0
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        arguments.integer("BleuScore", "n_gram", n_gram, numpy=False)
        if not 1 <= n_gram <= 4:
            raise ValueError(f"BleuScore: n_gram must be from 1 to 4, not {n_gram}")
        arguments.flag("BleuScore", "smooth", smooth)
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._matched, self._offered = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._length = self._reference_length = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add candidates and their references."""
        if len(inputs) != 2:
            raise ValueError(f"BleuScore.update takes 2 inputs (candidate_corpus, reference_corpus), not {len(inputs)}")
        candidates, references = inputs
        if not all(isinstance(v, (tuple, list, str)) for v in inputs):
            raise TypeError("BleuScore.update: takes lists of candidates and of their references")
        if len(candidates) != len(references):
            raise ValueError(
                f"BleuScore.update: {len(candidates)} candidates with references for {len(references)}; give "
                "references for each"
            )
        for candidate, known in zip(candidates, references):
            self._length += len(candidate)
            self._reference_length += len(min(known, key=lambda r: abs(len(r) - len(candidate))))
            most: Counter[tuple[Any, ...]] = Counter()
            for reference in known:
                most |= self._count(reference)
            own = self._count(candidate)
            for grams, table in ((own & most, self._matched), (own, self._offered)):
                for gram, count in grams.items():
                    table[len(gram) - 1] += count

    def _count(self, tokens: Sequence[Any]) -> Counter[tuple[Any, ...]]:
        sizes = range(1, self.n_gram + 1)
        return Counter(tuple(tokens[i : i + n]) for n in sizes for i in range(len(tokens) - n + 1))

    def eval(self) -> float:
        """Return the score."""
        if self._length == 0:
            raise self._nothing()
        if self._matched.min() == 0:
            return 0.0
        one = 1 if self.smooth else 0
        score = np.exp(np.log((self._matched + one) / (self._offered + one)).mean())
        if self._length <= self._reference_length:
            score *= np.exp(1 - self._reference_length / self._length)
        return float(score)


class Perplexity(Metric):
    """The exponential of the mean negative log-probability that a model gives to the true tokens.

    `update` takes probabilities float [..., C] and labels int [...], or lists of both. Positions
    with the label `ignore_label` do not count. Raises RuntimeError if no position counts,
    ValueError for shapes that do not fit and labels beyond the classes.

    >>> import mycel as ms
    >>> round(Perplexity()(ms.Tensor([[0.5, 0.5], [0.5, 0.5]]), ms.Tensor([0, 1])), 6)
    2.0
    """

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None and (not isinstance(ignore_label, int) or isinstance(ignore_label, bool)):
            raise TypeError(f"Perplexity: ignore_label must be an integer or None, not {ignore_label!r}")
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._sum, self._count = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of probabilities and labels."""
        if len(inputs) != 2:
            raise ValueError(f"Perplexity.update takes 2 inputs (preds, labels), not {len(inputs)}")
        lists = [value if isinstance(value, list) else [value] for value in inputs]
        if len(lists[0]) != len(lists[1]):
            raise ValueError(f"Perplexity.update: {len(lists[0])} predictions for {len(lists[1])} labels")
        for pair in zip(*lists):
            chances, labels = self._arrays(pair, "preds", "labels")
            if labels.dtype.kind == "O":
                raise ValueError("Perplexity.update: a label is no number of a class")
            labels = labels.reshape(-1).astype(np.int64)
            if chances.ndim < 2 or chances.size != labels.size * chances.shape[-1]:
                raise ValueError(
                    f"Perplexity.update: {labels.size} labels do not fit predictions of shape {chances.shape}"
                )
            chances = chances.reshape(labels.size, -1)
            counted = np.ones(labels.shape, bool) if self.ignore_label is None else labels != self.ignore_label
            rows, chosen = chances[counted], labels[counted]
            if ((chosen < 0) | (chosen >= chances.shape[1])).any():
                raise IndexRangeError(
                    f"Perplexity.update: labels must be from 0 to {chances.shape[1] - 1}; name others by ignore_label"
                )
            right = rows[np.arange(chosen.size), chosen].astype(np.float64)
            self._sum -= float(np.log(np.maximum(right, 1e-10)).sum())
            self._count += int(chosen.size)

    def eval(self) -> float:
        """Return the perplexity."""
        if self._count == 0:
            raise self._nothing()
        return float(np.exp(self._sum / self._count))

"""Metrics of text, surfaces, rates, curves and similarity, against MindSpore's values (literals),
SciPy, and definitions written out.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_erosion

import mycel as ms
from mycel import Tensor, nn, train

CHECKED = dict.fromkeys(
    (
        "train.BleuScore train.ConfusionMatrixMetric train.CosineSimilarity train.Dice train.HausdorffDistance "
        "train.MeanSurfaceDistance "
        "train.OcclusionSensitivity train.Perplexity train.ROC train.RootMeanSquareDistance train.auc"
    ).split(),
    "MindSpore and definitions",
)

rng = np.random.default_rng(3)


def run(metric, *batches):
    metric.clear()
    for batch in batches:
        metric.update(*batch)
    return metric.eval()


PEN = ["i", "have", "a", "pen", "on", "my", "desk"]
DESKS = [["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]
SHORT = ["i", "have", "the", "pen", "on", "my"]
LONGER = [DESKS[0], [*DESKS[1], "x"]]


@pytest.mark.parametrize(
    ("options", "candidates", "references", "value"),
    [
        ({}, [PEN], [DESKS], 0.5946035575013605),
        ({"n_gram": 2, "smooth": True}, [PEN, ["a", "b"]], [DESKS, [["a", "b", "c"], ["b", "a"]]], 0.9354143466934853),
        ({"n_gram": 2, "smooth": True}, [SHORT], [LONGER], 0.5985529678206387),
        ({"n_gram": 2}, [SHORT], [LONGER], 0.5353620496724769),
        ({}, [["x", "b"]], [[["q", "b", "c", "d"]]], 0.0),
    ],
)
def test_bleu(options, candidates, references, value) -> None:
    metric = train.BleuScore(**options)
    assert run(metric, (candidates, references)) == pytest.approx(value, rel=1e-12)
    apart = [([c], [r]) for c, r in zip(candidates, references)]
    assert run(metric, *apart) == pytest.approx(value, rel=1e-12)


def test_bleu_refuses() -> None:
    with pytest.raises(ValueError, match="1 to 4"):
        train.BleuScore(5)
    with pytest.raises(RuntimeError, match="nothing to evaluate"):
        run(train.BleuScore())


@pytest.mark.parametrize("ignored", [None, 1, 3])
@pytest.mark.parametrize("shape", [(3,), (2, 5), (1, 1)])
def test_perplexity(ignored, shape) -> None:
    chances = rng.dirichlet(np.ones(4), shape)
    labels = rng.integers(0, 4, shape)
    labels.flat[0] = 0
    nll = [-np.log(chances[place][labels[place]]) for place in np.ndindex(*shape) if labels[place] != ignored]
    metric = train.Perplexity(ignored)
    assert run(metric, (Tensor(chances), Tensor(labels))) == pytest.approx(np.exp(np.mean(nll)), rel=1e-12)
    assert run(metric, *zip(chances[:, None], labels[:, None])) == pytest.approx(np.exp(np.mean(nll)), rel=1e-12)


def test_perplexity_as_mindspore() -> None:
    chances = [[0.356, 0.035, 0.288, 0.321], [0.373, 0.15, 0.372, 0.105], [0.253, 0.291, 0.378, 0.079]]
    assert run(train.Perplexity(), (Tensor(chances), Tensor([1, 3, 0]))) == pytest.approx(10.245678212417948, rel=1e-6)
    assert run(train.Perplexity(1), (Tensor(chances), Tensor([1, 3, 0]))) == pytest.approx(6.135431191398487, rel=1e-6)
    with pytest.raises(RuntimeError, match="nothing"):
        run(train.Perplexity(0), (Tensor(chances), Tensor([0, 0, 0])))
    with pytest.raises(ValueError, match="labels must be from 0 to 3"):
        run(train.Perplexity(), (Tensor(chances), Tensor([0, 0, 4])))


def distances(of, to, kind):
    """From each surface cell of one set to the nearest of the other, by trying all."""
    places, others = np.argwhere(of & ~binary_erosion(of)), np.argwhere(to & ~binary_erosion(to))
    steps = np.abs(places[:, None] - others[None]).astype(float)
    length = {
        "euclidean": lambda s: np.sqrt((s**2).sum(-1)),
        "chessboard": lambda s: s.max(-1),
        "taxicab": lambda s: s.sum(-1),
    }
    return length[kind](steps).min(1)


@pytest.mark.parametrize("kind", ["euclidean", "chessboard", "taxicab"])
@pytest.mark.parametrize("shape", [(7, 8), (5, 4, 6), (3, 1), (9,)])
def test_surfaces(kind, shape) -> None:
    a, b = rng.integers(0, 3, shape), rng.integers(0, 3, shape)
    a.flat[0] = b.flat[-1] = 2
    there, back = distances(a == 2, b == 2, kind), distances(b == 2, a == 2, kind)
    batch = (Tensor(a), Tensor(b), 2)
    assert run(train.HausdorffDistance(kind, directed=True), batch) == pytest.approx(there.max())
    assert run(train.HausdorffDistance(kind, crop=False), batch) == pytest.approx(max(there.max(), back.max()))
    wanted = max(np.percentile(there, 80), np.percentile(back, 80))
    assert run(train.HausdorffDistance(kind, 80.0), batch) == pytest.approx(wanted)
    assert run(train.MeanSurfaceDistance(False, kind), batch) == pytest.approx(there.mean())
    assert run(train.MeanSurfaceDistance(True, kind), batch) == pytest.approx((there.mean() + back.mean()) / 2)
    assert run(train.RootMeanSquareDistance(False, kind), batch) == pytest.approx(np.sqrt((there**2).mean()))
    both = ((there**2).mean() + (back**2).mean()) / 2
    assert run(train.RootMeanSquareDistance(True, kind), batch) == pytest.approx(np.sqrt(both))


def test_surfaces_of_nothing() -> None:
    none, all_ = Tensor(np.zeros((3, 3), int)), Tensor(np.ones((3, 3), int))
    assert run(train.MeanSurfaceDistance(), (none, all_, 1)) == np.inf
    assert run(train.HausdorffDistance(), (none, all_, 1)) == np.inf
    with pytest.raises(ValueError, match="neither"):
        run(train.HausdorffDistance(), (none, none, 1))
    with pytest.raises(TypeError, match="percentile"):
        train.HausdorffDistance(percentile=50)


# x and y as rows of bits, and MindSpore's values of each rate over all channels.
X = np.array([int(c) for c in "011100000001010100111100010000011001100101011010100101111011"]).reshape(4, 3, 5)
Y = np.array([int(c) for c in "111010101100101100010100100010001000100011001010100101000101"]).reshape(4, 3, 5)
RATES = {
    "sensitivity": 0.56,
    "specificity": 0.6,
    "precision": 0.5,
    "negative_predictive_value": 0.65625,
    "miss_rate": 0.44,
    "fall_out": 0.4,
    "false_discovery_rate": 0.5,
    "false_omission_rate": 0.34375,
    "prevalence_threshold": 0.45803989,
    "threat_score": 0.35897436,
    "accuracy": 0.58333333,
    "balanced_accuracy": 0.58,
    "f1_score": 0.52830189,
    "matthews_correlation_coefficient": 0.15811388,
    "fowlkes_mallows_index": 0.52915026,
    "informedness": 0.16,
    "markedness": 0.15625,
    "recall": 0.56,
    "true positive rate": 0.56,
    "hit_rate": 0.56,
    "tnr": 0.6,
    "ppv": 0.5,
    "npv": 0.65625,
    "fnr": 0.44,
    "fpr": 0.4,
    "fdr": 0.5,
    "for": 0.34375,
    "csi": 0.35897436,
    "BA": 0.58,
    "MCC": 0.15811388,
    "fm": 0.52915026,
    "bm": 0.16,
    "deltap": 0.15625,
}


@pytest.mark.parametrize("name", RATES)
def test_rates(name: str) -> None:
    found = run(train.ConfusionMatrixMetric(False, name), (Tensor(X), Tensor(Y)))
    np.testing.assert_allclose(found, [RATES[name]], rtol=1e-7)
    np.testing.assert_allclose(run(train.ConfusionMatrixMetric(False, name), (X[:1], Y[:1]), (X[1:], Y[1:])), found)
    np.testing.assert_allclose(
        run(train.ConfusionMatrixMetric(True, name), (X, Y)),
        run(train.ConfusionMatrixMetric(False, name), (X[:, 1:], Y[:, 1:])),
    )


@pytest.mark.parametrize(
    ("name", "mean", "sum_", "mean_rest", "sum_rest"),
    [
        ("tpr", 0.5277777777777778, 5.555555555555555, 0.4583333333333333, 3.6666666666666665),
        ("ppv", 0.4351851851851851, 4.234375, 0.3020833333333333, 2.4166666666666665),
        ("acc", 0.5555555555555555, 5.666666666666666, 0.5, 4.0),
        ("f1_score", 0.42619047619047623, 4.503174603174603, 0.35, 2.8),
        ("mcc", 0.05774163696901611, 1.2095689769248927, -0.09843218482065809, -0.1207908118985982),
    ],
)
def test_rates_of_samples(name, mean, sum_, mean_rest, sum_rest) -> None:
    batches = (Tensor(X), Tensor(Y)), (Tensor(X[:2]), Tensor(Y[1:3]))
    assert run(train.ConfusionMatrixMetric(False, name, True, "mean"), *batches) == pytest.approx(mean, rel=1e-12)
    assert run(train.ConfusionMatrixMetric(False, name, True, "sum"), *batches) == pytest.approx(sum_, rel=1e-12)
    assert run(train.ConfusionMatrixMetric(True, name, True, "mean"), batches[0]) == pytest.approx(mean_rest, rel=1e-12)
    assert run(train.ConfusionMatrixMetric(True, name, True, "sum"), batches[0]) == pytest.approx(sum_rest, rel=1e-12)


def test_rates_reduced() -> None:
    with np.errstate(invalid="ignore"):
        rates = (X & Y).sum(-1) / X.sum(-1)
    wanted = {
        "none": rates,
        "mean_batch": np.nanmean(rates, 0),
        "sum_batch": np.nansum(rates, 0),
        "mean_channel": np.nanmean(rates, 1),
        "sum_channel": np.nansum(rates, 1),
    }
    for decrease, value in wanted.items():
        found = run(train.ConfusionMatrixMetric(False, "precision", True, decrease), (X[:3], Y[:3]), (X[3:], Y[3:]))
        np.testing.assert_allclose(found, value)
    with pytest.raises(NotImplementedError, match="bogus"):
        train.ConfusionMatrixMetric(metric_name="bogus")
    with pytest.raises(ValueError, match="zeros and ones"):
        run(train.ConfusionMatrixMetric(), (X + 1, Y))


@pytest.mark.parametrize("size", [2, 7, 40])
def test_roc(size: int) -> None:
    scores, labels = rng.integers(0, 10, size) / 10, np.arange(size) % 2
    fpr, tpr, thresholds = run(
        train.ROC(), (Tensor(scores[:1]), Tensor(labels[:1])), (Tensor(scores[1:]), Tensor(labels[1:]))
    )
    assert thresholds[0] == scores.max() + 1
    np.testing.assert_array_equal(thresholds[1:], np.unique(scores)[::-1])
    np.testing.assert_allclose(tpr, [(scores[labels == 1] >= t).mean() for t in thresholds])
    np.testing.assert_allclose(fpr, [(scores[labels == 0] >= t).mean() for t in thresholds])
    # The area is the chance that a positive sample's score is higher, ties counting half.
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None]
    assert train.auc(fpr, tpr) == pytest.approx((np.sign(pairs) + 1).mean() / 2)


def test_roc_of_classes() -> None:
    scores = np.array(
        [[0.28, 0.55, 0.15, 0.05], [0.1, 0.2, 0.05, 0.05], [0.2, 0.05, 0.15, 0.05], [0.05, 0.05, 0.05, 0.75]]
    )
    fpr, tpr, thresholds = run(train.ROC(class_num=4), (Tensor(scores), Tensor([0, 1, 2, 3])))
    for found, wanted in zip(
        (*fpr, *tpr, *thresholds[:3]),
        (
            [0, 0, 1 / 3, 2 / 3, 1],
            [0, 1 / 3, 1 / 3, 1],
            [0, 1 / 3, 1],
            [0, 0, 1],
            [0, 1, 1, 1, 1],
            [0, 0, 1, 1],
            [0, 1, 1],
            [0, 1, 1],
            [1.28, 0.28, 0.2, 0.1, 0.05],
            [1.55, 0.55, 0.2, 0.05],
            [1.15, 0.15, 0.05],
        ),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="no positive"):
        run(train.ROC(), (Tensor([0.1, 0.2]), Tensor([0, 0])))


def test_auc() -> None:
    assert train.auc(np.array([0, 0.5, 1.0]), np.array([0, 0.7, 1.0])) == pytest.approx(0.6)
    assert train.auc(np.array([1, 0.5, 0.0]), np.array([0, 0.7, 1.0])) == pytest.approx(0.6)
    assert train.auc(np.array([0, 0.5, 0.3, 1]), np.array([0, 0.7, 0.6, 1]), reorder=True) == pytest.approx(0.645)
    with pytest.raises(ValueError, match="ascend"):
        train.auc(np.array([1, 0.5, 0.7]), np.array([0, 0.7, 1.0]))


@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (6, 1)])
def test_cosine_similarity(shape) -> None:
    rows = rng.normal(size=shape)
    dots = rows @ rows.T
    cosines = dots / np.sqrt(np.outer(np.diag(dots), np.diag(dots)))
    for kind, wanted in (("dot", dots), ("cosine", cosines)):
        np.testing.assert_allclose(run(train.CosineSimilarity(kind, zero_diagonal=False), (Tensor(rows),)), wanted)
        off = wanted * (1 - np.eye(len(rows)))
        np.testing.assert_allclose(run(train.CosineSimilarity(kind), (Tensor(rows),)), off)
        np.testing.assert_allclose(run(train.CosineSimilarity(kind, "sum"), (Tensor(rows),)), off.sum(1))
        np.testing.assert_allclose(run(train.CosineSimilarity(kind, "mean"), (Tensor(rows),)), off.mean(1))


def test_dice() -> None:
    x = np.array([[0.34, 0.43, 0.97, 0.56], [0.26, 0.24, 0.89, 0.23], [0.12, 0.29, 0.59, 0.55]])
    y = np.array([[0.0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1]])
    assert run(train.Dice(), (Tensor(x), Tensor(y))) == pytest.approx(0.21170392793268364, rel=1e-12)
    assert run(train.Dice(0.5), (Tensor(x), Tensor(y)), (Tensor(x[:1]), Tensor(y[:1]))) == pytest.approx(
        0.33722241068944275, rel=1e-12
    )
    with pytest.raises(ValueError, match="one shape"):
        run(train.Dice(), (x, y[:2]))


class Scores(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 3, Tensor(np.arange(12).reshape(3, 4).astype(np.float32) / 10), bias_init="zeros")

    def construct(self, x):
        return self.dense(ms.ops.sum(x, 2) if x.ndim == 3 else x)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [0.14, 0.32, 0.6, 0.56]),
        ({"pad_val": 0.5, "margin": 1}, [-0.16, -0.31, -0.27, -0.19]),
        ({"margin": 0}, [0, 0, 0, 0]),
        ({"pad_val": 1.0, "margin": 1, "n_batch": 3}, [-0.36, -0.76, -0.82, -0.84]),
        ({"margin": 1, "n_batch": 4, "b_box": [1, 2]}, [0.14, 0.28]),
    ],
)
def test_occlusion(options, wanted) -> None:
    data = Tensor(np.array([[0.1, 0.2, 0.3, 0.4]], np.float32))
    found = run(train.OcclusionSensitivity(**options), (Scores(), data, Tensor(np.array(1, np.int32))))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_occlusion_of_two_dimensions() -> None:
    data = rng.normal(size=(1, 4, 3)).astype(np.float32)
    weights = np.arange(8, 12) / 10
    wanted = np.zeros((4, 3))
    for i, j in np.ndindex(4, 3):
        part = data[0, max(i - 1, 0) : i + 1, max(j - 2, 0) : j + 2]
        wanted[i, j] = (part.sum(1) * weights[max(i - 1, 0) : i + 1]).sum()
    metric = train.OcclusionSensitivity(margin=[1, 2], b_box=[-1, -1, 0, 1])
    np.testing.assert_allclose(run(metric, (Scores(), Tensor(data), Tensor([2]))), wanted[:, :2], atol=1e-5)
    with pytest.raises(ValueError, match="b_box"):
        run(train.OcclusionSensitivity(b_box=[0, 1]), (Scores(), Tensor(data), Tensor([2])))


def test_names_are_found_everywhere() -> None:
    for name in CHECKED:
        short = name.rsplit(".", 1)[1]
        assert getattr(nn, short) is getattr(train, short) is getattr(ms, short)
    assert {"bleu_score", "roc", "dice", "auc"} <= set(train.names())
    assert isinstance(train.get_metric_fn("hausdorff_distance", directed=True), train.HausdorffDistance)


def test_a_metric_of_users_converts_its_data() -> None:
    class Distance(ms.train.Metric):
        def __init__(self) -> None:
            super().__init__()
            self.clear()

        def clear(self) -> None:
            self.total, self.count = 0.0, 0

        def update(self, *inputs: object) -> None:
            predicted, wanted = (self._convert_data(v) for v in inputs)
            self.total, self.count = self.total + abs(predicted - wanted).sum(), self.count + len(predicted)

        def eval(self) -> float:
            return self.total / self.count

    for given in (ms.Tensor([1.0, 2.0]), np.array([1.0, 2.0]), [1.0, 2.0], [ms.Tensor(1.0), ms.Tensor(2.0)]):
        assert Distance()(given, ms.Tensor([1.0, 4.0])) == 1.0
    assert Distance()._convert_data(ms.Tensor([1.5], ms.bfloat16)).dtype == np.float32
    for wrong in ((1, 2), 3, None, "a", True):
        with pytest.raises(TypeError, match="Distance: the data must be a Tensor, a NumPy array or a list, not"):
            Distance()._convert_data(wrong)

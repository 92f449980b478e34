"""Metrics against hand counts and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycel._src.tensors.core.tensor import Tensor
from mycel.train import metrics

CHECKED = dict.fromkeys(("train.Metric", "train.get_metric_fn", "train.rearrange_inputs"), "definitions")

SCORES = np.float32([[0.2, 0.5, 0.3], [0.3, 0.1, 0.6], [0.9, 0.05, 0.05], [0.1, 0.2, 0.7]])
CLASSES = np.int32([1, 0, 0, 1])
ONE_HOT = np.eye(3, dtype=np.float32)[CLASSES]
PREDICTED = np.float32([[0, 1, 0], [1, 0, 1], [1, 1, 0], [0, 0, 1]])
ACTUAL = np.float32([[0, 1, 1], [1, 0, 1], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("wrap", [Tensor, np.asarray, np.ndarray.tolist])
@pytest.mark.parametrize(
    "metric, expected",
    [
        (metrics.Accuracy(), 0.5),
        (metrics.Precision(), [1, 1, 0]),
        (metrics.Recall(), [0.5, 0.5, 0]),
        (metrics.F1(), [2 / 3, 2 / 3, 0]),
        (metrics.Fbeta(2), [5 / 9, 5 / 9, 0]),
        (metrics.Top1CategoricalAccuracy(), 0.5),
        (metrics.TopKCategoricalAccuracy(2), 1.0),
    ],
)
def test_classification(metric, expected, wrap):
    for labels in (CLASSES, ONE_HOT):
        np.testing.assert_allclose(metric(wrap(SCORES), wrap(labels)), expected, rtol=1e-15)


@pytest.mark.parametrize(
    "metric, expected, mean",
    [(metrics.Precision("multilabel"), [1, 1, 0.5, 1], 0.875), (metrics.Recall("multilabel"), [0.5, 1, 1, 1], 0.875)],
)
def test_multilabel_is_per_sample(metric, expected, mean):
    np.testing.assert_array_equal(metric(PREDICTED, ACTUAL), expected)
    assert metric.eval(average=True) == mean and metric.eval(True) == mean
    metric.update(PREDICTED[:1], ACTUAL[:1])
    np.testing.assert_array_equal(metric.eval(), [*expected, expected[0]])


def test_multilabel_accuracy_wants_all_labels_right():
    assert metrics.Accuracy("multilabel")(PREDICTED, ACTUAL) == 0.5
    with pytest.raises(ValueError, match=r"multilabel y_pred must hold zeros and ones only"):
        metrics.Accuracy("multilabel")(SCORES, ACTUAL)
    with pytest.raises(ValueError, match=r"have one shape \[N, C\], not \(4, 3\) and \(4,\)"):
        metrics.Accuracy("multilabel")(PREDICTED, CLASSES)


def test_means_over_classes():
    metric = metrics.Precision()
    metric.update(SCORES, CLASSES)
    assert metric.eval(True) == pytest.approx(2 / 3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_counts_agree_with_loops_over_samples_in_batches(seed, classes, sizes):
    random = np.random.default_rng(seed)
    made = {
        "precision": metrics.Precision(),
        "recall": metrics.Recall(),
        "F1": metrics.F1(),
        "acc": metrics.Accuracy(),
        "cm": metrics.ConfusionMatrix(classes),
    }
    matrix = np.zeros((classes, classes))
    for size in sizes:
        scores = random.random((size, classes, 2)).astype(np.float32)
        labels = random.integers(0, classes, (size, 2))
        for metric in made.values():
            metric.update(Tensor(scores), Tensor(labels))
        for sample in range(size):
            for place in range(2):
                matrix[labels[sample, place], int(np.argmax(scores[sample, :, place]))] += 1
    np.testing.assert_array_equal(made["cm"].eval(), matrix)
    for c in range(classes):
        hit, predicted, actual = matrix[c, c], matrix[:, c].sum(), matrix[c].sum()
        precision, recall = hit / predicted if predicted else 0, hit / actual if actual else 0
        assert made["precision"].eval()[c] == pytest.approx(precision) and made["recall"].eval()[c] == pytest.approx(
            recall
        )
        expected = 2 * precision * recall / (precision + recall) if hit else 0
        assert made["F1"].eval()[c] == pytest.approx(expected)
    assert made["acc"].eval() == pytest.approx(np.trace(matrix) / matrix.sum())


def test_ties_go_to_the_first_class():
    tie = np.float32([[0.5, 0.5, 0.5]])
    assert [metrics.TopKCategoricalAccuracy(2)(tie, [c]) for c in range(3)] == [1, 1, 0]
    assert [metrics.Accuracy()(tie, [c]) for c in range(3)] == [1, 0, 0]


def test_errors_are_summed_within_and_averaged_over_samples():
    a, b = Tensor(np.float32([[1, 2], [3, 5]])), Tensor(np.float32([[1, 1], [0, 5]]))
    mae, mse = metrics.MAE(), metrics.MSE()
    for metric in (mae, mse):
        metric.update(a, b)
        metric.update(a, b)
    assert (mae.eval(), mse.eval()) == (2.0, 5.0)
    assert metrics.MSE()(np.ones((2, 3, 4)), np.zeros((2, 3, 4))) == 12.0
    with pytest.raises(ValueError, match=r"MAE.update: y_pred and y must have one shape, not \(2, 2\) and \(1,\)"):
        mae.update(a, Tensor([1.0]))


def test_loss_is_the_mean_of_batches():
    loss = metrics.Loss()
    loss.update(Tensor(1.0))
    loss.update(Tensor([2.0, 4.0]))
    assert loss.eval() == 2.0
    with pytest.raises(ValueError, match=r"Loss.update takes 1 inputs \(loss\), not 2"):
        loss.update(1, 2)


@pytest.mark.parametrize(
    "normalize, expected",
    [
        ("no_norm", [[1, 1], [0, 2]]),
        ("target", [[0.5, 0.5], [0, 1]]),
        ("prediction", [[1, 1 / 3], [0, 2 / 3]]),
        ("all", [[0.25, 0.25], [0, 0.5]]),
    ],
)
def test_confusion_matrix(normalize, expected):
    scores = np.float32([0.7, 0.2, 0.6, 0.5])
    np.testing.assert_allclose(metrics.ConfusionMatrix(2, normalize)(scores, CLASSES), expected)


def test_confusion_matrix_of_an_absent_class_has_zeros_and_checks_ranges():
    matrix = metrics.ConfusionMatrix(3, "target")(np.int64([0, 1]), np.int64([0, 0]))
    np.testing.assert_array_equal(matrix, [[0.5, 0.5, 0], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="y_pred holds classes from 0 to 3, outside the 3"):
        metrics.ConfusionMatrix(3)([0, 3], [0, 0])
    with pytest.raises(ValueError, match="normalize must be one of 'no_norm', 'target', 'prediction', 'all', not 'x'"):
        metrics.ConfusionMatrix(3, "x")


@pytest.mark.parametrize("name", [name for name in metrics.names() if name not in ("auc", "confusion_matrix", "topk")])
def test_nothing_seen_is_an_error_by_name(name):
    metric = metrics.get_metric_fn(name)
    with pytest.raises(RuntimeError, match=f"{type(metric).__name__}.eval: nothing to evaluate"):
        metric.eval()


@pytest.mark.parametrize(
    "metric, inputs, text",
    [
        (metrics.Accuracy(), (SCORES,), r"Accuracy.update takes 2 inputs \(y_pred, y\), not 1"),
        (metrics.Accuracy(), (SCORES, CLASSES[:2]), r"y_pred of shape \(4, 3\) wants y of shape \(4,\).*not \(2,\)"),
        (metrics.Accuracy(), (SCORES[:, 0], CLASSES), r"y_pred of shape \(4,\)"),
        (metrics.Precision(), (SCORES, CLASSES + 6), "y holds classes from 6 to 7, y_pred has 3"),
        (metrics.Top5CategoricalAccuracy(), (SCORES, CLASSES), "k is 5, and y_pred has only 3 classes"),
        (metrics.TopKCategoricalAccuracy(1), (SCORES[0], CLASSES), r"must be \[N, C\]"),
    ],
)
def test_inputs_that_do_not_fit(metric, inputs, text):
    with pytest.raises(ValueError, match=text):
        metric.update(*inputs)


def test_the_number_of_classes_may_not_change():
    metric = metrics.Accuracy()
    metric.update(SCORES, CLASSES)
    with pytest.raises(ValueError, match="y_pred has 2 classes now and had 3 before"):
        metric.update(SCORES[:, :2], CLASSES)
    metric.clear()
    metric.update(SCORES[:, :2], CLASSES)
    assert metric.eval() == 1.0


def test_arguments():
    for make in (metrics.Accuracy, metrics.Precision, metrics.Recall):
        with pytest.raises(TypeError, match="eval_type must be 'classification' or 'multilabel', not 'x'"):
            make("x")
    with pytest.raises(ValueError, match="beta must be greater than 0"):
        metrics.Fbeta(0)
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        metrics.TopKCategoricalAccuracy(0)
    with pytest.raises(TypeError, match="k must be an int, not float"):
        metrics.TopKCategoricalAccuracy(1.5)


def test_names_make_metrics():
    assert {"accuracy", "acc", "loss", "mae", "mse", "F1", "precision", "recall", "top_1_accuracy"} <= set(
        metrics.names()
    )
    made = metrics.get_metrics({"a": metrics.Loss(), "b": "mae"})
    assert isinstance(made["a"], metrics.Loss) and isinstance(made["b"], metrics.MAE)
    assert isinstance(metrics.get_metrics({"acc"})["acc"], metrics.Accuracy) and metrics.get_metrics(None) == {}
    with pytest.raises(KeyError, match="there is no metric 'foo'; known: F1, acc"):
        metrics.get_metric_fn("foo")
    with pytest.raises(TypeError, match="must be a set of names or a dict of metrics, not int"):
        metrics.get_metrics(3)
    with pytest.raises(TypeError, match=r"metrics\['a'\] must be a Metric"):
        metrics.get_metrics({"a": 3})


def test_indexes_choose_and_order_inputs():
    metric = metrics.MAE().set_indexes([2, 0])
    metric.update(np.zeros(2), None, np.ones(2))
    assert metric.eval() == 1.0 and metric.indexes == [2, 0]
    with pytest.raises(IndexError, match="set_indexes chose input 2 of 1 inputs"):
        metric.update(np.zeros(2))
    with pytest.raises(ValueError, match="indexes must be a list of integers"):
        metric.set_indexes("01")

"""ONNX's operators of strings and tables, computed by Python and NumPy: tensors have no strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.formats.onnx.linear_regex import Pattern, PatternError
from mycel.formats.onnx.operation import Array, Operation, array, rule

__all__: list[str] = []


def _strings(values: Any, shape: Any) -> Array:
    made: Array = np.empty(len(values), object)
    made[:] = values
    return np.asarray(made.reshape(shape))


@rule("StringConcat", raw=True)
def _concat(op: Operation, x: Array, y: Array) -> Any:
    a, b = np.broadcast_arrays(x, y)
    return _strings([p + q for p, q in zip(a.reshape(-1), b.reshape(-1))], a.shape)


@rule("StringSplit", raw=True)
def _split(op: Operation, x: Array) -> Any:
    delimiter, most = op.get("delimiter") or None, op.get("maxsplit", -1)
    rows = [str(s).split(delimiter, -1 if most is None else most) for s in x.reshape(-1)]
    wide = max((len(r) for r in rows), default=0)
    parts = [word for r in rows for word in [*r, *[""] * (wide - len(r))]]
    counts = np.array([len(r) for r in rows], np.int64).reshape(x.shape)
    return _strings(parts, (*x.shape, wide)), counts


@rule("RegexFullMatch", raw=True)
def _match(op: Operation, x: Array) -> Any:
    # A pattern of a file may not say how long a match takes, as it may to Python's `re`.
    try:
        pattern = Pattern(op.get("pattern", ""))
    except PatternError as error:
        raise op.wrong(str(error)) from None
    return np.array([pattern.matches(s) for s in x.reshape(-1)], np.bool_).reshape(x.shape)


@rule("StringNormalizer", raw=True)
def _normalize(op: Operation, x: Array) -> Any:
    change: Any = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[op.get("case_change_action", "NONE")]
    exact = op.get("is_case_sensitive", 0)
    stop = set(op.get("stopwords") or [])
    stop = stop if exact else {s.lower() for s in stop}
    words = [s for s in x.reshape(-1) if (s if exact else s.lower()) not in stop]
    words = [change(s) for s in words] or [""]
    return _strings(words, (len(words),) if x.ndim == 1 else (1, len(words)))


@rule("TfIdfVectorizer", raw=True)
def _tf_idf(op: Operation, x: Any) -> Any:
    given = array(x)
    pool: list[Any] = op.get("pool_strings") or op.get("pool_int64s") or []
    starts, places = op.get("ngram_counts"), op.get("ngram_indexes")
    weights = op.get("weights") or [1.0] * len(places)
    known: dict[tuple[Any, ...], int] = {}
    for size, (start, stop) in enumerate(zip(starts, [*starts[1:], len(pool)]), 1):
        for i in range(start, stop, size):
            known[tuple(pool[i : i + size])] = len(known)
    rows = given.reshape(1, -1) if given.ndim == 1 else given
    out = np.zeros((len(rows), max(places) + 1), np.float32)
    sizes = range(op.get("min_gram_length"), op.get("max_gram_length") + 1)
    for number, row in enumerate(rows.tolist()):
        for size in sizes:
            for skip in range(1 if size == 1 else op.get("max_skip_count") + 1):
                span = (size - 1) * (skip + 1) + 1
                for at in range(len(row) - span + 1):
                    found = known.get(tuple(row[at : at + span : skip + 1]))
                    if found is not None:
                        out[number, places[found]] += 1
    if op.get("mode") in ("IDF", "TFIDF"):
        scale = np.zeros(out.shape[1], np.float32)
        scale[places] = weights
        out = (np.minimum(out, 1) if op.get("mode") == "IDF" else out) * scale
    return out[0] if given.ndim == 1 else out


# Tables, of the domain of classic machine learning.

_ML = "ai.onnx.ml"


@rule("LabelEncoder", raw=True, domain=_ML)
def _label_encoder(op: Operation, x: Any) -> Any:
    def side(word: str) -> Any:
        for kind in ("strings", "int64s", "floats", "tensor"):
            found = op.get(f"{word}_{kind}")
            if found is not None:
                return kind, found.tolist() if isinstance(found, np.ndarray) else found
        raise op.wrong(f"it has no {word}")

    _, keys = side("keys")
    kind, values = side("values")
    names = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}
    standard: Any = {"strings": "_Unused", "int64s": -1, "floats": -0.0}
    if kind == "tensor":
        table = op.get("values_tensor")
        default = op.get("default_tensor")
        default = (
            default.reshape(-1)[0]
            if default is not None
            else ("_Unused" if table.dtype.kind == "O" else -1 if table.dtype.kind == "i" else -0.0)
        )
        form: Any = table.dtype
    else:
        default = op.get(names[kind], standard[kind])
        form = {"strings": np.dtype(object), "int64s": np.dtype(np.int64), "floats": np.dtype(np.float32)}[kind]
    given = array(x)
    known = {_key(k): v for k, v in zip(keys, values)}
    found = [known.get(_key(v), default) for v in given.reshape(-1).tolist()]
    return _strings(found, given.shape) if form.kind == "O" else np.array(found, form).reshape(given.shape)


def _key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value


@rule("ArrayFeatureExtractor", raw=True, domain=_ML)
def _features(op: Operation, x: Any, places: Any) -> Any:
    given = array(x)
    found = given[..., array(places).reshape(-1)]
    return found.reshape(1, -1) if given.ndim == 1 else found


@rule("Binarizer", raw=True, domain=_ML)
def _binarizer(op: Operation, x: Any) -> Any:
    given = array(x)
    return (given > op.get("threshold", 0.0)).astype(given.dtype)


@rule("TreeEnsemble", raw=True, domain=_ML)
def _trees(op: Operation, x: Any) -> Any:
    """Return the sum of the leaves that each row reaches."""
    given = array(x)
    splits, modes = op.get("nodes_splits"), op.get("nodes_modes")
    features, members = op.get("nodes_featureids"), op.get("membership_values")
    goes = (
        op.get("nodes_trueleafs"),
        op.get("nodes_truenodeids"),
        op.get("nodes_falseleafs"),
        op.get("nodes_falsenodeids"),
    )
    missing = op.get("nodes_missing_value_tracks_true") or [0] * len(splits)
    targets, weights = op.get("leaf_targetids"), op.get("leaf_weights")
    sets: dict[int, set[float]] = {}
    if members is not None:
        groups: list[set[float]] = [set()]
        for v in members.reshape(-1).tolist():
            if v != v:
                groups.append(set())
            else:
                groups[-1].add(v)
        at = [i for i, m in enumerate(modes.reshape(-1).tolist()) if m == 6]
        sets = dict(zip(at, groups))
    tests: Any = {
        0: lambda a, b: a <= b,
        1: lambda a, b: a < b,
        2: lambda a, b: a >= b,
        3: lambda a, b: a > b,
        4: lambda a, b: a == b,
        5: lambda a, b: a != b,
    }
    kind = op.get("aggregate_function", 1)
    if kind not in (0, 1, 2, 3) or op.get("post_transform", 0) != 0:
        raise op.refused(f"aggregate_function {kind} with post_transform {op.get('post_transform', 0)}")
    scores: list[list[list[float]]] = [[[] for _ in range(op.get("n_targets"))] for _ in given]
    for number, row in enumerate(given.tolist()):
        for root in op.get("tree_roots"):
            node, is_leaf, steps = root, False, 0
            while not is_leaf:
                value = row[features[node]]
                mode = int(modes.reshape(-1)[node])
                if value != value:
                    yes = bool(missing[node])
                elif mode == 6:
                    yes = value in sets[node]
                else:
                    yes = bool(tests[mode](value, float(splits.reshape(-1)[node])))
                is_leaf = bool(goes[0][node] if yes else goes[2][node])
                node = goes[1][node] if yes else goes[3][node]
                steps += 1
                if steps > len(features) + 1:
                    raise op.wrong("a tree leads back to itself")
            scores[number][targets[node]].append(float(weights.reshape(-1)[node]))
    join: Any = {0: lambda v: sum(v) / len(v), 1: sum, 2: min, 3: max}[kind]
    return np.array([[join(v) if v else 0.0 for v in row] for row in scores], given.dtype)

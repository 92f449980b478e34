"""Records that are parsed many at once have the values that the general parser gives."""

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.engines.routines import are_on
from mycel.mindrecord.tfrecord import Places, parse_example, record_spans
from mycel.mindrecord.tfrecord_parsing import parse_rows
from tests.tfrecords import example, field, records, varint

NAMES = ["a", "long name of a feature", "ü"]


def same(contents, names):
    """Compare; return whether the records were parsed together."""
    columns = parse_rows(contents, names)
    if columns is None:
        return False
    for row, content in enumerate(contents):
        expected = parse_example(content)
        for column, name in zip(columns, names):
            values = expected[name]
            if isinstance(values, list):
                assert len(values) == 1
                values = np.frombuffer(values[0], np.uint8)
            assert column[row].dtype == values.dtype
            np.testing.assert_array_equal(column[row], values)
    return True


def drawn(rng, kind, count):
    if kind == 0:
        return [rng.integers(0, 256, count, dtype=np.uint8).tobytes()]
    if kind == 1:
        return [float(x) for x in rng.normal(size=max(1, count)).astype(np.float32)]
    return [int(x) >> int(rng.integers(0, 63)) for x in rng.integers(-(2**63), 2**63 - 1, max(1, count))]


def test_rows_of_all_kinds():
    rng = np.random.default_rng(0)
    together = 0
    for _ in range(60):
        kinds, count = rng.integers(0, 3, 3), int(rng.integers(0, 300))
        ragged = rng.random() < 0.5
        contents = []
        for _ in range(int(rng.integers(1, 9))):
            sizes = rng.integers(0, count + 1, 3) if ragged else [count] * 3
            values = {name: drawn(rng, kind, int(n)) for name, kind, n in zip(NAMES, kinds, sizes)}
            contents.append(example(dict(sorted(values.items(), key=lambda _: rng.random()))))
        together += same(contents, NAMES)
        same(contents, NAMES[1:])
        assert parse_rows(contents, [*NAMES, "missing"]) is None
    assert together == (60 if are_on() else 0)


def test_other_forms_are_left_to_the_general_parser():
    plain = example({"a": [1]})
    pair = field(1, b"a") + field(2, field(3, varint(8) + varint(7)))
    forms = [
        field(1, field(1, pair)),
        example({"a": [b"x", b"y"]}),
        field(1, field(1, field(1, b"a") + field(2, b""))),
        field(1, field(1, field(1, b"a"))),
        plain + plain,
        b"",
        plain[:-1],
        field(1, field(1, field(2, field(3, field(1, varint(7)))) + field(1, b"a"))),
    ]
    for form in forms:
        assert parse_rows([plain, form], ["a"]) is None, form
    assert parse_rows([plain, example({"a": [1.5]})], ["a"]) is None
    # The last one of two of a name counts.
    assert same([field(1, example({"a": [1]})[2:] + example({"a": [2]})[2:])], ["a"]) is are_on()


def test_damaged_records_have_the_values_of_the_general_parser_or_none():
    rng = np.random.default_rng(1)
    whole = example({name: drawn(rng, kind, 40) for kind, name in enumerate(NAMES)})
    for _ in range(2000):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        content = bytes(damaged[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else damaged)
        try:
            parse_example(content)
        except ValueError:
            assert parse_rows([content], NAMES) is None
            continue
        same([content], NAMES)


def test_spans_and_places(tmp_path):
    rows = [{"a": [n], "b": [bytes([n % 256]) * n]} for n in range(5000 // 10)]
    path = tmp_path / "r"
    path.write_bytes(records(rows))
    spans = record_spans(str(path))
    places = Places([str(path)])
    assert [parse_example(places.read(0, *span))["a"].tolist() for span in spans] == [row["a"] for row in rows]
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match="ends within record 499"):
        record_spans(str(path))
    with pytest.raises(ValueError, match="has become shorter"):
        Places([str(path)]).read(0, len(content) - 3, 3)
    damaged = bytearray(content)
    damaged[spans[7][0] - 1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="is damaged at record 7"):
        record_spans(str(path))
    path.write_bytes(b"")
    assert record_spans(str(path)) == []


def test_many_rows_are_read_as_one_by_one(tmp_path):
    rng = np.random.default_rng(2)
    rows = [{"x": drawn(rng, 2, 3), "s": [b"ab"], "f": drawn(rng, 1, 1 + n % 3)} for n in range(100)]
    path = tmp_path / "r"
    path.write_bytes(records(rows))
    data = ds.TFRecordDataset(str(path), shuffle=False)
    assert data.get_col_names() == ["f", "s", "x"]
    for number, (f, s, x) in enumerate(data.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        one = data._row(number)
        for array, other in zip((f, s, x), one):
            assert array.dtype == other.dtype and array.shape == other.shape and (array == other).all()
    schema = ds.Schema()
    schema.add_column("x", "int32", [3])
    assert [len(x) for (x,) in ds.TFRecordDataset(str(path), schema).create_tuple_iterator(output_numpy=True)] == [
        3
    ] * 100

"""Transforms of text, against what MindSpore 2.10 gives for fixed texts and files, and by their
definitions where MindSpore errs.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import compat
from mycel.dataset import text
from mycel.dataset.text.unicode_sets import categories, characters, script

# What MindSpore 2.10 does: the files that calls read, vocabularies, calls that fail by error, and
# for each call results.
VALUES = json.loads((Path(__file__).parent / "values" / "text.json").read_text(encoding="utf-8"))


def data() -> Any:
    return ds.NumpySlicesDataset([["b", "a", "c"], ["b", "c", "d"], ["b", "é", "d"]], ["text"], shuffle=False)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the calls may name, and the files in a folder."""
    folder = f"{tmp_path_factory.mktemp('text')}/"
    for name, content in VALUES["files"].items():
        Path(folder + name).write_text(content, encoding="utf-8")

    def jieba(mode: text.JiebaMode, *new: Any) -> text.JiebaTokenizer:
        made = text.JiebaTokenizer(folder + "hmm", folder + "dict", mode, True)
        for one in new:
            made.add_word(*one) if isinstance(one, tuple) else made.add_dict(one)
        return made

    vocab = text.Vocab.from_list(["a"])
    return {**vars(text), "ms": ms, "np": np, "folder": folder, "jieba": jieba, "data": data, "VOCAB": vocab}


@pytest.mark.parametrize("call", VALUES["cases"])
def test_results_are_those_of_mindspore(call: str, names: dict[str, Any]) -> None:
    transform = eval(call, names)
    for value, stored in VALUES["cases"][call]:
        result = transform(value)
        results = result if isinstance(result, tuple) else (result,)
        expected = stored if isinstance(stored, list) else [stored]
        assert len(results) == len(expected)
        for got, ((kind, content),) in zip(results, (part.items() for part in expected)):
            assert got.dtype.kind == "U" if kind == "str" else got.dtype == np.dtype(kind), value
            if got.dtype.kind == "f":
                np.testing.assert_allclose(got, np.array(content, got.dtype), rtol=1e-6)
            else:
                assert got.tolist() == content, value


@pytest.mark.parametrize("call", VALUES["vocabularies"])
def test_vocabularies_are_those_of_mindspore(call: str, names: dict[str, Any]) -> None:
    numbers = VALUES["vocabularies"][call]
    made = eval(call, names)
    assert made.vocab() == numbers and list(made.vocab()) == list(numbers)
    assert made.ids_to_tokens(list(numbers.values())) == list(numbers)
    assert made.tokens_to_ids(np.array(list(numbers), np.str_)) == list(numbers.values())


@pytest.mark.parametrize("error, call", [(error, call) for error, calls in VALUES["errors"].items() for call in calls])
def test_wrong_arguments_fail_as_in_mindspore(error: str, call: str, names: dict[str, Any]) -> None:
    # A file of vectors that is none, and a pair that cannot be cut, are found earlier here.
    with pytest.raises((RuntimeError, ValueError, TypeError) if error == "RuntimeError" else eval(error)) as caught:
        eval(call, names)
    assert len(str(caught.value)) > 15


def test_words_and_numbers() -> None:
    words = text.Vocab.from_list(["a", "b"])
    assert words.tokens_to_ids("b") == 1 and words.tokens_to_ids(["b", "z"]) == [1, -1]
    assert words.tokens_to_ids(np.array("a")) == 0
    assert words.ids_to_tokens(1) == "b" and words.ids_to_tokens(np.array([0, 9])) == ["a", ""]
    with pytest.raises(RuntimeError, match="'zz' is not in the vocabulary; give an unknown_token"):
        text.Lookup(words)(["a", "zz"])
    with pytest.raises(RuntimeError, match="unknown_token '<unk>' is not in the vocabulary"):
        text.Lookup(words, "<unk>")


def test_where_mindspore_mixes_texts_up() -> None:
    assert text.RegexReplace("[a-c]", "x")(["abcd", "", "zz"]).tolist() == ["xxxd", "", "zz"]
    assert text.RegexReplace("[a-c]", "x", False)([["abcd", "cc"]]).tolist() == [["xbcd", "xc"]]
    assert text.FilterWikipediaXML()(["A 1", "<b>c"]).tolist() == ["a one", "c"]
    assert text.FilterWikipediaXML()("a\n\nb").tolist() == "a b"
    special = text.BasicTokenizer(True, with_offsets=True)("AB [CLS] CD [SEP] É")
    assert [part.tolist() for part in special] == [
        ["ab", "[CLS]", "cd", "[SEP]", "e"],
        [0, 3, 9, 12, 18],
        [2, 8, 11, 17, 19],
    ]
    pieces = text.Vocab.from_list(["a", "##b", "[UNK]"])
    unknown = text.WordpieceTokenizer(pieces, max_bytes_per_token=4, with_offsets=True)(["ab", "ac", "ababab"])
    assert [part.tolist() for part in unknown] == [["a", "##b", "[UNK]", "[UNK]"], [0, 1, 0, 0], [1, 2, 2, 6]]


def test_pairs_are_cut_from_the_longer() -> None:
    for length in range(9):
        first, second = list("abcd"), list("xyz")
        while len(first) + len(second) > length:
            (first if len(first) > len(second) else second).pop()
        got = text.TruncateSequencePair(length)(list("abcd"), list("xyz"))
        assert [part.tolist() for part in got] == [first, second]


def test_bytes_and_functions() -> None:
    words = np.array(["abc", "é"])
    assert text.to_bytes(words).tolist() == [b"abc", b"\xc3\xa9"]
    assert text.to_str(text.to_bytes(words, "latin1"), "latin1").tolist() == words.tolist()
    assert text.PythonTokenizer(str.split)(np.array(["a b", "c d"])).tolist() == [["a", "b"], ["c", "d"]]
    assert text.PythonTokenizer(str.split)(np.array(b"a b")).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"lists of \[1, 2\] words"):
        text.PythonTokenizer(str.split)(np.array(["a b", "c"]))
    with pytest.raises(TypeError, match="must be a list of words, not 3"):
        text.PythonTokenizer(len)(np.array("abc"))


@pytest.mark.parametrize(
    "transform, value, message",
    [
        (text.WhitespaceTokenizer(), ["a b"], "must be one text"),
        (text.WhitespaceTokenizer(), np.int32(3), "must be text, not an array of type int32"),
        (text.CaseFold(), np.array(b"a"), "decode with text.to_str"),
        (text.AddToken("a"), "b", "must be a list of texts or a matrix of texts"),
        (text.Truncate(1), "b", "must be a list or a matrix"),
        (text.SlidingWindow(1, 1), [1], "axis must be 0 or -1"),
        (text.SlidingWindow(1), [[1]], "must be a list"),
        (text.TruncateSequencePair(1), [1], "must be two lists"),
        (text.Ngram(2), "a", "must be a list of texts"),
        (text.ToNumber(np.int8), ["128"], "not within int8"),
        (text.ToNumber(np.uint8), ["-1"], "not within uint8"),
        (text.ToNumber(np.int8), [""], "is no number"),
        (text.ToNumber(np.float16), ["1e6"], "too large for float16"),
        (text.ToNumber(np.float32), ["x1"], "is no number"),
    ],
)
def test_values_that_do_not_fit(transform: Any, value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        transform(value)


@pytest.mark.parametrize("pattern", ["[", "(", "[b-a]", r"\p{Nope}", r"\X", r"\pL", r"\y", "a\\", "[a&&"])
def test_wrong_patterns(pattern: str) -> None:
    with pytest.raises(ValueError, match="no regular expression that is supported"):
        text.RegexReplace(pattern, "")
    with pytest.raises(ValueError, match="no regular expression that is supported"):
        text.RegexTokenizer("a", pattern)


def test_wrong_replacements() -> None:
    for replacement in ("$1", "${n}", "$"):
        with pytest.raises(ValueError, match="in the replacement|names a group"):
            text.RegexReplace("a", replacement)
    assert text.RegexReplace("(a)", r"$12\u4e2d$0")("a").tolist() == "a2中a"


def test_properties_of_characters() -> None:
    for code in (*range(0, 0x3100, 7), 0x4E2D, 0x1F600, 0x10FFFF):
        one = chr(code)
        category = unicodedata.category(one)
        for name in (category, category[0]):
            assert any(a <= code <= b for a, b in characters(name)), (code, name)
        for name, holds in {"Uppercase": str.isupper, "Lowercase": str.islower}.items():
            assert any(a <= code <= b for a, b in characters(name)) == holds(one)
    assert characters("Letter") == characters("gc=L") == categories("L")
    assert characters("Script=Han") == characters("Hani") == characters("sc=han")
    assert [script(c) for c in "aαб中あ1\u0301\u0378"] == [
        "latn",
        "grek",
        "cyrl",
        "hani",
        "hira",
        "zyyy",
        "zinh",
        "zzzz",
    ]
    assert all(b < c - 1 for (_, b), (c, _) in zip(characters("word"), characters("word")[1:]))


def test_files_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for content, message in (
        ("ok 1 2\n! 1\n", "line 2 .* has a vector of 1 numbers"),
        ("ok 1 2 3\n! 1 2\n", "a vector of 2 numbers, those before have 3"),
        ("ok 1 x 3\n", "no number"),
        ("1 2\n", "has no vectors"),
    ):
        path.write_text(content)
        with pytest.raises(RuntimeError, match=message):
            text.Vectors.from_file(str(path))
    path.write_text("ok 1 2\n")
    with pytest.raises(ValueError, match="unk_init has 3 numbers for vectors of 2"):
        text.ToVectors(text.Vectors.from_file(str(path)), [1, 2, 3])


def test_files_of_segmentation(tmp_path: Path) -> None:
    for name in ("hmm", "dict"):
        (tmp_path / name).write_text(VALUES["files"][name], encoding="utf-8")
    (tmp_path / "wrong").write_text("x\n")
    with pytest.raises(ValueError, match="no model of start"):
        text.JiebaTokenizer(str(tmp_path / "wrong"), str(tmp_path / "dict"))
    with pytest.raises(ValueError, match="no word with a frequency"):
        text.JiebaTokenizer(str(tmp_path / "hmm"), str(tmp_path / "wrong"))
    assert text.JiebaTokenizer(str(tmp_path / "hmm"), str(tmp_path / "dict"))("").tolist() == [""]


def test_pieces_name_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    (tmp_path / "m.model").write_bytes(b"")
    with pytest.raises(ImportError, match="SentencePieceTokenizer: needs the package sentencepiece; pip install"):
        text.SentencePieceTokenizer(str(tmp_path / "m.model"), text.SPieceTokenizerOutType.INT)
    with pytest.raises(ImportError, match="SentencePieceVocab.from_dataset: needs the package sentencepiece"):
        text.SentencePieceVocab.from_dataset(data(), ["text"], 9, 1.0, text.SentencePieceModel.BPE, {})
    with pytest.raises(RuntimeError, match="the model is not built"):
        text.SentencePieceVocab.save_model(text.SentencePieceVocab(), str(tmp_path), "m")


def test_pieces_of_a_trained_model(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    lines = ["the quick brown fox jumps over the lazy dog", "I saw a girl with a telescope", "today is tuesday"] * 6
    texts = ds.NumpySlicesDataset(lines, ["text"], shuffle=False)
    model = text.SentencePieceVocab.from_dataset(texts, ["text"], 40, 1.0, text.SentencePieceModel.BPE, {})
    text.SentencePieceVocab.save_model(model, str(tmp_path), "m.model")
    numbers = text.SentencePieceTokenizer(str(tmp_path / "m.model"), text.SPieceTokenizerOutType.INT)("the fox")
    pieces = text.SentencePieceTokenizer(model, text.SPieceTokenizerOutType.STRING)("the fox")
    assert numbers.dtype == np.int32 and len(numbers) == len(pieces)
    assert "".join(pieces.tolist()) == "▁the▁fox"


def test_columns_of_a_pipeline() -> None:
    lines = ds.NumpySlicesDataset(["a b", "中 d e"], ["line"], shuffle=False)
    placed = lines.map(text.WhitespaceTokenizer(True), "line", ["word", "first", "last"])
    rows = [{k: v.tolist() for k, v in row.items()} for row in placed.create_dict_iterator(1, output_numpy=True)]
    assert rows == [
        {"word": ["a", "b"], "first": [0, 2], "last": [1, 3]},
        {"word": ["中", "d", "e"], "first": [0, 4, 6], "last": [3, 5, 7]},
    ]
    with pytest.raises(RuntimeError, match="special_tokens that are words of the vocabulary as well: .'b'."):
        text.Vocab.from_dataset(lines.map(text.WhitespaceTokenizer()), top_k=1, special_tokens=["b"])
    words = text.Vocab.from_dataset(lines.map(text.WhitespaceTokenizer()), special_tokens=["<pad>", "<unk>"])
    steps = [text.WhitespaceTokenizer(), text.Truncate(2), text.AddToken("e"), text.Lookup(words, "<unk>")]
    batch = next(
        lines.map(steps, num_parallel_workers=2).batch(2).create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    assert batch[0].tolist() == [words.tokens_to_ids(["e", "a", "b"]), words.tokens_to_ids(["e", "中", "d"])]
    pairs = ds.NumpySlicesDataset(([["a", "b"]], [["c", "d", "e"]]), ["p", "q"], shuffle=False)
    row = next(
        pairs.map(text.TruncateSequencePair(3), ["p", "q"]).create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    assert [part.tolist() for part in row] == [["a", "b"], ["c"]]
    with pytest.raises(RuntimeError, match="'Lookup' failed on column 'line', row 1: RuntimeError: Lookup: '中'"):
        list(
            lines.map(
                [text.WhitespaceTokenizer(), text.Lookup(text.Vocab.from_list(["a", "b"]))]
            ).create_tuple_iterator(num_epochs=1)
        )


def test_names_of_mindspore() -> None:
    compat.install()
    try:
        package, transforms, utils = (
            importlib.import_module(f"mindspore.dataset.text{part}") for part in ("", ".transforms", ".utils")
        )
    finally:
        compat.uninstall()
    assert package.Vocab is text.Vocab and ds.text is text
    assert transforms.BertTokenizer is text.BertTokenizer and utils.to_str is text.to_str and utils.Vocab is text.Vocab


def test_blanks_are_those_of_unicode():
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    from mycel.dataset.text.unicode_sets import is_space

    blanks = [place for place, character in enumerate(every) if is_space(character)]
    ends = zip([-1, *blanks], [*blanks, len(every)])
    expected = [(first + 1, last) for first, last in ends if first + 1 < last]
    assert text.WhitespaceTokenizer().spans(every) == expected


def test_datasets_of_text_make_vocabularies(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("b a\nb c\n" * 30)
    lines = ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=False)
    words = lines.build_vocab(["text"], (2, None), 1, ["<u>"], True)
    assert words.vocab() == {"<u>": 0, "b a": 1}
    if importlib.util.find_spec("sentencepiece") is None:
        with pytest.raises(ImportError, match="pip install sentencepiece"):
            lines.build_sentencepiece_vocab(["text"], 7, 1.0, text.SentencePieceModel.CHAR, {})
        return
    pieces = lines.build_sentencepiece_vocab(["text"], 7, 1.0, text.SentencePieceModel.CHAR, {})
    tokens = text.SentencePieceTokenizer(pieces, text.SPieceTokenizerOutType.STRING)("b a")
    assert tokens.tolist() == ["\u2581", "b", "\u2581", "a"]


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(RuntimeError, match="AddToken: token must not be empty"):
        text.AddToken("")

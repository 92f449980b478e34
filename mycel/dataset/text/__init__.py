"""Transforms of text: vocabularies, tokenizers, normal forms and word vectors.

The names are MindSpore's.

>>> import mycel.dataset as ds
>>> from mycel.dataset import text
>>> data = ds.NumpySlicesDataset(["to be or", "not to be"], ["line"], shuffle=False)
>>> data = data.map(text.WhitespaceTokenizer())
>>> words = text.Vocab.from_dataset(data, special_tokens=["<unk>"])
>>> rows = data.map(text.Lookup(words)).create_dict_iterator(1, output_numpy=True)
>>> [row["line"].tolist() for row in rows]
[[2, 1, 4], [3, 2, 1]]
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel.dataset.text.encoding import to_bytes, to_str
from mycel.dataset.text.enums import (
    JiebaMode,
    NormalizeForm,
    SentencePieceModel,
    SPieceTokenizerLoadType,
    SPieceTokenizerOutType,
)
from mycel.dataset.text.jieba import JiebaTokenizer
from mycel.dataset.text.normalize import CaseFold, NormalizeUTF8
from mycel.dataset.text.regex import FilterWikipediaXML, RegexReplace, RegexTokenizer
from mycel.dataset.text.sentencepiece_models import SentencePieceTokenizer, SentencePieceVocab
from mycel.dataset.text.sequences import AddToken, Ngram, SlidingWindow, ToNumber, Truncate, TruncateSequencePair
from mycel.dataset.text.tokenizers import (
    PythonTokenizer,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
)
from mycel.dataset.text.vocab import Lookup, Vocab
from mycel.dataset.text.word_vectors import CharNGram, FastText, GloVe, ToVectors, Vectors
from mycel.dataset.text.wordpiece import BasicTokenizer, BertTokenizer, WordpieceTokenizer

__all__ = [
    "AddToken",
    "BasicTokenizer",
    "BertTokenizer",
    "CaseFold",
    "CharNGram",
    "FastText",
    "FilterWikipediaXML",
    "GloVe",
    "JiebaMode",
    "JiebaTokenizer",
    "Lookup",
    "Ngram",
    "NormalizeForm",
    "NormalizeUTF8",
    "PythonTokenizer",
    "RegexReplace",
    "RegexTokenizer",
    "SPieceTokenizerLoadType",
    "SPieceTokenizerOutType",
    "SentencePieceModel",
    "SentencePieceTokenizer",
    "SentencePieceVocab",
    "SlidingWindow",
    "ToNumber",
    "ToVectors",
    "Truncate",
    "TruncateSequencePair",
    "UnicodeCharTokenizer",
    "UnicodeScriptTokenizer",
    "Vectors",
    "Vocab",
    "WhitespaceTokenizer",
    "WordpieceTokenizer",
    "to_bytes",
    "to_str",
]

__dir__ = _listing(__name__)

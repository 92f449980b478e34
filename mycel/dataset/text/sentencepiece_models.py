"""Subword models of SentencePiece (Kudo and Richardson, 2018).

The package `sentencepiece` trains and applies them. It is imported when a model is trained or
applied; without it ImportError says how to install it.
"""

from __future__ import annotations

import importlib
import io
import os
from typing import Any

import numpy as np

from mycel._src.foundation.files import atomic_files as whole
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text.base import UINT32_MAX, TextTransform, check_range, check_type, words_array
from mycel.dataset.text.enums import SentencePieceModel, SPieceTokenizerOutType


def _package(operation: str) -> Any:
    try:
        return importlib.import_module("sentencepiece")
    except ImportError as error:
        raise ImportError(f"{operation}: needs the package sentencepiece; pip install sentencepiece") from error


def _train(
    operation: str, source: dict[str, Any], vocab_size: int, coverage: float, model_type: Any, params: Any
) -> SentencePieceVocab:
    check_range(operation, "vocab_size", vocab_size, 0, UINT32_MAX)
    check_type(operation, "character_coverage", coverage, float)
    check_type(operation, "model_type", model_type, SentencePieceModel)
    check_type(operation, "params", params, dict)
    content = io.BytesIO()
    options = {"vocab_size": vocab_size, "character_coverage": coverage, "model_type": model_type.name.lower()}
    _package(operation).SentencePieceTrainer.train(
        **source, **options, **params, model_writer=content, minloglevel=params.get("minloglevel", 2)
    )
    vocab = SentencePieceVocab()
    vocab._model = content.getvalue()
    return vocab


class SentencePieceVocab:
    """A model of SentencePiece, made by `from_file` or `from_dataset`."""

    def __init__(self) -> None:
        self._model: bytes | None = None

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        col_names: Any,
        vocab_size: int,
        character_coverage: float,
        model_type: SentencePieceModel,
        params: dict[str, Any],
    ) -> SentencePieceVocab:
        """Train a model on text of a dataset.

        Args:
            dataset (Dataset): The dataset.
            col_names (str | Sequence[str] | None): The columns of text; all columns if there are
                none.
            vocab_size (int): The number of pieces.
            character_coverage (float): The fraction of all characters that the model has, 0.9995
                for languages with many characters and 1.0 for others.
            model_type (SentencePieceModel): The kind of model.
            params (dict[str, Any]): Further options of SentencePiece's trainer.

        Returns:
            SentencePieceVocab: The model.

        Raises:
            ValueError: For a column that does not exist.
            ImportError: Without the package, and the errors of the trainer.
        """
        operation = "SentencePieceVocab.from_dataset"
        names = dataset.get_col_names() if not col_names else col_names
        check_type(operation, "col_names", names, list)
        for name in names:
            check_type(operation, "a column", name, str)
            if name not in dataset.get_col_names():
                raise ValueError(f"{operation}: there is no column {name!r} in {dataset.get_col_names()}")
        rows = dataset.create_dict_iterator(num_epochs=1, output_numpy=True)
        sentences = (text for row in rows for name in names for text in row[name].reshape(-1).tolist())
        return _train(operation, {"sentence_iterator": sentences}, vocab_size, character_coverage, model_type, params)

    @classmethod
    def from_file(
        cls,
        file_path: list[str],
        vocab_size: int,
        character_coverage: float,
        model_type: SentencePieceModel,
        params: dict[str, Any],
    ) -> SentencePieceVocab:
        """Train a model on text files that have a sentence in each line.

        Args:
            file_path (list[str]): A list of files.
            vocab_size (int): The number of pieces.
            character_coverage (float): The fraction of all characters that the model has, 0.9995
                for languages with many characters and 1.0 for others.
            model_type (SentencePieceModel): The kind of model.
            params (dict[str, Any]): Further options of SentencePiece's trainer.

        Returns:
            SentencePieceVocab: The model.

        Raises:
            RuntimeError: For a file that does not exist.
        """
        operation = "SentencePieceVocab.from_file"
        check_type(operation, "file_path", file_path, list)
        for path in file_path:
            check_type(operation, "a path", path, str)
            if not os.path.isfile(path):
                raise RuntimeError(f"{operation}: there is no file {path!r}")
        return _train(operation, {"input": file_path}, vocab_size, character_coverage, model_type, params)

    @classmethod
    def save_model(cls, vocab: SentencePieceVocab, path: str, filename: str) -> None:
        """Write a model as a file of SentencePiece into a folder."""
        operation = "SentencePieceVocab.save_model"
        check_type(operation, "vocab", vocab, SentencePieceVocab)
        check_type(operation, "path", path, str)
        check_type(operation, "filename", filename, str)
        if vocab._model is None:
            raise RuntimeError(f"{operation}: the model is not built; make one with from_file or from_dataset")
        whole.write(os.path.join(path, filename), vocab._model)


class SentencePieceTokenizer(TextTransform):
    """The pieces of a text, or their numbers, int32, by a SentencePiece model or its file.

    Raises RuntimeError for a model that is not built and a file that does not exist, and
    ImportError without the package `sentencepiece`.

    >>> from mycel.dataset import text
    >>> text.SentencePieceTokenizer(text.SentencePieceVocab(), text.SPieceTokenizerOutType.INT)
    Traceback (most recent call last):
    RuntimeError: SentencePieceTokenizer: the model is not built; make one with ...
    """

    def __init__(self, mode: str | SentencePieceVocab, out_type: SPieceTokenizerOutType) -> None:
        check_type("SentencePieceTokenizer", "mode", mode, (str, SentencePieceVocab))
        check_type("SentencePieceTokenizer", "out_type", out_type, SPieceTokenizerOutType)
        self.mode = mode
        self.out_type = out_type
        if isinstance(mode, str):
            if not os.path.isfile(mode):
                raise RuntimeError(f"SentencePieceTokenizer: there is no file {mode!r}")
            with open(mode, "rb") as file:
                content: bytes | None = file.read()
        else:
            content = mode._model
        if content is None:
            raise RuntimeError(
                "SentencePieceTokenizer: the model is not built; make one with SentencePieceVocab.from_file or "
                "from_dataset"
            )
        self._processor = _package("SentencePieceTokenizer").SentencePieceProcessor(model_proto=content)

    def compute(self, array: Array, lead: int) -> Array:
        text = self.texts(array, 0)[0]
        if self.out_type is SPieceTokenizerOutType.INT:
            return np.array(self._processor.encode(text, out_type=int), np.int32)
        return words_array(self._processor.encode(text, out_type=str))

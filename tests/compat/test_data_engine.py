"""Transforms that packages derive from the data engine's, as mindnlp does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import compat


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def test_a_transform_made_of_an_operation_of_the_engine() -> None:
    import mindspore._c_dataengine as cde
    import mindspore.dataset as ds
    from mindspore.dataset.core.datatypes import mstype_to_detype
    from mindspore.dataset.text.transforms import TextTensorOperation

    class Numbers(TextTensorOperation):
        def __init__(self, words: dict[str, int]) -> None:
            super().__init__()
            self.words = cde.Vocab.from_dict(words)

        def parse(self) -> Any:
            return cde.LookupOperation(self.words, "<unk>", str(mstype_to_detype(ms.int64)))

    numbers = Numbers({"<unk>": 0, "deep": 1, "sea": 2})
    assert numbers(np.array(["sea", "sky"])).tolist() == [2, 0] and numbers("deep").dtype == np.int64
    public = ds.text.Vocab.from_list(["deep", "sea"], special_tokens=["<unk>"])
    numbers.words, numbers.callable_op_ = public.c_vocab, None
    assert numbers(np.array(["sea", "sky"])).tolist() == [2, 0]
    data = ds.NumpySlicesDataset([["deep", "sea"]], ["words"], shuffle=False).map(numbers, "words")
    assert [row["words"].tolist() for row in data.create_dict_iterator(1, output_numpy=True)] == [[1, 2]]


def test_a_transform_in_python() -> None:
    from mindspore.dataset.text.transforms import Implementation, TextTensorOperation
    from mindspore.dataset.transforms.transforms import PyTensorOperation

    class Upper(TextTensorOperation, PyTensorOperation):
        def __init__(self) -> None:
            super().__init__()
            self.implementation = Implementation.PY

        def execute_py(self, text: Any) -> str:
            return str(text).upper()

    class Lower(PyTensorOperation):
        def _execute_py(self, text: Any) -> str:
            return str(text).lower()

    assert Upper()("a") == "A" and Lower()("A") == "a"


def test_public_transforms_are_operations() -> None:
    from mindspore.dataset import text, vision
    from mindspore.dataset.text.transforms import TextTensorOperation
    from mindspore.dataset.vision.transforms import ImageTensorOperation, TensorOperation

    assert isinstance(vision.Invert(), ImageTensorOperation) and isinstance(text.WhitespaceTokenizer(), TensorOperation)
    assert isinstance(text.WhitespaceTokenizer(), TextTensorOperation) and not isinstance(len, TensorOperation)


def test_names_of_element_types() -> None:
    from mindspore.dataset.core import datatypes as t

    assert t.mstype_to_detype(None) is None and t.nptype_to_detype(np.float32) == "float32"
    assert t.mstypelist_to_detypelist([ms.int8, ms.string]) == ["int8", "string"]

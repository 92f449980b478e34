"""Texts of kernels: kept once, packed, and no longer than somebody has the kernel."""

from __future__ import annotations

import gc
import pickle

import mycel as ms
from mycel import Tensor
from mycel._src.engines.native.kernels import kernel_text
from mycel._src.engines.native.kernels.codegen import Kernel


def test_equal_texts_are_one() -> None:
    text = "define void @mycel_kernel() {\n" + "  ; a line of its\n" * 1000 + "}\n"
    first, second = Kernel(text, [], 1, 1), Kernel(text[:5] + text[5:], [("int", 3)], 2, 2)
    assert first.source is second.source and first.digest == second.digest and first.text == text
    assert pickle.loads(pickle.dumps(first)).source is first.source
    assert Kernel(text + ";", [], 1, 1).digest != first.digest
    assert len(first.source._content) * 10 < len(text)


def test_texts_end_with_their_kernels() -> None:
    def run(number: int) -> None:
        function = ms.jit(lambda x: x * (number + 0.125) + number)
        assert function(Tensor([2.0, 4.0])).tolist() == [3 * number + 0.25, 5 * number + 0.5]

    run(1000)
    ms.runtime.forget()
    gc.collect()
    before = set(kernel_text._known.keys())
    for number in range(1001, 1006):
        run(number)
    gc.collect()
    assert len(set(kernel_text._known.keys()) - before) >= 5
    ms.runtime.forget()
    gc.collect()
    assert not set(kernel_text._known.keys()) - before

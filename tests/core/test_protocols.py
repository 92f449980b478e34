"""NumPy and Python meet tensors: each expression gives what the real package gives, by stored
answers: the type of the result, its element type and values, or the class of the exception.

Where MindSpore raises and Mycel has an answer, or the other way round, a reason is listed.
"""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

import mycel as ms
from tests.answers import agrees
from tests.core.protocol_expressions import EXPECTED, Names, expressions

ANSWERS = json.loads(EXPECTED.read_text(encoding="utf-8"))
GROUPS = 8
# What MindSpore refuses, and Mycel answers or refuses by another class.
WIDER = {
    r"\[.*\] [-+*<] \w|\w [-+*<] [\[(]|\(1, 2.*\) [+*] \w|^'ab' \*": "operators take sequences",
    r"^[filbsn] (\S+) [A-Z]$|^aug\([fls], [A-Z]\)|^max\([A-Z], \w\)": "operators take arrays on the right",
    r"1j$|1j\)$|^sum\(\[z": "operators and writes take complex numbers",
    r"^(1|True) [&|^]|<<|>>": "bits of numbers on the left, and shifts",
    r"^round\(": "round takes a number of digits, and tensors of every type",
    r"format\(|^f'": "a tensor of one element takes a format",
    r"^bytes\(": "bytes takes what has an index",
    r"^[fl]\[|^setitem\(f, (S\[.*\]|\(.*\)\[0\]), 9\)$": "indices as NumPy takes them",
    r"^setitem\([fi], S\[.*\], .*\)$": "values as NumPy takes them",
    r"astype\(": "element types of NumPy",
    r"^np\.(ptp|split|array_split|nonzero|searchsorted|result_type)\(": "methods that fail in MindSpore",
    r"^np\.(sum|mean|max|min|amax|amin|prod|any|all|std|var|array_repr)\(": "NumPy's own values",
    r"^np\.testing\.assert_almost_equal\(z": "NumPy compares real parts, which tensors have",
    r"^\w (\*\*|@) \w$": "products and powers of every type and shape",
}
# Other differences.
ODD = {
    r"np\.(real|imag|isreal)\(": "NumPy takes the method itself in MindSpore, and the values here",
    r"np\.argwhere\(": "MindSpore gives the positions of NumPy with their axes exchanged",
    r"np\.searchsorted\(l": "of what is not sorted",
    r"^2 (//|%) b$": "MindSpore divides by 0",
    r"^abs\(z\)|^z // 2$|^2 // z$": "MindSpore gives complex magnitudes, and quotients without a floor",
    r"^b (-|//) Q$": "MindSpore takes a bool of NumPy for a bool in some operators and for a number in others",
    r"^setitem\(f, \(False,\)": "False selects nothing, and is refused",
}
# What other releases of NumPy than the stored answers' (1.26) do by themselves.
BY_RELEASE = r"np\.(where\(s|count_nonzero|sign\(z|(floor|ceil|trunc)\(b|(ones|zeros|eye)\(\(*s)"


def covered(expression: str, found: str, expected: str) -> bool:
    """Whether a difference has a reason."""
    if expected.startswith("raises ") and any(re.search(p, expression) for p in WIDER):
        return True
    return any(re.search(p, expression) for p in ODD) or loosened(found) == loosened(expected)


def loosened(text: str) -> str:
    """Return an answer without the element type of what NumPy made, which changed with NumPy 2."""
    if not text.startswith(("ndarray ", "np.", "longlong")):
        return text
    numbers = re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text.split("]", 1)[-1].split("(")[-1])
    return " ".join(f"{float(n):.2g}" for n in numbers)


@pytest.mark.parametrize("group", range(GROUPS))
def test_expressions(group: int) -> None:
    names = Names(ms)
    wrong = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for expression in expressions()[group::GROUPS]:
            expected = ANSWERS[expression]
            found = agrees(lambda e=expression: eval(e, names.of(e)), expected)
            if found != expected and not covered(expression, found, expected):
                if not re.search(BY_RELEASE, expression):
                    wrong.append(f"{expression}: {found[:120]}, not {expected[:120]}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong)


def test_all_answers_are_stored() -> None:
    assert list(ANSWERS) == expressions()

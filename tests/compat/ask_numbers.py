"""Ask the real package for results of calls, and store them.

    REAL_PYTHON tests/compat/ask_numbers.py

runs with an interpreter that has MindSpore 2.10, without Mycel. The calls are the lines of
``number_cases.txt``, and those generated here: for every operation in the tables whose name is in
no line, arguments by the names and kinds of its parameters, in several profiles of shapes; the
first two that the package answers with finite numbers are kept. ``numbers.json`` has each
expression with its result (`number_cases.plain`). Calls run in a process of their own, as some end
it. A file named on the command line is written with what failed, and why.
"""

from __future__ import annotations

import ast
import json
import multiprocessing
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FACTS = HERE.parents[1] / "mycel" / "compat" / "operations" / "facts"
sys.path.insert(0, str(HERE))

MODULES = {"g": "gen_ops_prim", "d": "gen_ops_def", "p": "pyboost_inner_prim", "e": "gen_extend_func"}
# Draws, what lies in memory by chance, and what wants several processes.
UNSTABLE = r"seed|Comm|group\b|[Rr]and|[Ee]mpty|[Dd]ropout|multinomial|normal|uniform"

TENSORS = {
    "X": "input x self input_x a A tensor logits x1 input1 params features query tensors var",
    "Y": "other y x2 target label labels input2 predict prediction input_y end exponent",
    "D": """dout dy grad grads y_backprop gradients grad_output y_grad out_grad loss_grad grad_loss
        input_grad delta""",
    "W": "weight gamma scale",
    "O": "out result y",
}
# Shapes by profile: of X, Y, D and W.
PROFILES = {
    "plane": ("2, 3", "2, 3"),
    "square": ("3, 3", "3, 3"),
    "images": ("2, 2, 4, 4", "2, 2, 4, 4"),
    "line": ("4", "4"),
    "stack": ("2, 3, 3", "2, 3, 3"),
    "volume": ("1, 2, 4, 4, 4", "1, 2, 4, 4, 4"),
    "positive": ("2, 3", "2, 3"),
    "within": ("2, 3", "2, 3"),
    "whole": ("2, 3", "2, 3"),
    "flags": ("2, 3", "2, 3"),
    "scalar": ("2, 3", None),
}
LETTERS = {"positive": "P", "within": "U", "whole": "N", "flags": "B"}
OTHERS: dict[str, list[str]] = {
    "dim": ["1", "0"], "axis": ["1", "0"], "dims": ["(0,)", "(1, 0)"], "keepdim": ["True"], "keep_dims": ["True"],
    "shape": ["(2, 3)", "(6,)"], "size": ["(2, 3)"], "kernel_size": ["2"], "stride": ["1"], "strides": ["2"],
    "padding": ["1", "(1, 1)", "(1, 1, 1, 1)", "(1, 1, 1, 1, 1, 1)"], "output_size": ["(2, 2)", "(6, 6)", "4"],
    "min": ["-0.5"], "max": ["0.5"], "value": ["0.25"], "k": ["2"], "n": ["3"], "p": ["2.0"], "alpha": ["2"],
    "beta": ["1"], "eps": ["1e-5"], "epsilon": ["1e-5"], "diagonal": ["1"], "num_classes": ["4"], "lambd": ["0.5"],
    "index": ["N(2, 3)", "N(2)", "N(4)"], "indices": ["N(2, 3)", "N(2)"], "mask": ["B(2, 3)"],
    "condition": ["B(2, 3)"], "source": ["T(2, 3, seed=4)"], "src": ["T(2, 3, seed=4)", "0.5"], "threshold": ["0.1"],
    "repeats": ["2", "(2, 2)"], "start": ["0"], "length": ["2"], "step": ["1"], "split_size": ["(1, 1)", "1"],
    "chunks": ["2"], "sections": ["2"], "mean": ["T(3)"], "std": ["P(3)"], "bias": ["T(2)"], "dtype": ["ms.float32"],
    "scales": ["None"], "reduce": ["'add'"], "negative_slope": ["0.1"], "min_val": ["-0.5"], "max_val": ["0.5"],
    "group": ["1"], "num_groups": ["1"], "normalized_shape": ["(3,)"], "end_dim": ["1"], "mat2": ["T(3, 2)"],
    "vec": ["T(3)"], "vec2": ["T(3)"], "batch1": ["T(2, 3, 3)"], "batch2": ["T(2, 3, 3, seed=1)"], "mat": ["T(3, 3)"],
    "perm": ["(1, 0)"], "shift": ["1"], "shifts": ["1"], "steps": ["5"], "fill_value": ["1.5"], "offset": ["0"],
    "axis1": ["0"], "axis2": ["1"], "dim0": ["0"], "dim1": ["1"], "storage_offset": ["0"], "num_weights": ["3"],
    "max_norm": ["1.0"], "norm_type": ["2.0"], "axes": ["(1, 0)", "0"],
    "input_size": ["(2, 2, 4, 4)", "(2, 2, 4)", "(1, 2, 4, 4, 4)"], "values": ["T(2, seed=3)"],
    "tensor1": ["T(2, 3, seed=2)"], "tensor2": ["P(2, 3, seed=3)"], "grid": ["U(2, 3, 3, 2)", "U(1, 2, 2, 2, 3)"],
    "bins": ["4"], "minlength": ["3"], "sorted_sequence": ["L([1, 3, 5, 7])"], "descending": ["True"], "ord": ["2"],
}  # fmt: skip


def generated(name: str, constructor: str | None, call: str) -> list[str]:
    """Return calls of an operation, or of a function, which has no constructor, to try by the names
    of parameters.
    """
    calls = []
    for profile, (shape, second) in PROFILES.items():
        for turn in range(2):
            made = arguments(call, profile, shape, second, turn)
            start = "" if constructor is None else arguments(constructor, profile, shape, second, turn)
            if made is not None and start is not None:
                calls.append(f"{name}({made})" if constructor is None else f"{name}({start})({made})")
    return list(dict.fromkeys(calls))


def arguments(parameters: str, profile: str, shape: str, second: str | None, turn: int) -> str | None:
    parts = []
    node = ast.parse(f"def f({parameters}): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    listed = node.args.args
    for number, argument in enumerate(listed):
        name, optional = argument.arg, number >= len(listed) - len(node.args.defaults)
        letter = LETTERS.get(profile, "T")
        group = next((k for k, words in TENSORS.items() if name in words.split()), None)
        if optional and (turn == 0 or name not in OTHERS or name in ("dtype", "output_size", "bias", "scales")):
            continue
        if name in OTHERS:
            choices = OTHERS[name]
            value = choices[min(turn + (len(shape) > 8) + (len(shape) > 12), len(choices) - 1)]
        elif group == "W":
            value = "P(3)" if len(shape) < 6 else "P(2)"
        elif group == "Y" and second is None:
            value = "2.0"
        elif group is not None:
            value = f"{letter if group != 'D' else 'T'}({shape}, seed={'XYDWO'.index(group)})"
        else:
            return None
        parts.append(f"{name}={value}" if optional else value)
    return ", ".join(parts)


def answer(groups: list[tuple[str, list[str], int]], queue: Any) -> None:
    """Put what calls give, of each group until as many are good as it wants."""
    warnings.simplefilter("ignore")
    from number_cases import namespace, plain

    names = namespace("mindspore")
    for group, calls, wanted in groups:
        queue.put((group, None, "begins"))
        for call in calls:
            try:
                try:
                    result = plain(eval(call, dict(names)))
                except Exception:  # it may be that of a call before, which came late
                    result = plain(eval(call, dict(names)))
            except Exception as error:
                queue.put((group, call, f"{type(error).__name__}: {error}"[:300]))
                if re.search("unregistered|Not found op|is null", str(error)):
                    break
                continue
            queue.put((group, call, [result]))
            wanted -= not re.search(r"\b(NaN|Infinity)\b", json.dumps(result))
            if not wanted:
                break
        queue.put((group, None, "ends"))


def run(groups: list[tuple[str, list[str], int]]) -> dict[str, Any]:
    """Return what each call gave, or why it gave nothing; a group that ends or hangs its process is
    left.
    """
    found: dict[str, Any] = {}
    left = list(groups)
    while left:
        queue: Any = multiprocessing.SimpleQueue()
        process = multiprocessing.Process(target=answer, args=(left, queue))
        process.start()
        current, since = left[0][0], time.monotonic()
        while process.is_alive() or not queue.empty():
            if queue.empty():
                if time.monotonic() - since > 15:
                    break
                time.sleep(0.01)
                continue
            group, call, result = queue.get()
            since = time.monotonic()
            if call is not None:
                found[call] = result
            elif result == "begins":
                current = group
            else:
                left = [g for g in left if g[0] != group]
        process.kill()
        process.join()
        if left and left[0][0] == current:
            found[current] = "ended or hung the process"
            left = left[1:]
    return found


def main() -> None:
    lines = (HERE / "number_cases.txt").read_text().splitlines()
    explicit = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    written = set(re.findall(r"\b[gdpe]\.\w+", "\n".join(explicit)))
    groups = [(call, [call], 1) for call in explicit]
    for letter, module in MODULES.items():
        table = json.loads((FACTS / f"ops.auto_generate.{module}.json").read_text())
        classes = [(name, start, call) for name, (start, call) in table.get("classes", {}).items()]
        functions = [(name, None, call) for name, call in table.get("functions", {}).items()]
        for name, start, call in [*classes, *functions]:
            if f"{letter}.{name}" not in written and not re.search(UNSTABLE, f"{name} {call}"):
                groups.append((f"{letter}.{name}", generated(f"{letter}.{name}", start, call), 2))
    found = run(groups)
    kept = {c: f[0] for c, f in found.items() if isinstance(f, list)}
    kept = {c: f for c, f in kept.items() if c in explicit or not re.search(r"\b(NaN|Infinity)\b", json.dumps(f))}
    for call in explicit:
        if call not in kept:
            print(call, found.get(call), file=sys.stderr)
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(kept.items()))
    (HERE / "numbers.json").write_text(f"{{\n{text}\n}}\n")
    if sys.argv[1:]:
        failed = {c: f for c, f in found.items() if isinstance(f, str)}
        Path(sys.argv[1]).write_text(json.dumps(failed, indent=0))


if __name__ == "__main__":
    main()

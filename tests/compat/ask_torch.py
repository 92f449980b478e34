"""Ask PyTorch for results of calls that MindSpore has no kernel for on processors, and store them.

    TORCH_PYTHON tests/compat/ask_torch.py

runs with an interpreter that has PyTorch, without Mycel. A line of ``torch_cases.txt`` has a call,
a bar, and the same as an expression of PyTorch; ``torch_numbers.json`` has each call with the
result of the latter. ``vjp(f, cotangent, *inputs)`` gives the cotangents of inputs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def main() -> None:
    import torch
    from number_cases import draws, plain_array

    def vjp(function: Any, cotangent: Any, *inputs: Any) -> Any:
        found = torch.autograd.functional.vjp(function, inputs, cotangent)[1]
        return found[0] if len(found) == 1 else list(found)

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        return None if value is None else plain_array(str(value.dtype).removeprefix("torch."), value.detach().numpy())

    names = {**draws(torch.tensor), "torch": torch, "F": torch.nn.functional, "vjp": vjp}
    kept = {}
    for line in (HERE / "torch_cases.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            call, _, expression = line.partition(" | ")
            kept[call] = plain(eval(expression, dict(names)))
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in kept.items())
    (HERE / "torch_numbers.json").write_text(f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    main()

"""Store a representative part of the answers as the tables that the test reads.

``python store.py OUT_FOLDER ANSWERS...`` writes one JSON file a library: for each call its texts,
and for each class of error the names of the cases (`cases.py`) that the real package answers so.
Kept are at most two calls a function, and of each call the cases that say something: those that
are refused by another error than the call itself, and those that are accepted.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections import defaultdict
from typing import Any

LARGEST = 4000  # elements of a tensor
HUGE = re.compile(r"\b\d{5,}\b")


def size(entry: dict[str, Any]) -> int:
    """Return the number of elements of the largest tensor of an entry."""
    shapes = re.findall(r"[RF]\('\w+', (\([\d, ]*\))", json.dumps(entry))
    return max([math.prod(json.loads(f"[{s.strip('(), ')}]")) for s in shapes] + [0])


def main() -> None:
    out, *sources = sys.argv[1:]
    tables: dict[str, list[Any]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    known = set()
    for source in sources:
        for line in open(source):
            path, entry, answers = json.loads(line)
            text = json.dumps([path, entry])
            if text in known or seen[path] >= (2 if "method" not in entry else 40):
                continue
            known.add(text)
            if path == "train.SummaryRecord":  # its answers depend on what lies in the folder
                continue
            if size(entry) > LARGEST or HUGE.search(text) or not path.isascii():
                continue
            base = answers.get("", "!")
            kinds: dict[str, list[str]] = defaultdict(list)
            for name, answer in answers.items():
                if name == "why" or answer in ("!", "None") or base == "!":
                    continue
                if base != "." and answer in (base, "."):
                    continue
                kinds[answer if answer == "." else answer[0]].append(name)
            if not kinds:
                continue
            seen[path] += 1
            kept = {k: v for k, v in entry.items() if v or k == "then"}
            library = path.rpartition(".")[0].partition(".")[0] or "mindspore"
            kept["answers"] = {k: " ".join(n or "valid" for n in v) for k, v in sorted(kinds.items())}
            tables[library].append([path, kept])
    for library, table in tables.items():
        table.sort(key=lambda row: row[0])
        parts = [table[i : i + 450] for i in range(0, len(table), 450)]
        for number, part in enumerate(parts):
            name = f"{library}{number or ''}.json"
            with open(os.path.join(out, name), "w") as file:
                file.write("[\n" + ",\n".join(json.dumps(row) for row in part) + "\n]\n")
            print(name, len(part), os.path.getsize(os.path.join(out, name)))


if __name__ == "__main__":
    main()

"""Make the networks of `mycel.models` anew: train, search, quantise, measure, write.

    python tools/model_library.py [--tasks digits gestures] [--seed 0]     minutes for each task
    python tools/model_library.py --figures                                only measure again

`--figures` leaves weights as they are, and is what a change of the code for microcontrollers wants.
Tasks that are not named keep their entries. It needs qemu-system-arm; `make device` installs it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mycel.deploy.boards import missing_tools
from mycel.models import entries
from mycel.models.data_of_tasks import TASKS
from mycel.models.library import FILES, FORMAT, Entry
from mycel.models.making import make, measured


def write(made: list[Entry]) -> None:
    """Write the record of the library, an entry a line."""
    order = list(TASKS)
    made = sorted(made, key=lambda e: (order.index(e.task), -e.parameters))
    lines = ",\n".join("  " + json.dumps(entry.record()) for entry in made)
    (FILES / "library.json").write_text(f'{{"format": "{FORMAT}", "entries": [\n{lines}\n]}}\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", action="store_true", help="measure the bundled weights again")
    parser.add_argument("--searches", type=Path, help="folder from which interrupted searches go on")
    options = parser.parse_args()
    if missing_tools():
        print(f"{missing_tools()} is not installed; make device installs it", file=sys.stderr)
        return 2
    FILES.mkdir(exist_ok=True)
    kept = entries() if (FILES / "library.json").exists() else []
    for task in options.tasks:
        if options.figures:
            data = TASKS[task].make()
            made = [measured(entry, data) for entry in kept if entry.task == task]
            print(*made, sep="\n", flush=True)
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = (options.searches or Path(folder)) / f"{task}.json"
                both = make(task, options.seed, path, lambda line: print(line, flush=True))
            for old in FILES.glob(f"{task}-*.safetensors"):
                old.unlink()
            for entry, weights in both:
                (FILES / f"{entry.name}.safetensors").write_bytes(weights)
            made = [entry for entry, _ in both]
        kept = [entry for entry in kept if entry.task != task] + made
        write(kept)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

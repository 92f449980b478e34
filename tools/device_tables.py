"""Measure the bundled tables of costs by device anew.

    python tools/device_tables.py [--devices cortex-m4 cortex-m55]

Each operator is built for the device and run in qemu-system-arm, which counts instructions; `make
device` installs it. Whoever changes the code of libraries for these devices runs this, and
`tools/model_library.py --figures`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mycel.deploy.boards import missing_tools
from mycel.search.operators import KINDS
from mycel.search.table import Table
from mycel.search.tables import DEVICES, FOLDER, operators_to_measure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs="+", choices=DEVICES, default=list(DEVICES))
    options = parser.parse_args()
    if missing_tools():
        print(f"{missing_tools()} is not installed; make device installs it", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    for device in options.devices:
        table = Table.measure(
            device, operators_to_measure(), lambda o, cost: print(f"{o.key:<44}{cost.instructions:>12,}", flush=True)
        )
        table.save(FOLDER / f"{device}.json")
        for kind in KINDS:
            print(f"{device} {kind}: interpolated with an error of {table.error(kind):.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

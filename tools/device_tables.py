"""Measure the bundled tables of costs by device anew.

    python tools/device_tables.py [--devices cortex-m4 cortex-m55]
    python tools/device_tables.py --fit         only fit the tables to the networks of the library

Each operator is built for the device and run in qemu-system-arm, which counts instructions; `make
device` installs it. Whoever changes the code of libraries for these devices runs this, and
`tools/model_library.py --figures`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mycel.deploy.boards import missing_tools
from mycel.models import entries
from mycel.search.bundled_tables import DEVICES, FOLDER, operators_to_measure, table_of
from mycel.search.cost_table import Table
from mycel.search.operators import KINDS, operators_of


def fitted(device: str, table: Table) -> Table:
    """Return a table with factors by the networks of the library, as they were counted."""
    there = [e for e in entries() if device in e.costs]
    networks = [(operators_of(e.network(), e.architecture.shape), e.costs[device].instructions) for e in there]
    return table.fitted(networks)


def report(device: str, table: Table) -> None:
    """Print what a table says of the networks of the library, beside what was counted of them."""
    off = []
    for entry in entries():
        found = table.predict(operators_of(entry.network(), entry.architecture.shape))
        counted = entry.costs[device].instructions
        off.append(found.instructions / counted - 1)
        print(f"{device} {entry.name:<18} {found.instructions:>11,} of {counted:>11,}: {off[-1]:+.1%}", end="")
        print(f", expected {found.error:.1%}, {found.measured:.0%} measured")
    print(f"{device}: root mean square {np.sqrt(np.mean(np.square(off))):.1%} over {len(off)} networks", end="")
    print(f", {table.off:.1%} of each by the others; factors", {k: round(f, 2) for k, f in table.factors.items()})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs="+", choices=DEVICES, default=list(DEVICES))
    parser.add_argument("--fit", action="store_true", help="measure nothing; fit to the networks of the library")
    options = parser.parse_args()
    if options.fit:
        for device in options.devices:
            table = fitted(device, table_of(device))
            table.save(FOLDER / f"{device}.json")
            report(device, table)
        return 0
    if missing_tools():
        print(f"{missing_tools()} is not installed; make device installs it", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    for device in options.devices:
        table = Table.measure(
            device, operators_to_measure(), lambda o, cost: print(f"{o.key:<44}{cost.instructions:>12,}", flush=True)
        )
        table = fitted(device, table)
        table.save(FOLDER / f"{device}.json")
        for kind in KINDS:
            print(f"{device} {kind}: interpolated with an error of {table.error(kind):.1%}")
        report(device, table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

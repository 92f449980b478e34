"""The command line: see `tests.fuzz.harness`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz import harness


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("drivers", nargs="*", metavar="NAME", help=f"of {', '.join(harness.names())}; all unless given")
    parser.add_argument("--minutes", type=float, help="how long, all drivers together")
    parser.add_argument("--seed", type=int, help="the first seed; alone, the one case that is run again")
    parser.add_argument("--cases", type=int, help="how many seeds from --seed")
    parser.add_argument("--log", type=Path, help="a file to which findings are added, one line of JSON each")
    asked = parser.parse_args()
    wanted = asked.drivers or harness.names()
    if asked.minutes is not None:
        ran, findings = harness.campaign(wanted, asked.minutes, asked.seed, asked.log)
    elif asked.seed is not None and asked.cases is None:
        harness.replay(wanted[0], asked.seed)
        return 0
    else:
        ran, findings = {}, []
        for name in wanted:
            seeds = harness.corpus(harness.load(name))
            if asked.cases is not None:
                seeds = range(asked.seed or 0, (asked.seed or 0) + asked.cases)
            ran[name], found = harness.run_seeds(name, seeds)
            findings += found
    if findings:
        print(harness.report(findings))
    print(", ".join(f"{name}: {count} cases" for name, count in ran.items()), f"and {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs every example in both modes and prints a table of scores and seconds; exit status 1 if one
fails or misses its score.

python examples/run_all.py                    # all of them; or some: run_all.py gpt vae --mode
graph
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if path.stem != Path(__file__).stem)
SCORE = re.compile(r"^score: (.*)$", re.MULTILINE)


def run(name, mode):
    """Exit status, score line, and the seconds that passed and that processors worked."""
    # The package beside this folder serves where Mycel is not installed.
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, str(HERE / f"{name}.py"), "--mode", mode]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    passed, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not SCORE.search(done.stdout):
        print(done.stdout + done.stderr, file=sys.stderr)
    found = SCORE.search(done.stdout)
    return done.returncode, found.group(1) if found else "no score", passed, worked


def main(argv=None):
    """Run and report; gives the exit status."""
    parser = argparse.ArgumentParser(description="Run the examples in both modes")
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}; all where none is given"
    )
    parser.add_argument("--mode", choices=["graph", "pynative", "both"], default="both")
    args = parser.parse_args(argv)
    unknown = sorted(set(args.programs) - set(PROGRAMS))
    if unknown:
        parser.error(f"no such example: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    modes = ["graph", "pynative"] if args.mode == "both" else [args.mode]
    print(f"{'program':14} {'mode':9} {'':6} {'seconds':>8} {'CPU s':>8}  score", flush=True)
    failed = 0
    for name in args.programs or PROGRAMS:
        for mode in modes:
            status, score, passed, worked = run(name, mode)
            failed += status != 0
            print(
                f"{name:14} {mode:9} {'failed' if status else 'ok':6} {passed:8.1f} {worked:8.1f}  {score}", flush=True
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

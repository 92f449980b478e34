"""`python -m tests.faults COUNT [SEED]`: COUNT interrupts, then COUNT kills, at random moments."""

from __future__ import annotations

import sys
import time

from tests.faults import harness

count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
print(
    f"{harness.interrupts(count, seed)} interrupts and {harness.kills(count, seed)} kills (seed {seed}): nothing lost",
    flush=True,
)

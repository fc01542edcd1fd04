"""Fuzzing for as long as one likes: ``python -m tests.fuzz --seconds 3600 --seed 1``.

What it finds is printed, smallest text first found; add it to ``corpus.txt`` with the mend.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.fuzz.cell import Cell
from tests.fuzz.texts import EXPRESSIONS, FRAMES, SETTINGS, SPECS

KINDS: dict[str, st.SearchStrategy[str]] = {
    "expression": EXPRESSIONS,
    "spec": SPECS,
    "settings": SETTINGS,
    "frame": FRAMES,
}
#: Texts of one round; a round has a seed of its own.
ROUND = 200


def fuzz(kind: str, seed: int, count: int, cell: Cell) -> tuple[int, dict[str, str]]:
    """Try ``count`` texts: how many were tried, and the smallest text of the first fault."""
    tried = 0
    found: dict[str, str] = {}

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[kind])
    def one(text: str) -> None:
        nonlocal tried
        tried += 1
        said = cell.verdict(kind, text)
        if said:
            found.clear()
            found[text] = said
            raise AssertionError(said)

    with suppress(AssertionError):
        one()
    return tried, found


def main() -> int:
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=sorted(KINDS), action="append")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    cell = Cell()
    seed = options.seed
    total = dict.fromkeys(options.kind or KINDS, 0)
    faults: dict[str, tuple[str, str]] = {}
    while time.monotonic() < end:
        for kind in total:
            tried, found = fuzz(kind, seed, ROUND, cell)
            total[kind] += tried
            for text, said in found.items():
                if said not in faults:
                    faults[said] = (kind, text)
                    print(f"{kind}, seed {seed}: {said[:300]}\n    {text!r}", flush=True)
        seed += 1
    cell.close()
    tried_all = ", ".join(f"{count:,} {kind}s" for kind, count in total.items())
    print(f"seeds {options.seed} to {seed - 1}: {tried_all}; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

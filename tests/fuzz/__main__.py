"""A long run of the fuzzer: ``python -m tests.fuzz --number 1000000 --kind expression --seed 1``.

Writes ``--number`` texts of each ``--kind`` (of all four where none is named) and tries them in the
process of ``tests/fuzz/cell.py``, which sees an escape, an exception that is not documented, a hang
and growth. A million expressions take about ten minutes of one processor. The same seed writes the
same texts, whatever their number. Each fault is printed with a text that is cut down as far as the
fault allows; add that to ``corpus.txt`` with the mend. The exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from random import Random

from tests.fuzz.cell import BATCH, Cell
from tests.fuzz.texts import GRAMMARS

#: Texts after which the count is printed.
REPORTED = 10_000
#: Different texts with faults that are cut down and printed; the rest is counted.
SHOWN = 50
#: Attempts at making a text with a fault shorter.
SHORTENINGS = 300


def batch(kind: str, seed: int, number: int) -> list[str]:
    """The texts of the batch with this number: the same ones at every run."""
    random = Random(f"{kind} {seed} {number}")
    write = GRAMMARS[kind]
    return [write(random) for _ in range(BATCH)]


def shortened(kind: str, text: str, said: str, cell: Cell) -> str:
    """A part of ``text`` in which the cell finds the same fault."""
    tried = 0
    length = len(text) // 2
    while length:
        start = 0
        while start < len(text) and tried < SHORTENINGS:
            shorter = text[:start] + text[start + length :]
            tried += 1
            if _same(cell.verdict(kind, shorter), said):
                text = shorter
            else:
                start += length
        length //= 2
    return text


def _same(one: str, other: str) -> bool:
    """Whether two verdicts name one fault: numbers and what is quoted may differ."""
    varying = r"`[^`]*`|'[^']*'|\d+"
    return bool(one) and re.sub(varying, "~", one)[:60] == re.sub(varying, "~", other)[:60]


def run(
    kind: str, seed: int, number: int, cell: Cell, first: int = 0
) -> tuple[int, dict[str, str]]:
    """Try ``number`` texts, those of batch ``first`` and those that follow.

    Returns:
        How many were accepted, and short texts → what is wrong with how they are treated.
    """
    began, accepted, wrong, done = time.monotonic(), 0, 0, 0
    faults: dict[str, str] = {}
    while done < number:
        texts = batch(kind, seed, first + done // BATCH)[: number - done]
        for text, said in zip(texts, cell.verdicts(kind, texts), strict=True):
            accepted += said == ""
            wrong += bool(said)
            short = shortened(kind, text, said, cell) if said and len(faults) < SHOWN else text
            if said and short not in faults and len(faults) < SHOWN:
                faults[short] = said
                print(f"{kind}: {said[:300]}\n    {short!r}", flush=True)
        before, done = done, done + len(texts)
        if done == number or before // REPORTED < done // REPORTED:
            print(
                f"{kind}, seed {seed}: {done:,} tried, {accepted / done:.1%} accepted, "
                f"{wrong:,} faults, {time.monotonic() - began:,.0f} s",
                flush=True,
            )
    return accepted, faults


def main() -> int:
    """Run the fuzzer as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--number", type=int, default=10_000, help="texts of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--first", type=int, default=0, help=f"batches of {BATCH} texts to pass over"
    )
    parser.add_argument("--kind", choices=sorted(GRAMMARS), action="append")
    options = parser.parse_args()
    cell = Cell()
    found = False
    for kind in options.kind or GRAMMARS:
        found |= bool(run(kind, options.seed, options.number, cell, options.first)[1])
    cell.close()
    return int(found)


if __name__ == "__main__":
    sys.exit(main())

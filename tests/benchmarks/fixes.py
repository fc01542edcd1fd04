"""Planted bugs with a local cause: how many does ``gradlint fix`` mend, and at what cost?

Run it with ``python -m tests.benchmarks.fixes [--only TEXT] [--diffs]``. Goals: a verified change
for at least 70%, none that a person would call wrong (``--diffs`` shows them for that), and a
median cost of at most five checks by all rules, counted in calls of forward and backward.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from gradlint.model.settings import Settings
from gradlint.repair.search import Mended, mended, to_mend
from gradlint.running import server
from gradlint.running.trial import examined
from gradlint.targets.resolve import resolve
from tests.benchmarks.support.measure import heading, markdown, table
from tests.benchmarks.support.planted_bugs import Bug, all_bugs

SEED = 7

#: Share of the bugs for which a fix must be found.
GOAL = 0.7

#: Rules whose planted bugs have a cause at one place of the operator.
LOCAL = ("GL1", "GL2", "GL4", "GL601", "GL602", "GL603", "GL604", "GL605", "GL7")


@dataclass
class Told:
    """What came of one bug."""

    bug: Bug
    result: Mended

    @property
    def cost(self) -> float:
        """Of the search, in checks of the operator by all rules."""
        return self.result.calls / self.result.usual if self.result.usual else 0.0


def told(place: int, bug: Bug) -> Told:
    """Search for a fix of the bug at ``place`` among all."""
    settings = Settings(
        inputs=f"tests.benchmarks.support.bug_inputs:bug_{place}",
        seed=SEED,
        jobs=1,
        dtypes=bug.dtypes,
    )
    path = Path(str(sys.modules[bug.faulty.__module__].__file__)).relative_to(Path.cwd())
    ref = resolve(f"{path}:{bug.faulty.__qualname__}", settings)[0]
    (report,) = examined([ref], settings)
    # All that is wrong is to be mended, and what the bug is found by even where that is only told.
    codes = tuple(dict.fromkeys([*(one.code for one in to_mend(report)), bug.code]))
    return Told(bug, mended(ref, report, settings, codes))


def summary(results: list[Told]) -> list[tuple[str, ...]]:
    """One row a family, and their sum."""
    rows: list[tuple[str, ...]] = [("family", "bugs", "mended", "share", "median cost in checks")]
    for family in ("GL1", "GL2", "GL4", "GL6", "GL7", "GL"):
        some = [one for one in results if one.bug.code.startswith(family)]
        good = [one for one in some if one.result.fix is not None]
        if some:
            cost = f"{statistics.median(one.cost for one in good):.1f}" if good else "-"
            share = f"{len(good) / len(some):.0%}"
            name = "all" if family == "GL" else family
            rows.append((name, str(len(some)), str(len(good)), share, cost))
    return rows


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="fixes of planted bugs")
    parser.add_argument("--only", default="", help="bugs whose code or name has this text")
    parser.add_argument("--markdown", action="store_true", help="the table in Markdown")
    parser.add_argument("--diffs", action="store_true", help="show every change")
    chosen = parser.parse_args(arguments)
    server.start("rules")
    results = []
    for place, bug in enumerate(all_bugs()):
        text = f"{bug.code} {bug.name}"
        if not bug.code.startswith(LOCAL) or chosen.only.lower() not in text.lower():
            continue
        one = told(place, bug)
        results.append(one)
        fix = one.result.fix
        words = "; ".join(fix.titles) if fix else f"NONE: {one.result.why}"
        print(
            f"{text}: {words} ({one.result.tried} tried, {one.result.verified} verified, "
            f"{one.cost:.1f} checks)",
            flush=True,
        )
        if fix and chosen.diffs:
            print(fix.diff, *fix.notes, sep="\n", flush=True)
    print(heading("Planted bugs with a local cause"))
    print((markdown if chosen.markdown else table)(summary(results)))
    mended_ones = sum(one.result.fix is not None for one in results)
    return int(mended_ones < GOAL * len(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How much later pytest starts with the plugin of gradlint than without it.

Run it with ``python -m tests.benchmarks.pytest_start [rounds]``. Goal: at most 20 ms. Both
runs find one test that does nothing, one after the other, so that a busy machine slows both alike;
processor time is compared as well, on which other work has less influence.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.benchmarks.support.measure import heading, interleaved, median, table, wall

GOAL_MS = 20.0

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
CASES = {"without the plugin": (*PYTEST, "-p", "no:gradlint"), "with it": PYTEST}


def processor_seconds(command: tuple[str, ...], folder: Path) -> float:
    """Processor time that ``command`` takes in ``folder``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall(command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int) -> None:
    rows = [("pytest", "median ms", "ratio", "later by, ms", f"goal {GOAL_MS:g} ms")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        for what, measure in (("", wall), (", processor time", processor_seconds)):
            times = interleaved(
                {case: partial(measure, command, folder) for case, command in CASES.items()}, rounds
            )
            without, with_it = times.values()
            later = median([(b - a) * 1e3 for a, b in zip(without, with_it, strict=True)])
            rows.append((f"without the plugin{what}", f"{median(without) * 1e3:.0f}", "", "", ""))
            ratio = median([b / a for a, b in zip(without, with_it, strict=True)])
            met = "met" if later <= GOAL_MS else "missed"
            rows.append(
                (
                    f"with it{what}",
                    f"{median(with_it) * 1e3:.0f}",
                    f"{ratio:.3f}",
                    f"{later:+.1f}",
                    met,
                )
            )
    print(heading(f"Start of pytest, median of {rounds} interleaved pairs"))
    print(table(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)

"""What ``gradlint check`` costs: one small Function, and a hundred distinct ones in a folder.

Run it with ``python tests/benchmarks/check_cost.py [rounds]``. Goals: one small Function within
3 times ``python -c "import torch"``; a hundred at 150 ms each beyond start-up, on 2 cores.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from _functions import write_functions
from _measure import GRADLINT, IMPORT_TORCH, heading, interleaved, median, table, wall

ROOT = Path(__file__).resolve().parents[2]
ONE = ROOT / "examples" / "right" / "elementwise.py"
COUNT = 100
GOAL_ONE = 3.0
GOAL_EACH_MS = 150.0


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_functions(Path(folder), COUNT)
        check = (*GRADLINT, "check", "--seed", "0")
        one = (*check, f"{ONE}:Square")
        times = interleaved(
            {
                "import torch": partial(wall, IMPORT_TORCH),
                "one": partial(wall, one),
                "hundred -j 1": partial(wall, (*check, "-j", "1", folder)),
                "hundred -j 2": partial(wall, (*check, "-j", "2", folder)),
            },
            rounds,
        )
    torch_s = median(times["import torch"])
    one_s = median(times["one"])
    ratio = one_s / torch_s
    rows = [("what", "median s", "figure", "goal", "")]
    rows.append(('python -c "import torch"', f"{torch_s:.2f}", "", "", ""))
    rows.append(
        (
            "check of one small Function",
            f"{one_s:.2f}",
            f"{ratio:.2f} × import torch",
            f"{GOAL_ONE:g} ×",
            "met" if ratio <= GOAL_ONE else "missed",
        )
    )
    for jobs in (1, 2):
        seconds = median(times[f"hundred -j {jobs}"])
        # The check of one Function is all start-up but for its own few hundredths of a second.
        each_ms = 1000 * (seconds - one_s) / (COUNT - 1)
        rows.append(
            (
                f"check of {COUNT} small Functions, -j {jobs}",
                f"{seconds:.2f}",
                f"{each_ms:.0f} ms each",
                f"{GOAL_EACH_MS:g} ms" if jobs == 2 else "",
                "" if jobs == 1 else "met" if each_ms <= GOAL_EACH_MS else "missed",
            )
        )
    print(heading(f"Cost of a check, median of {rounds} interleaved runs"))
    print(table(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

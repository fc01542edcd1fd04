"""Start-up of the commands that need no torch, against ``python -c "import torch"``.

Run it with ``python -m tests.benchmarks.startup [rounds]``. Goal: each under half.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.benchmarks.support.measure import (
    GRADLINT,
    IMPORT_TORCH,
    heading,
    interleaved,
    median,
    table,
    wall,
)

GOAL = 0.5

SPEC = """\
forward: "x * x"
backward: {x: "2 * x * grad_output"}
inputs:
  x: {shape: [3, 4]}
"""


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "square.yaml"
        spec.write_text(SPEC, encoding="utf-8")
        commands = {
            'python -c "import torch"': IMPORT_TORCH,
            "gradlint --help": (*GRADLINT, "--help"),
            "gradlint check --help": (*GRADLINT, "check", "--help"),
            "gradlint explain GL401": (*GRADLINT, "explain", "GL401"),
            "gradlint rules": (*GRADLINT, "rules"),
            "gradlint validate SPEC": (*GRADLINT, "validate", str(spec)),
            "gradlint schema spec": (*GRADLINT, "schema", "spec"),
        }
        times = interleaved(
            {name: partial(wall, command) for name, command in commands.items()}, rounds
        )
    torch_s = median(next(iter(times.values())))
    rows = [("command", "median s", "ratio", f"goal {GOAL}")]
    for name, seconds in times.items():
        ratio = median(seconds) / torch_s
        verdict = "" if name.startswith("python") else "met" if ratio < GOAL else "missed"
        rows.append((name, f"{median(seconds):.3f}", f"{ratio:.2f}", verdict))
    print(heading(f"Start-up, median of {rounds} interleaved runs"))
    print(table(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)

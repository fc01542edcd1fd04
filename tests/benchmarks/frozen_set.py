"""What gradlint says of a fixed set of operators, as one JSON that two versions can be compared by.

Run it with ``python -m tests.benchmarks.frozen_set OUT.json`` on either version, then compare
with ``python -m tests.benchmarks.frozen_set --compare BEFORE.json AFTER.json``. The set is all of
``examples/`` and ``specs/``, every planted bug with its twin, and every fourth operator of
PyTorch's operator database, each under a fixed seed. Kept are codes, severities, verdicts, inputs,
indices and exit codes; wording, numbers and durations are left out.

Only gradlint's stable interfaces are used (the command line and ``gradlint.check``), so that the
same script runs before and after a change of the code's structure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tests.benchmarks.planted_bugs import _findings
from tests.benchmarks.support.planted_bugs import all_bugs

ROOT = Path(__file__).resolve().parents[2]
SEED = 7

#: Of PyTorch's operator database one operator in this many is in the set.
EVERY = 4


def kept(target: dict[str, Any]) -> dict[str, Any]:
    """The part of a target's report that must not change."""
    return {
        "verdict": target["verdict"],
        "samples": [
            [
                (argument["name"], argument["shape"], argument["dtype"], argument["requires_grad"])
                for argument in sample["args"]
            ]
            for sample in target["samples"]
        ],
        "checks": sorted([c["code"], c["verdict"], c["sample"] or ""] for c in target["checks"]),
        "findings": sorted(
            [
                f["code"],
                f["severity"],
                f["cause"] or "",
                f["input"] or "",
                f["output"] or "",
                f["index"] or [],
            ]
            for f in target["findings"]
        ),
    }


def by_command(folder: str) -> Iterator[tuple[str, Any]]:
    """The operators below ``folder``, checked by the command line."""
    with tempfile.TemporaryDirectory() as scratch:
        written = Path(scratch) / "report.json"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "gradlint", "check", folder, "--seed", str(SEED)),
                *("-j", "1", "--output-format", "json", "-o", str(written)),
            ],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        yield f"{folder} exit code", done.returncode
        for target in json.loads(written.read_text())["targets"]:
            yield target["target"], kept(target)


def planted_bugs() -> Iterator[tuple[str, Any]]:
    """Every planted bug and its twin, checked by ``gradlint.check``."""
    for bug in all_bugs():
        for which, op in (("faulty", bug.faulty), ("fixed", bug.fixed)):
            found = sorted(
                [f.code, f.severity, f.cause or "", f.input or "", f.output or "", f.index or []]
                for f in _findings(op, bug, None)
            )
            yield f"{bug.code} {bug.name} {which}", found


def operators() -> Iterator[tuple[str, Any]]:
    """Every fourth differentiable operator of the database at its first sample."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    import gradlint

    for info in islice(op_db, 0, None, EVERY):
        if torch.float64 not in info.supported_backward_dtypes("cpu"):
            continue
        torch.manual_seed(SEED)
        name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        try:
            sample = next(iter(info.sample_inputs("cpu", torch.float64, requires_grad=True)))

            def call(*args: Any, info: Any = info, kwargs: Any = sample.kwargs) -> Any:
                return info(*args, **kwargs)

            report = gradlint.check(call, (sample.input, *sample.args), seed=SEED)
            yield name, kept(report.to_dict()["targets"][0])
        except Exception as error:
            yield name, f"raised {type(error).__name__}"


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print every difference; returns their number."""
    differences = 0
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        if one == other:
            continue
        differences += 1
        print(f"\n{name}")
        if not isinstance(one, dict) or not isinstance(other, dict):
            print(f"  before {json.dumps(one)}\n  after  {json.dumps(other)}")
            continue
        for key in one:
            if one[key] != other[key]:
                gone = [x for x in one[key] if x not in other[key]]
                new = [x for x in other[key] if x not in one[key]]
                if not isinstance(one[key], list):
                    gone, new = [one[key]], [other[key]]
                print(f"  {key}: gone {json.dumps(gone)}; new {json.dumps(new)}")
    print(f"\n{differences} of {len(before)} operators differ")
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", nargs="?", help="where to write the JSON")
    parser.add_argument("--compare", nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--part", choices=["commands", "bugs", "operators"])
    options = parser.parse_args()
    if options.compare:
        before, after = (json.loads(Path(p).read_text()) for p in options.compare)
        return 1 if compare(before, after) else 0
    warnings.simplefilter("ignore")
    parts = {
        "commands": lambda: (pair for f in ("examples", "specs") for pair in by_command(f)),
        "bugs": planted_bugs,
        "operators": operators,
    }
    found: dict[str, Any] = {}
    for name, part in parts.items():
        if options.part in (None, name):
            found.update(part())
    text = json.dumps(found, indent=1, sort_keys=True)
    if options.out is None:
        print(text)
    else:
        Path(options.out).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

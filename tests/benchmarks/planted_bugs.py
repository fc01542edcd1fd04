"""Bugs that people ship, planted one by one: what gradlint and torch's own checkers say of them.

Run it with ``python -m tests.benchmarks.planted_bugs [--only TEXT] [--markdown]``. Every bug of
``support/planted_bugs/`` and its fixed twin go through ``gradlint.check`` with all rules, and
through ``torch.autograd.gradcheck`` (slow mode) and ``gradgradcheck`` with their defaults.

Goals: every bug found under its code, no finding of severity error or warning in any twin.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

import gradlint
from gradlint.model.sample import map_tensors
from gradlint.trace.global_state import preserved_state
from tests.benchmarks.support.measure import heading, markdown, table
from tests.benchmarks.support.planted_bugs import Bug, all_bugs

SEED = 7
FAMILIES = {
    "GL1": "contract of backward",
    "GL2": "shape, dtype, device",
    "GL3": "NaN and Inf",
    "GL4": "values",
    "GL5": "second order",
    "GL6": "side effects and state",
    "GL7": "layout and size",
    "GL8": "precision",
    "GL9": "transforms",
}


@dataclass
class Told:
    """What was said of one bug and its twin.

    Args:
        codes: findings of severity error or warning of the bug, roots only.
        found: whether its code is among all findings of the bug.
        silent: whether nothing of severity error or warning was found in the twin; ``alarms`` says
            what was.
        slow, second: whether torch's ``gradcheck`` and ``gradgradcheck`` reject the bug.
        seconds: of both checks by gradlint.
    """

    bug: Bug
    codes: list[str] = field(default_factory=list)
    found: bool = False
    silent: bool = True
    alarms: list[str] = field(default_factory=list)
    slow: bool = False
    second: bool = False
    seconds: float = 0.0


def told(bug: Bug, *, torch_too: bool = True, select: list[str] | None = None) -> Told:
    """Check ``bug`` and its twin; with ``select`` by these rules alone."""
    result = Told(bug)
    started = time.perf_counter()
    findings = _findings(bug.faulty, bug, select)
    result.found = any(finding.code == bug.code for finding in findings)
    result.codes = [
        finding.code
        for finding in findings
        if finding.follows is None and finding.severity != "info"
    ]
    for finding in _findings(bug.fixed, bug, select):
        if finding.severity != "info":
            result.silent = False
            result.alarms.append(f"{finding.code} {finding.message}")
    result.seconds = time.perf_counter() - started
    if torch_too:
        result.slow = _rejects(torch.autograd.gradcheck, bug)
        result.second = _rejects(torch.autograd.gradgradcheck, bug)
    return result


def _findings(op: Any, bug: Bug, select: list[str] | None) -> list[Any]:
    report = gradlint.check(op, [bug.inputs()], seed=SEED, select=select, dtypes=bug.dtypes)
    return report.findings


def _rejects(checker: Callable[..., bool], bug: Bug) -> bool:
    """Whether ``checker`` rejects the bug on contiguous float64 inputs, as it is usually called."""
    inputs = map_tensors(bug.inputs(), _usual)
    call = getattr(bug.faulty, "apply", bug.faulty)
    with preserved_state(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return not checker(call, inputs, raise_exception=False)
        except Exception:
            return True


def _usual(tensor: torch.Tensor) -> torch.Tensor:
    wide = tensor.detach().clone()
    if wide.is_floating_point():
        wide = wide.double()
    return wide.requires_grad_(tensor.requires_grad)


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings of the planted operators are not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def summary(results: list[Told]) -> list[tuple[str, ...]]:
    """One row a family, and their sum."""
    rows: list[tuple[str, ...]] = [
        ("family", "bugs", "found by gradlint", "twins silent", "gradcheck", "and gradgradcheck")
    ]
    for family, words in (*FAMILIES.items(), ("GL", "all")):
        some = [one for one in results if one.bug.code.startswith(family)]
        if some:
            counts = Counter(
                name
                for one in some
                for name, counted in (
                    ("found", one.found),
                    ("silent", one.silent),
                    ("slow", one.slow),
                    ("either", one.slow or one.second),
                )
                if counted
            )
            name = words if family == "GL" else f"{family} {words}"
            numbers = (counts[key] for key in ("found", "silent", "slow", "either"))
            rows.append((name, str(len(some)), *map(str, numbers)))
    return rows


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="planted bugs")
    parser.add_argument("--only", default="", help="bugs whose code or name has this text")
    parser.add_argument("--markdown", action="store_true", help="the table in Markdown")
    parser.add_argument("--each", action="store_true", help="a line for every bug")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results = []
    for bug in all_bugs():
        if chosen.only.lower() not in f"{bug.code} {bug.name}".lower():
            continue
        with quiet():
            one = told(bug)
        results.append(one)
        if not one.found:
            print(f"MISSED  {bug.code} {bug.name}: {', '.join(one.codes) or 'nothing found'}")
        elif set(one.codes) - {bug.code, *bug.also}:
            print(f"beside  {bug.code} {bug.name}: {', '.join(one.codes)}")
        for alarm in one.alarms:
            print(f"ALARM   {bug.code} {bug.name}, fixed: {alarm}")
        if chosen.each:
            verdicts = f"gradcheck {'rejects' if one.slow else 'passes'}"
            print(f"{bug.code} {bug.name} ({bug.like}): {verdicts}, {one.seconds:.1f} s")
    print(heading("Planted bugs, each with a fixed twin"))
    show = markdown if chosen.markdown else table
    print(show(summary(results)))
    return int(not all(one.found and one.silent for one in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Operators as users write them, right and with one fault: what gradlint says of each.

Run it with ``python -m tests.benchmarks.user_operators [--half open|aside] [--inputs
inferred|given] [--which right|wrong] [--dtype D] [--seeds N] [--order N] [--save FILE]``.
The operators lie in ``support/user_operators/``: every group is one file that exists twice, in
``right/`` and in ``wrong/``, and each class in ``wrong/`` has one fault. They were written by
people who had not read the rules; the half called "aside" is looked at when a version is finished,
never while it is made.

Goals: with inferred inputs 95 % of the wrong operators found and 90 % under a fitting code and
line, at most 1 % of the right ones red at first order, and at most 5 % without usable inputs; with
given inputs 99 % and 0.5 %.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import importlib.util
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.benchmarks.support.measure import heading, markdown, table

HERE = Path(__file__).parent / "support" / "user_operators"
ROOT = Path(__file__).resolve().parents[2]
#: The sets of each half. A set has a folder ``right``, a folder ``wrong`` and ``cases.py``.
HALVES = {
    "open": ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"),
    "aside": ("k", "l"),
    "m": ("m",),
    "n": ("n",),
}
#: Seconds that one operator may take with its inputs given.
PATIENCE_S = 300
#: Codes that fit a fault, by words of its kind; the first that match count.
FITTING = (
    ("second derivative", ("GL501", "GL502")),
    ("NaN", ("GL301", "GL302", "GL402", "GL501", "GL502")),
    (r"in place|\bmutat", ("GL601", "GL602", "GL603", "GL605", "GL702", "GL004")),
    ("number of gradients", ("GL101",)),
    ("cache", ("GL605", "GL608", "GL606", "GL401", "GL402", "GL004")),
    ("None for|needs_input_grad", ("GL103", "GL110")),
    ("layout", ("GL701", "GL702", "GL703", "GL704", "GL004")),
    ("dtype|float32", ("GL203", "GL801", "GL401", "GL003", "GL004")),
    ("", ("GL401", "GL402", "GL405", "GL201", "GL004", "GL706", "GL707")),
)
#: Findings that are about how an operator was run, not about a fault in it.
RUN = ("GL002", "GL005", "GL006", "GL007")


@dataclass(frozen=True)
class Case:
    """One operator of the corpus.

    Args:
        folder: of the set.
        group, name: file (without ``.py``) and class.
        fault: in words.
        shows: the order at which the fault can be seen: "first", "second" or "both".
        second_order: whether the right operator is right at second order, too; None where it
            refuses to be differentiated twice.
        codes: codes that fit the fault.
    """

    folder: Path
    group: str
    name: str
    fault: str
    shows: str
    second_order: bool | None
    codes: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.folder.name}/{self.group}:{self.name}"

    def path(self, which: str) -> Path:
        return self.folder / which / f"{self.group}.py"


@dataclass
class Told:
    """What gradlint said of one operator.

    Args:
        case: the operator.
        which: "right" or "wrong".
        verdict: of the target.
        findings: (code, severity, line, message) of errors and warnings that follow from no other.
        not_run: why it was not judged, if it was not.
        seconds: wall time; 0 if it was one of many in a command.
        calls: forward and backward calls.
    """

    case: Case
    which: str
    verdict: str = ""
    findings: list[tuple[str, str, int | None, str]] = field(default_factory=list)
    not_run: str = ""
    seconds: float = 0.0
    calls: int = 0

    def red(self, order: int = 2) -> bool:
        """Whether it fails, at first order or at any."""
        return any(order > 1 or not code.startswith("GL5") for code, *_ in self._about_the_op())

    def _about_the_op(self) -> Iterable[tuple[str, str, int | None, str]]:
        return [found for found in self.findings if found[0] not in RUN]

    @property
    def without_inputs(self) -> bool:
        """Whether no inputs were found for it."""
        return any(code == "GL002" for code, *_ in self.findings)

    @property
    def fitting(self) -> bool:
        """Whether its first finding has a fitting code and points into a function that is wrong."""
        leading = next(iter(self._about_the_op()), None)
        if leading is None:
            return False
        code, _, line, _ = leading
        return code in self.case.codes and line in fitting_lines(self.case)


def _lines_of(node: ast.ClassDef | ast.FunctionDef) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@cache
def fitting_lines(case: Case) -> frozenset[int]:
    """Lines of the wrong file that a finding may point at: those of the class or function, and of
    what it uses of the file, that differ from the right file, and all backward functions there."""
    before, after = (case.path(which).read_text().splitlines() for which in ("right", "wrong"))
    lines: set[int] = set()
    for tag, _, _, start, stop in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            lines.update(range(start + 1, max(stop, start + 1) + 1))
    tree = ast.parse("\n".join(after))
    registered = _registered(tree)
    backward = {"backward", "jvp", *(names[0] for names in registered.values())}
    named = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    parts: dict[str, ast.ClassDef | ast.FunctionDef] = {}
    waiting = [case.name]
    while waiting:
        name = waiting.pop()
        if name in named and name not in parts:
            parts[name] = named[name]
            waiting += [n.id for n in ast.walk(named[name]) if isinstance(n, ast.Name)]
            waiting += registered.get(name, ())
    lines &= {line for part in parts.values() for line in _lines_of(part)}
    for part in parts.values():
        for node in ast.walk(part):
            if isinstance(node, ast.FunctionDef) and node.name in backward:
                lines.update(_lines_of(node))
    return frozenset(lines)


def _registered(tree: ast.Module) -> dict[str, list[str]]:
    """Functions that ``register_autograd`` gets, backward first, by the name of the custom op."""
    return {
        call.func.value.id: [
            value.id
            for value in (*call.args, *(keyword.value for keyword in call.keywords))
            if isinstance(value, ast.Name)
        ]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "register_autograd"
        and isinstance(call.func.value, ast.Name)
    }


def all_cases(half: str) -> list[Case]:
    """The operators of ``half``."""
    found = []
    for folder in (HERE / name for name in HALVES[half]):
        for row in _module(folder / "cases.py").CASES:
            codes = next(codes for words, codes in FITTING if re.search(words, row["kind"]))
            found.append(
                Case(
                    folder,
                    row["group"],
                    row["name"],
                    row["fault"],
                    row["shows"],
                    row["second_order_right"],
                    codes,
                )
            )
    return found


@cache
def _module(path: Path) -> ModuleType:
    name = "_".join(("user_operators", path.parent.parent.name, path.parent.name, path.stem))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def by_name(cases: list[Case], which: str, options: argparse.Namespace, seed: int) -> list[Told]:
    """Check all ``cases`` by their names alone, in one command."""
    with tempfile.TemporaryDirectory() as scratch:
        written = Path(scratch) / "report.json"
        targets = [f"{os.path.relpath(c.path(which), ROOT)}:{c.name}" for c in cases]
        command = [sys.executable, "-m", "gradlint", "check", *targets, "--seed", str(seed)]
        command += ["-j", str(options.jobs), "--order", str(options.order)]
        command += ["--dtype", options.dtype] if options.dtype else []
        command += ["--output-format", "json", "-o", str(written)]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        report = json.loads(written.read_text())
    answers = {target["target"]: target for target in report["targets"]}
    return [
        _told(case, which, answers[target]) for case, target in zip(cases, targets, strict=True)
    ]


def _told(case: Case, which: str, answer: dict[str, Any]) -> Told:
    told = Told(case, which, answer["verdict"])
    for found in answer["findings"]:
        if found["severity"] != "info" and not found.get("follows"):
            place = found.get("location") or {}
            told.findings.append(
                (found["code"], found["severity"], place.get("line"), found["message"])
            )
    told.calls = sum(c["forward_calls"] + c["backward_calls"] for c in answer["checks"])
    told.seconds = sum(c["duration_s"] for c in answer["checks"])
    return told


def with_inputs(job: tuple[Case, str, int, int, str]) -> Told:
    """Check one operator with its inputs given."""
    import torch

    import gradlint

    case, which, seed, order, dtype = job
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    row = next(
        row
        for row in _module(case.folder / "cases.py").CASES
        if (row["group"], row["name"]) == (case.group, case.name)
    )
    started = time.perf_counter()
    try:
        op = getattr(_module(case.path(which)), case.name)
        given = row["inputs"]
        args = _module(case.folder / "cases.py")
        inputs = getattr(args, given) if isinstance(given, str) and hasattr(args, given) else given
        values = inputs() if callable(inputs) else eval(inputs, vars(args))
        make = row.get("make")
        if make is not None:
            op = _made(op, make, args)
        elif isinstance(op, type) and issubclass(op, torch.nn.Module):
            op = op()
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            report = gradlint.check(
                op,
                [tuple(values)],
                seed=seed,
                order=order,
                dtypes=tuple(dtype.split(",")) if dtype else None,
            )
        told = _told(case, which, report.to_dict()["targets"][0])
    except Exception as error:
        told = Told(case, which, not_run=f"{type(error).__name__}: {error}")
    told.seconds = time.perf_counter() - started
    return told


def _made(op: Any, make: Any, args: ModuleType) -> Any:
    """The module that ``make`` builds, of the class that is checked (``make`` may import none)."""
    if isinstance(make, str):
        make = getattr(args, make) if hasattr(args, make) else eval(make, vars(args))
    return make(op) if make.__code__.co_argcount else make()


def told_of(half: str, options: argparse.Namespace, seed: int) -> list[Told]:
    """What is said of every operator of ``half``, right and wrong, or those of one kind."""
    cases = [case for case in all_cases(half) if options.only in case.key]
    twins = (options.which,) if options.which else ("right", "wrong")
    found: list[Told] = []
    if options.inputs == "inferred":
        for which in twins:
            found += by_name(cases, which, options, seed)
        return found
    jobs = [(c, which, seed, options.order, options.dtype) for which in twins for c in cases]
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, maxtasksperchild=10) as pool:
        waiting = [pool.apply_async(with_inputs, (job,)) for job in jobs]
        for job, answer in zip(jobs, waiting, strict=True):
            try:
                found.append(answer.get(PATIENCE_S))
            except multiprocessing.TimeoutError:
                found.append(Told(job[0], job[1], not_run=f"no answer in {PATIENCE_S} s"))
    return found


def counts(found: list[Told]) -> Iterator[tuple[str, str]]:
    """The rows of the table."""
    right = [told for told in found if told.which == "right"]
    wrong = [told for told in found if told.which == "wrong"]
    first = [told for told in wrong if told.case.shows != "second"]
    yield "wrong operators", str(len(wrong))
    yield "found", _share(sum(told.red() for told in wrong), len(wrong))
    yield "with a fitting code and line first", _share(sum(t.fitting for t in wrong), len(wrong))
    yield "found at first order", _share(sum(told.red(1) for told in first), len(first))
    yield "passed", str(sum(told.verdict == "pass" for told in wrong))
    yield "cannot tell", str(sum(told.verdict == "inconclusive" for told in wrong))
    yield "right operators", str(len(right))
    yield "red at first order", _share(sum(told.red(1) for told in right), len(right))
    twice = [told for told in right if told.case.second_order]
    yield "red at any order, if right at both", _share(sum(t.red() for t in twice), len(twice))
    yield "without usable inputs", _share(sum(t.without_inputs for t in found), len(found))
    yield "not judged", str(sum(bool(told.not_run) for told in found))
    yield "calls for a right operator, median", str(_median([t.calls for t in right]))


def _share(some: int, of: int) -> str:
    return f"{some} ({100 * some / of:.1f} %)" if of else "0"


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2] if values else 0


def misfits(found: list[Told]) -> Iterator[str]:
    """A line for each right operator that is red and each wrong one not found or found amiss."""
    for told in found:
        case = told.case
        if told.not_run:
            yield f"{told.which} {case.key}: not judged: {told.not_run}"
        elif told.which == "right" and told.red():
            yield f"right {case.key}: " + "; ".join(
                f"{code} {severity} {message}" for code, severity, _, message in told.findings
            )
        elif told.without_inputs:
            yield f"{told.which} {case.key}: no usable inputs"
        elif told.which == "wrong" and not told.fitting:
            said = "; ".join(f"{c} line {line} {text}" for c, _, line, text in told.findings)
            yield f"wrong {case.key} ({case.fault}): {said or told.verdict}"


def unsteady(runs: list[list[Told]]) -> list[str]:
    """Operators whose verdict is not the same under every seed."""
    verdicts: dict[str, set[bool]] = {}
    for run in runs:
        for told in run:
            verdicts.setdefault(f"{told.which} {told.case.key}", set()).add(told.red())
    return [key for key, seen in verdicts.items() if len(seen) > 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--half", choices=HALVES, default="open")
    parser.add_argument("--inputs", choices=("inferred", "given"), default="inferred")
    parser.add_argument("--which", choices=("right", "wrong"), help="only these of each pair")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--only", default="", help="operators with this text in set/group:name")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--save", type=Path, help="write what was said as JSON")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    runs = [told_of(options.half, options, seed) for seed in seeds]
    for line in misfits(runs[0]):
        print(line)
    if options.save:
        saved = [
            [seed, t.which, t.case.key, t.verdict, t.findings, t.not_run, t.seconds, t.calls]
            for seed, run in zip(seeds, runs, strict=True)
            for t in run
        ]
        options.save.write_text(json.dumps(saved, indent=1))
    rows = list(counts(runs[0]))
    if len(runs) > 1:
        differing = unsteady(runs)
        for key in differing:
            print(f"another verdict under another seed: {key}")
        rows.append(("another verdict among the seeds", _share(len(differing), len(runs[0]))))
    shown = [("", f"{options.half} half, inputs {options.inputs}"), *rows]
    print()
    if options.markdown:
        print(markdown(shown))
    else:
        print(heading("Operators as users write them"))
        print(table(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())

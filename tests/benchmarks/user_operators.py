"""Operators as users write them, right and with one fault: what gradlint says of each.

Run it with ``python -m tests.benchmarks.user_operators [--half open|aside] [--inputs
inferred|given] [--which right|wrong|both] [--sample N] [--dtype D] [--seeds N] [--order N]
[--save FILE]``. With several seeds it says which operators get another verdict under another seed.
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
import inspect
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.benchmarks.support.measure import heading, markdown, table

HERE = Path(__file__).parent / "support" / "user_operators"
ROOT = Path(__file__).resolve().parents[2]
#: The sets of each half. A set has a folder ``right``, a folder ``wrong``, and ``cases.py`` or what
#: its author wrote in another form, ``written.py``.
HALVES = {
    "open": ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"),
    "aside": (*"mnopqrstuvwxyz", *(f"a{letter}" for letter in "abcdefghijklmnopqrtuvwxyz")),
}
#: Seconds that one operator may take with its inputs given.
PATIENCE_S = 300
#: Operators that one command checks when there are several seeds.
TOGETHER = 10
#: Words by which authors name kinds of fault in ``written.py`` → those of :data:`FITTING`.
KINDS = {"modified": "mutated", "nan": "NaN", "none": "None for", "state": "cache"}
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
RUN = ("GL001", "GL002", "GL005", "GL006", "GL007")


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
        """Whether no inputs were found for it, or for the constructor of its module."""
        return any(code in ("GL001", "GL002") for code, *_ in self.findings)

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
def changes(folder: Path, group: str) -> list[tuple[int, int]]:
    """Where the wrong file of a group differs from the right one: the first line of its own and
    the one after the last, from 0."""
    before, after = (
        (folder / which / f"{group}.py").read_text().splitlines() for which in ("right", "wrong")
    )
    found = difflib.SequenceMatcher(None, before, after).get_opcodes()
    return [(start, stop) for tag, _, _, start, stop in found if tag != "equal"]


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def fitting_lines(case: Case) -> frozenset[int]:
    """Lines of the wrong file that a finding may point at: those of the class or function, and of
    what it uses of the file, that differ from the right file, and all backward functions there."""
    lines: set[int] = set()
    for start, stop in changes(case.folder, case.group):
        lines.update(range(start + 1, max(stop, start + 1) + 1))
    tree = _parsed(case.path("wrong"))
    named = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    texts = _texts(tree)
    by_op = _custom_ops(named.values(), texts)
    registered = _registered(tree, by_op, texts)
    backward = {"backward", "jvp", *(names[0] for names in registered.values())}
    parts: dict[str, ast.ClassDef | ast.FunctionDef] = {}
    waiting = [case.name]
    while waiting:
        name = waiting.pop()
        if name in named and name not in parts:
            parts[name] = named[name]
            waiting += [n.id for n in ast.walk(named[name]) if isinstance(n, ast.Name)]
            attributes = (n.attr for n in ast.walk(named[name]) if isinstance(n, ast.Attribute))
            waiting += [by_op[attribute] for attribute in attributes if attribute in by_op]
            waiting += registered.get(name, ())
    lines &= {line for part in parts.values() for line in _lines_of(part)}
    for part in parts.values():
        for node in ast.walk(part):
            if isinstance(node, ast.FunctionDef) and node.name in backward:
                lines.update(_lines_of(node))
    return frozenset(lines)


def _texts(tree: ast.Module) -> dict[str, str]:
    """The strings that a file gives names to."""
    return {
        target.id: str(statement.value.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _text(node: ast.expr, texts: dict[str, str]) -> str:
    """A string in the source, or what stands under its name; "" for anything else."""
    if isinstance(node, ast.Name):
        return texts.get(node.id, "")
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _custom_ops(
    definitions: Iterable[ast.ClassDef | ast.FunctionDef], texts: dict[str, str]
) -> dict[str, str]:
    """Name of a custom operator, as in ``torch.ops.mylib.name`` → that of its function."""
    return {
        _text(decorator.args[0], texts).partition("::")[2]: definition.name
        for definition in definitions
        for decorator in definition.decorator_list
        if isinstance(decorator, ast.Call)
        and ast.unparse(decorator.func).endswith("custom_op")
        and decorator.args
        and _text(decorator.args[0], texts)
    }


def _registered(
    tree: ast.Module, by_op: dict[str, str], texts: dict[str, str]
) -> dict[str, list[str]]:
    """Functions that ``register_autograd`` gets, backward first, by the name of the custom op's
    function: a method of what ``custom_op`` made, or of ``torch.library`` with the op's name."""
    found = {}
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        if call.func.attr != "register_autograd":
            continue
        values = (*call.args, *(keyword.value for keyword in call.keywords))
        named = _text(values[0], texts).partition("::")[2]
        owner = by_op.get(named, ast.unparse(call.func.value))
        found[owner] = [value.id for value in values if isinstance(value, ast.Name)]
    return found


def all_cases(half: str) -> list[Case]:
    """The operators of ``half``."""
    found = []
    for folder in (HERE / name for name in HALVES[half]):
        for row in _rows(folder):
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


def _list_of(folder: Path) -> Path:
    """The file in which the operators of a set are listed."""
    path = folder / "cases.py"
    return path if path.exists() else folder / "written.py"


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The operators of a set. A twin of which the right one is differentiated once only is proved
    right at second order by nobody."""
    for row in _module(_list_of(folder)).CASES:
        if "fault" in row:
            yield row
            continue
        words = " ".join(KINDS.get(word, word) for fit in row["fits"] for word in fit.split())
        text = (folder / "right" / f"{row['name']}.py").read_text()
        yield {
            "group": row["name"],
            "name": row["object"],
            "fault": row["bug"],
            "kind": f"second derivative {words}" if row["order"] == "second" else words,
            "shows": row["order"],
            "second_order_right": None if "once_differentiable" in text else True,
            "inputs": row["inputs"],
            "make": row.get("make"),
        }


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
        row for row in _rows(case.folder) if (row["group"], row["name"]) == (case.group, case.name)
    )
    started = time.perf_counter()
    try:
        op = getattr(_module(case.path(which)), case.name)
        given = row["inputs"]
        args = _module(_list_of(case.folder))
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
    return make(op) if inspect.signature(make).parameters else make()


def drawn(cases: list[Case], many: int, seed: int = 0) -> list[Case]:
    """``many`` of ``cases`` at random, in their order; all of them if ``many`` is 0."""
    if not many or many >= len(cases):
        return cases
    places = random.Random(seed).sample(range(len(cases)), many)
    return [cases[place] for place in sorted(places)]


def told_of(half: str, options: argparse.Namespace, seed: int) -> list[Told]:
    """What is said of every operator of ``half``, right and wrong, or those of one kind."""
    return [told for _, told in answers(chosen(half, options), options, [seed])]


def chosen(half: str, options: argparse.Namespace) -> list[tuple[Case, str]]:
    """The operators to check, each with "right" or "wrong"."""
    cases = [case for case in all_cases(half) if options.only in case.key]
    twins = (options.which,) if options.which in ("right", "wrong") else ("right", "wrong")
    return [(case, which) for which in twins for case in drawn(cases, options.sample)]


def answers(
    asked: list[tuple[Case, str]],
    options: argparse.Namespace,
    seeds: Sequence[int],
    known: Collection[tuple[int, str, str]] = (),
) -> Iterator[tuple[int, Told]]:
    """What is said under each seed, as it comes: an operator has all its seeds before the next
    few are begun, so that a run that is stopped has compared those before.

    Args:
        known: (seed, which, key) that are not checked again.
    """
    if options.inputs == "given":
        jobs = [
            (case, which, seed, options.order, options.dtype)
            for case, which in asked
            for seed in seeds
            if (seed, which, case.key) not in known
        ]
        for job, told in zip(jobs, _pooled(jobs, options.jobs), strict=True):
            yield job[2], told
        return
    kinds = {which: [case for case, of in asked if of == which] for which in ("right", "wrong")}
    step = TOGETHER if len(seeds) > 1 else max(1, len(asked))
    for start in range(0, len(asked), step):
        for which, cases in kinds.items():
            batch = cases[start : start + step]
            for seed in seeds:
                left = [case for case in batch if (seed, which, case.key) not in known]
                if left:
                    yield from ((seed, told) for told in by_name(left, which, options, seed))


def _pooled(jobs: list[tuple[Case, str, int, int, str]], workers: int) -> Iterator[Told]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, maxtasksperchild=40) as pool:
        waiting = [pool.apply_async(with_inputs, (job,)) for job in jobs]
        for job, answer in zip(jobs, waiting, strict=True):
            try:
                yield answer.get(PATIENCE_S)
            except multiprocessing.TimeoutError:
                yield Told(job[0], job[1], not_run=f"no answer in {PATIENCE_S} s")


def written(path: Path | None, cases: Iterable[Case]) -> list[tuple[int, Told]]:
    """What an earlier run, perhaps a stopped one, wrote of ``cases`` to ``path``, if it exists."""
    named = {case.key: case for case in cases}
    found = []
    for line in path.read_text().splitlines() if path and path.exists() else ():
        try:
            seed, which, key, verdict, findings, *rest = json.loads(line)
        except json.JSONDecodeError:  # An empty line, or one that a stopped run did not finish.
            continue
        if key in named:
            findings = [tuple(one) for one in findings]
            found.append((seed, Told(named[key], which, verdict, findings, *rest)))
    return found


def _line(seed: int, told: Told) -> str:
    row = [seed, told.which, told.case.key, told.verdict, told.findings, told.not_run]
    return json.dumps([*row, told.seconds, told.calls]) + "\n"


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


@dataclass(frozen=True)
class Steadiness:
    """What several seeds made of one operator.

    Args:
        which, key: the operator.
        red: for each seed whether it is red, at first order for a right operator and at any order
            for a wrong one; None where it was not judged.
        verdicts: for each seed.
        codes: for each seed the codes of errors and warnings, sorted.
    """

    which: str
    key: str
    red: tuple[bool | None, ...]
    verdicts: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]

    @property
    def same(self) -> bool:
        """Whether it is red under every seed or under none."""
        return len(set(self.red)) <= 1

    def __str__(self) -> str:
        """The codes under the seeds, the most frequent first."""
        said = Counter(
            " ".join((verdict, *codes))
            for verdict, codes in zip(self.verdicts, self.codes, strict=True)
        )
        seen = "; ".join(f"{times} x {what}" for what, times in said.most_common())
        return f"{self.which} {self.key}: {seen}"


def steadiness(found: Iterable[tuple[int, Told]]) -> list[Steadiness]:
    """What the seeds made of each operator that was checked under more than one."""
    of_each: dict[tuple[str, str], dict[int, Told]] = {}
    for seed, told in found:
        of_each.setdefault((told.which, told.case.key), {})[seed] = told
    return [
        Steadiness(
            which,
            key,
            tuple(None if t.not_run else t.red(1 if which == "right" else 2) for t in each),
            tuple("not judged" if t.not_run else t.verdict for t in each),
            tuple(tuple(sorted({code for code, *_ in t.findings})) for t in each),
        )
        for (which, key), under in of_each.items()
        if len(each := [under[seed] for seed in sorted(under)]) > 1
    ]


def steady_rows(several: list[Steadiness]) -> Iterator[tuple[str, str]]:
    """The rows of the table that compare seeds."""
    for which, says in (("right", "red at first order"), ("wrong", "found")):
        of_kind = [one for one in several if one.which == which]
        if of_kind:
            yield f"{which} operators under several seeds", str(len(of_kind))
            same = sum(one.same for one in of_kind)
            yield f"{says}: under all or none", _share(same, len(of_kind))
            same = sum(len(set(one.verdicts)) == 1 for one in of_kind)
            yield f"{which}: the same verdict under all", _share(same, len(of_kind))
            same = sum(len(set(one.codes)) == 1 for one in of_kind)
            yield f"{which}: the same codes under all", _share(same, len(of_kind))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--half", choices=HALVES, default="open")
    parser.add_argument("--inputs", choices=("inferred", "given"), default="inferred")
    parser.add_argument("--which", choices=("right", "wrong", "both"), default="both")
    parser.add_argument("--sample", type=int, default=0, help="this many pairs, drawn at random")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--only", default="", help="operators with this text in set/group:name")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument(
        "--save",
        type=Path,
        help="write what is said as JSON lines, as it comes; what FILE holds is not run again",
    )
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    asked = chosen(options.half, options)
    wanted = {(seed, which, case.key) for seed in seeds for case, which in asked}
    found = [
        (seed, told)
        for seed, told in written(options.save, (case for case, _ in asked))
        if (seed, told.which, told.case.key) in wanted
    ]
    known = {(seed, told.which, told.case.key) for seed, told in found}
    with options.save.open("a") if options.save else contextlib.nullcontext() as file:
        if file and options.save.stat().st_size:
            file.write("\n")  # The last line may be one that a stopped run did not finish.
        for seed, told in answers(asked, options, seeds, known):
            found.append((seed, told))
            if file:
                file.write(_line(seed, told))
                file.flush()
    first = [told for seed, told in found if seed == seeds[0]]
    for line in misfits(first):
        print(line)
    several = steadiness(found)
    print(*(f"differs: {one}" for one in several if len(set(one.codes)) > 1), sep="\n")
    rows = [*counts(first), *steady_rows(several)]
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

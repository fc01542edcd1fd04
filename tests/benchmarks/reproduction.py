"""Scripts that show planted bugs with PyTorch alone: do they, and are they silent on the twin?

Run it with ``python -m tests.benchmarks.reproduction [--only TEXT] [--each] [--alone]``. For every
bug of ``support/planted_bugs/`` a script is written from the finding of its rule, and run on the
bug and on its fixed twin: in a fork of this process, or, with ``--alone``, in a Python of its own.

Goals: every bug has a script that exits with 1 and, with the twin in its place, with 0; the median
number of elements after shrinking is at most a quarter of that before.
"""

from __future__ import annotations

import argparse
import base64
import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, TypeVar

import torch

import gradlint
from gradlint.inputs.samples import samples_for
from gradlint.model.op import OpRef
from gradlint.model.report import Finding
from gradlint.model.resolve import resolve_settings
from gradlint.reproduction.make import script_for
from gradlint.reproduction.wanted import NOT_SHOWN, Wanted
from gradlint.rules.catalogue import rule_names
from gradlint.targets.build import from_object
from tests.benchmarks.planted_bugs import SEED, quiet
from tests.benchmarks.support.measure import heading, table
from tests.benchmarks.support.planted_bugs import Bug, all_bugs

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Shown:
    """What came of one bug.

    Args:
        why: there is no script; "" where there is one.
        bug_exits, twin_exits: exit codes of the script on each.
        before, after: elements of the arguments, before and after shrinking.
        trials: arguments that were tried; seconds: that it took to make the script.
    """

    bug: Bug
    why: str = ""
    bug_exits: int | None = None
    twin_exits: int | None = None
    before: int = 0
    after: int = 0
    trials: int = 0
    seconds: float = 0.0
    printed: str = ""

    @property
    def good(self) -> bool:
        """Whether it shows the bug, and only the bug."""
        return (self.bug_exits, self.twin_exits) == (1, 0)


def place_of(thing: Any) -> tuple[str, str]:
    """The module and the name by which ``thing`` can be imported."""
    owner = getattr(thing, "__self__", None)
    if isinstance(owner, type):
        return owner.__module__, f"{owner.__qualname__}.{thing.__name__}"
    for module, loaded in list(sys.modules.items()):
        if module.startswith("tests.benchmarks.support.planted_bugs."):
            for known, value in vars(loaded).items():
                if value is thing:
                    return module, known
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    if "<" in name:
        raise LookupError(f"{thing!r} has no name")
    return getattr(thing, "__module__", None) or type(thing).__module__, name


def shown(bug: Bug, folder: Path, *, alone: bool = False) -> Shown:
    """Write the script of ``bug`` into ``folder``, and run it on both."""
    result = Shown(bug)
    try:
        module, name = place_of(bug.faulty)
        twin = place_of(bug.fixed)
    except LookupError as error:
        result.why = str(error)
        return result
    finding = in_fork(lambda: _finding(bug))
    if finding is None:
        result.why = "not found"
        return result
    settings = resolve_settings(
        {"seed": SEED, "dtypes": list(bug.dtypes) if bug.dtypes else None}, rules=rule_names()
    )
    ref = OpRef(f"{module}:{name}", "module", module, name)
    wanted = Wanted(
        *(finding.code, finding.input, finding.output, finding.cause, finding.sample),
        finding.message,
        "script.py",
        str(folder),
    )

    def make() -> dict[str, Any]:
        started = time.process_time()
        op = from_object(bug.faulty)
        samples = samples_for(op, settings, [bug.inputs()])
        made = script_for(op, samples, settings, ref, wanted)
        return {**made, "seconds": time.process_time() - started}

    made = in_fork(make)
    result.seconds = made["seconds"]
    if "why" in made:
        result.why = made["why"]
        return result
    result.before, result.after, result.trials = made["before"], made["after"], made["trials"]
    path = folder / "script.py"
    if made["tensors"]:
        (folder / "script.pt").write_bytes(base64.b64decode(made["tensors"]))
    path.write_text(made["script"])
    result.bug_exits, result.printed = _exits(path, alone)
    path.write_text(
        made["script"]
        .replace(f"MODULE = {module!r}", f"MODULE = {twin[0]!r}")
        .replace(f"\nNAME = {name!r}", f"\nNAME = {twin[1]!r}")
    )
    result.twin_exits, printed = _exits(path, alone)
    if result.bug_exits == 1:
        result.printed = printed
    return result


def in_fork(function: Callable[[], T]) -> T:
    """What ``function`` returns in a process of its own, as in a worker: what an operator keeps
    there does not reach the next."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(writer, "wb") as channel:
                pickle.dump(function(), channel)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as channel:
        body = channel.read()
    os.waitpid(child, 0)
    found: T = pickle.loads(body)
    return found


def _finding(bug: Bug) -> Finding | None:
    report = gradlint.check(
        bug.faulty, [bug.inputs()], seed=SEED, select=[bug.code], dtypes=bug.dtypes
    )
    return next((item for item in report.findings if item.code == bug.code), None)


def _exits(path: Path, alone: bool) -> tuple[int | None, str]:
    """The exit code of the script, and what it printed."""
    if alone:
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, cwd=ROOT, check=False
        )
        return done.returncode, done.stdout + done.stderr
    log = path.with_suffix(".log")
    child = os.fork()
    if child == 0:
        try:
            with open(log, "wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            module = sys.modules["script"] = ModuleType("script")
            module.__file__ = str(path)
            exec(compile(path.read_text(), str(path), "exec"), vars(module))
            code = module.main()
            sys.stdout.flush()
            os._exit(code)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="scripts of planted bugs")
    parser.add_argument("--only", default="", help="bugs whose code or name has this text")
    parser.add_argument("--each", action="store_true", help="a line for every bug")
    parser.add_argument("--alone", action="store_true", help="run scripts in a fresh Python")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results = []
    for bug in all_bugs():
        if chosen.only.lower() not in f"{bug.code} {bug.name}".lower() or bug.code in NOT_SHOWN:
            continue
        with quiet(), tempfile.TemporaryDirectory() as folder:
            one = shown(bug, Path(folder), alone=chosen.alone)
        results.append(one)
        exits = f"exits {one.bug_exits}, twin {one.twin_exits}"
        sizes = f"{one.before} → {one.after} elements, {one.trials} trials, {one.seconds:.1f} s"
        if not one.good:
            print(f"FAILED  {bug.code} {bug.name}: {one.why or exits}", flush=True)
            print("\n".join(f"        {line}" for line in one.printed.splitlines()[-8:]))
        elif chosen.each:
            print(f"{bug.code} {bug.name}: {sizes}", flush=True)
    print(heading("Scripts of planted bugs"))
    written = [one for one in results if one.before]
    print(
        table(
            [
                ("bugs", "scripts", "show it", "and not the twin", "median left", "median trials"),
                (
                    str(len(results)),
                    str(len(written)),
                    str(sum(one.bug_exits == 1 for one in results)),
                    str(sum(one.good for one in results)),
                    f"{median([one.after / one.before for one in written] or [0]):.0%}",
                    f"{median([one.trials for one in written] or [0]):.0f}",
                ),
            ]
        )
    )
    return int(not all(one.good for one in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

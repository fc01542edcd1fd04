"""Scripts for the findings of a run: each is written, run once, and kept if it shows its defect."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.files import write_whole
from gradlint.model.report import Finding, Report, Script, TargetReport
from gradlint.model.settings import Settings
from gradlint.reproduction.compose import SIGN
from gradlint.reproduction.trial import tried
from gradlint.reproduction.wanted import NOT_SHOWN, Wanted
from gradlint.running.call import call_in_worker, call_on_target
from gradlint.running.job import CallWork, ReproduceWork
from gradlint.targets.resolve import EVERY, resolve

#: Scripts of one run, at most: each takes some seconds.
MOST_SCRIPTS = 100

#: Seconds that a script may run while it is tried. Heuristic: PyTorch takes some to import.
_TRIAL_SECONDS = 120.0


#: Characters at the start of a file in which a script says what it is.
_LOOKED_AT = 20_000


@dataclass(frozen=True)
class Written:
    """What came of one finding.

    Args:
        target, code: of the finding.
        path: of the script; "" where there is none, and then ``why``.
        before, after: elements of the arguments, before and after they were made smaller.
    """

    target: str
    code: str
    path: str = ""
    why: str = ""
    before: int = 0
    after: int = 0


def write_scripts(
    report: Report, settings: Settings, folder: str, tell: Callable[[Written], None]
) -> list[Written]:
    """Write a script into ``folder`` for each finding of ``report``, and put it and the smaller
    arguments into the finding.

    Args:
        tell: is told of each as it is done.

    Raises:
        GradlintError: the folder can't be written to.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise GradlintError(
            f"can't be made: {error.strerror or error}", place=f"--repro {folder}"
        ) from None
    done: list[Written] = []
    names: set[str] = set()
    for number, target in enumerate(report.targets):
        for finding in target.findings:
            if len(done) >= MOST_SCRIPTS:
                return done
            name = _name(folder, target, finding, names)
            written = _written(target, finding, settings, folder, name)
            if written.path:
                report.targets[number] = target
            done.append(written)
            tell(written)
    return done


def _name(folder: str, target: TargetReport, finding: Finding, taken: set[str]) -> str:
    """A file name that says what it is about, and that neither another script of this run nor a
    file that someone else wrote has."""
    of = re.sub(r"\W+", "_", target.target.rpartition(":")[2], flags=re.ASCII).strip("_")[:60]
    stem = f"{of or 'operator'}_{finding.code}"
    count = 1
    while (name := f"{stem}{f'_{count}' if count > 1 else ''}.py") in taken or not _is_ours(
        os.path.join(folder, name)
    ):
        count += 1
    taken.add(name)
    return name


def _is_ours(path: str) -> bool:
    """Whether there is nothing at ``path``, or a script of an earlier run."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return SIGN in file.read(_LOOKED_AT)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _written(
    target: TargetReport, finding: Finding, settings: Settings, folder: str, name: str
) -> Written:
    if finding.code in NOT_SHOWN:
        return Written(target.target, finding.code, why=NOT_SHOWN[finding.code])
    path = os.path.join(folder, name)
    try:
        refs = resolve(target.target, settings)
        if len(refs) != 1 or refs[0].attribute == EVERY:
            return Written(target.target, finding.code, why="it names no single operator")
        told = (finding.input, finding.output, finding.cause, finding.sample, finding.message)
        wanted = Wanted(finding.code, *told, name, folder)
        made = call_on_target(ReproduceWork(refs[0], settings, wanted))
        if "why" in made:
            return Written(target.target, finding.code, why=made["why"])
        why = _kept(path, made)
    except GradlintError as error:
        why = error.message
    if why:
        return Written(target.target, finding.code, why=why)
    _update(finding, path, made)
    return Written(target.target, finding.code, path, "", made["before"], made["after"])


def _kept(path: str, made: dict[str, Any]) -> str:
    """Write the script and run it; why it was not kept, or ""."""
    beside = f"{os.path.splitext(path)[0]}.pt"
    try:
        write_whole(path, [made["script"]])
        if made["tensors"]:
            with open(beside, "wb") as file:
                file.write(base64.b64decode(made["tensors"]))
    except OSError as error:
        raise GradlintError(f"can't be written: {error.strerror or error}", place=path) from None
    shown = call_in_worker(
        CallWork(tried, (os.path.abspath(path), _TRIAL_SECONDS)), timeout=2 * _TRIAL_SECONDS
    )
    if shown["code"] == 1:
        return ""
    for written in (path, beside):
        with suppress(FileNotFoundError):
            os.unlink(written)
    if shown["code"] is None:
        return "the script took too long"
    return "PyTorch alone, in a process of its own, does not show it"


def _update(finding: Finding, path: str, made: dict[str, Any]) -> None:
    """Let ``finding`` show the smaller arguments, and the script."""
    finding.script = Script(path, made["script"])
    told = made["finding"]
    if made["after"] < made["before"]:
        finding.message = told["message"]
        finding.index = told["index"]
        finding.evidence = {**told["evidence"], "smallest arguments": told["shapes"]}

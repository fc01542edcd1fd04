"""The checks that failed, kept from run to run, so that each can be made again as it was."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular, write_whole
from gradlint.gate.choice import CACHE, keep_folder
from gradlint.model.fingerprint import identities
from gradlint.model.report import Report, failing
from gradlint.model.settings import Settings
from gradlint.running.run import execute

#: The file, in :data:`CACHE`, and its version.
_FILE, _VERSION = "failed_checks.json", 1

#: Checks that are kept, the newest of them, and bytes of the file that are read.
MOST_KEPT, _MAX_BYTES = 500, 2**22

#: Characters of a message that are kept.
_MESSAGE = 300

#: Digits of a fingerprint that name a check.
_DIGITS = 8

#: What of the settings decides how a check goes.
_SETTINGS = (
    *("inputs", "devices", "dtypes", "promised_dtypes", "order", "seed", "timeout", "imports"),
    *("max_calls", "memory_mb", "untrusted", "sanitizer"),
)


@dataclass(frozen=True)
class FailedCheck:
    """A check that failed.

    Args:
        id: its name: the same for the same finding in every run.
        target: what to check; code: the rule.
        input, output: what the finding is about; message: what it said.
        settings: those of its run that decide how it goes, by name.
    """

    id: str
    target: str
    code: str
    input: str | None
    output: str | None
    message: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """What came of a check that was made again: "mended", "still there", or "unknown" and why."""

    check: FailedCheck
    outcome: str
    why: str = ""


def read_checks(warn: Callable[[str], None]) -> list[FailedCheck]:
    """The checks that are kept; ``warn`` is told of a file that is damaged."""
    path = os.path.join(CACHE, _FILE)
    try:
        data = json.loads(read_regular(path, _MAX_BYTES).decode())
        if data["version"] != _VERSION:
            raise ValueError(f"version {data['version']!r}")
        return [FailedCheck(**item) for item in data["checks"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        warn(f"{path} is damaged and not looked at ({type(error).__name__})")
        return []


def remember_checks(report: Report) -> None:
    """Keep the failed checks of ``report``; those of targets that it is not about stay.

    What can't be written is not remembered: it is a convenience.
    """
    done = {target.target for target in report.targets if target.judged or target.findings}
    before = [check for check in read_checks(lambda _: None) if check.target not in done]
    found: deque[FailedCheck] = deque(maxlen=MOST_KEPT)
    for target in report.targets:
        for finding, identity in zip(target.findings, identities(target), strict=True):
            if failing(finding, report.fail_on):
                settings = {name: report.settings.get(name) for name in _SETTINGS}
                found.append(
                    FailedCheck(
                        identity.fingerprint[:_DIGITS],
                        target.target,
                        finding.code,
                        finding.input,
                        finding.output,
                        finding.message[:_MESSAGE],
                        settings,
                    )
                )
    path = os.path.join(CACHE, _FILE)
    if not found and not os.path.exists(path):
        return
    kept = [asdict(check) for check in [*before, *found][-MOST_KEPT:]]
    text = json.dumps({"version": _VERSION, "checks": kept}, indent=1) + "\n"
    try:
        keep_folder()
        write_whole(path, [text])
    except (OSError, ValueError):
        return


def chosen(checks: Sequence[FailedCheck], ids: Sequence[str]) -> list[FailedCheck]:
    """Those of ``checks`` whose id begins with one of ``ids``; all where there are none.

    Raises:
        GradlintError: an id names none of them.
    """
    if not ids:
        return list(checks)
    found: list[FailedCheck] = []
    for wanted in ids:
        some = [check for check in checks if check.id.startswith(wanted)]
        if not some:
            raise GradlintError(
                f"no failed check {wanted!r} is remembered here",
                place="replay",
                hint="`gradlint replay --list` shows those that are",
            )
        found += [check for check in some if check not in found]
    return found


def replay(checks: Sequence[FailedCheck], tell: Callable[[Replayed], None]) -> list[Replayed]:
    """Make ``checks`` again, with the seeds and inputs that they had; ``tell`` is told of each.

    Raises:
        GradlintError: the settings that are kept can't be used.
        KeyboardInterrupt: Ctrl-C.
    """
    groups: dict[str, list[FailedCheck]] = {}
    for check in checks:
        key = json.dumps([check.target, check.settings], sort_keys=True)
        groups.setdefault(key, []).append(check)
    done = []
    for group in groups.values():
        for item in _replayed(group):
            done.append(item)
            tell(item)
    return done


def _replayed(group: Sequence[FailedCheck]) -> list[Replayed]:
    first = group[0]
    codes = tuple(sorted({check.code for check in group}))
    run = execute([first.target], _settings(first, codes))
    if run.report.interrupted:
        raise KeyboardInterrupt
    why = str(run.usage[0]) if run.usage else ""
    why = why or ("gradlint failed: use --debug" if run.internal else "")
    seen = {
        (finding.code, finding.input, finding.output)
        for finding in run.report.findings
        if failing(finding, "info")
    }
    ran = {
        check.code
        for target in run.report.targets
        for check in target.checks
        if check.verdict in ("pass", "fail")
    }
    found = []
    for check in group:
        if (check.code, check.input, check.output) in seen:
            found.append(Replayed(check, "still there"))
        elif why or not _settled(check, ran, {item[0] for item in seen}):
            found.append(Replayed(check, "unknown", why or "the check could not be made"))
        else:
            found.append(Replayed(check, "mended"))
    return found


def _settled(check: FailedCheck, ran: set[str], seen: set[str]) -> bool:
    """Whether the rule of ``check`` came to a verdict, or, where it has no check of its own, any
    other did."""
    return check.code in ran or (check.code < "GL101" and bool(ran) and not seen)


def _settings(check: FailedCheck, codes: tuple[str, ...]) -> Settings:
    kept: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in check.settings.items()
        if name in _SETTINGS and value is not None
    }
    try:
        return Settings(**kept, select=codes, jobs=1)
    except TypeError as error:
        raise GradlintError(f"what is kept of {check.id} can't be used: {error}") from None

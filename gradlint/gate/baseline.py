"""A baseline: a file of findings that are known and do not fail a run, until they are gone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular
from gradlint.base.text import did_you_mean, short_text
from gradlint.model.fingerprint import (
    FINGERPRINT_VERSION,
    Identity,
    dtype_and_device,
    identities,
    op_identity,
)
from gradlint.model.report import BaselineUse, Report, TargetReport, failing
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code, select_rules

#: Version of the file. It changes with what a finding is known by.
VERSION = FINGERPRINT_VERSION

#: The file where none is named.
DEFAULT = "gradlint-baseline.json"

#: Bytes of a baseline: some 300,000 findings.
MAX_BYTES = 64 * 2**20

_VERSION_KEY, _FINDINGS = "gradlint_baseline", "findings"
_TEXTS = ("op", "code", "dtype", "device", "input", "output")

#: Findings that the runner makes of every target that comes to its end.
_BY_RUNNER = ("GL001", "GL002", "GL005", "GL006", "GL007")
_BROKEN = ("GL001", "GL002", "GL005", "GL006", "GL007")
_FIRST_ONLY = "looks at the first sample only"


@dataclass
class Baseline:
    """The findings that a file accepts.

    Args:
        path: of the file.
        entries: what they are known by → why they are accepted; the reason may be empty.
    """

    path: str
    entries: dict[Identity, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """What the paths in it are relative to."""
        return os.path.dirname(self.path) or "."

    def accept(self, target: TargetReport) -> list[Identity]:
        """Mark those findings of ``target`` that are in the baseline; returns what they are known
        by."""
        found = identities(target, self.folder)
        for identity, finding in zip(found, target.findings, strict=True):
            finding.baselined = identity in self.entries
        return [identity for identity in found if identity in self.entries]

    def use(self, report: Report, settings: Settings) -> BaselineUse:
        """Mark the findings of ``report`` that are in it, and tell what is gone."""
        seen: set[Identity] = set()
        for number, target in enumerate(report.targets):
            before = [finding.baselined for finding in target.findings]
            seen.update(self.accept(target))
            if before != [finding.baselined for finding in target.findings]:
                report.targets[number] = target
        gone = sorted(self.gone(report, settings, seen))
        return BaselineUse(self.path, len(seen), [_entry(i, self.entries[i]) for i in gone])

    def gone(self, report: Report, settings: Settings, seen: Iterable[Identity]) -> set[Identity]:
        """The entries that no longer appear although their check ran, or whose file is gone."""
        left: dict[str, list[Identity]] = {}
        for entry in set(self.entries) - set(seen):
            left.setdefault(entry.op, []).append(entry)
        ended: dict[str, set[Identity]] = {}
        for target in report.targets:
            op = op_identity(target, self.folder)
            ended[op] = {
                entry for entry in left.get(op, ()) if ran(entry, target, report, settings)
            }
        return {
            entry
            for op, entries in left.items()
            for entry in entries
            if self._file_is_gone(entry) or entry in ended.get(op, ())
        }

    def text(self) -> str:
        """The file: sorted, so that writing it again changes nothing."""
        findings = [_entry(identity, reason) for identity, reason in sorted(self.entries.items())]
        return json.dumps({_VERSION_KEY: VERSION, _FINDINGS: findings}, indent=2) + "\n"

    def _file_is_gone(self, entry: Identity) -> bool:
        file = entry.op.rpartition(":")[0] if ":" in entry.op else entry.op
        is_file = file.endswith((".py", ".yaml", ".yml"))
        return is_file and not os.path.exists(os.path.join(self.folder, file))


def ran(entry: Identity, target: TargetReport, report: Report, settings: Settings) -> bool:
    """Whether the check ran to its end that would find ``entry`` again in ``target``."""
    if report.interrupted or report.stopped or target.verdict in ("error", "skipped"):
        return False
    if any(finding.code in _BROKEN for finding in target.findings):
        return entry.code in _BY_RUNNER and entry.code not in {f.code for f in target.findings}
    rule = by_code(entry.code)
    if rule is None or rule not in select_rules(settings):
        return False
    if not rule.has_probe:
        confirmed = target.confirmation is not None and target.confirmation.verdict == "confirmed"
        return confirmed if entry.code == "GL009" else True
    own = [
        check
        for check in target.checks
        if check.code == entry.code
        and dtype_and_device(target, check) == (entry.dtype, entry.device)
    ]
    judged = [check for check in own if check.verdict in ("pass", "fail")]
    rest = [check for check in own if check not in judged and check.note != _FIRST_ONLY]
    return bool(judged) and not rest


def read(path: str) -> Baseline:
    """The baseline in the file ``path``.

    Raises:
        GradlintError: there is none, it is broken, or of another version; with its place.
    """
    try:
        text = read_regular(path, MAX_BYTES).decode()
    except FileNotFoundError:
        raise GradlintError(
            "there is no such baseline",
            place=path,
            hint="`gradlint baseline write` makes one of the findings of today",
        ) from None
    except UnicodeDecodeError as error:
        raise GradlintError(f"can't be read: {error}", place=path, hint=_ANEW) from None
    except OSError as error:
        raise GradlintError(f"can't be read: {error.strerror or error}", place=path) from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise GradlintError(
            f"not valid JSON: {error.msg}", place=f"{path}:{error.lineno}:{error.colno}", hint=_ANEW
        ) from None
    except (RecursionError, ValueError):
        raise GradlintError("nested too deeply", place=path, hint=_ANEW) from None
    return Baseline(path, _entries(path, data))


def kept_for_writing(path: str) -> Baseline:
    """The baseline in the file ``path``; an empty one where there is none yet.

    Raises:
        GradlintError: what is there is no baseline that could be written anew.
    """
    return read(path) if os.path.lexists(path) else Baseline(path)


_ANEW = "restore it from version control, or remove it and run `gradlint baseline write`"


def _entries(path: str, data: Any) -> dict[Identity, str]:
    if not isinstance(data, dict) or _VERSION_KEY not in data:
        raise GradlintError(
            f"not a baseline of gradlint: there is no `{_VERSION_KEY}` in it",
            place=path,
            hint="name the file that `gradlint baseline write` made",
        )
    version = data[_VERSION_KEY]
    if version != VERSION or isinstance(version, bool):
        raise GradlintError(
            f"a baseline of version {short_text(version)}; this gradlint reads version {VERSION}",
            place=path,
            hint="remove it and run `gradlint baseline write` with this gradlint",
        )
    findings = data.get(_FINDINGS)
    if not isinstance(findings, list):
        raise GradlintError(f"`{_FINDINGS}` is not a list", place=path, hint=_ANEW)
    return dict(_read_entry(f"{path}: {_FINDINGS}[{n}]", item) for n, item in enumerate(findings))


def _read_entry(place: str, item: Any) -> tuple[Identity, str]:
    if not isinstance(item, dict):
        raise GradlintError("not an object", place=place, hint=_ANEW)
    known = (*_TEXTS, "name", "copy", "reason")
    for key in item:
        if key not in known:
            raise GradlintError(f"unknown key {key!r}", place=place, hint=did_you_mean(key, known))
    for key in (*_TEXTS, "reason"):
        if not isinstance(item.get(key, ""), str):
            raise GradlintError(f"`{key}` is not a text", place=place, hint=_ANEW)
    for key in ("op", "code"):
        if not item.get(key):
            raise GradlintError(f"`{key}` is missing", place=place, hint=_ANEW)
    copy = item.get("copy", 0)
    if not isinstance(copy, int) or isinstance(copy, bool) or copy < 0:
        raise GradlintError("`copy` is not a whole number from 0", place=place, hint=_ANEW)
    fields = {key: item[key] for key in _TEXTS if key in item}
    return Identity(**fields, copy=copy), item.get("reason", "")


def _entry(identity: Identity, reason: str) -> dict[str, Any]:
    """One entry of the file: what is empty is left out."""
    rule = by_code(identity.code)
    made = asdict(identity)
    named = {"op": made.pop("op"), "code": made.pop("code"), "name": rule.name if rule else ""}
    kept = {key: value for key, value in {**named, **made, "reason": reason}.items() if value}
    return kept


# -- writing ---------------------------------------------------------------------------------------


def rewritten(old: Baseline, report: Report, settings: Settings) -> Baseline:
    """``old`` with all findings that fail ``report``, without those that are gone. What did not run
    stays, and so do the reasons."""
    found = {
        identity: old.entries.get(identity, "")
        for target in report.targets
        for identity, finding in zip(identities(target, old.folder), target.findings, strict=True)
        if identity in old.entries or failing(finding, report.fail_on)
    }
    gone = old.gone(report, settings, found)
    kept = {identity: why for identity, why in old.entries.items() if identity not in gone}
    return Baseline(old.path, {**kept, **found})


def pruned(old: Baseline, report: Report, settings: Settings) -> Baseline:
    """``old`` without the entries that are gone."""
    seen = {i for target in report.targets for i in identities(target, old.folder)}
    gone = old.gone(report, settings, seen)
    return Baseline(old.path, {i: why for i, why in old.entries.items() if i not in gone})

"""The search for a verified change: candidates are tried in isolated workers, first by the rule
that failed, then by all.

A candidate is never written: workers read the file as if it held the changed text
(``gradlint.targets.overlay``), under the limits of any check. What passes everything is a fix.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradlint.model.op import OpRef, Overlay
from gradlint.model.report import Argument, Finding, Fix, TargetReport
from gradlint.model.settings import Settings
from gradlint.repair.candidate import Edit, Fit, changed
from gradlint.repair.propose import proposed
from gradlint.repair.source import Source, Unchangeable, difference, offset_of, replacements
from gradlint.running.call import WorkerFailed, call_in_worker
from gradlint.running.job import CallWork
from gradlint.running.trial import examined

#: Candidates that are tried for one finding by the rule that found it, and how many of those that
#: pass it by all rules (heuristic: of the planted bugs, none needed more than 25 and 5).
MOST_TRIED = 50
MOST_VERIFIED = 8

#: Findings that are mended one after the other in one operator (heuristic).
MOST_ROUNDS = 4

#: Findings without a place in the source that a candidate could change, or whose change would be
#: another operator: it can't be loaded, no inputs are found, or the process ended.
_HOPELESS = ("GL001", "GL002", "GL005", "GL006", "GL007", "GL008")

#: Rules of what can't be told as long as the first order is wrong, and what a change may say
#: openly: that backward can be differentiated once only.
_LATER, _OPEN = "GL5", ("GL503",)

#: Rules of what the engine rejects, and of values, which can't be told before it does not.
_CONTRACT, _VALUES = ("GL1", "GL2"), ("GL3", "GL4")

#: Seconds in which candidates must have been made (heuristic: it takes milliseconds).
_PROPOSE_S = 60.0


@dataclass
class Mended:
    """What came of one target.

    Args:
        target: as the user would name it.
        findings: that were to be mended.
        fix: the change that mends them; None if there is none, and ``why`` says why.
        source: the file that it changes, and ``text`` what that would hold.
        tried: candidates that were checked by the rule that failed; ``verified``: by all rules.
        calls: of forward and backward that these checks made; ``usual``: those of a single check
            by all rules, as it is with the fix.
    """

    target: str
    findings: list[Finding] = field(default_factory=list)
    fix: Fix | None = None
    why: str = ""
    source: Source | None = None
    text: str = ""
    tried: int = 0
    verified: int = 0
    calls: int = 0
    usual: int = 0


def to_mend(report: TargetReport, codes: Sequence[str] | None = None) -> list[Finding]:
    """The findings of ``report`` that are worth a change: errors and warnings that follow from no
    other, or whatever is found under one of ``codes``, prefixes of rule codes."""
    return [
        finding
        for finding in report.findings
        if finding.follows is None
        and not finding.baselined
        and (
            finding.severity != "info"
            if codes is None
            else any(finding.code.startswith(code) for code in codes)
        )
    ]


def mended(
    ref: OpRef, report: TargetReport, settings: Settings, codes: Sequence[str] | None = None
) -> Mended:
    """Search for a change with which the target of ``report`` passes.

    Args:
        ref: the target.
        report: of a check of it by all rules.
        settings: of that check.
        codes: see :func:`to_mend`.
    """
    search = _Search(ref, report, settings, codes)
    try:
        search.run()
    except Unchangeable as error:
        search.result.why = str(error)
    return search.result


class _Search:
    def __init__(
        self,
        ref: OpRef,
        report: TargetReport,
        settings: Settings,
        codes: Sequence[str] | None,
    ) -> None:
        self.ref, self.base, self.codes = ref, report, codes
        self.settings = replace(settings, baseline=None, max_failures=None)
        self.result = Mended(report.target, to_mend(report, codes))
        self.titles: list[str] = []
        self.notes: list[str] = []

    def run(self) -> None:
        """Mend one finding after the other, until all rules pass.

        Raises:
            Unchangeable: the file can't be changed.
        """
        result = self.result
        if not result.findings:
            result.why = "nothing to mend"
            return
        hopeless = [one.code for one in result.findings if one.code in _HOPELESS]
        if hopeless:
            result.why = f"{hopeless[0]} is no fault that a change of the source is proposed for"
            return
        placed = [one for one in result.findings if one.location is not None]
        if not placed or placed[0].location is None:
            result.why = (
                "its findings point to no place in a source file: its code may be made when it runs"
            )
            return
        source = result.source = Source.read(placed[0].location.file)
        text = source.text
        for _ in range(MOST_ROUNDS):
            found = self._step(source, text)
            if found is None:
                return
            text, self.base = found
            if not to_mend(self.base, self.codes):
                break
        rest = [one for one in to_mend(self.base) if one.severity != "info"]
        if rest and self.codes is None:
            result.why = f"{rest[0].code} is left after {len(self.titles)} changes"
            return
        result.why = ""
        result.text = text
        result.usual = _calls(self.base)
        why = source.why_not_by_hand
        result.fix = Fix(
            self.titles,
            difference(source.path, source.text, text),
            replacements(source.path, source.text, text),
            sum(check.verdict == "pass" for check in self.base.checks),
            result.tried,
            [*dict.fromkeys(self.notes), *([why] if why else [])],
        )

    def _step(self, source: Source, text: str) -> tuple[str, TargetReport] | None:
        """A text with fewer findings than ``text`` and nothing new, and its report."""
        reasons = []
        for finding in to_mend(self.base, self.codes):
            if finding.location is None or Source.read(finding.location.file).path != source.path:
                reasons.append("its findings lie in more than one file")
                continue
            made = self._proposed(text, finding)
            if "why" in made:
                reasons.append(made["why"])
                continue
            found = self._tried(source, text, finding, made["candidates"])
            if found is not None:
                return found
            count = len(made["candidates"])
            reasons.append(
                f"no change is known that {finding.code} could be mended by"
                if not count
                else f"none of {count} changes passed all checks"
                if count > 1
                else "the one change that was tried did not pass all checks"
            )
        self.result.why = next(iter(dict.fromkeys(reasons)), "")
        return None

    def _proposed(self, text: str, finding: Finding) -> dict[str, Any]:
        """Candidates, made in a worker: the text is the user's, and its parser is native code."""
        try:
            made: dict[str, Any] = call_in_worker(
                CallWork(proposed, (text, _fault(text, finding, self.base))), timeout=_PROPOSE_S
            )
        except WorkerFailed as error:
            return {"why": f"its source can't be read: {error.message}"}
        return made

    def _tried(
        self, source: Source, text: str, finding: Finding, made: list[dict[str, Any]]
    ) -> tuple[str, TargetReport] | None:
        also = _OPEN if finding.code.startswith(_LATER) else ()
        quick = replace(self.settings, select=(finding.code, *also), ignore=())
        verified = 0
        halfway: tuple[dict[str, Any], str, TargetReport] | None = None
        batch = max(1, self.settings.jobs)
        texts = [
            (one, new)
            for one in made[:MOST_TRIED]
            if (new := changed(text, [Edit(*edit) for edit in one["edits"]])) is not None
            and source.encoded(new) is not None
        ]
        for start in range(0, len(texts), batch):
            some = texts[start : start + batch]
            reports = self._examined(source, [new for _, new in some], quick)
            self.result.tried += len(some)
            for (one, new), report in zip(some, reports, strict=True):
                if one["fit"] == Fit.REWRITE and halfway is not None:
                    return self._taken(*halfway)
                if not _passes(report, finding):
                    continue
                (full,) = self._examined(source, [new], self.settings)
                self.result.verified += 1
                verified += 1
                if self._better(full, finding):
                    if _roots(full) and len(_roots(full)) >= len(_roots(self.base)):
                        halfway = halfway or (one, new, full)  # something else came to light
                    else:
                        return self._taken(one, new, full)
                if verified >= MOST_VERIFIED:
                    break
            if verified >= MOST_VERIFIED:
                break
        return self._taken(*halfway) if halfway is not None else None

    def _taken(
        self, one: dict[str, Any], text: str, report: TargetReport
    ) -> tuple[str, TargetReport]:
        """Go on from this candidate."""
        if one["fit"] == Fit.REWRITE:  # nothing is left of what was changed before
            self.titles.clear()
            self.notes.clear()
        self.titles.append(one["title"])
        self.notes += [one["note"]] if one["note"] else []
        return text, report

    def _examined(
        self, source: Source, texts: Sequence[str], settings: Settings
    ) -> list[TargetReport]:
        refs = [
            replace(self.ref, overlay=Overlay(source.path, source.encoded(text) or b""))
            for text in texts
        ]
        reports = examined(refs, settings)
        self.result.calls += sum(map(_calls, reports))
        return reports

    def _better(self, report: TargetReport, finding: Finding) -> bool:
        """Whether ``finding`` is gone in ``report``, and nothing is worse than before. What could
        not be told before, as long as something else was wrong, may be found now: it is mended
        next, or there is no fix."""
        if report.verdict not in ("pass", "fail", "inconclusive") or not _same(self.base, report):
            return False
        passed = {_check(one) for one in self.base.checks if one.verdict == "pass"}
        if _refuses(report, finding):  # what is refused openly can't be wrong
            passed = {check for check in passed if not check[0].startswith(_LATER)}
        still = {_check(one) for one in report.checks if one.verdict == "pass"}
        if not passed <= still:
            return False
        seen = {(one.code, one.sample) for one in report.checks}
        if finding.sample and (finding.code, finding.sample) not in seen:
            return False
        new = {code for code, _ in _keys(report.findings) - _keys(self.base.findings)} - {*_OPEN}
        gone = (finding.code, finding.input) not in _keys(report.findings)
        later = (_LATER, *_VALUES) if finding.code.startswith(_CONTRACT) else (_LATER,)
        untold = all(code.startswith(later) for code in new) and not new & {c for c, *_ in passed}
        return gone and untold and (bool(_roots(report)) or report.verdict == "pass")


def _fault(text: str, finding: Finding, report: TargetReport) -> dict[str, Any]:
    """``finding`` as ``gradlint.repair.scene.Fault`` describes it, in plain data."""
    place = finding.location
    assert place is not None
    start = offset_of(text, place.line, place.column)
    end_line, end_column = place.end_line or place.line, place.end_column or place.column
    sample = next(
        (one for one in report.samples if one.label == finding.sample),
        report.samples[0] if report.samples else None,
    )
    others = [
        one.input
        for one in report.findings
        if one.code == finding.code and one.input and one.input != finding.input
    ]
    return {
        "code": finding.code,
        "message": finding.message,
        "start": start,
        "end": max(start, offset_of(text, end_line, end_column)),
        "label": finding.excerpt.label if finding.excerpt else "",
        "cause": finding.cause or "",
        "cause_text": finding.cause_text,
        "help": finding.help,
        "input": finding.input or "",
        "others": list(dict.fromkeys(others)),
        "known": [_known(one) for one in (sample.args if sample else ())],
    }


def _known(argument: Argument) -> dict[str, Any]:
    return {"name": argument.name, "shape": argument.shape, "value": argument.value}


def _passes(report: TargetReport, finding: Finding) -> bool:
    """Whether the rule of ``finding`` passes, and found nothing; or, where it is about second
    derivatives, whether these are refused openly now."""
    if report.verdict == "error" or any(one.code == finding.code for one in report.findings):
        return False
    if _refuses(report, finding):
        return True
    return any(one.code == finding.code and one.verdict == "pass" for one in report.checks)


def _refuses(report: TargetReport, finding: Finding) -> bool:
    """Whether ``finding`` is about second derivatives, and they are refused openly."""
    return finding.code.startswith(_LATER) and any(one.code in _OPEN for one in report.findings)


def _keys(findings: Collection[Finding]) -> set[tuple[str, str | None]]:
    return {(one.code, one.input) for one in findings}


def _roots(report: TargetReport) -> list[Finding]:
    return [one for one in report.findings if one.follows is None and one.severity != "info"]


def _check(check: Any) -> tuple[str, str | None, str | None, str | None]:
    return check.code, check.sample, check.dtype, check.device


def _same(one: TargetReport, other: TargetReport) -> bool:
    """Whether both were checked on the same samples: inputs are found by reading the source, and a
    change of it must not make them easier. Further samples may differ."""
    further = {tried.label for tried in one.tried}
    wanted = {s.label: s.args for s in one.samples if s.label not in further}
    found = {s.label: s.args for s in other.samples}
    return bool(wanted) and all(found.get(label) == args for label, args in wanted.items())


def _calls(report: TargetReport) -> int:
    return sum(one.forward_calls + one.backward_calls for one in report.checks)

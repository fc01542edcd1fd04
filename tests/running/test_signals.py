"""A part of the signals at random moments, and what counts as a fault there."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.running.signals import KINDS, VERDICTS, Ran, Sent, campaign, faults_of


def report(interrupted: bool = False, **changed: tuple[str, list[str], list[str]]) -> str:
    """A report of the files; ``changed``: name of the op → verdict, codes, notes."""
    targets: list[dict[str, Any]] = []
    for target, verdict in VERDICTS.items():
        given = changed.get(target.rpartition(":")[2], (verdict, [], []))
        findings = [{"code": code} for code in given[1]]
        targets.append(
            {"target": target, "verdict": given[0], "findings": findings, "notes": given[2]}
        )
    return json.dumps({"interrupted": interrupted, "targets": targets})


QUIET = Ran(1, [], 1, "", "", report(), 1.0)


def test_a_quiet_run_has_no_fault() -> None:
    assert faults_of(QUIET) == []


@pytest.mark.parametrize(
    ("name", "code", "text"), [("SIGINT", 130, "x"), ("SIGTERM", 143, "x"), ("SIGKILL", -9, None)]
)
def test_how_gradlint_ends_by_a_signal(name: str, code: int, text: str | None) -> None:
    given = text and report(True, Righta=("skipped", [], ["interrupted"]))
    ran = replace(QUIET, sent=[Sent("gradlint", name)], code=code, report=given)
    assert faults_of(ran) == []
    assert len(faults_of(replace(ran, code=2))) >= 1
    assert faults_of(replace(QUIET, code=code)) != []  # without a signal


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (replace(QUIET, report=None), "no report"),
        (replace(QUIET, report='{"targets": ['), "a broken report"),
        (replace(QUIET, orphans=["process 7"]), "left after 5 s: process 7"),
        (replace(QUIET, held=True), "held for more than 5 s"),
        (replace(QUIET, err="Traceback (most recent call last):"), "a traceback"),
        (replace(QUIET, report=report(True)), "interrupted: True"),
        (replace(QUIET, report=report(Rightb=("fail", ["GL401"], []))), "Rightb is fail (GL401)"),
        (replace(QUIET, report=report(Rightb=("error", ["GL005"], []))), "Rightb is error (GL005)"),
    ],
)
def test_faults(ran: Ran, words: str) -> None:
    (fault,) = faults_of(ran)
    assert words in fault


def test_only_as_many_are_blamed_as_were_hit() -> None:
    one = report(Righta=("error", ["GL005"], []))
    two = report(Righta=("error", ["GL005"], []), Rightb=("error", ["GL007"], []))
    hit = replace(QUIET, sent=[Sent("worker", "SIGKILL"), Sent("server", "SIGKILL")])
    assert faults_of(replace(hit, report=one)) == []
    assert faults_of(replace(hit, report=two)) == ["b.py:Rightb is error (GL007)"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_signals_at_random_moments() -> None:
    runs, faults = campaign(10, 3, print)
    assert faults == []
    assert len(runs) >= len(KINDS)
    assert sum(len(ran.sent) for ran in runs) >= 10

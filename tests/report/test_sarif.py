"""SARIF, by a schema and by reading it as code scanning does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from gradlint.model.report import Location, Report, RunError
from gradlint.report import _sarif
from gradlint.report.render import render
from gradlint.rules.catalogue import CATALOGUE
from tests.benchmarks.report_load import report_of

_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = {
    "type": "object",
    "properties": {"text": _TEXT, "markdown": _TEXT},
    "required": ["text"],
    "additionalProperties": False,
}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_FROM_1 = {"type": "integer", "minimum": 1}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


_REGION = _object(
    {"startLine": _FROM_1}, {"startColumn": _FROM_1, "endLine": _FROM_1, "endColumn": _FROM_1}
)
#: A reference of RFC 3986: nothing in it that would have to be encoded.
_URI = {"type": "string", "pattern": r"^(file:///?)?([A-Za-z0-9/._~-]|%[0-9A-F]{2})+$"}
_PHYSICAL = _object(
    {"artifactLocation": _object({"uri": _URI}, {"uriBaseId": _TEXT}), "region": _REGION}
)
_LOCATION = _object(
    {},
    {
        "id": {"type": "integer", "minimum": 0},
        "physicalLocation": _PHYSICAL,
        "logicalLocations": {
            "type": "array",
            "items": _object({"fullyQualifiedName": _TEXT, "kind": {"const": "function"}}),
        },
    },
)
_RULE = _object(
    {"id": {"pattern": "^GL[0-9]{3}$"}, "shortDescription": _MESSAGE},
    {
        "name": _TEXT,
        "fullDescription": _MESSAGE,
        "help": _MESSAGE,
        "defaultConfiguration": _object({"level": _LEVEL}),
        "properties": {"type": "object"},
    },
)
_RESULT = _object(
    {
        "ruleId": {"pattern": "^GL[0-9]{3}$"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": _LEVEL,
        "message": _MESSAGE,
        "locations": {"type": "array", "items": _LOCATION, "minItems": 1, "maxItems": 1},
        "partialFingerprints": {"type": "object", "additionalProperties": _TEXT},
    },
    {
        "relatedLocations": {"type": "array", "items": _LOCATION, "uniqueItems": True},
        "properties": {"type": "object"},
    },
)
_NOTIFICATION = _object({"level": _LEVEL, "message": _MESSAGE})
_RUN = _object(
    {
        "tool": _object(
            {
                "driver": _object(
                    {"name": _TEXT},
                    {
                        "version": _TEXT,
                        "rules": {"type": "array", "items": _RULE, "uniqueItems": True},
                    },
                )
            }
        ),
        "results": {"type": "array", "items": _RESULT},
    },
    {
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "originalUriBaseIds": {
            "type": "object",
            "additionalProperties": _object({}, {"description": _MESSAGE}),
        },
        "invocations": {
            "type": "array",
            "items": _object(
                {"executionSuccessful": {"type": "boolean"}},
                {
                    "exitCode": {"type": "integer"},
                    "toolExecutionNotifications": {"type": "array", "items": _NOTIFICATION},
                },
            ),
        },
    },
)
#: What of SARIF 2.1.0 gradlint writes, after the tables of the specification, section 3: stricter
#: than the official schema, as nothing else may be there. The official one, whose licence does not
#: say that it may be copied, was used by hand.
SUBSET = _object(
    {
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": _RUN, "minItems": 1, "maxItems": 1},
    },
    {"$schema": {"type": "string", "format": "uri"}},
)


def log(report: Report) -> dict[str, Any]:
    made = json.loads(render(report, "sarif", rules=CATALOGUE))
    jsonschema.Draft202012Validator(SUBSET).validate(made)
    (run,) = made["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for place in [*result["locations"], *result.get("relatedLocations", [])]:
            artifact = place.get("physicalLocation", {}).get("artifactLocation", {})
            assert ("uriBaseId" in artifact) is not artifact.get("uri", "file:").startswith("file:")
    return run


def test_each_verdict_and_hostile_text(
    every_verdict: Report, hostile: Callable[[str], Report]
) -> None:
    every_verdict.errors = [RunError("internal", "KeyError: 'x'")]
    run = log(every_verdict)
    assert [result["level"] for result in run["results"]] == [
        *("error", "error", "error", "warning", "note")
    ]
    assert run["results"][0]["ruleId"] == "GL401"
    invocation = run["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 3
    told = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert told == [
        "1 operator could not be judged; the other formats say why.",
        "KeyError: 'x'",
    ]
    assert log(Report())["results"] == []
    (result,) = log(hostile("[a](http://x)"))["results"]
    assert "](" not in result["message"]["text"]


def test_the_place_of_a_finding(report: Report) -> None:
    finding = report.findings[0]
    finding.related = [Location("examples/wrong/linear.py", 30, 9, 30, 10)]
    (result,) = log(report)["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "examples/wrong/linear.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 31, "startColumn": 41, "endLine": 31, "endColumn": 59},
    }
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 30
    for given, expected in {
        Location("/usr/a b.py", 0, 0): ("file:///usr/a%20b.py", {"startLine": 1, "startColumn": 1}),
        Location("a:b.py", 3, 2, 1, 1): ("a%3Ab.py", {"startLine": 3, "startColumn": 2}),
    }.items():
        finding.location = given
        place = log(report)["results"][0]["locations"][0]["physicalLocation"]
        assert (place["artifactLocation"]["uri"], place["region"]) == expected


def test_fingerprints_hold_no_measured_value(report: Report) -> None:
    def prints() -> list[dict[str, str]]:
        return [result["partialFingerprints"] for result in log(report)["results"]]

    before = prints()
    finding = report.findings[0]
    finding.evidence = {"relative_error": 7.0}
    finding.message, finding.seed, finding.index = "wrong by 7", 9, [0]
    finding.location = Location("examples/wrong/linear.py", 99)
    assert prints() == before
    assert len(before[0]["gradlint/v1"]) == 32
    finding.input = "x"
    assert prints() != before


def test_rules_carry_their_texts(report: Report) -> None:
    (rule,) = log(report)["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("GL401", "WrongGradient")
    assert "What it finds" in rule["help"]["markdown"]
    assert rule["defaultConfiguration"] == {"level": "error"}


def test_what_github_does_not_take_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sarif, "MOST_RESULTS", 12)
    monkeypatch.setattr(_sarif, "SHOWN", 5)
    report = report_of(20, 2)
    for finding in report.findings[:9]:
        finding.severity = "info"
    run = log(report)
    assert len(run["results"]) == 12
    assert [result["level"] for result in run["results"]] == ["error"] * 11 + ["note"]
    told = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert told == [
        "8 of 20 findings are left out here, the worst were kept: code scanning takes no more. "
        "The JSON report has all of them.",
        "GitHub shows the first 5 of these 12 results.",
    ]
    monkeypatch.setattr(_sarif, "MOST_RESULTS", 1_000)
    monkeypatch.setattr(_sarif, "MOST_BYTES", _sarif._AROUND + 40_000)
    report = report_of(2_000, 2)
    for number, finding in enumerate(report.findings):
        finding.message = f"{number * 0x9E3779B97F4A7C15**8:x}"  # does not compress
    assert 100 < len(log(report)["results"]) < 900


def test_the_official_schema_where_it_is_at_hand(every_verdict: Report) -> None:
    """Set GRADLINT_TEST_SARIF_SCHEMA to a copy of sarif-schema-2.1.0.json."""
    path = os.environ.get("GRADLINT_TEST_SARIF_SCHEMA")
    if not path:
        pytest.skip("GRADLINT_TEST_SARIF_SCHEMA names no copy of the official schema")
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)(schema)
    for report in (every_verdict, Report(), report_of(50, 2)):
        validator.validate(json.loads(render(report, "sarif", rules=CATALOGUE)))

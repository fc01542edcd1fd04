"""Fingerprints: the same finding in another run has the same one, another finding another."""

from __future__ import annotations

import os

import pytest

from gradlint.model.fingerprint import Identity, identities, op_identity
from gradlint.model.report import (
    Argument,
    Check,
    Finding,
    Location,
    SampleReport,
    TargetReport,
)


def target(*findings: Finding, name: str = "ops.py:Op", dtype: str = "float64") -> TargetReport:
    args = [Argument("n", value="3"), Argument("x", [3], dtype, "cpu", [1], True)]
    return TargetReport(
        name,
        "function",
        "fail",
        [SampleReport("inferred", "inferred", args)],
        [Check("GL401", "fail", "inferred")],
        list(findings),
        location=Location("ops.py", 12),
    )


def finding(**changes: object) -> Finding:
    kept = {"message": "wrong", "input": "x", "output": "out", "sample": "inferred", **changes}
    return Finding("GL401", "wrong_gradient", "error", **kept)  # type: ignore[arg-type]


def prints(made: TargetReport) -> list[str]:
    return [identity.fingerprint for identity in identities(made)]


def test_what_is_measured_and_where_it_stands_do_not_matter():
    first = target(finding(message="off by 3", seed=1, evidence={"relative_error": 0.5}))
    second = target(
        finding(message="off by 4", seed=2, evidence={"relative_error": 0.7}, cause="sign")
    )
    second.location = Location("ops.py", 99)
    second.findings[0].location = Location("ops.py", 120, 5)
    assert prints(first) == prints(second)


@pytest.mark.parametrize("changes", [{"input": "w"}, {"output": "other"}, {"input": None}])
def test_another_input_or_output_is_another_finding(changes):
    assert prints(target(finding())) != prints(target(finding(**changes)))


def test_another_dtype_operator_or_device_is_another_finding():
    plain = prints(target(finding()))
    assert plain != prints(target(finding(), dtype="float32"))
    assert plain != prints(target(finding(), name="ops.py:Other"))
    elsewhere = target(finding())
    elsewhere.checks[0].device = "cuda"
    assert plain != prints(elsewhere)


def test_an_identity_reads_as_what_it_is_about():
    assert identities(target(finding())) == [
        Identity("ops.py:Op", "GL401", "float64", "cpu", "x", "out")
    ]


def test_findings_that_are_alike_are_counted():
    found = identities(target(finding(), finding(), finding(input="w"), finding()))
    assert [item.copy for item in found] == [0, 1, 0, 2]
    assert len({item.fingerprint for item in found}) == 4


def test_without_a_sample_there_is_neither_dtype_nor_device():
    assert identities(target(finding(sample=None)))[0].dtype == ""


@pytest.mark.parametrize(
    ("name", "file", "folder", "identity"),
    [
        ("pkg/ops.py:Op", "pkg/ops.py", ".", "pkg/ops.py:Op"),
        ("pkg.ops:Op", "pkg/ops.py", ".", "pkg/ops.py:Op"),
        ("./pkg/ops.py:Outer.Op", "pkg/ops.py", ".", "pkg/ops.py:Outer.Op"),
        ("pkg/ops.py:Op", "pkg/ops.py", "pkg", "ops.py:Op"),
        ("pkg:Op", "../elsewhere/ops.py", ".", "pkg:Op"),
        ("a b/ops.py:Op", "a b/ops.py", ".", "a b/ops.py:Op"),
        ("./specs/op.yaml", "pkg/ops.py", ".", "specs/op.yaml"),
        ("torch.ops.lib.op", "pkg/ops.py", ".", "torch.ops.lib.op"),
    ],
)
def test_an_operator_has_one_identity_however_it_is_named(name, file, folder, identity):
    made = TargetReport(name, location=Location(file, 1))
    assert op_identity(made, folder) == identity


def test_absolute_paths_are_seen_from_the_folder(tmp_path):
    file = os.path.join(tmp_path, "ops.py")
    made = TargetReport(f"{file}:Op", location=Location(file, 1))
    assert op_identity(made, str(tmp_path)) == "ops.py:Op"


def test_a_fingerprint_does_not_change_between_versions():
    """Baselines and code scanning hold what this computes: change it only with its version."""
    made = Identity("ops.py:Op", "GL401", "float64", "cpu", "x", "out")
    assert made.fingerprint == "79ca2809c48baa2147fad14e5762223b"

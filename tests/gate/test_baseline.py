"""A baseline accepts what it holds and nothing else, survives rewriting, and tells what is gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.gate.baseline import Baseline, pruned, read, rewritten
from gradlint.model.fingerprint import Identity, identities
from gradlint.model.report import (
    Argument,
    Check,
    Finding,
    Location,
    Report,
    SampleReport,
    TargetReport,
)
from gradlint.model.settings import Settings

Command = Callable[..., Any]
SETTINGS = Settings(seed=1)


def target(*findings: Finding, name: str = "Op", verdict: str = "fail") -> TargetReport:
    samples = [
        SampleReport("s", "given", [Argument("x", [3], "float64", "cpu", [1], True)]),
        SampleReport("s [float32]", "given", [Argument("x", [3], "float32", "cpu", [1], True)]),
    ]
    checks = [Check(code, "pass", s.label) for code in ("GL401", "GL602") for s in samples]
    place = Location("ops.py", 3)
    return TargetReport(
        f"ops.py:{name}", "function", verdict, samples, checks, list(findings), location=place
    )  # type: ignore[arg-type]


def finding(code: str = "GL401", **changes: Any) -> Finding:
    made = Finding(code, "name", "error", "wrong", input="x", sample="s")
    return replace(made, **changes)


def report(*targets: TargetReport, **fields: Any) -> Report:
    return Report(list(targets), **fields)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ops.py").write_text("")


def baseline(*identities: Identity) -> Baseline:
    return Baseline("base.json", dict.fromkeys(identities, ""))


KNOWN = Identity("ops.py:Op", "GL401", "float64", "cpu", "x")


def test_what_is_in_it_does_not_fail() -> None:
    made = report(target(finding()))
    assert made.exit_code == 1
    use = baseline(KNOWN).use(made, SETTINGS)
    assert made.findings[0].baselined
    assert made.exit_code == 0
    assert (use.accepted, use.gone) == (1, [])


@pytest.mark.parametrize(
    "other",
    [
        finding("GL602"),
        finding(input="y"),
        finding(output="out"),
        finding(sample="s [float32]"),
        finding(sample=None),
    ],
)
def test_another_finding_fails(other: Finding) -> None:
    made = report(target(finding(), other))
    baseline(KNOWN).use(made, SETTINGS)
    assert [item.baselined for item in made.findings] == [True, False]
    assert made.exit_code == 1


def test_a_second_finding_of_the_same_kind_fails() -> None:
    made = report(target(finding(), finding()))
    baseline(KNOWN).use(made, SETTINGS)
    assert [item.baselined for item in made.findings] == [True, False]


def test_an_operator_that_could_not_be_judged_is_accepted_too() -> None:
    broken = target(finding("GL001", sample=None, input=None), verdict="error")
    made = report(broken, target(name="Other", verdict="pass"))
    baseline(Identity("ops.py:Op", "GL001")).use(made, SETTINGS)
    assert made.exit_code == 0
    # Alone it is nothing that was checked.
    alone = report(broken)
    assert alone.exit_code == 5


def test_what_is_gone_is_told_only_where_its_check_ran() -> None:
    float32 = replace(KNOWN, dtype="float32")
    bfloat16 = replace(KNOWN, dtype="bfloat16")
    cuda = replace(KNOWN, device="cuda")
    not_run = replace(KNOWN, code="GL501")
    elsewhere = replace(KNOWN, op="ops.py:Other")
    no_file = replace(KNOWN, op="deleted.py:Op")
    base = baseline(KNOWN, float32, bfloat16, cuda, not_run, elsewhere, no_file)
    passing = report(target(verdict="pass"))
    assert base.gone(passing, SETTINGS, []) == {KNOWN, float32, no_file}
    use = base.use(passing, SETTINGS)
    assert [entry["op"] for entry in use.gone] == ["deleted.py:Op", "ops.py:Op", "ops.py:Op"]
    assert use.gone[1] == {
        "op": "ops.py:Op", "code": "GL401", "name": "wrong_gradient",
        "dtype": "float32", "device": "cpu", "input": "x",
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "error"},
        {"verdict": "skipped"},
        {"checks": [Check("GL401", "inconclusive", "s")]},
        {"checks": [Check("GL401", "skipped", "s", note="left out: beyond --max-calls 3")]},
        {"checks": [Check("GL401", "pass", "s"), Check("GL401", "inconclusive", "s")]},
        {"findings": [finding("GL005", sample=None, input=None)]},
    ],
)
def test_nothing_is_gone_where_the_check_did_not_come_to_its_end(changes: dict[str, Any]) -> None:
    made = report(replace(target(verdict="pass"), **changes))
    assert baseline(KNOWN).gone(made, SETTINGS, []) == set()
    assert pruned(baseline(KNOWN), made, SETTINGS).entries == {KNOWN: ""}


def test_nothing_is_gone_after_an_interruption_or_if_deselected() -> None:
    passing = report(target(verdict="pass"), interrupted=True)
    assert baseline(KNOWN).gone(passing, SETTINGS, []) == set()
    passing.interrupted = False
    assert baseline(KNOWN).gone(passing, Settings(ignore=("GL4",)), []) == set()


def test_the_first_sample_only_is_enough() -> None:
    checks = [
        Check("GL401", "pass", "s"),
        Check("GL401", "skipped", note="looks at the first sample only"),
    ]
    made = report(replace(target(verdict="pass"), checks=checks))
    assert baseline(KNOWN).gone(made, SETTINGS, []) == {KNOWN}


def test_writing_keeps_what_did_not_run_and_the_reasons() -> None:
    cuda, gone = replace(KNOWN, device="cuda"), replace(KNOWN, code="GL602")
    old = Baseline("base.json", {KNOWN: "see issue 7", cuda: "", gone: ""})
    info = finding("GL602", severity="info", input="z")
    new = rewritten(old, report(target(finding(), finding(input="y"), info)), SETTINGS)
    assert new.entries == {KNOWN: "see issue 7", cuda: "", replace(KNOWN, input="y"): ""}


def test_the_file_is_sorted_and_stable() -> None:
    base = baseline(replace(KNOWN, op="z.py:Op"), replace(KNOWN, input="y"), KNOWN)
    base.entries[KNOWN] = "see issue 7"
    text = base.text()
    Path("base.json").write_text(text)
    again = read("base.json")
    assert again.entries == base.entries
    assert again.text() == text
    data = json.loads(text)
    assert data["gradlint_baseline"] == 1
    assert [item["op"] for item in data["findings"]] == ["ops.py:Op", "ops.py:Op", "z.py:Op"]
    assert [item["input"] for item in data["findings"]] == ["x", "y", "x"]
    assert data["findings"][0]["reason"] == "see issue 7"


def test_paths_are_seen_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    there = target(finding())
    there.target, there.location = "../ops.py:Op", Location("../ops.py", 3)
    base = Baseline("../base.json", {KNOWN: ""})
    assert identities(there, base.folder) == [KNOWN]
    base.accept(there)
    assert there.findings[0].baselined


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "base.json:1:1", "not valid JSON"),
        ('{"gradlint_baseline": 1,\n "findings": [', "base.json:2:15", "not valid JSON"),
        ("[" * 100_000, "base.json", "nested too deeply"),
        ("[]", "base.json", "not a baseline of gradlint"),
        ('{"findings": []}', "base.json", "not a baseline of gradlint"),
        ('{"gradlint_baseline": 2, "findings": []}', "base.json", "version 2; this gradlint"),
        ('{"gradlint_baseline": "x"}', "base.json", "version 'x'"),
        ('{"gradlint_baseline": true, "findings": []}', "base.json", "version True"),
        ('{"gradlint_baseline": 1}', "base.json", "`findings` is not a list"),
        ('{"gradlint_baseline": 1, "findings": [1]}', "findings[0]", "not an object"),
        (
            '{"gradlint_baseline": 1, "findings": [{"op": "a", "code": "GL1", "inptu": "x"}]}',
            "findings[0]",
            "did you mean `input`?",
        ),
        ('{"gradlint_baseline": 1, "findings": [{"op": "a"}]}', "findings[0]", "`code` is missing"),
        (
            '{"gradlint_baseline": 1, "findings": [{"op": 3, "code": "GL1"}]}',
            "findings[0]",
            "`op` is not a text",
        ),
        (
            '{"gradlint_baseline": 1, "findings": [{"op": "a", "code": "GL1", "copy": -1}]}',
            "findings[0]",
            "`copy`",
        ),
    ],
)
def test_a_broken_file_is_told_with_its_place(text: str, place: str, words: str) -> None:
    Path("base.json").write_text(text)
    with pytest.raises(GradlintError) as caught:
        read("base.json")
    assert caught.value.exit_code == 2
    assert place in caught.value.place
    assert words in str(caught.value)
    assert caught.value.hint


def test_a_file_that_is_not_text_or_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "base.json").write_bytes(b"\xff\xfe")
    with pytest.raises(GradlintError, match="can't be read"):
        read("base.json")
    with pytest.raises(GradlintError, match="is a folder"):
        read(str(tmp_path))
    with pytest.raises(GradlintError, match="no such baseline"):
        read("nothing.json")


OPS = """
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3

    @staticmethod
    def sample_inputs():
        return (torch.linspace(1.0, 2.0, 3, dtype=torch.float64, requires_grad=True),)
"""


def test_from_the_command_line(tmp_path: Path, gradlint: Command) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "my ops.py").write_text(OPS)
    words = ("my ops.py", "--select", "GL0,GL401,GL602", "--seed", "1")
    assert gradlint(folder, "check", *words).returncode == 1
    done = gradlint(folder, "baseline", "write", "base.json", *words)
    assert (done.returncode, done.stdout) == (
        0,
        "base.json: 1 in the baseline, 1 new, 0 removed.\n",
    )
    first = (folder / "base.json").read_text()
    (folder / "my ops.py").write_text("# another line\n" + OPS)
    done = gradlint(folder, "check", *words, "--baseline", "base.json")
    assert done.returncode == 0, done.stdout
    text = " ".join(done.stdout.split())
    assert "GL401 (in the baseline) wrong gradient for `x`" in text
    assert "1 finding is in the baseline (base.json) and does not fail the run." in text
    assert "reproduce" not in text
    concise = gradlint(
        folder, "check", *words, "--baseline", "base.json", "--output-format", "concise"
    )
    assert concise.stdout.endswith("wrong gradient for `x` (in the baseline)\n")
    # Written again, it is the same.
    assert gradlint(folder, "baseline", "write", "base.json", *words).returncode == 0
    assert (folder / "base.json").read_text() == first
    # Another defect is new; the settings name the file too.
    (folder / "pyproject.toml").write_text('[tool.gradlint]\nbaseline = "base.json"\n')
    (folder / "my ops.py").write_text(OPS.replace("return grad * 3", "return grad.mul_(3)"))
    done = gradlint(folder, "check", *words, "--output-format", "json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert {f["code"]: f["baselined"] for f in found["targets"][0]["findings"]} == {
        "GL602": False,
        "GL401": True,
    }
    assert found["baseline"] == {"path": "base.json", "accepted": 1, "gone": []}
    # Repaired, its entry is told, and pruned, but not by a run that does not look.
    (folder / "my ops.py").write_text(OPS.replace("grad * 3", "grad * 2"))
    done = gradlint(folder, "check", *words)
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert (
        "1 entry of the baseline no longer appears; `gradlint baseline prune` removes it:" in text
    )
    assert "my ops.py:Op GL401 wrong_gradient for `x` (float64, cpu)" in text
    done = gradlint(folder, "baseline", "prune", "base.json", "my ops.py", "--select", "GL602")
    assert done.stdout == "base.json: 1 in the baseline, 0 new, 0 removed.\n"
    done = gradlint(folder, "baseline", "prune", "base.json", *words)
    assert done.stdout == "base.json: 0 in the baseline, 0 new, 1 removed.\n"


def test_wrong_use(tmp_path: Path, gradlint: Command) -> None:
    done = gradlint(tmp_path, "baseline", "write", "ops.py")
    assert done.returncode == 2
    assert "does not" not in done.stdout
    assert "ends with .json" in done.stderr
    assert "gradlint-baseline.json ops.py" in done.stderr
    done = gradlint(tmp_path, "baseline", "prune", "missing.json", "ops.py")
    assert done.returncode == 2
    assert "no such baseline" in done.stderr
    done = gradlint(tmp_path, "baseline", "write")
    assert (done.returncode, "no target given" in done.stderr) == (2, True)
    # Nothing to check: no file is written.
    done = gradlint(tmp_path, "baseline", "write", "base.json", "ops.py")
    assert done.returncode == 5
    assert not (tmp_path / "base.json").exists()
    done = gradlint(tmp_path, "check", "ops.py", "--baseline", "nowhere.json")
    assert (done.returncode, done.stdout) == (2, "")

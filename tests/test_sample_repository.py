"""A small repository (``tests/sample_repository``) whose operators are gated, from end to end: what
its CI would say of a clean state, a new defect, an accepted one, and of what nobody checks."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "sample_repository"
ACTION = ROOT / ".github" / "actions" / "gradlint" / "action.yml"
TEMPLATE = ROOT / ".gitlab" / "gradlint.yml"

Command = Callable[..., Any]

RIGHT = "return grad_output * (gate + x * gate * (1 - gate))"
WRONG = "return grad_output * (gate + gate * (1 - gate))"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    return folder


def change(repository: Path, old: str, new: str) -> int:
    """Replace ``old`` in the operators by ``new``; the line where that is."""
    path = repository / "ops" / "activations.py"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def test_a_clean_state_passes_and_a_new_defect_is_annotated(
    repository: Path, gradlint: Command
) -> None:
    done = gradlint(repository, "check", "ops", "specs", "--output-format", "github")
    assert (done.returncode, "::error" in done.stdout) == (0, False), done.stdout + done.stderr
    line = change(repository, RIGHT, WRONG)
    done = gradlint(repository, "check", "ops", "specs", "--output-format", "github")
    assert done.returncode == 1
    (annotation,) = [text for text in done.stdout.splitlines() if text.startswith("::error")]
    assert f"file=ops/activations.py,line={line}," in annotation
    assert "GL401" in annotation


def test_what_the_baseline_holds_passes_and_what_is_new_does_not(
    repository: Path, gradlint: Command
) -> None:
    change(repository, RIGHT, WRONG)
    assert gradlint(repository, "baseline", "write", "known.json", "ops").returncode == 0
    check = ("check", "ops", "--baseline", "known.json", "--output-format", "concise")
    assert gradlint(repository, *check).returncode == 0
    change(repository, "return grad * weight, ", "return grad * 2 * weight, ")
    done = gradlint(repository, *check)
    assert done.returncode == 1
    assert "wrong gradient for `x`" in done.stdout


def test_a_suppression_that_is_used_up_is_reported(repository: Path, gradlint: Command) -> None:
    head = "class Swish(torch.autograd.Function):"
    line = change(repository, head, f"{head}  # gradlint: ignore[GL401] known, see the tracker")
    done = gradlint(
        repository, "check", "ops", "--select", "GL0,GL401", "--output-format", "concise"
    )
    assert done.returncode == 1
    assert re.search(rf"^ops/activations\.py:{line}:\d+: GL01\d ", done.stdout, re.MULTILINE)


def test_an_operator_that_nobody_checks_fails(repository: Path, gradlint: Command) -> None:
    done = gradlint(repository, "check", "specs", "--require-coverage", "ops")
    assert done.returncode == 1
    assert "ops/activations.py:9" in done.stdout
    assert "Swish" in done.stdout
    covered = gradlint(repository, "check", "ops", "specs", "--require-coverage", "ops")
    assert covered.returncode == 0


def test_shards_merge_to_the_report_of_one_run(repository: Path, gradlint: Command) -> None:
    change(repository, RIGHT, WRONG)
    for shard in ("1/2", "2/2"):
        report = f"json=shard-{shard[0]}.json"
        gradlint(repository, "check", "ops", "specs", "--shard", shard, "--report", report)
    merged = gradlint(
        repository, "report", "shard-1.json", "shard-2.json", "--output-format", "json"
    )
    whole = gradlint(repository, "check", "ops", "specs", "--output-format", "json")
    assert merged.returncode == whole.returncode == 1
    assert told(merged.stdout) == told(whole.stdout)


def told(report: str) -> list[Any]:
    return [
        (target["target"], target["verdict"], [item["code"] for item in target["findings"]])
        for target in json.loads(report)["targets"]
    ]


def test_the_workflow_uses_inputs_that_the_action_has() -> None:
    action = yaml.safe_load(ACTION.read_text())
    workflow = yaml.safe_load((SAMPLE / ".github" / "workflows" / "gradlint.yml").read_text())
    (step,) = [
        step
        for step in workflow["jobs"]["gradlint"]["steps"]
        if "actions/gradlint@" in step.get("uses", "")
    ]
    assert set(step["with"]) <= set(action["inputs"])
    required = {name for name, item in action["inputs"].items() if item.get("required")}
    assert required <= set(step["with"])
    for part in action["runs"]["steps"]:
        # What an input holds is data: it reaches a script by the environment alone.
        assert "${{" not in part.get("run", "")
        assert "run" not in part or "shell" in part


def test_the_script_of_the_action(repository: Path) -> None:
    """As the runner would start it, with a path of two words."""
    action = yaml.safe_load(ACTION.read_text())
    (script,) = [part["run"] for part in action["runs"]["steps"] if part.get("shell") == "python"]
    (repository / "ops").rename(repository / "my ops")
    change_in = repository / "my ops" / "activations.py"
    change_in.write_text(change_in.read_text().replace(RIGHT, WRONG))
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "INPUT_TARGETS": "'my ops/activations.py'",
        "INPUT_OPTIONS": "--select GL401",
        "INPUT_SARIF": "found.sarif",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repository, env=environment, capture_output=True
    )
    assert done.returncode == 1, done.stderr
    assert b"::error file=my ops/activations.py,line=" in done.stdout
    (run,) = json.loads((repository / "found.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["GL401"]


def test_the_script_of_the_template(repository: Path, gradlint: Command) -> None:
    """Its last line, with the words that a shell would put in the place of the variables."""
    job = yaml.safe_load(TEMPLATE.read_text())[".gradlint"]
    command = job["script"][-1].replace("$words", "-- ops/activations.py:Swish")
    program, *words = shlex.split(command)
    assert program == "gradlint"
    change(repository, RIGHT, WRONG)
    assert gradlint(repository, *words).returncode == 1
    reports = job["artifacts"]["reports"]
    found = json.loads((repository / reports["codequality"]).read_text())
    assert [item["location"]["path"] for item in found] == ["ops/activations.py"]
    assert "GL401" in (repository / reports["junit"]).read_text()

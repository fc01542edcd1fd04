"""Shards are the whole together, what failed is remembered, and bad words are told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.gate.choice import (
    CACHE,
    Choice,
    parse_shard,
    read_failed,
    remember_failed,
    shard_of,
)
from gradlint.model.op import OpRef
from gradlint.model.report import Check, Finding, Report, TargetReport
from gradlint.model.settings import Settings

Command = Callable[..., Any]
TARGETS = [f"ops/file{number}.py:Op" for number in range(200)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ref(target: str, attribute: str = "Op") -> OpRef:
    return OpRef(target, "file", target.partition(":")[0], attribute)


def left(choice: Choice, targets: list[OpRef]) -> list[OpRef]:
    warned: list[str] = []
    leave_out = choice.leave_out(Settings(), warned.append)
    return [item for item in targets if leave_out is None or not leave_out(item)]


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_shards_are_the_whole_together_and_share_nothing(parts: int) -> None:
    refs = [ref(target) for target in TARGETS]
    chosen = [left(Choice(shard=f"{part}/{parts}"), refs) for part in range(1, parts + 1)]
    assert sorted(item.target for one in chosen for item in one) == sorted(TARGETS)
    assert all(len(one) > 200 / parts / 2 for one in chosen)


def test_a_target_stays_in_its_shard() -> None:
    """The hash is documented: what CI splits today it splits so tomorrow."""
    assert [shard_of(target, 4) for target in TARGETS[:8]] == [3, 4, 1, 4, 3, 4, 1, 3]
    assert 1 <= shard_of("größe\udcff.py:Op", 3) <= 3


def test_a_module_that_must_be_imported_is_in_every_shard() -> None:
    module = ref("ops/dynamic.py", "*")
    assert all(left(Choice(shard=f"{part}/5"), [module]) for part in range(1, 6))


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "1/0", "a/b", "1/4/2", "-1/4", "1,4"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(GradlintError) as caught:
        parse_shard(text)
    assert caught.value.place == "--shard"
    assert "1/4" in caught.value.hint


def report(**verdicts: str) -> Report:
    targets = []
    for name, verdict in verdicts.items():
        found = [Finding("GL401", "n", "error", "m")] if verdict == "fail" else []
        checks = [Check("GL401", "pass")]
        targets.append(
            TargetReport(f"ops.py:{name}", verdict=verdict, findings=found, checks=checks)  # type: ignore[arg-type]
        )
    return Report(targets)


def test_what_failed_is_remembered_until_it_passes() -> None:
    remember_failed(report(A="pass"))
    assert not os.path.exists(CACHE)  # nothing to remember
    remember_failed(report(A="pass", B="fail", C="fail", D="error"))
    assert read_failed(print) == {"ops.py:B", "ops.py:C", "ops.py:D"}
    # C was not looked at, E is new, D could not even begin.
    remember_failed(report(B="pass", E="fail", D="skipped"))
    assert read_failed(print) == {"ops.py:C", "ops.py:D", "ops.py:E"}
    assert Path(CACHE, ".gitignore").read_text() == "*\n"
    refs = [ref(f"ops.py:{name}") for name in "ABCDE"]
    chosen = left(Choice(last_failed=True), refs)
    assert [item.target[-1] for item in chosen] == ["C", "D", "E"]
    modules = [ref("ops.py", "*"), ref("other.py", "*")]
    assert left(Choice(last_failed=True), modules) == modules[:1]
    remember_failed(report(C="pass", D="pass", E="pass"))
    assert read_failed(print) == frozenset()


def test_without_failures_nothing_is_left_out() -> None:
    warned: list[str] = []
    assert Choice(last_failed=True).leave_out(Settings(), warned.append) is None
    assert warned == ["--last-failed: no failure is remembered here, so nothing is left out"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 9, "failed": []}', '{"version": 1, "failed": 3}', "[" * 99_999],
)
def test_a_damaged_cache_is_ignored_and_told(text: str) -> None:
    os.mkdir(CACHE)
    path = Path(CACHE, "last_failed.json")
    path.write_text(text)
    warned: list[str] = []
    assert read_failed(warned.append) == frozenset()
    assert "is damaged and not looked at" in warned[0]
    remember_failed(report(A="fail"))
    assert json.loads(path.read_text()) == {"version": 1, "failed": ["ops.py:A"]}


def test_a_cache_that_can_not_be_written_stops_nothing() -> None:
    Path(CACHE).write_text("a file, not a folder")
    remember_failed(report(A="fail"))
    assert Path(CACHE).read_text() == "a file, not a folder"


OPS = """
import torch

class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * {factor}
    @staticmethod
    def sample_inputs():
        return (torch.linspace(1.0, 2.0, 3, dtype=torch.float64, requires_grad=True),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, factor in {"a": 2, "b c": 3, "d\ne": 2, "f": 3}.items():
        (tmp_path / f"{name}.py").write_text(OPS.replace("{factor}", str(factor)))
    return tmp_path


CHECK = ("check", ".", "--select", "GL401", "--seed", "1")
JSON = (*CHECK, "--output-format", "json")


def names(done: Any) -> list[str]:
    return [target["target"] for target in json.loads(done.stdout)["targets"]]


def test_shards_from_the_command_line(folder: Path, gradlint: Command) -> None:
    whole = names(gradlint(folder, *JSON))
    assert len(whole) == 4
    parts = [gradlint(folder, *JSON, "--shard", f"{part}/3") for part in (1, 2, 3)]
    assert sorted(name for part in parts for name in names(part)) == sorted(whole)
    for number, part in enumerate(parts, 1):
        found = json.loads(part.stdout)
        assert found["shard"] == f"{number}/3"
        (out,) = found["left_out"].items() or [("", [])]
        assert out[0] == f"not in shard {number}/3"
        assert len(out[1]) == 4 - len(found["targets"])
    listed = gradlint(folder, "list", ".", "--shard", "1/3", "--output-format", "json")
    assert names(listed) == names(parts[0])
    done = gradlint(folder, *CHECK, "--shard", "9/3")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_shard_without_operators_is_clean(folder: Path, gradlint: Command) -> None:
    taken = {shard_of(name, 50) for name in names(gradlint(folder, *JSON))}
    free = next(part for part in range(1, 51) if part not in taken)
    done = gradlint(folder, *CHECK, "--shard", f"{free}/50")
    assert done.returncode == 0, done.stdout
    text = " ".join(done.stdout.split())
    assert "There was nothing to check." in text
    assert f"Left out, not in shard {free}/50: 4 operators." in text


def test_last_failed_from_the_command_line(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, *CHECK, "--last-failed")
    assert "no failure is remembered" in done.stderr
    assert done.returncode == 1
    assert names(gradlint(folder, *JSON, "--last-failed")) == ["b c.py:Base", "f.py:Base"]
    # Another length: Python takes compiled files for those of a source of one second and size.
    (folder / "f.py").write_text(OPS.replace("{factor}", "2.0"))
    assert gradlint(folder, *CHECK, "--last-failed").returncode == 1
    assert names(gradlint(folder, *JSON, "--last-failed")) == ["b c.py:Base"]


def test_the_run_ends_after_enough_failures(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, *JSON, "-x", "-j", "1")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["stopped"]
    assert [target["verdict"] for target in found["targets"]] == [
        "pass", "fail", "skipped", "skipped",
    ]  # fmt: skip
    assert "--max-failures" in found["targets"][3]["notes"][0]
    done = gradlint(folder, *CHECK, "--max-failures", "2", "-j", "1")
    assert done.returncode == 1
    assert "Ended early, by --max-failures" in done.stdout
    done = gradlint(folder, *JSON, "--max-failures", "3")
    assert not json.loads(done.stdout)["stopped"]
    assert gradlint(folder, *CHECK, "--max-failures", "0").returncode == 2

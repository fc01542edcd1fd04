"""The rules of a single operator, divided between two workers, end in the report of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradlint.model.events import Begin, CheckDone, Elsewhere, Found, Samples
from gradlint.model.report import Check, Finding, SampleReport, TargetReport
from gradlint.model.settings import Settings
from gradlint.running._collect import Collector, Contradiction
from gradlint.running._compiling import COMPILING, divisible

#: Every process that runs forward says whether the compiler is loaded there, and what it compiles.
SAYING = """
import os, sys
import torch

def said(folder=os.path.dirname(os.path.abspath(__file__))):
    kind = "compiler" if "torch._dynamo.convert_frame" in sys.modules else "none"
    open(os.path.join(folder, f"{kind}.{os.getpid()}"), "w").close()

def leave(x):
    torch._dynamo.graph_break()
    os._exit(3)

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if not torch.compiler.is_compiling():
            said()
        ctx.save_for_backward(x)
        return BODY

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * GRADIENT
"""
GIVEN = """
    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5], dtype=torch.float64).requires_grad_(),)
"""

#: What one worker may spend on a rule is no fact about the operator.
NUMBERS = ("forward_calls", "backward_calls", "duration_s", "resolution")


def op(body: str, gradient: str, given: str = GIVEN) -> str:
    return SAYING.replace("BODY", body).replace("GRADIENT", gradient) + given


def checked(folder: Path, jobs: int, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "gradlint", "check", "op.py:Op", "--seed", "1"),
            *("-j", str(jobs), "--output-format", "json", "--timeout", "300", *words),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    for check in target["checks"]:
        for name in NUMBERS:
            check.pop(name, None)
    found: dict[str, Any] = target
    return found


CASES = {
    "right": (op("x.sin()", "x.cos()"), "pass", []),
    "wrong": (op("x.sin()", "x.sin()"), "fail", ["GL401"]),
    "wrong when compiled": (
        op("x.sin() * (2 if torch.compiler.is_compiling() else 1)", "x.cos()"),
        "fail",
        ["GL903", "GL905"],
    ),
    "ends the process while it is compiled": (
        op("leave(x.sin()) if torch.compiler.is_compiling() else x.sin()", "x.cos()"),
        "error",
        ["GL005", "GL005"],  # under each of the rules that compile
    ),
}


@pytest.mark.skipif(os.name == "nt", reason="there is no fork server on Windows")
@pytest.mark.parametrize("name", CASES)
def test_two_workers_say_what_one_says(tmp_path: Path, name: str) -> None:
    source, verdict, codes = CASES[name]
    (tmp_path / "op.py").write_text(source)
    one = checked(tmp_path, 1)
    alone = {path.name.split(".")[0] for path in tmp_path.glob("*.[0-9]*")}
    for path in tmp_path.glob("*.[0-9]*"):
        path.unlink()
    two = checked(tmp_path, 2)
    kinds = {path.name.split(".")[0] for path in tmp_path.glob("*.[0-9]*")}
    assert one["verdict"] == two["verdict"] == verdict
    assert [finding["code"] for finding in two["findings"]] == codes
    assert two["findings"] == one["findings"]
    assert two["checks"] == one["checks"]
    assert kinds == {"compiler", "none"}
    assert alone == {"compiler"}


#: Reads a file where the compiler is loaded, and nowhere else.
READING = op("x.sin()", "x.cos()").replace(
    "            said()\n",
    """            said()
            if "torch._dynamo.convert_frame" in sys.modules:
                with open("read.txt") as file:
                    file.read()
""",
)


@pytest.mark.skipif(os.name == "nt", reason="there is no fork server on Windows")
def test_a_verdict_that_is_kept_depends_on_what_both_read(tmp_path: Path) -> None:
    """The same verdict as without a cache, and one that another text of the file makes void."""
    (tmp_path / "op.py").write_text(READING)
    (tmp_path / "read.txt").write_text("one")
    plain = checked(tmp_path, 2)
    for path in tmp_path.glob("*.[0-9]*"):
        path.unlink()
    first = checked(tmp_path, 2, "--cache", "kept")
    kinds = {path.name.split(".")[0] for path in tmp_path.glob("*.[0-9]*")}
    assert kinds == {"compiler", "none"}
    assert first["verdict"] == "pass"
    assert first["checks"] == plain["checks"]
    assert checked(tmp_path, 2, "--cache", "kept")["cached"]
    (tmp_path / "read.txt").write_text("another")
    assert not checked(tmp_path, 2, "--cache", "kept")["cached"]


DIVISIBLE = Settings(jobs=2)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (DIVISIBLE, True),
        (replace(DIVISIBLE, select=("GL401", "GL905")), True),
        (replace(DIVISIBLE, jobs=1), False),
        (replace(DIVISIBLE, select=("GL903",)), False),
        (replace(DIVISIBLE, ignore=("GL9",)), False),
        (replace(DIVISIBLE, max_calls=100), False),
        (replace(DIVISIBLE, devices=("cpu", "cuda")), False),
        (replace(DIVISIBLE, untrusted=True), False),
    ],
)
def test_what_is_divided(settings: Settings, expected: bool) -> None:
    assert divisible(settings) is expected


SETTINGS = Settings(select=("GL401", "GL903", "GL904"))
SAMPLES = Samples([SampleReport("s", "given")])


def ran(code: str) -> list[Any]:
    return [Begin(code, "s"), CheckDone(Check(code, "pass", "s"))]


def finding(code: str) -> Finding:
    return Finding(code, "n", "error", "m", sample="s")


def collected(*events: Any, elsewhere: frozenset[str] = COMPILING) -> Collector:
    made = Collector(TargetReport("t"), SETTINGS)
    made.elsewhere = elsewhere
    for event in events:
        made.take(event)
    return made


def test_what_comes_from_elsewhere_takes_its_place() -> None:
    made = collected(
        *(SAMPLES, *ran("GL401"), Found(finding("GL401"))),
        *(Elsewhere("GL903", "s"), *ran("GL904"), Found(finding("GL904"))),
    )
    other = Check("GL903", "fail", "s")
    assert made.fill_in({("GL903", "s"): (other, [finding("GL903"), finding("GL905")])})
    assert [check.code for check in made.report.checks] == ["GL401", "GL903", "GL904"]
    assert made.report.checks[1] is other
    codes = [item.code for item in made.report.findings]
    assert codes == ["GL401", "GL903", "GL905", "GL904"]


def test_without_it_the_next_worker_runs_the_rule() -> None:
    made = collected(SAMPLES, *ran("GL401"), Elsewhere("GL903", "s"), *ran("GL904"))
    assert not made.fill_in({})
    made.do_without()
    assert [check.code for check in made.report.checks] == ["GL401", "GL904"]
    assert made.done == {("GL401", "s")}
    made.next_worker()
    for event in (SAMPLES, *ran("GL903")):
        made.take(event)
    assert [check.code for check in made.report.checks] == ["GL401", "GL904", "GL903"]


@pytest.mark.parametrize(
    ("code", "elsewhere"), [("GL904", COMPILING), ("GL903", frozenset()), ("GL905", COMPILING)]
)
def test_a_worker_can_leave_nothing_to_nobody(code: str, elsewhere: frozenset[str]) -> None:
    with pytest.raises(Contradiction):
        collected(SAMPLES, Elsewhere(code, "s"), elsewhere=elsewhere)


def test_no_check_waits_for_what_reads_specifications() -> None:
    """All that workers import for a check of an operator, and what takes long to import."""
    code = (
        "import gradlint.running.jobs, sys; "
        "print([m for m in ('pydantic', 'yaml', 'gradlint.recorded') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

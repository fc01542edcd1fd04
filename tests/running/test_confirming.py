"""What passes while gradlint looks, and is wrong by itself, is found; right ops are confirmed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradlint.checking.severity import MATERIAL
from gradlint.experiments.call_budget import SINGLE_DIRECTION
from gradlint.model.events import Confirmable
from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.numerics.decide import decide
from gradlint.numerics.map import Map
from gradlint.numerics.verdict import DIFFERS
from gradlint.ops.bare import packed
from gradlint.running.confirming import DRAWS, _disagreements, _kept, confirm
from gradlint.running.job import ConfirmWork
from gradlint.running.run import Run, execute

HERE = Path(__file__).parent
SETTINGS = Settings(select=("GL0", "GL401"), seed=1, timeout=60.0)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="each process would import torch")

WRONG = (
    "LooksForModules",
    "LooksForAnyModule",
    "LooksAtTheStack",
    "LooksAtItsName",
    "LooksAtItsFile",
    "LooksAtTheCommand",
    "AnswersFromEarlierCalls",
    "KnowsTheSample",
    "RightForKnownSeeds",
)

CONFIRMED = (
    "Dropout",
    "numbers_of_python",
    "in_shared_memory",
    "Normed",
    "Picks",
    "instance",
    "evaluated",
    "partly",
    "Nested",
    "InPlace",
    "Narrow",
    "HalfComplex",
    "NeedsItsPlace",
    "registered",
)

#: Operators that can't be confirmed → why.
NOT_CONFIRMED = {
    "own_numbers": "its answers depend on earlier calls",
    "own_noise": "it returns other values at every call",
    "TakesObject": "an argument is a PosixPath",
    "NeedsItsName": "by itself it raises RuntimeError: another name",
    "RoundedInside": "its gradient was judged without its casts to a coarser dtype, which it has by"
    " itself",
}


def run(targets: list[str], settings: Settings = SETTINGS, folder: Path = HERE) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = execute(targets, settings)
    assert (found.internal, found.usage) == ([], [])
    return found


@pytest.fixture(scope="module")
def twofaced() -> dict[str, TargetReport]:
    found = run([f"twofaced.py:{name}" for name in WRONG])
    assert found.exit_code == 1
    return dict(zip(WRONG, found.report.targets, strict=True))


@pytest.fixture(scope="module")
def right() -> dict[str, TargetReport]:
    names = [*CONFIRMED, *NOT_CONFIRMED, "drawn_on_import", "Converged"]
    found = run([f"byitself.py:{name}" for name in names])
    assert found.exit_code == 0
    return dict(zip(names, found.report.targets, strict=True))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_by_itself(twofaced: dict[str, TargetReport], name: str) -> None:
    report = twofaced[name]
    assert {check.verdict for check in report.checks if check.code == "GL401"} == {"pass"}
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.input) == ("GL009", "error", "x")
    assert report.confirmation is not None
    assert (report.verdict, report.confirmation.verdict) == ("fail", "refuted")


def test_numbers_are_told(twofaced: dict[str, TargetReport]) -> None:
    """Backward returns 3, where forward is 2 x."""
    (finding,) = twofaced["LooksForModules"].findings
    (numbers,) = finding.evidence["by_itself"]
    assert numbers["input"] == "x"
    assert numbers["claimed"] / numbers["measured"] == pytest.approx(1.5, rel=1e-6)
    assert 0.0 < numbers["bar"] < 1e-6 * abs(numbers["measured"])
    assert finding.location is not None
    assert finding.location.file == "twofaced.py"


@pytest.mark.parametrize(
    ("way", "code"),
    [("rule", "GL008"), ("numerics", "GL008"), ("torch", "GL008"), ("emit", "GL009")],
)
def test_judges_replaced(monkeypatch: pytest.MonkeyPatch, way: str, code: str) -> None:
    """What is still replaced at the end is seen in the worker, the rest by itself."""
    monkeypatch.setenv("TWOFACED", way)
    (report,) = run(["twofaced_import.py:Op"]).report.targets
    assert [finding.code for finding in report.findings] == [code]
    assert report.verdict == "fail"


def test_judges_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same op, which leaves them alone, is found by the usual rule."""
    monkeypatch.setenv("TWOFACED", "none")
    (report,) = run(["twofaced_import.py:Op"]).report.targets
    assert [finding.code for finding in report.findings] == ["GL401"]
    assert report.confirmation is None


@pytest.mark.parametrize("name", CONFIRMED)
def test_right_by_itself(right: dict[str, TargetReport], name: str) -> None:
    report = right[name]
    assert (report.verdict, report.findings) == ("pass", [])
    found = report.confirmation
    assert found is not None
    assert (found.verdict, found.note) == ("confirmed", "")
    assert found.resolution is not None
    assert found.resolution < (3e-2 if name in ("Narrow", "HalfComplex") else 1e-6)


@pytest.mark.parametrize("name", NOT_CONFIRMED)
def test_not_confirmed(right: dict[str, TargetReport], name: str) -> None:
    report = right[name]
    assert (report.verdict, report.findings) == ("pass", [])
    assert report.confirmation is not None
    assert report.confirmation.verdict == "not confirmed"
    assert report.confirmation.note == NOT_CONFIRMED[name]


def test_what_is_not_confirmed_is_no_pass_of_untrusted_code() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        targets = ["byitself.py:NeedsItsName", "byitself.py:InPlace"]
        found = execute(targets, replace(SETTINGS, untrusted=True))
    if found.usage:
        pytest.skip(str(found.usage[0]))
    told = [(item.verdict, item.confirmation) for item in found.report.targets]
    assert [verdict for verdict, _ in told] == ["inconclusive", "pass"]
    assert [item and item.verdict for _, item in told] == ["not confirmed", "confirmed"]


def test_random_on_import() -> None:
    """Two processes that imported it are unlike."""
    found = run(["byitself.py:drawn_on_import"]).report.targets[0].confirmation
    assert found is not None
    assert (found.verdict, found.note) == ("confirmed", DRAWS)


def test_random_on_import_of_many(right: dict[str, TargetReport]) -> None:
    """Two forks of a process that imported it are alike, and it passes as well where they are
    not."""
    found = right["drawn_on_import"].confirmation
    assert found is not None
    assert (found.verdict, found.note in ("", DRAWS)) == ("confirmed", True)


def test_buffers_that_fit_the_parameters_at_the_sample_only(
    right: dict[str, TargetReport],
) -> None:
    report = right["Converged"]
    assert (report.verdict, report.findings) == ("pass", [])


def test_an_error_that_cancels_along_one_direction() -> None:
    """The gradient is half too large; along the first direction of this seed by 0.0008 only."""
    x = torch.linspace(0.5, 2.0, 3, dtype=torch.float64)
    tripled = Map([x], [2 * x], lambda point: [2 * point[0]], lambda _, v: [3 * v[0]])
    decision = decide(tripled, seed=391, kinds=SINGLE_DIRECTION)
    assert decision.verdicts == [DIFFERS]
    assert decision.judgement.inputs[0].worst.relative_error < MATERIAL
    (found,) = _disagreements([decision], ["x"])
    assert found.relative_error > 10 * MATERIAL
    assert found.claimed / found.measured == pytest.approx(1.5, rel=1e-9)


def test_few_calls(right: dict[str, TargetReport]) -> None:
    found = right["instance"].confirmation
    assert found is not None
    assert (found.forward_calls, found.backward_calls) == (11, 3)


OPERATOR = """
import torch
{head}

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * FACTOR

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * {factor}

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)
"""


def package(folder: Path, factor: str) -> None:
    """A package whose module imports from another one of it."""
    home = folder / "home"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "numbers.py").write_text("FACTOR = 2\n")
    head = "import sys\nfrom .numbers import FACTOR"
    (home / "ops.py").write_text(OPERATOR.format(head=head, factor=factor))


@pytest.mark.parametrize("target", ["home/ops.py:Op", "home.ops:Op"])
@pytest.mark.parametrize("right", [True, False])
def test_modules_of_packages(tmp_path: Path, target: str, right: bool) -> None:
    package(tmp_path, "FACTOR" if right else "(2 if 'gradlint' in sys.modules else 3)")
    (report,) = run([target], folder=tmp_path).report.targets
    assert report.confirmation is not None
    expected = ("confirmed" if right else "refuted", "")
    assert (report.confirmation.verdict, report.confirmation.note) == expected
    assert [finding.code for finding in report.findings] == ([] if right else ["GL009"])


def test_named_by_a_spec(tmp_path: Path) -> None:
    package(tmp_path, "(2 if 'gradlint' in sys.modules else 3)")
    (tmp_path / "op.yaml").write_text("op: home.ops:Op\ninputs:\n  x: {shape: [3]}\n")
    (report,) = run(["op.yaml"], folder=tmp_path).report.targets
    assert [finding.code for finding in report.findings] == ["GL009"]


def test_formulas_are_no_code_of_users(tmp_path: Path) -> None:
    (tmp_path / "op.yaml").write_text('forward: "x * x"\ninputs:\n  x: {shape: [3]}\n')
    (report,) = run(["op.yaml"], folder=tmp_path).report.targets
    assert (report.verdict, report.confirmation) == ("pass", None)


#: Operators of one file. What one of them keeps, another one takes for a reason to be wrong.
TOGETHER = """
import torch

KEPT = []

def first(x):
    return x * x

def keeps(x):
    KEPT.append(1)
    return x.sin()

class Looks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return g * (3 if KEPT else 2)

def last(x):
    return x.exp()
"""


def test_processes_serve_the_next_operator(tmp_path: Path) -> None:
    """As long as each is confirmed; nothing is said against one for what another one left."""
    (tmp_path / "together.py").write_text(TOGETHER)
    described, arrays = packed([torch.tensor([0.5, 1.5, -2.5], dtype=torch.float64)])
    request = {
        "args": ["tuple", [["tensor", 0]]],
        "kwargs": ["dict", []],
        "constructor": ["dict", []],
        "state": {},
        "inputs": [0],
        "names": ["x"],
        "module": False,
        "stateful": False,
        "in_place": False,
        "arrays": described,
    }
    call = Confirmable("given", "", json.dumps(request), arrays)
    serving: list[set[int]] = []
    try:
        for name in ("first", "keeps", "Looks", "last"):
            path = str(tmp_path / "together.py")
            ref = OpRef(f"together.py:{name}", "file", path, name, "unknown", None)
            work = ConfirmWork(ref, Settings(), call, None, str(tmp_path), "run")
            assert confirm(work).confirmation.verdict == "confirmed"
            serving.append({id(process) for process in _kept})
    finally:
        for process in _kept:
            process.close()
        _kept.clear()
    first, keeps, looks, last = serving
    assert len(first) == 2
    assert keeps == first  # one after the other
    assert looks == set()  # confirmed by processes of its own
    assert len(last) == 2


def test_turned_off() -> None:
    settings = Settings(select=SETTINGS.select, ignore=("GL009",), seed=1)
    (report,) = run(["twofaced.py:LooksForModules"], settings).report.targets
    assert (report.verdict, report.confirmation) == ("pass", None)


def test_without_gradients_there_is_nothing_to_confirm() -> None:
    settings = Settings(select=("GL101",), seed=1)
    (report,) = run(["twofaced.py:LooksForModules"], settings).report.targets
    assert (report.verdict, report.confirmation) == ("pass", None)


@pytest.mark.parametrize(
    ("ending", "timeout", "reason"),
    [
        ("os._exit(0)", 20.0, "its process ended"),
        ("time.sleep(1000)", 2.0, "it took longer than 2 s"),
    ],
)
def test_what_ends_by_itself(tmp_path: Path, ending: str, timeout: float, reason: str) -> None:
    head = f"import os, sys, time\nFACTOR = 2\nif 'gradlint' not in sys.modules:\n    {ending}"
    (tmp_path / "ops.py").write_text(OPERATOR.format(head=head, factor="FACTOR"))
    settings = Settings(select=SETTINGS.select, seed=1, timeout=timeout)
    (report,) = run(["ops.py:Op"], settings, tmp_path).report.targets
    assert report.confirmation is not None
    assert (report.verdict, report.confirmation.note) == ("pass", reason)

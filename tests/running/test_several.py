"""Operators of plain files take turns in one worker, and nobody sees what another one did."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlint.model.events import Confirmable
from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running import _several
from gradlint.running._collect import Contradiction
from gradlint.running._process import Ending
from gradlint.running._several import MOST, SeveralTask, in_turns
from gradlint.running._stack import Stack
from gradlint.running._task import ConfirmTask, TargetTask, Trouble
from gradlint.running._turns import turn
from gradlint.running.events import Done, Hello, Loaded, Turn, TurnOver
from gradlint.running.job import ConfirmWork
from gradlint.running.run import execute
from gradlint.targets.importing import import_file

HEAD = """
import torch

def leaf():
    return torch.tensor([0.5, -1.5, 2.5], dtype=torch.float64, requires_grad=True)

KEPT = []
"""

OPERATOR = """
class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {before}
        return x * x * {factor}

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return {gradient}

    @staticmethod
    def sample_inputs():
        return (leaf(),)
"""


def operator(name: str, gradient: str, before: str = "pass", factor: str = "1.5") -> str:
    return OPERATOR.format(name=name, gradient=gradient, before=before, factor=factor)


RIGHT, WRONG = "grad_output * 3.0 * x", "grad_output * x"

#: Name → operator, in the order of the file: two or three of them share a worker.
OPERATORS = {
    "First": operator("First", RIGHT),
    "Wrong": operator("Wrong", WRONG),
    # A list of the file's own, which a second operator must not find filled.
    "Keeps": operator("Keeps", RIGHT, "KEPT.append(1)"),
    "Looks": operator("Looks", "grad_output * (3.0 if not KEPT else 1.0) * x"),
    "Next": operator("Next", RIGHT),
    "Hangs": operator("Hangs", RIGHT, "while True: x = x + 0"),
    "After": operator("After", RIGHT),
    "Last": operator("Last", WRONG),
    "Random": operator("Random", "grad_output * 3.0 * x", "torch.rand(3)"),
}

#: What the moment decides.
NUMBERS = ("duration_s", "forward_calls", "backward_calls", "resolution", "seconds")


def only_facts(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: only_facts(value) for name, value in item.items() if name not in NUMBERS}
    return [only_facts(value) for value in item] if isinstance(item, (list, tuple)) else item


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "ops.py").write_text(HEAD + "".join(OPERATORS.values()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(report: TargetReport) -> dict[str, Any]:
    found: dict[str, Any] = only_facts(asdict(report))
    return found


def test_reports_are_those_of_workers_of_their_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(jobs=1, seed=3, timeout=5.0, select=("GL4", "GL6", "GL1"))
    turns: list[int] = []
    real = SeveralTask.event

    def event(self: SeveralTask, event: Any) -> None:
        if isinstance(event, Turn) and isinstance(self._rest[0], TargetTask):
            turns.append(event.number)
        real(self, event)

    monkeypatch.setattr(SeveralTask, "event", event)
    together = execute(["ops.py"], settings)
    # Three to a worker; the sixth one hangs at the end of its worker, and once more by itself.
    assert turns == [0, 1, 2, 0, 1, 2, 0, 1, 2]
    monkeypatch.setattr(_several, "MOST", 1)
    apart = execute(["ops.py"], settings)
    assert len(turns) == 9
    assert [told(t) for t in together.report.targets] == [told(t) for t in apart.report.targets]
    verdicts = {t.target.partition(":")[2]: t.verdict for t in together.report.targets}
    assert verdicts == {
        **dict.fromkeys(("First", "Keeps", "Next", "After", "Looks", "Random"), "pass"),
        **dict.fromkeys(("Wrong", "Last"), "fail"),
        "Hangs": "error",
    }
    assert not together.internal


class Noted(TargetTask):
    """A task that notes what it is told."""

    def __init__(self, name: str) -> None:
        ref = OpRef(f"ops.py:{name}", "file", "ops.py", name)
        super().__init__(ref, Settings(seed=1), Trouble())
        self.told: list[Any] = []
        self.follows: list[Any] = []

    def job(self) -> Any:
        self.told.append("job")
        return super().job()

    def event(self, event: Any) -> None:
        self.told.append(type(event).__name__)

    def ended(self, ending: Ending) -> list[Any]:
        self.told.append(ending.killed or ending.exit_code)
        return self.follows


def ending(exit_code: int | None, killed: str | None = None, *, finished: bool = False) -> Ending:
    return Ending(exit_code, killed, "forward", "forward", Stack(), "", finished)


def several(*names: str) -> tuple[SeveralTask, list[Noted]]:
    tasks = [Noted(name) for name in names]
    return SeveralTask(tasks, Settings(seed=1), None), tasks


LOADED = Loaded("function", None)


def test_each_hears_what_is_said_in_its_turn() -> None:
    task, (one, two) = several("One", "Two")
    for event in (Hello(True), Turn(0), LOADED, TurnOver(), Turn(1), LOADED, TurnOver(), Done()):
        task.event(event)
    assert one.told == two.told == ["job", "Loaded", "Done", 0]
    assert task.ended(ending(0, finished=True)) == []


def test_a_crash_in_a_fresh_worker_is_the_operators() -> None:
    task, (one, two) = several("One", "Two")
    task.event(Turn(0))
    (rest,) = task.ended(ending(-11))
    assert one.told == ["job", -11]
    assert two.told == []
    assert [work.ref.attribute for work in rest.job().work.works] == ["Two"]


def test_a_crash_after_another_operator_is_looked_at_again() -> None:
    task, (one, two, three) = several("One", "Two", "Three")
    for event in (Turn(0), TurnOver(), Turn(1), LOADED):
        task.event(event)
    again, rest = task.ended(ending(-11))
    assert again is two
    assert two.told == ["job", "Loaded"]
    assert one.told[-1] == 0
    assert three.told == []
    assert [work.ref.attribute for work in rest.job().work.works] == ["Three"]


def test_an_interrupt_ends_what_was_begun_and_nothing_follows() -> None:
    task, (_, two, _) = several("One", "Two", "Three")
    for event in (Turn(0), TurnOver(), Turn(1)):
        task.event(event)
    assert task.ended(ending(None, "interrupt")) == []
    assert two.told == ["job", "interrupt"]


def test_where_a_worker_stops_early_others_do_the_rest() -> None:
    task, _ = several("One", "Two", "Three")
    for event in (Turn(0), TurnOver(), Done()):
        task.event(event)
    (rest,) = task.ended(ending(0, finished=True))
    assert [work.ref.attribute for work in rest.job().work.works] == ["Two", "Three"]


def test_passes_of_one_worker_are_confirmed_by_one(folder: Path) -> None:
    call = Confirmable("sample_inputs", "", "{}", [])
    tasks = [Noted(name) for name in ("One", "Two", "Three")]
    task = SeveralTask(tasks, Settings(seed=1), None)
    for one in tasks[:2]:
        one.follows = [ConfirmTask(one, call, None, "")]
    for event in (Turn(0), TurnOver(), Turn(1), TurnOver(), Turn(2), TurnOver(), Done()):
        task.event(event)
    (confirming,) = task.ended(ending(0, finished=True))
    job = confirming.job()
    assert [type(work) for work in job.work.works] == [ConfirmWork, ConfirmWork]
    assert [work.ref.attribute for work in job.work.works] == ["One", "Two"]
    assert not job.runs_users_code


@pytest.mark.parametrize(
    "events",
    [
        (Turn(1),),
        (Turn(0), Turn(1)),
        (TurnOver(),),
        (LOADED,),
        (Turn(0), TurnOver(), Turn(0)),
        (Turn(0), TurnOver(), Turn(1), TurnOver(), Turn(2)),
    ],
)
def test_what_comes_out_of_turn_is_not_believed(events: tuple[Any, ...]) -> None:
    task, _ = several("One", "Two")
    *before, last = events
    for event in before:
        task.event(event)
    with pytest.raises(Contradiction):
        task.event(last)


@pytest.mark.parametrize(
    ("count", "jobs", "sizes"),
    [(4, 1, [1] * 4), (9, 2, [2, 2, 2, 2, 1]), (40, 1, [10] * 4), (200, 2, [MOST] * 12 + [8])],
)
def test_so_many_share_a_worker(count: int, jobs: int, sizes: list[int], folder: Path) -> None:
    settings = Settings(jobs=jobs, seed=1)
    refs = [OpRef(f"ops.py:Op{k}", "file", "ops.py", f"Op{k}") for k in range(count)]
    tasks = [TargetTask(ref, settings, Trouble()) for ref in refs]
    found = list(in_turns(tasks, settings, None))
    made = [len(t.job().work.works) if isinstance(t, SeveralTask) else 1 for t in found]
    assert made == sizes


@pytest.mark.parametrize(
    "changed",
    [
        {"untrusted": True},
        {"imports": ("other",)},
        {"devices": ("cpu", "cuda")},
    ],
)
def test_with_some_settings_none_do(changed: dict[str, Any], folder: Path) -> None:
    settings = Settings(jobs=1, seed=1, **changed)
    refs = [OpRef(f"ops.py:Op{k}", "file", "ops.py", f"Op{k}") for k in range(40)]
    tasks = [TargetTask(ref, settings, Trouble()) for ref in refs]
    assert list(in_turns(tasks, settings, None)) == tasks


def test_a_file_that_is_not_plain_has_workers_of_its_own(folder: Path) -> None:
    settings = Settings(jobs=1, seed=1)
    (folder / "other.py").write_text("import os\n")
    refs = [OpRef(f"{f}.py:A", "file", f"{f}.py", "A") for f in ("ops", "ops", "other") * 4]
    tasks = [TargetTask(ref, settings, Trouble()) for ref in refs]
    found = list(in_turns(tasks, settings, None))
    assert [t for t in found if t in tasks] == tasks[2::3]
    assert len(found) == 4 + 3  # of the eight others three, three and two share a worker


def test_after_a_turn_the_module_is_forgotten(folder: Path) -> None:
    path = str(folder / "ops.py")
    paths = list(sys.path)
    with turn(path) as left:
        first = import_file(path)
        first.KEPT.append(1)
    assert not left.behind
    assert sys.path == paths
    assert first not in sys.modules.values()
    with turn(path) as left:
        assert import_file(path).KEPT == []
    assert not left.behind


def test_what_a_turn_leaves_behind_is_seen(folder: Path) -> None:
    path = str(folder / "ops.py")
    (folder / "helper_of_ops.py").write_text("")
    with turn(path) as left:
        torch.set_default_dtype(torch.float64)
    assert left.behind
    assert torch.get_default_dtype() is torch.float32
    with turn(path) as left:
        import_file(str(folder / "helper_of_ops.py"))
    assert left.behind
    sys.modules.pop("helper_of_ops")
    file = None
    with turn(path) as left:
        file = open(path)  # noqa: SIM115
    assert left.behind
    file.close()

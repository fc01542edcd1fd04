"""A rule: one defect that gradlint can find. Its row in the catalogue holds all that is said about
it outside its own file."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from gradlint.model.report import Accepted, CheckVerdict, Finding, Severity

#: Experiments whose results are large; they are freed after the last rule that needs them.
LargeExperiment = Literal["make_extremes", "differentiate_twice"]

#: What a rule needs: the result of a large experiment, or the modules of ``torch.compile``.
Need = LargeExperiment | Literal["torch.compile"]

#: Headings of a rule's text, in this order, in the docstring of its module.
HEADINGS = ("What it finds", "Why it matters", "Bad", "Good", "How it looks", "References")

#: Where the folders of the families of rules are.
_RULES = Path(__file__).resolve().parents[1] / "rules"


@dataclass
class Outcome:
    """What a probe saw.

    Args:
        verdict: "fail" if a finding is an error or a warning; findings of severity info may come
            with a "pass".
        findings: the defects.
        resolution: smallest relative gradient error the probe would have seen, if it has one.
        note: why it was skipped or is inconclusive, or what else a reader should know.
        accepted: defects that someone accepts, taken out of the findings.
    """

    verdict: CheckVerdict = "pass"
    findings: list[Finding] = field(default_factory=list)
    resolution: float | None = None
    note: str = ""
    accepted: list[Accepted] = field(default_factory=list)


class Stage(IntEnum):
    """When a rule runs on a sample: cheap and informative rules first; within a stage, by code."""

    #: Never: the runner observes the defect itself (loading, crashes, time-outs).
    RUNNER = 0
    #: It only inspects the instrumented run.
    RUN = 1
    #: It measures values that later rules compare theirs with.
    VALUES = 2
    #: It makes one or two calls to see side effects and state.
    STATE = 3
    #: The same for inputs without requires_grad, and for memory layout.
    LAYOUT = 4
    #: It makes tens of calls: special points and second order.
    SPECIAL_POINTS = 5
    #: It makes samples of other sizes.
    SIZES = 6
    #: It compares dtypes or devices.
    PRECISION = 7
    #: It needs a compiler, or traces the op.
    TRANSFORMS = 8


@dataclass(frozen=True)
class CallCounts:
    """How many (forward, backward) calls a rule makes on one input.

    Args:
        usual, most: measured on the first samples of PyTorch's operator database in float64, on
            operators that pass.
        each_input: what each further input adds.
    """

    usual: tuple[int, int] = (0, 0)
    most: tuple[int, int] = (0, 0)
    each_input: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Implies:
    """Which findings are consequences of a defect.

    Args:
        depth: if two possible causes are found together, the one of lower depth is named.
        codes: rules whose findings follow from it.
    """

    depth: int
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """One defect that can be found: a row of ``gradlint.rules.catalogue``.

    Args:
        code: stable code such as "GL101"; never reused.
        family: folder of its file; name: of its file, which names the fault and not the cure.
        severity: of its findings; a finding may lower it, never raise it.
        summary: one line for ``gradlint rules``.
        calls: what it costs; GL401 and GL501 are predicted by formulas of their own.
        stage: when it runs.
        implies: which findings follow from it; None if none do.
        first_sample: whether it looks at the first sample only, because it compiles or makes
            samples of its own.
        needs: what must be kept or loaded for it.
        chooses: whether it runs the op on sizes or values of its own choosing, at which being slow
            is no fault.
    """

    code: str
    family: str
    name: str
    severity: Severity
    summary: str
    calls: CallCounts = CallCounts()
    stage: Stage = Stage.RUN
    implies: Implies | None = None
    first_sample: bool = False
    needs: frozenset[Need] = frozenset()
    chooses: bool = False

    @property
    def order(self) -> int:
        """1 or 2; rules of order 2 do not run under ``--order 1``."""
        return 2 if self.family == "order" else 1

    @property
    def has_probe(self) -> bool:
        """Whether it looks at samples; otherwise the runner observes the defect itself."""
        return self.stage is not Stage.RUNNER

    @property
    def probe(self) -> Callable[[Any], Outcome]:
        """The experiment, a function of a ``Subject``; its file is imported on first use."""
        found = importlib.import_module(f"gradlint.rules.{self.family}.{self.name}")
        return cast("Callable[[Any], Outcome]", found.probe)

    @property
    def text(self) -> str:
        """The rule's documentation: the docstring of its file, which is not imported for it."""
        return _docstring(_RULES / self.family / f"{self.name}.py")


@cache
def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or ""

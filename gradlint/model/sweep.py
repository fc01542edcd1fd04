"""The data model of a sweep: plain dataclasses, no torch; fields are only added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from gradlint.model.report import SCHEMA_VERSION, SampleReport, Verdict, jsonable
from gradlint.model.shown import Shown

#: Verdicts of the sweep of one input; "surrogate" means that it differs as declared.
SweepVerdict = Literal["agrees", "differs", "cannot tell", "surrogate", "empty"]


@dataclass(frozen=True)
class SweepStep:
    """One step.

    Args:
        h: step; every element of the input moves by h times its own size or less.
        state: "ok", "not finite", "raised" or "no change" (too fine for the outputs to change).
        numeric: numeric derivative along the direction; None where none could be taken.
        claimed: what backward claims it to be.
        error: |numeric − claimed|.
        truncation: predicted truncation error C·h²; None where none was seen.
        roundoff: predicted standard deviation of the roundoff.
        limit: "truncation" or "roundoff", whichever is predicted to be larger, or "plateau" where
            neither explains the error, because the gradient is wrong.
        chosen: whether the verdict rests on this step (extrapolated with the one before).
    """

    h: float
    state: str
    numeric: float | None = None
    claimed: float | None = None
    error: float | None = None
    truncation: float | None = None
    roundoff: float | None = None
    limit: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Measurement:
    """One way in which the slope that the claimed gradient leaves unexplained was measured.

    Args:
        method: "extrapolation" (of two steps of the ladder), "window fit" (least squares over
            neighbouring steps of ratio √2) or "path integral" (of the claimed gradient).
        residual: measured minus claimed slope.
        bar: its error bar.
        resolution: smallest relative error of the gradient that it would have seen.
        agrees: whether the residual is within its error bar plus what is tolerated. None for a path
            integral whose residual is not, if the verdict of the sweep is "agrees" or "cannot
            tell": a kink or an oscillation on the path proves nothing about the sample.
        steps: number of steps used.
        smallest, largest: steps used; half the length of the path for a path integral.
    """

    method: str
    residual: float
    bar: float
    resolution: float
    agrees: bool | None
    steps: int
    smallest: float
    largest: float


class SweepWords(Protocol):
    """Says in words what the sweep of one input shows."""

    def verdict(self, item: InputSweep) -> str:
        """The verdict, in one sentence."""

    def notes(self, item: InputSweep) -> list[str]:
        """What else a reader should know."""


@dataclass
class InputSweep:
    """The sweep of one input.

    Args:
        name, shape, dtype: of the input.
        verdict: "agrees", "differs", "cannot tell", "surrogate" (differs as declared) or "empty".
        reason: for "cannot tell": "kinks", "not confirmed", "claim not finite", "no steps" or
            "noise". For "agrees": "rounded" (to few digits only), or "by window fit" and "by path
            integral" if two steps of the ladder were not conclusive.
        claimed, measured: slopes along the direction.
        error: |measured − claimed| after extrapolation.
        bar: error bar of ``error``.
        relative_error: ``error`` relative to the larger slope.
        resolution: smallest relative error of the gradient that the sweep would have seen.
        tolerated: relative errors below this do not make a gradient wrong.
        chosen_step: the step chosen.
        noise_factor: κ, measured noise over that of rounding the outputs once.
        output_dtype: coarsest dtype among the input and the outputs.
        noise: κ times the spacing of ``output_dtype`` at 1: noise relative to the outputs.
        noise_level: one standard deviation of the noise of the weighed output φ, by the difference
            table of Moré and Wild; None where that accepts no level.
        noise_roundings: ``noise_level`` in units of the noise of rounding the outputs once.
        noise_spacing: step between the values of the table.
        curvature: C of the truncation error C·h²; None where none was seen.
        truncation_from, truncation_to: smallest and largest step that show it.
        measurements: ways in which the slope was measured, the one of the verdict first.
        left_out: measurements that were skipped because they would have taken too long.
        elements: elements whose claimed gradient is not zero.
        elements_seen: how many of them could not have been set to zero unnoticed.
        element_resolution: smallest error that would have been seen in any one element, relative
            to the median of those that are not zero.
        kinked, outputs: output elements with a kink at the sample, of how many.
        steps: coarsest first.
    """

    name: str
    shape: list[int] = field(default_factory=list)
    dtype: str = ""
    verdict: SweepVerdict = "cannot tell"
    reason: str = ""
    claimed: float | None = None
    measured: float | None = None
    error: float | None = None
    bar: float | None = None
    relative_error: float | None = None
    resolution: float | None = None
    tolerated: float | None = None
    chosen_step: float | None = None
    noise_factor: float = 1.0
    noise: float = 0.0
    output_dtype: str = ""
    noise_level: float | None = None
    noise_roundings: float | None = None
    noise_spacing: float | None = None
    curvature: float | None = None
    truncation_from: float | None = None
    truncation_to: float | None = None
    measurements: list[Measurement] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    elements: int = 0
    elements_seen: int = 0
    element_resolution: float | None = None
    kinked: int = 0
    outputs: int = 0
    steps: list[SweepStep] = field(default_factory=list)

    #: Set by ``gradlint.report.sweep``, which lies above the model; None in a worker.
    words: ClassVar[SweepWords | None] = None

    @property
    def floor(self) -> float | None:
        """Smallest error that truncation and roundoff allow at any step."""
        sums = [
            (step.truncation or 0.0) + step.roundoff
            for step in self.steps
            if step.state == "ok" and step.roundoff is not None
        ]
        return min((total for total in sums if total > 0.0), default=None)

    @property
    def best(self) -> float | None:
        """The finest resolving power of all measurements; None without any."""
        return min((one.resolution for one in self.measurements), default=self.resolution)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able values, with the verdict in words."""
        found: dict[str, Any] = jsonable(self)
        steps = found.pop("steps")
        return found | {
            "floor": jsonable(self.floor),
            "message": self.words.verdict(self) if self.words is not None else "",
            "notes": self.words.notes(self) if self.words is not None else [],
            "steps": steps,
        }


@dataclass
class SweepTarget:
    """All sweeps of one operator on one sample; ``error`` says why, if there are none."""

    target: str
    kind: str = "unknown"
    sample: SampleReport | None = None
    inputs: list[InputSweep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of its inputs; "skipped" where there is nothing to sweep."""
        verdicts = {item.verdict for item in self.inputs}
        if self.error:
            return "error"
        if "differs" in verdicts:
            return "fail"
        if "cannot tell" in verdicts:
            return "inconclusive"
        return "pass" if verdicts - {"empty"} else "skipped"


@dataclass
class SweepReport(Shown):
    """What ``gradlint sweep`` found."""

    targets: list[SweepTarget] = field(default_factory=list)
    seed: int = 0
    environment: dict[str, Any] = field(default_factory=dict)
    gradlint: str = ""
    duration_s: float = 0.0

    @property
    def inputs(self) -> list[InputSweep]:
        """The sweeps of all targets."""
        return [item for target in self.targets for item in target.inputs]

    @property
    def ok(self) -> bool:
        """Whether something was swept, and nothing differs or crashed."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 agrees or inconclusive, 1 an input differs or the op crashed, 5 nothing was swept."""
        verdicts = {target.verdict for target in self.targets}
        if verdicts & {"error", "fail"}:
            return 1
        return 0 if verdicts & {"pass", "inconclusive"} else 5

    def to_dict(self) -> dict[str, Any]:
        """One object of JSON-able values; fields are only added within a schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "gradlint": self.gradlint,
            "seed": self.seed,
            "environment": jsonable(self.environment),
            "duration_s": self.duration_s,
            "targets": [
                {
                    "target": target.target,
                    "kind": target.kind,
                    "verdict": target.verdict,
                    "sample": jsonable(target.sample),
                    "notes": jsonable(target.notes),
                    "error": target.error,
                    "inputs": [item.to_dict() for item in target.inputs],
                }
                for target in self.targets
            ],
        }

"""What a sweep says in words."""

from __future__ import annotations

import importlib.util

from gradlint.model.sweep import InputSweep, Measurement, SweepReport
from gradlint.report import wording

#: How to get the plots.
INSTALL_PLOT = "pip install 'gradlint[plot]'"

LEGEND = (
    "Each element moves by its own size times the step, along one fixed direction; the numeric "
    "derivative is a central difference over the distance the input moved. Truncation falls with "
    "the square of the step, roundoff grows with its inverse. The chosen step is extrapolated with "
    "the one before it, so the error bar may lie below the error in its row. The window fit takes "
    "eight steps of ratio 1.4 at once; the path integral compares the change over a long path with "
    "the integral of the claimed gradient, and has no truncation, but proves nothing if a kink "
    "or several oscillations lie on the path. In plots both axes are "
    "logarithmic, and an error of 0 stands at the lower edge."
)

#: Noise up to this many times that of one rounding is not mentioned (heuristic: a sum of some
#: hundred terms, or an exp or two, stay below).
_ORDINARY_NOISE = 30.0

#: Unit roundoff of the dtypes that an op may compute in, coarser than the one it claims.
_COARSER = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}

#: Noise within this factor of a dtype's roundoff is called as large as that dtype's.
_ALIKE = 8.0


def verdict(item: InputSweep) -> str:
    """What the verdict on one input means, without the verdict itself."""
    if item.verdict == "empty":
        return "it has no elements"
    if item.verdict == "cannot tell":
        return _why_not(item)
    if item.verdict == "agrees":
        return _agrees(item)
    if item.verdict == "surrogate":
        return (
            f"the error stops at {wording.small(item.error)}; a surrogate is declared for "
            f"`{item.name}`, so backward need not be the derivative"
        )
    return _differs(item)


def _agrees(item: InputSweep) -> str:
    seen = f"an error of {wording.power(item.resolution or 0.0)} would have been seen"
    if item.reason == "rounded":
        return (
            f"but only to {wording.power(item.relative_error or 0.0)}; {seen}: a constant "
            "written with few digits, an epsilon left out of backward, or rounding inside "
            "backward would look like this"
        )
    if item.reason.startswith("by "):
        best = wording.power(item.best or 0.0)
        return (
            f"the {item.reason.removeprefix('by ')} agrees; an error of {best} would have been "
            "seen, although two steps of the ladder alone are too noisy"
        )
    return f"the error falls to {_share(item)} of the slope; {seen}"


def _differs(item: InputSweep) -> str:
    stop = (
        f"the error stops at {wording.small(item.error)} instead of falling: the gradient is "
        "wrong by that much along this direction"
    )
    if _negligible(item.measured, item):
        return f"{stop} (the slope of the function is 0 there, but that of backward is not)"
    if _negligible(item.claimed, item):
        return f"{stop} (backward claims slope 0, but that of the function is not)"
    return f"{stop} ({_share(item)} of the slope)"


def numbers(item: InputSweep) -> list[str]:
    """Slopes, error bar, chosen step and resolving power."""
    if item.chosen_step is None:
        return []
    return [
        f"slope claimed {wording.signed(item.claimed)}, measured {wording.signed(item.measured)} "
        f"(error bar {wording.small(item.bar)}) at step {wording.small(item.chosen_step)}; "
        f"resolving power {wording.power(item.resolution or 0.0)}"
    ]


def limits(item: InputSweep) -> list[str]:
    """What limits the measurement: noise, truncation, and single elements of the gradient."""
    if item.chosen_step is None:
        return []
    found = [_noise(item)]
    if item.curvature is None or item.truncation_from is None:
        found.append("truncation: none seen at any step")
    else:
        found.append(
            f"truncation {wording.small(item.curvature)} h^2, seen at steps "
            f"{wording.small(item.truncation_from)} to {wording.small(item.truncation_to)}"
        )
    if item.floor is not None:
        found[-1] += f"; noise floor {wording.small(item.floor)}"
    if item.element_resolution is not None:
        found.append(_elements(item))
    if item.left_out:
        found.append(f"not measured because the op is too slow: {', '.join(item.left_out)}")
    return found


def _noise(item: InputSweep) -> str:
    if item.noise_level is None or item.noise_roundings is None:
        return (
            f"noise {item.noise_factor:.2g} times that of rounding the outputs once (scatter of "
            "the finest steps)"
        )
    return (
        f"noise {wording.small(item.noise_level)}, {item.noise_roundings:.2g} times that of "
        f"rounding the outputs once (difference table at spacing "
        f"{wording.small(item.noise_spacing)})"
    )


def _elements(item: InputSweep) -> str:
    resolved = wording.power(item.element_resolution or 0.0)
    hidden = item.elements - item.elements_seen
    told = f"single elements: an error of {resolved} of the median one would have been seen; "
    if hidden == 0:
        return told + f"none of {item.elements} could be set to zero unnoticed"
    return told + f"{hidden} of {item.elements} could be set to zero unnoticed"


def notes(item: InputSweep) -> list[str]:
    """What else a reader should know of one input."""
    found = []
    if item.kinked and item.reason != "kinks":
        found.append(
            f"{item.kinked} of {wording.plural(item.outputs, 'output element')} "
            f"{'has' if item.kinked == 1 else 'have'} a kink at this sample and "
            f"{'is' if item.kinked == 1 else 'are'} left out"
        )
    if item.noise_factor > _ORDINARY_NOISE and item.chosen_step is not None:
        like = [
            dtype
            for dtype, unit in _COARSER.items()
            if dtype != item.output_dtype and unit / _ALIKE <= item.noise <= unit * _ALIKE
        ]
        size = f", as large as {like[0]}'s" if like else ""
        found.append(
            f"noise is {wording.power(item.noise_factor)} times that of rounding a "
            f"{item.output_dtype} output once{size}: part of the op computes in lower precision, "
            "or digits cancel inside"
        )
    for state, told in (
        ("not finite", "the function is not finite"),
        ("raised", "the op raised"),
        ("no change", "too fine: the outputs no longer change"),
    ):
        sizes = [step.h for step in item.steps if step.state == state]
        if sizes:
            found.append(
                f"{told} at {wording.plural(len(sizes), 'step')}, "
                f"{wording.small(min(sizes))} to {wording.small(max(sizes))}"
            )
    return found


def summary(report: SweepReport) -> str:
    """The last line: inputs by verdict, and the seed."""
    counts: dict[str, int] = {}
    for item in report.inputs:
        counts[item.verdict] = counts.get(item.verdict, 0) + 1
    if not counts:
        return f"Nothing was swept. Seed {report.seed}."
    told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items()))
    return f"{wording.plural(len(report.inputs), 'input')}: {told}. Seed {report.seed}."


def plot_missing() -> str:
    """A hint if plots can't be drawn because plotext is missing; else empty."""
    if importlib.util.find_spec("plotext") is not None:
        return ""
    return f"Plots in the terminal need the extra `plot`: {INSTALL_PLOT}"


def steps_of(one: Measurement) -> str:
    """The steps that a measurement used."""
    if one.method == "path integral":
        return f"{one.steps} nodes, h {wording.small(one.largest)}"
    return f"{one.steps}, {wording.small(one.smallest)} to {wording.small(one.largest)}"


def _why_not(item: InputSweep) -> str:
    if item.reason == "kinks":
        return (
            "it differs at exactly this sample, but not right next to it: either a kink, where a "
            "central difference averages the two sides, or a gradient that is wrong at special "
            "points only; `gradlint check` looks closer"
        )
    if item.reason == "not confirmed":
        return "it differed along one direction and not along another"
    if item.reason == "claim not finite":
        return f"backward returned NaN or Inf for `{item.name}`"
    if item.reason == "no steps":
        usable = sum(step.state == "ok" for step in item.steps)
        return f"only {usable} of {len(item.steps)} steps could be used, and three are needed"
    return (
        f"errors up to {wording.power(item.resolution or 0.0)} of the gradient could hide: the "
        "function is too noisy, or not smooth at this sample"
    )


def _negligible(slope: float | None, item: InputSweep) -> bool:
    return slope is not None and abs(slope) <= (item.bar or 0.0)


def _share(item: InputSweep) -> str:
    share = item.relative_error
    if share is None:
        return "?"
    if 1e-3 <= share < 10.0:
        return f"{share * 100:.2g} %"
    return wording.small(share) if share else "0"

"""The words of reports: numbers, counts, verdicts and sentences, all in one place."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gradlint.model.report import (
    Argument,
    Check,
    Confirmation,
    Finding,
    SampleReport,
    Severity,
    TargetReport,
    TorchVerdict,
)

#: Families of rules by the first three characters of their codes.
FAMILIES = {
    "GL0": "loading and running",
    "GL1": "the contract of backward",
    "GL2": "shape, dtype and device of gradients",
    "GL3": "finiteness",
    "GL4": "first-order values",
    "GL5": "higher order",
    "GL6": "side effects and state",
    "GL7": "memory layout and size",
    "GL8": "precision and device",
    "GL9": "transforms",
}

#: Rich styles of severities and verdicts.
STYLES = {
    "error": "bold red",
    "fail": "bold red",
    "warning": "bold yellow",
    "inconclusive": "bold yellow",
    "info": "bold cyan",
    "pass": "bold green",
    "skipped": "dim",
}

#: Keys of a finding's evidence that :func:`measurement` puts into words.
MEASUREMENT = (
    "measured",
    "directions",
    "worst_z",
    "critical_z",
    "differing",
    "measured_elements",
    "numel",
    "relative_error",
    "resolution",
)

#: From this ratio on, how many times is not told.
MILLION = 1e6

#: Smaller shares are shown in digits, not in percent.
SMALLEST_PERCENT = 0.1

#: Arguments of a sample that are named in text.
ARGUMENTS = 12

NOTHING_CHECKED = "Nothing was checked."
NOTHING_TO_CHECK = "There was nothing to check."
STOPPED = "Ended early, by --max-failures: further operators may fail, too."
INTERRUPTED = "Interrupted: this is what was known at that point."

#: Said of a finding that does not fail the run because its baseline holds it.
IN_BASELINE = "in the baseline"

#: Said of every inconclusive check.
NOT_PASSED = "not counted as passed"


def rule_title(code: str, name: str) -> str:
    """``GL401 wrong gradient``: the code of a rule with its name in words."""
    return f"{code} {name.replace('_', ' ')}" if name else code


def plural(count: int, one: str, many: str = "") -> str:
    """``1 check``, ``2 checks``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def signed(value: Any) -> str:
    """A gradient element: ``-0.812041``, ``+1.50000e-09``, ``nan``; other values as they are."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return plain(value)
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return f"{value:+.6f}"
    return f"{value:+.5e}"


def small(value: Any) -> str:
    """An error or a resolution in two digits: ``2.1e+00``, ``3e-10``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return plain(value)
    return f"{value:.1e}" if math.isfinite(value) else str(value)


def power(value: float) -> str:
    """A resolving power, one digit: ``3e-10``."""
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", f"{value:.0e}")


def seconds(value: float) -> str:
    """A duration: ``20 ms``, ``0.4 s``, ``75 s``."""
    return (
        f"{value * 1000:.0f} ms"
        if value < 0.1
        else f"{value:.1f} s"
        if value < 60
        else f"{value:.0f} s"
    )


def size(nbytes: int) -> str:
    """Bytes, exactly, and rounded where that is easier to read: ``4096 bytes (4.0 KiB)``."""
    text = plural(nbytes, "byte")
    for power_of, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if nbytes >= 1024**power_of:
            return f"{text} ({nbytes / 1024**power_of:.1f} {unit})"
    return text


def memory(nbytes: int) -> str:
    """Bytes in two digits: ``1.2 MiB``."""
    for power_of, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if nbytes >= 1024**power_of:
            return f"{nbytes / 1024**power_of:.1f} {unit}"
    return plural(nbytes, "byte")


def plain(value: Any) -> str:
    """An evidence value in words: numbers in six digits, lists and dicts without quotes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(plain(item) for item in value) + "]"
    return "none" if value is None else str(value)


def argument(arg: Argument, *, dtype: bool = True) -> str:
    """``x float64[4, 3]`` or ``dim=-1``."""
    if arg.shape is None:
        return f"{arg.name}={arg.value}" if arg.value is not None else f"{arg.name}=?"
    kind = arg.dtype or "" if dtype or arg.dtype != "float64" else ""
    shape = "[" + ", ".join(str(n) for n in arg.shape) + "]"
    return f"{arg.name} {kind}{shape}" if kind else f"{arg.name}{shape}"


def arguments(sample: SampleReport, *, dtype: bool = True) -> str:
    """The arguments of a sample, and which of them gradients are taken of, if not all."""
    shown = [argument(arg, dtype=dtype) for arg in sample.args[:ARGUMENTS]]
    if len(sample.args) > ARGUMENTS:
        shown.append(f"{len(sample.args) - ARGUMENTS} more")
    words = ", ".join(shown) or "no arguments"
    can = [a for a in sample.args if (a.dtype or "").startswith(("float", "bfloat", "complex"))]
    does = [a.name for a in sample.args if a.requires_grad]
    devices = sorted({a.device for a in sample.args if a.device and a.device != "cpu"})
    if devices:
        words += f" on {', '.join(devices)}"
    if len(does) < len(can):
        words += f"; gradients of {', '.join(does)}" if does else "; nothing requires grad"
    return words


def origin(sample: SampleReport) -> str:
    """Where a sample came from, as a word or two."""
    return {"sample_inputs": "from sample_inputs", "spec": "from the spec"}.get(
        sample.origin, sample.origin
    )


def measurement(evidence: Mapping[str, Any], *, verbose: bool = False) -> list[str]:
    """What is wrong and how sure that is, a line each, from those numbers of :data:`MEASUREMENT`
    that are given; with ``verbose`` the statistics too.

    ``16 of 16 elements differ; the gradient is off by 150 %``
    ``sure: errors from 4e-09 on would have been seen, this one is 3e+08 times larger``
    """
    lines = []
    if evidence.get("measured") is not None:
        lines.append(plain(evidence["measured"]))
    error = _number(evidence.get("relative_error"))
    off = f"the gradient is off by {share(error)}" if error is not None else ""
    words = [part for part in (_differing(evidence), off) if part]
    if words:
        lines.append("; ".join(words))
    resolution = _number(evidence.get("resolution"))
    if resolution is not None and error is not None:
        lines.append(
            f"sure: errors from {power(resolution)} on would have been seen, this one is "
            f"{_times(error, resolution)}"
        )
    if verbose:
        lines += _statistics(evidence)
    return lines


def _number(value: Any) -> float | None:
    """``value`` where it is a number: evidence may have been read from a file."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _differing(evidence: Mapping[str, Any]) -> str:
    """``3 of 16 elements differ``."""
    differing = evidence.get("differing")
    if differing is None:
        return ""
    of, total = _number(evidence.get("measured_elements")), _number(evidence.get("numel"))
    if differing == 0:
        text = "no element differs beyond its own error bar"
    else:
        text = str(differing) + (f" of {of}" if of is not None else "")
        text += " element differs" if of == 1 else " elements differ"
    if total is not None and of is not None and of < total:
        text += f" ({of} of {total} were measured)"
    return text


def _times(error: Any, resolution: float) -> str:
    """``1,200 times larger``, ``a million times larger or more``."""
    ratio = error / resolution if resolution else math.inf
    if not math.isfinite(ratio) or ratio >= MILLION:
        return "over a million times larger"
    return f"{ratio:,.0f} times larger" if ratio >= 10.0 else f"{ratio:.1f} times larger"


def _statistics(evidence: Mapping[str, Any]) -> list[str]:
    """``16 directions, worst z 4.1e+07 (critical 6.5)``, and the relative error in digits."""
    words = []
    if evidence.get("directions") is not None:
        words.append(plural(evidence["directions"], "direction"))
    if evidence.get("worst_z") is not None:
        critical = evidence.get("critical_z")
        than = f" (critical {plain(critical)})" if critical is not None else ""
        words.append(f"worst z {small(evidence['worst_z'])}{than}")
    if evidence.get("relative_error") is not None:
        words.append(f"relative error {small(evidence['relative_error'])}")
    return [", ".join(words)] if words else []


def share(value: Any) -> str:
    """A relative error: ``150 %``, ``0.3 %``, in digits below: ``2e-05``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return small(value)
    percent = 100.0 * value
    if percent < SMALLEST_PERCENT or percent >= MILLION:
        return power(value)
    return f"{percent:,.0f} %" if percent >= 10.0 else f"{percent:.2g} %"


def computed_label(underlined: str) -> str:
    """The label of a related place: where a returned name was computed, or just a pointer."""
    return "computed here" if underlined.isidentifier() else "see here"


def where(finding: Finding) -> str:
    """Outputs and index of a finding, if it has them."""
    words: list[str] = []
    outputs = [finding.output] if finding.output else finding.evidence.get("outputs")
    if outputs and isinstance(outputs, (list, tuple)):
        named = ", ".join(f"`{output}`" for output in outputs)
        words.append(f"output{'s' if len(outputs) > 1 else ''} {named}")
    if finding.index is not None:
        words.append(f"index {finding.index}")
    return ", ".join(words)


def same_sample(finding: Finding, verdict: TorchVerdict | None, family: str) -> bool:
    """Whether torch's ``verdict`` is about the sample and the order of ``finding``."""
    if verdict is None or not finding.code.startswith(family):
        return False
    return not verdict.sample or not finding.sample or verdict.sample == finding.sample


def confirmation(found: Confirmation) -> str:
    """What the op did in a process of its own, in a line."""
    words = f"{found.verdict}: {found.note}" if found.note else str(found.verdict)
    if found.verdict == "not confirmed":
        return words
    calls = f"{plural(found.forward_calls, 'forward call')}, {found.backward_calls} backward"
    return f"{words}; {calls}; {seconds(found.duration_s)}"


def torch_verdict(verdict: TorchVerdict, failed: bool, where: str = "") -> list[str]:
    """What torch's check says and who is right, a sentence a line.

    Args:
        verdict: torch's.
        failed: whether gradlint found the gradient wrong on the same sample.
        where: label of the sample, where that needs saying.
    """
    says = {"pass": "passes", "fail": "fails", "skipped": "skipped"}.get(
        verdict.verdict, verdict.verdict
    )
    lines = [f"{verdict.mode}: {says}" + (f" on sample {where}" if where else "")]
    if verdict.agreement and verdict.agreement != "agrees":
        lines[0] += f"; {verdict.agreement}"
    elif failed and verdict.verdict == "fail":
        lines[0] += " too"
    elif failed and verdict.verdict == "pass":
        lines[0] += " here"
    if verdict.message and verdict.verdict != "pass":
        lines.append(verdict.message)
    return lines


def powers(values: Collection[float]) -> str:
    """Worst and best of some resolving powers: ``3e-10``, ``2e-8 at worst, 3e-10 at best``."""
    worst, best = power(max(values)), power(min(values))
    return best if worst == best else f"{worst} at worst, {best} at best"


def severities(counts: Mapping[Severity, int]) -> str:
    """``1 error, 2 warnings, 3 info findings``: findings by severity, worst first."""
    names: dict[Severity, tuple[str, str]] = {
        "error": ("error", "errors"),
        "warning": ("warning", "warnings"),
        "info": ("info finding", "info findings"),
    }
    return ", ".join(
        plural(counts[severity], *words)
        for severity, words in names.items()
        if counts.get(severity, 0)
    )


def verdict_counts(checks: Sequence[Check], findings: Sequence[Finding]) -> str:
    """What a target's verdict rests on: ``1 error; 12 of 14 checks passed, resolving 3e-10``."""
    text = severities(Counter(finding.severity for finding in findings))
    ran = [check for check in checks if check.verdict != "skipped"]
    if ran:
        passed = [check for check in ran if check.verdict == "pass"]
        text += "; " if text else ""
        some = "" if len(passed) == len(ran) else f"{len(passed)} of "
        text += f"{some}{plural(len(ran), 'check')}" + (" passed" if some else "")
        known = [check.resolution for check in passed if check.resolution is not None]
        if known:
            text += f", resolving {powers(known)}"
        text += "".join(f", {pairs}" for pairs in fewer_pairs(ran))
    return text


def fewer_pairs(checks: Iterable[Check]) -> list[str]:
    """``2 of 4 pairs (GL401 wrong_gradient)`` for checks that judged fewer pairs than usual."""
    found: dict[str, set[str]] = {}
    for check in checks:
        used, usual = check.pairs or 0, check.pairs_usual or 0
        if 0 < used < usual:
            found.setdefault(f"{used} of {usual} pairs", set()).add(named(check))
    return [f"{told} ({codes(named)})" for told, named in found.items()]


def operators(counts: dict[str, int]) -> str:
    """``1 of 3 operators fails, 1 is inconclusive.``; ``All 3 operators pass.``"""
    total = counts["targets"]
    if total == 0:
        return NOTHING_CHECKED
    if counts["pass"] == total:
        return "The operator passes." if total == 1 else f"All {total} operators pass."
    words: list[str] = []
    for key, one, many in (
        ("fail", "fails", "fail"),
        ("error", "could not be judged", "could not be judged"),
        ("inconclusive", "is inconclusive", "are inconclusive"),
        ("skipped", "was skipped", "were skipped"),
        ("pass", "passes", "pass"),
    ):
        count = counts[key]
        if count:
            verb = one if count == 1 else many
            words.append(
                f"{count} {verb}" if words else f"{count} of {plural(total, 'operator')} {verb}"
            )
    if total == 1:
        words[0] = words[0].replace("1 of 1 operator", "The operator")
    return ", ".join(words) + "."


def named(check: Check) -> str:
    """``GL401 wrong_gradient``: a code does not stand without its name."""
    return f"{check.code} {check.name}".rstrip()


def codes(values: Iterable[str]) -> str:
    """Distinct codes, or codes with names, in order."""
    return ", ".join(sorted(set(values)))


def not_tried(target: TargetReport, limit: int | None = None) -> str:
    """What no sample of ``target`` reached, on one line: ``stride ≠ 1, complex, line 84``; of more
    than ``limit`` items the first ones."""
    items = [
        text if "`" in text else text.replace(" != ", " ≠ ")  # not in source
        for text in target.not_tried
    ]
    words = ", ".join(items[:limit])
    if limit is not None and len(items) > limit:
        words += f" and {len(items) - limit} more (-v shows them)"
    return words


def baseline_entry(entry: Mapping[str, Any]) -> str:
    """``ops.py:Op  GL401 wrong_gradient for `x` (float64, cpu)``: an entry of a baseline."""
    text = f"{entry['op']}  {entry['code']} {entry.get('name', '')}".rstrip()
    text += f" for `{entry['input']}`" if entry.get("input") else ""
    text += f" in output `{entry['output']}`" if entry.get("output") else ""
    place = ", ".join(entry[key] for key in ("dtype", "device") if entry.get(key))
    return text + (f" ({place})" if place else "")


def uncovered(count: int) -> str:
    """How many operators pass with code of backward that never ran; empty for none."""
    return f"{count} passed with code that never ran." if count else ""


def unwatched(targets: Iterable[TargetReport]) -> str:
    """``Coverage unknown: 2 operators (no Python code to watch)``; empty if it is known for all."""
    counts = Counter(target.coverage_note for target in targets if target.coverage_note)
    words = [f"{plural(count, 'operator')} ({note})" for note, count in counts.items()]
    return f"Coverage unknown: {', '.join(words)}." if words else ""


def script(path: str) -> str:
    """The command that runs a script, quoted for a POSIX shell."""
    return shlex.join(["python", path])

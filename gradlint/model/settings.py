"""The settings of a run, as plain data: picklable, and imported by workers in no time.

``gradlint.model.resolve`` makes them from pyproject.toml, the environment and flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gradlint.model.report import FailOn

Dtype = Literal["float64", "float32", "bfloat16", "float16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)

#: What a rule may be set to: a severity, or to be left out.
Level = Literal["error", "warning", "info", "off"]
LEVELS: tuple[Level, ...] = get_args(Level)

#: Tools of NVIDIA's compute-sanitizer.
Sanitizer = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
SANITIZERS: tuple[Sanitizer, ...] = get_args(Sanitizer)


@dataclass(frozen=True)
class Settings:
    """What the user asked of one run.

    Args:
        inputs: the ``--inputs`` text, or None to use the op's own samples or inference.
        devices: device types asked for.
        require_device: an absent device is an error (exit 2), not a skip.
        dtypes: dtypes asked for by name; None means float64, or what the op accepts.
        promised_dtypes: those that ``[tool.gradlint]`` names: an op that refuses one of them fails.
            Others that are asked for are wishes, and it may refuse them.
        select: rule codes or prefixes to run; None means all.
        ignore: rule codes or prefixes to leave out.
        per_target_ignores: pairs of a pattern, compared with the target, its file and the op's name
            (``*`` and ``?`` as in file names), and the codes or prefixes to leave out there.
        severities: pairs of a rule code or prefix and the severity that its findings have at most,
            in place of the rule's own; "off" leaves the rule out. The longest that fits counts.
        order: 1 for first order only, 2 for second order too.
        seed: seed of every direction, cotangent and inferred value.
        timeout: seconds that one phase (loading, finding inputs, one rule) may take.
        jobs: workers at a time.
        fail_on: lowest severity that fails the run; "inconclusive" also fails checks without a
            verdict, and "uncovered" also operators that pass with code that never ran.
        imports: modules to import before a target is loaded (``--import``).
        memory_mb: address space in MiB that one worker may allocate beyond what torch holds;
            None for a share of what the machine has free.
        max_calls: forward and backward calls that the checks of one sample may take together while
            nothing disagrees; None for as many as they need.
        sanitizer: the tool of compute-sanitizer that the checks run under; None to run without.
        untrusted: confine workers by the operating system: no network, files read-only but for a
            scratch folder, nothing of the caller's environment that may be secret.
        debug: show tracebacks of gradlint itself.
        paths: the targets of a run in which none is named.
        baseline: the file of findings that are accepted; None for none.
        require_coverage: files and folders, all operators of which must be checked.
        max_failures: failing operators after which the run ends; None for any number.
        cluster: address of a Dask scheduler, or "local:N", whose workers check; None to check here.
        cache: folder or URL where verdicts are kept from run to run; None to keep none.
    """

    inputs: str | None = None
    devices: tuple[str, ...] = ("cpu",)
    require_device: bool = False
    dtypes: tuple[str, ...] | None = None
    promised_dtypes: tuple[str, ...] = ()
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    per_target_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    severities: tuple[tuple[str, Level], ...] = ()
    order: int = 2
    seed: int = 0
    timeout: float = 60.0
    jobs: int = 1
    fail_on: FailOn = "warning"
    imports: tuple[str, ...] = ()
    memory_mb: int | None = None
    max_calls: int | None = None
    sanitizer: Sanitizer | None = None
    untrusted: bool = False
    debug: bool = False
    paths: tuple[str, ...] = ()
    baseline: str | None = None
    require_coverage: tuple[str, ...] = ()
    max_failures: int | None = None
    cluster: str | None = None
    cache: str | None = None

"""Settings of a run: ``[tool.gradlint]`` in pyproject.toml, environment, flags, in that order.

``Settings`` is plain and picklable: it travels to the workers.
"""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = ("float64", "float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")
FAIL_ON = ("error", "warning", "info", "inconclusive")


@dataclass(frozen=True)
class Settings:
    """What one run was asked for.

    Args:
        inputs: the ``--inputs`` text, or None to use the op's own samples or inference.
        devices: device types asked for.
        require_device: an absent device is an error (exit 2), not a skip.
        dtypes: dtypes asked for by name; None means float64, or what the op accepts.
        select: rule codes or prefixes to run; None means all.
        ignore: rule codes or prefixes to leave out.
        order: 1 for first order only, 2 for second order too.
        seed: seed of every direction, cotangent and inferred value.
        timeout: seconds that one phase (loading, finding inputs, one rule) may take.
        jobs: workers at a time.
        fail_on: one of :data:`FAIL_ON`.
        imports: modules to import before a target is loaded (``--import``).
        memory_mb: address space in MiB that one worker may allocate beyond what torch holds;
            None for a share of what the machine has free.
        debug: show tracebacks of gradlint itself.
    """

    inputs: str | None = None
    devices: tuple[str, ...] = ("cpu",)
    require_device: bool = False
    dtypes: tuple[str, ...] | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    order: int = 2
    seed: int = 0
    timeout: float = 60.0
    jobs: int = 1
    fail_on: str = "warning"
    imports: tuple[str, ...] = ()
    memory_mb: int | None = None
    debug: bool = False

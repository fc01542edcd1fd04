"""What compute-sanitizer writes, in its documented format: the reports in ``reports/``."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.experiments.device.sanitizer_report import DeviceError, SanitizerReport, parse_report
from gradlint.model.report import Location
from gradlint.model.settings import Settings
from gradlint.rules.device import memory_error

REPORTS = Path(__file__).parent / "reports"


def report(tool: str) -> SanitizerReport:
    return parse_report((REPORTS / f"{tool}.txt").read_text(encoding="utf-8"))


def test_memcheck() -> None:
    found = report("memcheck")
    assert (found.total, found.troubles) == (3, [])
    write, read = found.errors
    assert write == DeviceError(
        "Invalid __global__ write of size 4 bytes",
        "scale_kernel(float *, int)",
        "kernels/scale.cu",
        7,
        "(30,0,0)",
        "(0,0,0)",
        "0x7f2a1e000078 is out of bounds and is 1 bytes after the nearest allocation at "
        "0x7f2a1e000000 of size 120 bytes",
        launched="run_body<Scale>(Scale)",
        count=2,
    )
    assert (read.kernel, read.file, read.count) == ("load(const float4 *)", "", 1)
    assert read.address == "0x7f2a1e000204 is misaligned"


def test_racecheck() -> None:
    found = report("racecheck")
    assert found.total == 2
    error, warning = found.errors
    assert error.kind == "Race between write and read access to shared memory"
    assert (error.kernel, error.file, error.line) == ("sum_kernel(int *, int *)", "sum.cu", 11)
    assert error.others == (
        "Read access at sum_kernel(int *, int *) in sum.cu:21",
        "Write access at sum_kernel(int *, int *) in sum.cu:11",
    )
    assert (error.count, error.warning) == (512, False)
    assert (warning.kernel, warning.count, warning.warning) == ("warp_kernel(int *)", 31, True)


def test_initcheck() -> None:
    found = report("initcheck")
    read, copied = found.errors
    assert (read.kind, read.kernel) == (
        "Uninitialized __global__ memory read of size 4 bytes",
        "mean_kernel(const float *, float *)",
    )
    assert (read.file, read.line, read.address) == ("mean.cu", 41, "0x7f3c7ec000fc")
    assert copied.kind.startswith("Host API uninitialized memory access")


def test_synccheck() -> None:
    divergent, inlined = report("synccheck").errors
    assert divergent.kind == "Barrier error detected. Divergent thread(s) in block"
    assert (divergent.file, divergent.line, divergent.thread) == ("tail.cu", 20, "(63,0,0)")
    assert (inlined.kernel, inlined.launched) == ("Barrier::wait()", "tail_kernel(float *)")


@pytest.mark.parametrize(
    ("text", "total", "troubles"),
    [
        ("", None, []),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0, []),
        ("what the op printed\n========= ERROR SUMMARY: 0 errors", 0, []),
        (
            "========= Internal Sanitizer Error: The Sanitizer encountered an error\n",
            None,
            ["Internal Sanitizer Error: The Sanitizer encountered an error"],
        ),
        (
            "========= Target application terminated before first instrumented API call\n"
            "========= ERROR SUMMARY: 0 errors\n",
            0,
            ["Target application terminated before first instrumented API call"],
        ),
    ],
)
def test_reports_without_errors(text: str, total: int | None, troubles: list[str]) -> None:
    assert parse_report(text) == SanitizerReport([], total, troubles)


def test_a_finding_says_tool_kernel_and_how_often() -> None:
    settings = Settings(seed=4, devices=("cuda",), sanitizer="memcheck")
    error = report("memcheck").errors[0]
    place = Location("kernels/scale.cu", 7)
    found = memory_error.make_finding("ops.py:Scale", "memcheck", error, settings, location=place)
    assert (found.code, found.severity, str(found.location)) == (
        "GL805",
        "error",
        "kernels/scale.cu:7:1",
    )
    assert found.message == (
        "memcheck: Invalid __global__ write of size 4 bytes in scale_kernel(float *, int) (2 times)"
    )
    assert found.evidence["launched"] == "run_body<Scale>(Scale)"
    assert (found.evidence["thread"], found.evidence["count"]) == ("(30,0,0)", 2)
    assert found.help.startswith("mask or bound the index")
    assert found.reproduce == (
        "gradlint check ops.py:Scale --seed 4 --device cuda --sanitizer memcheck"
    )


def test_a_warning_of_the_tool_is_a_warning() -> None:
    settings = Settings(seed=4, devices=("cuda",), sanitizer="racecheck")
    error, warning = report("racecheck").errors
    assert memory_error.make_finding("t", "racecheck", error, settings).severity == "error"
    found = memory_error.make_finding("t", "racecheck", warning, settings)
    assert found.severity == "warning"
    assert found.help.endswith("-lineinfo to see the line")

"""``gradlint kernels``: what is listed, compiled and told; nothing here builds against torch."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.cli.entry import main
from gradlint.cli.kernels import parse_size
from gradlint.cli.reference_operators import catalogue, reference_specs, schemas_in
from gradlint.native import roots as _roots
from gradlint.native.compile import parse_architectures

Run = Callable[..., tuple[int, str, str]]

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["kernels", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one kernel that compiles and one that does not."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    good = "__global__ void good(float* x) { x[threadIdx.x] *= 2; }\n"
    (kernels / "good.cu").write_text(good, encoding="utf-8")
    (kernels / "bad.cu").write_text("__global__ void bad() { nothing(); }\n", encoding="utf-8")
    monkeypatch.setattr(_roots, "_CHECKOUT", tmp_path)
    return tmp_path


@needs_nvcc
def test_a_report_on_machine_code(run: Run, checkout: Path) -> None:
    code, out, _ = run("compile", "--arch", "sm_90", "--report")
    assert code == 1  # bad.cu does not compile
    assert "good.cu: good(float*)" in out
    # Without launch bounds, but with few registers.
    assert "1 kernels, 0 with faults." in out
    assert 'bad.cu(1): error: identifier "nothing" is undefined' in out


def test_help_names_the_commands(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    commands = [
        line.split()[0] for line in out.partition("Commands:")[2].splitlines() if line[2:3].strip()
    ]
    assert commands == ["list", "build", "compile", "bench", "check"]


def test_listing_needs_no_torch() -> None:
    code = (
        "import sys; from gradlint.cli.entry import main; code = main(['kernels', 'list'])\n"
        "assert code == 0 and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_every_operator_has_kernel_schema_and_spec(run: Run) -> None:
    code, out, _ = run("list", "--output-format", "json")
    assert code == 0
    found: list[dict[str, Any]] = json.loads(out)
    assert {spec for item in found for spec in item["specs"]} == {p.name for p in reference_specs()}
    for item in found:
        assert item["schema"].startswith(f"{item['name']}("), item
        assert item["kernel"].endswith(".cu"), item
        assert set(item["devices"]) == {"cpu", "cuda"}
        assert {"float64", "float32"} <= set(item["dtypes"])
    once = {item["name"] for item in found if item["orders"] == [1]}
    assert once <= {"roi_align", "soft_rank"}


def test_the_listing_in_words(run: Run) -> None:
    _, out, _ = run("list")
    assert re.search(r"^  square +square\.cu +1,2 +f64 f32 f16 bf16$", out, re.MULTILINE)
    assert "\n  square(Tensor x) -> Tensor\n" in out
    assert out.endswith(f"{len(catalogue())} operators, torch.ops.gradlint.NAME.\n")


def test_schemas_are_read_from_bindings(tmp_path: Path) -> None:
    (tmp_path / "bind").mkdir()
    text = (
        'struct Square {\n  static constexpr const char* name = "square";\n'
        '  static constexpr const char* parameters = ", float scale";\n'
        'm.def("one(Tensor x) -> Tensor");\n'
        'm.def(\n    "two(Tensor x, "\n    "int dim=-1) -> Tensor", &two);\n'
    )
    (tmp_path / "bind" / "a.cpp").write_text(text, encoding="utf-8")
    assert schemas_in(tmp_path) == {
        "square": "square(Tensor x, float scale) -> Tensor",
        "one": "one(Tensor x) -> Tensor",
        "two": "two(Tensor x, int dim=-1) -> Tensor",
    }


@needs_nvcc
@pytest.mark.usefixtures("checkout")
def test_what_does_not_compile_is_shown_and_fails(run: Run) -> None:
    code, out, _ = run("compile", "--arch", "sm_80,sm_90")
    assert code == 1
    rows = re.findall(r"^  (\w+\.cu) +(sm_\d+) +[\d.]+ +(\w+)$", out, re.MULTILINE)
    assert rows == [
        ("bad.cu", "sm_80", "FAILED"),
        ("bad.cu", "sm_90", "FAILED"),
        ("good.cu", "sm_80", "ok"),
        ("good.cu", "sm_90", "ok"),
    ]
    assert 'bad.cu(1): error: identifier "nothing" is undefined' in out
    assert out.endswith("2 of 4 compile (sm_80, sm_90).\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--arch", "sm90"],
            "error: --arch: 'sm90' is not an architecture\n  did you mean sm_90?\n",
        ),
        (
            ["--arch", "hopper"],
            "error: --arch: 'hopper' is not an architecture\n  write sm_80,sm_90\n",
        ),
    ],
)
def test_architectures_that_are_none(run: Run, words: list[str], message: str) -> None:
    assert run("compile", *words) == (2, "", message)


@needs_nvcc
def test_an_architecture_that_nvcc_does_not_know(run: Run) -> None:
    code, _, error = run("compile", "--arch", "sm_20")
    assert code == 2
    assert "does not compile for sm_20\n  it knows sm_" in error


@pytest.mark.parametrize("option", ["--Ofast-compile", "--Ofast-compile-more"])
@pytest.mark.usefixtures("checkout")
def test_optimisations_are_left_out_where_nvcc_can(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    from gradlint.native import _tools

    nvcc = tmp_path / "nvcc"
    calls = tmp_path / "calls"
    nvcc.write_text(
        f"#!/bin/sh\ncase $1 in\n--help) echo '{option} <level>';;\n"
        f"--list-gpu-code) echo sm_90;;\n*) echo $* >> {calls};;\nesac\n",
        encoding="utf-8",
    )
    nvcc.chmod(0o755)
    monkeypatch.setattr(_tools, "nvcc", lambda: _tools.Tool(str(nvcc), "13.0.88"))
    code, out, _ = run("compile", "--arch", "sm_90")
    assert code == 0
    assert out.endswith("\n2 of 2 compile (sm_90).\n")
    quick = [" --Ofast-compile=max " in line for line in calls.read_text().splitlines()]
    assert quick == [option == "--Ofast-compile"] * 2


def test_without_nvcc(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradlint.native import _tools

    monkeypatch.setattr(_tools, "nvcc", lambda: None)
    code, _, error = run("compile")
    assert code == 2
    assert error.startswith("error: nvcc, CUDA's compiler, is not found")
    assert "install the CUDA toolkit and set CUDA_HOME" in error


def test_architectures_are_taken_once_and_in_order() -> None:
    assert parse_architectures(["sm_90,sm_80", "sm_90"]) == ("sm_90", "sm_80")
    assert parse_architectures([]) == ("sm_80", "sm_90")


def test_check_runs_over_all_specs_on_what_is_present(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradlint.cli import check, kernels

    asked: dict[str, Any] = {}

    def checked(targets: list[str], **options: Any) -> int:
        asked.update(options, targets=targets)
        return 1

    monkeypatch.setattr(kernels, "_present", lambda: ("cpu", "cuda"))
    monkeypatch.setattr(kernels, "_built", lambda devices: str(devices))
    monkeypatch.setattr(check, "check", checked)
    assert run("check", "--seed", "5")[0] == 1
    assert [Path(t).name for t in asked["targets"]] == [p.name for p in reference_specs()]
    assert (asked["device"], asked["seed"]) == (["cpu,cuda"], 5)
    assert run("check", "--device", "tpu")[0] == 2


def test_check_refuses_words_before_it_builds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradlint.cli import kernels

    monkeypatch.setattr(kernels, "_built", lambda _devices: pytest.fail("it was built"))
    for option, word in (("--select", "GL40I"), ("--ignore", "GL999"), ("--dtype", "float65")):
        code, out, error = run("check", "--device", "cpu", option, word)
        assert (code, out) == (2, "")
        assert word in error


@pytest.mark.parametrize(("text", "size"), [("65536", 65536), ("2^20", 2**20), ("2**26", 2**26)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-4", "2^", "1e6", "2^99"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(GradlintError, match="is not a number of elements"):
        parse_size(text)


def test_the_table_of_times(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def row(label: str, seconds: float, eager: float | None, share: float) -> dict[str, Any]:
        return {
            "operator": "square",
            "pass": label,
            "size": "1024",
            "seconds": seconds,
            "eager_seconds": eager,
            "floor": "memory",
            "work": 8192,
            "of_floor": share,
        }

    found = {
        "device": "A chip",
        "kind": "cpu",
        "dtype": "float32",
        "threads": 2,
        "date": "2026-01-02",
        "versions": {"python": "3.11", "torch": "2.9", "cuda": None},
        "copy_bytes_per_s": 1.5e10,
        "matmul_flops_per_s": 2e11,
        "rows": [row("forward", 2e-3, 3e-3, 0.5), row("backward", 1e-3, None, 0.875)],
    }
    monkeypatch.setattr("gradlint.running.call.call_in_worker", lambda work: found)
    code, out, _ = run("bench", "--elements", "2^10")
    assert code == 0
    lines = [re.sub(r" {2,}", "  ", line.strip()) for line in out.splitlines()]
    assert lines[:3] == [
        "operator  pass  size  ms  eager ms  speedup  floor  of",
        "square  forward  1024  2.000  3.000  1.50  50%  copy",
        "square  backward  1024  1.000  88%  copy",
    ]
    assert "A chip, 2 threads, float32, python 3.11, torch 2.9" in out
    assert "copy 15.0 GB/s, matmul 0.20 TFLOP/s, medians of 2026-01-02" in out

"""``examples/triton``: right kernels pass, twins are found, on the CPU by Triton's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.support.triton_examples import CODES, FOLDER, MISSING, RIGHT, ROOT, TWINS
from tests.kernels.support.triton_examples import right_specs as right

needs_triton = pytest.mark.skipif(bool(MISSING), reason=MISSING)

#: What right kernels are judged by: all rules take minutes in the interpreter.
SELECTED = f"GL401,GL703,GL706,{CODES}"

#: Compiles kernels for a GPU that need not be there. Arguments are pointers by their names; sums
#: are kept in a dtype of their own.
COMPILE = """
import importlib.util, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

POINTERS = {"x", "y", "a", "b", "g", "gx", "ga", "gb", "weight", "bias"}
SUMS = {"mean", "rstd", "gw", "gb"}
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kernel in [each for each in vars(module).values() if isinstance(each, JITFunction)]:
        sums = SUMS if "mean" in kernel.arg_names else set()
        for dtype, wide in (("fp16", "fp32"), ("fp64", "fp64")):
            types = {
                name: "constexpr" if name == "BLOCK" else "fp32" if name == "eps"
                else f"*{wide}" if name in sums else f"*{dtype}" if name in POINTERS else "i32"
                for name in kernel.arg_names
            }
            source = ASTSource(kernel, types, constexprs={"BLOCK": 64})
            made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
            assert made.asm["cubin"], (path, kernel, dtype)
            print(path.rpartition("/")[2], kernel.__name__, dtype)
"""


def checked(*words: str) -> list[dict[str, Any]]:
    """The targets of the report of ``gradlint check --triton-interpret``."""
    command = [sys.executable, "-m", "gradlint", "check", "--triton-interpret", "--seed", "0"]
    done = subprocess.run(
        [*command, "-j", "1", "--output-format", "json", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["targets"]


def test_every_file_is_in_a_table() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(RIGHT)
    assert sorted(path.stem for path in FOLDER.glob("faulty/*.py")) == [t.name for t in TWINS]
    for path in (*FOLDER.glob("*.py"), *FOLDER.glob("faulty/*.py")):
        assert path.with_suffix(".yaml").is_file()


@pytest.mark.skipif(not MISSING, reason="triton is installed")
def test_without_triton_the_report_says_what_to_install(gradlint: Any) -> None:
    done = gradlint(ROOT, "check", "examples/triton/softmax.py", "--color", "never")
    text = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "GL001 target cannot be loaded" in text
    assert "needs the module `triton`, which can't be found" in text
    assert "`pip install triton`" in text
    assert "Traceback" not in done.stdout + done.stderr


@needs_triton
def test_right_kernels_pass_in_the_interpreter() -> None:
    found = checked(*right(), "--dtype", "float64,bfloat16", "--select", SELECTED)
    wrong = {each["target"]: each["findings"] for each in found if each["verdict"] != "pass"}
    assert not wrong
    assert len(found) == len(RIGHT)
    for each in found:
        judged = {(c["code"], c["sample"]) for c in each["checks"] if c["verdict"] == "pass"}
        for code in ("GL401", "GL404", "GL701", "GL703", "GL706", "GL806"):
            assert any(code == one for one, _ in judged), (each["target"], code)
        assert any(one == "GL801" and "bfloat16" in label for one, label in judged)


@needs_triton
def test_every_twin_is_found_in_the_interpreter() -> None:
    found = checked(*[twin.spec for twin in TWINS], "--select", CODES)
    for twin, target in zip(TWINS, found, strict=True):
        codes = {f["code"] for f in target["findings"] if f["severity"] != "info"}
        assert codes & set(twin.codes), (twin.name, codes)
        assert codes <= {*twin.codes, "GL702"}, (twin.name, codes)


@needs_triton
def test_without_an_interpreter_or_a_gpu_the_next_step_is_told(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    variables = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "gradlint", "check", "examples/triton/softmax.py"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    text = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "Triton compiles its kernels for a GPU" in text
    assert "`gradlint check --triton-interpret`" in text


@needs_triton
def test_every_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    files = sorted(str(path) for path in (*FOLDER.glob("*.py"), *FOLDER.glob("faulty/*.py")))
    variables = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    variables["TRITON_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, *files],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == len(files) * 2 * 2

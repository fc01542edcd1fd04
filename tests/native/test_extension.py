"""Extensions that specs name: built, loaded, and their C++ Functions diagnosed like Python ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.base.errors import NotHere, SpecError
from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import execute, run
from gradlint.spec import _extension
from gradlint.spec.open import open_spec

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "extension"
FAULTY = Path(__file__).with_name("faulty_functions.cpp")

#: Every family but those that trace, which take seconds each.
FAMILIES = ("GL0", "GL1", "GL2", "GL3", "GL4", "GL5", "GL6", "GL7")

#: Fault → code and input of the finding, and what it says; () where there is none to be found.
SEEN = {
    "none": (),
    "value": ("GL401", "wrong gradient for `x`"),
    "shape": ("GL201", "gradient for `x` has shape [3], its input [4, 3]"),
    "summed": ("GL202", "gradient for `x` has shape [1, 4, 3] and is summed to [4, 3]"),
    "undefined": ("GL103", "no gradient for `x`: backward returned None, and the output depends"),
    "count": ("GL101", "backward of count returned a wrong number of gradients"),
    "nan": ("GL302", "gradient for `x` is NaN at [0, 0]"),
    "strides": ("GL701", "gradient for `x` is wrong where grad_output is transposed in memory"),
    "dtype": ("GL203", "gradient for `x` is float16, its input float64"),
    "raises": ("GL004", "the backward pass raised RuntimeError: backward is not written yet"),
    "lost": ("GL502", "second derivative with respect to `x`, `grad_output` is silently zero"),
}

LINES = FAULTY.read_text(encoding="utf-8").splitlines()
BACKWARD = next(number for number, line in enumerate(LINES, 1) if " backward(" in line)


def spec(folder: Path, text: str, name: str = "spec.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def problem(path: str, **settings: object) -> str:
    with pytest.raises(SpecError) as caught:
        open_spec(OpRef(path, "spec", path), Settings(**settings))  # type: ignore[arg-type]
    return str(caught.value)


def by_name(targets: list[TargetReport]) -> dict[str, TargetReport]:
    return {Path(target.target).stem: target for target in targets}


def test_functions_in_cpp_are_diagnosed_like_those_in_python(tmp_path: Path) -> None:
    for name in SEEN:
        spec(
            tmp_path,
            f"op: torch.ops.gradlint_tests.{name}\n"
            f"extension: {{sources: [{FAULTY}], name: faulty_functions}}\n"
            "inputs: {x: {shape: [4, 3]}}\n",
            f"{name}.yaml",
        )
    # Compiling takes far longer than this timeout: it is not the op that hangs.
    settings = Settings(select=FAMILIES, seed=1, jobs=2, timeout=20.0)
    found = by_name(run([str(tmp_path)], settings).targets)
    assert {name: report.verdict for name, report in found.items()} == {
        name: "pass" if name in ("none", "summed") else "fail" for name in SEEN
    } | {"raises": "error"} | ({} if found["raises"].verdict == "error" else {"raises": "fail"})
    for name, expected in SEEN.items():
        if not expected:
            assert found[name].findings == []
            continue
        code, message = expected
        (finding,) = [item for item in found[name].findings if item.code == code]
        assert message in finding.message
        if name != "lost":
            assert finding.location is not None
            assert finding.location.file.endswith("faulty_functions.cpp")
            assert finding.location.line == BACKWARD


def test_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = Settings(select=FAMILIES, seed=1, jobs=2, timeout=20.0)
    found = by_name(run(["examples/extension"], settings).targets)
    assert found["log_cosh"].verdict == "pass"
    wrong = found["log_cosh_strides"]
    codes = {item.code for item in wrong.findings if item.severity == "error"}
    assert codes == {"GL701", "GL702"}
    places = {str(item.location).rpartition(":")[0] for item in wrong.findings}
    lines = (EXAMPLES / "log_cosh_strides.cpp").read_text(encoding="utf-8").splitlines()
    backward = next(number for number, line in enumerate(lines, 1) if " backward(" in line)
    assert f"examples/extension/log_cosh_strides.cpp:{backward}" in places
    cuda = found["log_cosh_cuda"]
    if cuda.verdict == "skipped":
        assert "needs cuda" in cuda.notes[0] or "is for cuda only" in cuda.notes[0]


def test_a_target_that_needs_cuda_is_nothing_checked_where_there_is_none() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("CUDA is available")
    done = execute([str(EXAMPLES / "log_cosh_cuda.yaml")], Settings(seed=1))
    (target,) = done.report.targets
    assert (target.verdict, done.exit_code) == ("skipped", 5)
    assert target.notes[0].startswith(
        "needs cuda, not available here: log_cosh_cuda.cu was not built: "
    )


def test_what_can_not_be_compiled_is_shown_at_its_source(tmp_path: Path) -> None:
    (tmp_path / "good.cpp").write_text("int good() { return 1; }\n", encoding="utf-8")
    (tmp_path / "bad.cpp").write_text("int bad() {\n  return nothing;\n}\n", encoding="utf-8")
    path = spec(
        tmp_path,
        "op: torch.ops.gradlint_tests.bad\nextension:\n  sources:\n    - good.cpp\n    - bad.cpp\n",
    )
    text = problem(path)
    assert text.startswith(f"{path}:5:7: compiling bad.cpp failed\n")
    assert f"{tmp_path / 'bad.cpp'}:2:10: error: " in text
    assert "(fix the first error that the compiler reports)" in text


@pytest.mark.parametrize(
    ("extension", "message"),
    [
        ("{sources: [scael.cpp]}", "2:23: there is no file `scael.cpp` (did you mean `scale.cpp`?"),
        (
            "{sources: [scale.h]}",
            "2:23: `scale.h` is not a source file: its name must end",
        ),
        (
            "{sources: [scale.cpp, b/scale.cpp]}",
            "2:34: `scale.cpp` and `b/scale.cpp` would give object",
        ),
        ("{sources: [scale.cpp], name: a-b}", "2:41: `a-b` is not a valid extension name"),
        ("{sources: [scale.cpp], include_dirs: [inc]}", "2:50: there is no folder `inc`"),
        ("{sources: [scale.cpp], extra: 1}", "2:35: unknown key `extra`"),
    ],
)
def test_mistakes_are_found_before_anything_is_built(
    tmp_path: Path, extension: str, message: str
) -> None:
    (tmp_path / "b").mkdir()
    for name in ("scale.cpp", "scale.h", "b/scale.cpp"):
        (tmp_path / name).write_text("", encoding="utf-8")
    path = spec(tmp_path, f"op: torch.ops.a.b\nextension: {extension}\n")
    assert f"{path}:{message}" in problem(path)


def test_cuda_sources_without_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extension, "usable_devices", lambda: ("cpu",))
    monkeypatch.setattr(_extension, "why_no_cuda", lambda: ("no nvcc here", "install it"))
    (tmp_path / "k.cu").write_text("", encoding="utf-8")
    path = spec(tmp_path, "op: torch.ops.a.b\nextension: {sources: [k.cu]}\n")
    with pytest.raises(NotHere, match=r"needs cuda, not available here: k.cu was not built: no n"):
        open_spec(OpRef(path, "spec", path), Settings())
    # Asked for and present, but not to be built for: a mistake, with the fix.
    text = problem(path, devices=("cuda",))
    assert text == f"{path}:2:23: can't be built for CUDA: no nvcc here (install it)"

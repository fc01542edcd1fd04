"""Faults of operators, the changes that mend them, and plausible changes that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.model.settings import Settings
from gradlint.repair.candidate import changed
from gradlint.repair.propose import candidates
from gradlint.repair.scene import Fault, Known
from gradlint.repair.search import Mended, mended
from gradlint.running.trial import examined
from gradlint.targets.resolve import resolve
from tests.repair.operators import operator, tensor

SETTINGS = Settings(seed=3, jobs=1)

X, ROW = tensor(3, 4), tensor(4)

#: Name → text of a module, the line of backward that is wrong, and the one in its place.
CASES = {
    "arity": (
        operator(
            "ctx.scale = scale\nreturn x * scale",
            "return grad_output * ctx.scale",
            arguments="x, scale",
            samples=f"{X}, 1.5",
        ),
        "return grad_output * ctx.scale",
        "return grad_output * ctx.scale, None",
    ),
    "surplus": (
        operator(
            "return 3 * x",
            "return grad_output * 3, grad_output  # x",
            arguments="x",
            samples=X,
        ),
        "return grad_output * 3, grad_output  # x",
        "return grad_output * 3  # x",
    ),
    "swapped": (
        operator(
            "ctx.save_for_backward(x, y)\nreturn x * y",
            "x, y = ctx.saved_tensors\nreturn grad_output * x, grad_output * y",
            arguments="x, y",
            samples=f"{X}, {X}",
        ),
        "return grad_output * x, grad_output * y",
        "return grad_output * y, grad_output * x",
    ),
    "sign": (
        operator(
            "ctx.save_for_backward(x)\nreturn x.cos()",
            "(x,) = ctx.saved_tensors\nreturn grad_output * x.sin()",
            arguments="x",
            samples=X,
        ),
        "return grad_output * x.sin()",
        "return -grad_output * x.sin()",
    ),
    "literal factor": (
        operator(
            "ctx.save_for_backward(x)\nreturn x**3",
            "(x,) = ctx.saved_tensors\nreturn 2 * x**2 * grad_output",
            arguments="x",
            samples=X,
        ),
        "return 2 * x**2 * grad_output",
        "return 3 * x**2 * grad_output",
    ),
    "factor of an argument": (
        operator(
            "ctx.scale = scale\nctx.save_for_backward(x)\nreturn scale * x.square()",
            "(x,) = ctx.saved_tensors\nreturn 2 * x * grad_output, None",
            arguments="x, scale",
            samples=f"{X}, 2.5",
        ),
        "return 2 * x * grad_output, None",
        "return 2 * x * grad_output * ctx.scale, None",
    ),
    "factor of a size": (
        operator(
            "ctx.save_for_backward(x)\nreturn x.square().mean(-1)",
            "(x,) = ctx.saved_tensors\nreturn 2 * x * grad_output[:, None]",
            arguments="x",
            samples=tensor(3, 7),
        ),
        "return 2 * x * grad_output[:, None]",
        "return 2 * x * grad_output[:, None] / x.shape[1]",
    ),
    "missing reduction": (
        operator(
            "return x + bias",
            "return grad_output, grad_output[0]",
            arguments="x, bias",
            samples=f"{X}, {ROW}",
        ),
        "return grad_output, grad_output[0]",
        "return grad_output, grad_output.sum(0)",
    ),
    "another axis": (
        operator(
            "return x + bias",
            "return grad_output, grad_output.sum(1)",
            arguments="x, bias",
            samples=f"{X}, {ROW}",
        ),
        "return grad_output, grad_output.sum(1)",
        "return grad_output, grad_output.sum(0)",
    ),
}


def mend(path: Path, text: str, **settings: object) -> Mended:
    """What comes of ``Op`` in a file with this text."""
    path.write_text(text)
    chosen = replace(SETTINGS, **settings)  # type: ignore[arg-type]
    ref = resolve(f"{path}:Op", chosen)[0]
    (report,) = examined([ref], chosen)
    return mended(ref, report, chosen)


@pytest.mark.parametrize("name", CASES)
def test_the_source_is_mended(name: str, tmp_path: Path) -> None:
    text, wrong, right = CASES[name]
    assert text.count(wrong) == 1
    path = tmp_path / "ops.py"
    found = mend(path, text)
    assert found.fix is not None, found.why
    assert found.text == text.replace(wrong, right)
    assert path.read_text() == text  # nothing is written
    assert found.fix.checks > 30
    assert f"+        {right}\n" in found.fix.diff


CUBE = operator(
    "ctx.save_for_backward(x)\nreturn x**3",
    "(x,) = ctx.saved_tensors\nreturn x**2 * grad_output",
    arguments="x",
    samples=X,
)


def test_what_is_right_on_the_sample_alone_is_rejected(tmp_path: Path) -> None:
    """The factor 3 is also the size of the first axis of the sample; at other sizes it is not."""
    start = CUBE.index("x**2 * grad_output")
    fault = Fault(
        "GL401",
        "wrong gradient for `x`",
        start,
        start + len("x**2 * grad_output"),
        label="returned for `x`",
        cause="scaled",
        cause_text="scaled: the returned gradient times 3 agrees to 1e-10 in 9 of 9 measurements",
        input="x",
        known=(Known("x", (3, 4)),),
    )
    texts = [changed(CUBE, one.edits) for one in candidates(CUBE, fault)]
    plausible = CUBE.replace("x**2 * grad_output", "x**2 * grad_output * x.shape[0]")
    assert plausible in texts
    path = tmp_path / "ops.py"
    found = mend(path, CUBE)
    assert found.text == CUBE.replace("x**2 * grad_output", "x**2 * grad_output * 3")
    path.write_text(plausible)
    (report,) = examined([resolve(f"{path}:Op", SETTINGS)[0]], SETTINGS)
    assert report.verdict == "fail"
    assert [one.code for one in report.findings if one.severity != "info"] == ["GL706"]


def test_a_class_of_a_factory_has_no_place(tmp_path: Path) -> None:
    body = CASES["sign"][0].partition("class Op")
    lines = [f"    {line}" if line else "" for line in f"class Op{body[2]}".splitlines()]
    text = "\n".join([body[0], "def make():", *lines, "    return Op", "", "", "Op = make()", ""])
    found = mend(tmp_path / "ops.py", text)
    assert found.fix is None
    assert found.why == (
        "`Op` is defined in the function `make`: a change would be made to every class that it "
        "makes"
    )


def test_what_no_small_change_mends_is_left_to_autograd(tmp_path: Path) -> None:
    text = operator(
        "ctx.save_for_backward(x)\nreturn x.sort(-1).values",
        "(x,) = ctx.saved_tensors\nreturn grad_output.tanh() * x",
        arguments="x",
        samples=X,
    )
    found = mend(tmp_path / "ops.py", text)
    assert found.fix is not None
    assert found.fix.titles == ["let autograd differentiate forward"]
    assert any("slower" in note for note in found.fix.notes)
    assert (tmp_path / "ops.py").read_text() == text


def test_what_nothing_mends_is_told(tmp_path: Path) -> None:
    text = operator(
        "ctx.x = x.detach()\nreturn torch.from_numpy(x.detach().numpy() ** 2)",
        "return ctx.x.exp() + grad_output",
        arguments="x",
        samples=X,
    )
    found = mend(tmp_path / "ops.py", text)
    assert found.fix is None
    assert found.why
    assert (tmp_path / "ops.py").read_text() == text

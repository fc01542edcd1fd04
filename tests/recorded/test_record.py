"""From a program to specs that run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from gradlint.cli.entry import main
from gradlint.spec.load import load

OPS = '''\
import torch
from torch.autograd import Function


class Gather(Function):
    @staticmethod
    def forward(ctx, table, index, mask, scale=1.0):
        if not (index >= 0).all() or int(index.max()) >= table.shape[0]:
            raise IndexError("index")
        if mask.dtype != torch.bool or mask.shape != index.shape:
            raise ValueError("mask")
        ctx.save_for_backward(index, mask)
        ctx.rows, ctx.scale = table.shape[0], scale
        return table[index] * mask[:, None] * scale

    @staticmethod
    def backward(ctx, grad):
        index, mask = ctx.saved_tensors
        out = grad.new_zeros(ctx.rows, grad.shape[1])
        out.index_add_(0, index, grad * mask[:, None] * ctx.scale)
        return out, None, None, None


class Segments(Function):
    """Sums of segments, given by their ends."""

    @staticmethod
    def forward(ctx, x, ends):
        if int(ends[0]) != 0 or int(ends[-1]) != x.shape[0] or (ends.diff() < 0).any():
            raise ValueError("ends")
        ctx.save_for_backward(ends)
        return torch.stack([x[a:b].sum(0) for a, b in zip(ends[:-1], ends[1:])])

    @staticmethod
    def backward(ctx, grad):
        (ends,) = ctx.saved_tensors
        return grad.repeat_interleave(ends.diff(), 0), None


class KL(Function):
    @staticmethod
    def forward(ctx, p, q, reduction="sum"):
        if (p.sum(-1) - 1).abs().max() > 1e-4 or (q <= 0).any():
            raise ValueError("p is no distribution")
        ctx.save_for_backward(p, q)
        ctx.mean = reduction == "mean"
        out = (p * (p.log() - q.log())).sum()
        return out / p.shape[0] if ctx.mean else out

    @staticmethod
    def backward(ctx, grad):
        p, q = ctx.saved_tensors
        grad = grad / p.shape[0] if ctx.mean else grad
        return grad * (p.log() - q.log() + 1), -grad * p / q, None


class LogDet(Function):
    @staticmethod
    def forward(ctx, a, options):
        ctx.save_for_backward(a)
        ctx.factor = options["factor"]
        return options["factor"] * torch.linalg.cholesky(a).diagonal().log().sum()

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * ctx.factor / 2 * torch.linalg.inv(a).mT, None


class Config:
    factor = 2.0


class Configured(Function):
    @staticmethod
    def forward(ctx, x, config):
        ctx.factor = config.factor
        return x * ctx.factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, weight):
        if weight.shape[0] != weight.shape[1]:
            raise ValueError("square")
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.mT, grad.mT @ x


def local(x, factor=1.0):
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * factor

    return Inner.apply(x)
'''

PROGRAM = """\
import torch

import ops

torch.manual_seed(0)
for batch in (16, 48):
    table = torch.randn(300, 24, requires_grad=True)
    index = torch.randint(300, (batch,))
    ops.Gather.apply(table, index, torch.rand(batch) > 0.5).sum().backward()
    ops.Gather.apply(table, index, torch.rand(batch) > 0.5, 0.25).sum().backward()
    x = torch.randn(100, 7, requires_grad=True)
    ops.Segments.apply(x, torch.tensor([0, 20, 20, 55, 100])).sum().backward()
    for reduction in ("sum", "mean"):
        p = torch.randn(batch, 10, requires_grad=True).softmax(-1)
        ops.KL.apply(p, torch.rand(batch, 10) + 0.5, reduction).backward()
    a = torch.randn(12, 12)
    ops.LogDet.apply((a @ a.mT + torch.eye(12)).requires_grad_(), {"factor": 2.0}).backward()
    ops.Configured.apply(x, ops.Config()).sum().backward()
    weight = torch.randn(32, 32, requires_grad=True)
    ops.Wrong.apply(torch.randn(batch, 32), weight).sum().backward()
    ops.local(x, factor=3.0).sum().backward()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "ops.py").write_text(OPS)
    (folder / "program.py").write_text(PROGRAM)
    return folder


COMMAND = [sys.executable, "program.py"]


@pytest.fixture(scope="module")
def said(folder: Path) -> str:
    """What ``gradlint record`` says; it has written specs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("PYTHONPATH", raising=False)
        (folder / "specs").mkdir()
        (folder / "specs/KL.yaml").write_text("# by hand\\n")
        words = ["record", "-o", "specs", "--seed", "0", "--force", "--", *COMMAND]
        lines: list[str] = []
        patch.setattr("gradlint.cli.console.write", lambda text, *_, **kw: lines.append(text))
        assert main(words) == 0
        return "".join(lines)


@pytest.fixture(scope="module")
def reports(folder: Path, said: str) -> dict[str, dict[str, Any]]:
    """Spec → what checking it reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = ["check", "specs", "--seed", "0", "--select", "GL0,GL1,GL401", "--fail-on", "error"]
        assert main([*words, "--output-format", "json", "-o", "report.json"]) == 1
    found = json.loads((folder / "report.json").read_text())["targets"]
    return {Path(item["target"]).stem: item for item in found}


def arguments(report: dict[str, Any]) -> list[dict[str, list[int] | str]]:
    return [
        {arg["name"]: arg["shape"] if arg["shape"] is not None else arg["value"] for arg in args}
        for args in (sample["args"] for sample in report["samples"])
    ]


def test_each_operator_has_a_spec_that_runs(said: str, reports: dict[str, dict[str, Any]]) -> None:
    verdicts = {name: report["verdict"] for name, report in reports.items()}
    wanted = ("Gather", "KL", "LogDet", "Segments", "local")
    assert {name: verdicts[name] for name in wanted} == dict.fromkeys(wanted, "pass")
    assert verdicts["Wrong"] == "fail"
    assert verdicts["Configured"] == "pass"  # with an object that was inferred
    assert "8 operators in 20 calls and 1 process: 7 specs in specs" in said


def test_a_fault_is_found_on_small_recorded_inputs(reports: dict[str, dict[str, Any]]) -> None:
    (finding,) = [f for f in reports["Wrong"]["findings"] if f["code"] == "GL401"]
    assert (finding["input"], finding["cause"]) == ("weight", "transposed")
    (sample,) = arguments(reports["Wrong"])
    assert sample["weight"] == [sample["x"][1]] * 2  # the tie holds
    assert sample["x"][0] != sample["x"][1]
    assert max(sample["x"]) <= 6


def test_indices_masks_and_options(reports: dict[str, dict[str, Any]]) -> None:
    samples = arguments(reports["Gather"])
    assert len(samples) == 2  # with and without the factor
    assert {sample.get("scale") for sample in samples} in ({None, "0.25"}, {"1.0", "0.25"})
    for sample in samples:
        assert sample["mask"] == sample["index"]
        assert max(*sample["table"], *sample["index"]) <= 8
        assert len({*sample["table"], *sample["index"]}) == 3


def test_what_values_mean_is_kept(folder: Path, said: str) -> None:
    segments = load(str(folder / "specs/Segments.yaml"))
    ends = segments.inputs["ends"].value
    assert ends[0] == 0
    assert ends == sorted(ends)
    kl = load(str(folder / "specs/KL.yaml"))
    assert kl.inputs["p"].domain == "probability"
    assert kl.inputs["q"].domain == "positive"
    assert kl.inputs["q"].requires_grad is False  # never in the program
    assert {case.inputs["reduction"].value for case in kl.cases or () if case.inputs} | {
        kl.inputs["reduction"].value
    } == {"sum", "mean"}
    logdet = load(str(folder / "specs/LogDet.yaml"))
    assert logdet.inputs["a"].domain == "spd"
    assert logdet.inputs["options"].items_dict is not None or logdet.inputs["options"].value == {
        "factor": 2.0
    }


def test_an_operator_without_a_name_is_checked_through_its_function(
    folder: Path, said: str
) -> None:
    spec = load(str(folder / "specs/local.yaml"))
    assert spec.op == "../ops.py:local"
    assert spec.inputs["x"].shape == ["N", "M"]
    assert spec.inputs["factor"].value == 3.0


def test_what_could_not_be_kept_is_said(said: str) -> None:
    assert "ops.py:Configured" in said
    assert "no spec can hold an argument that is `ops.Config`" in said
    assert "no target can name it; `local`, which calls it, is recorded in its place" in said


def test_a_spec_says_where_it_comes_from(folder: Path, said: str) -> None:
    lines = (folder / "specs/Wrong.yaml").read_text().split("\n")
    assert lines[1] == f"# Recorded by gradlint from 2 calls in `{shlex.join(COMMAND)}`."
    assert lines[2] == "# Floating tensors were float32 on cpu."


def test_a_spec_that_was_not_recorded_is_kept(
    folder: Path, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "other").mkdir()
    (folder / "other/Op.yaml").write_text("# by hand\n")
    (folder / "one.py").write_text(
        "import torch\n\n\nclass Op(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        return x * 2\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        return grad * 2\n\n\n"
        "if __name__ == '__main__':\n    Op.apply(torch.ones(3, requires_grad=True))\n"
        "    raise SystemExit(7)\n"
    )
    assert main(["record", "-o", "other", "--", sys.executable, "one.py"]) == 7
    said = capsys.readouterr().err
    assert "other/Op.yaml is there and was not recorded; --force overwrites it" in said
    assert "the program ended with exit code 7" in said
    assert (folder / "other/Op.yaml").read_text() == "# by hand\n"
    # The same in one command, which checks what the program calls.
    command = shlex.join([sys.executable, "one.py"])
    assert main(["check", "--from", command, "--select", "GL1,GL401", "--seed", "0"]) == 0
    captured = capsys.readouterr()
    assert "pass   .gradlint_cache/recorded/Op.yaml  x[3]" in captured.out
    assert "1 operator in 1 call and 1 process: 1 spec" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["record"], "record: no program is given"),
        (["record", "--", "no_such_program"], "no_such_program: can't be started"),
        (["record", "--of", "x", "--", "true"], "--of: `x` names no module or function"),
        (["check", "--from", "", "--seed", "0"], "--from: the command is empty"),
        (
            ["check", "--from", "'", "--seed", "0"],
            "--from: `'` can't be read: No closing quotation",
        ),
        (["check", "--from", "true", "ops.py"], "--from: the program says what is checked"),
    ],
)
def test_bad_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_nothing_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", "--", sys.executable, "-c", "pass"]) == 5
    assert "no Python process of the program imported torch" in capsys.readouterr().err


def test_a_program_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", "--", sys.executable, "trian.py"]) == 2
    told = capfd.readouterr().err
    assert "can't open file" in told
    assert told.endswith(
        "gradlint: the program ended with exit code 2\n"
        "gradlint: no call was seen: it did not get as far as importing torch\n"
    )

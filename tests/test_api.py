"""``gradlint.check`` on live objects and on targets."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import gradlint

HOSTILE = Path(__file__).parent / "running"


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class Half(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output


class Quits(Square):
    @staticmethod
    def backward(ctx, grad_output):
        raise SystemExit(3)


X = torch.linspace(0.5, 2.0, 4, dtype=torch.float64)


@pytest.mark.parametrize(
    "inputs", [(X,), [(X,)], {"four": (X,)}, lambda: (X,), "linspace(0.5, 2, 4)", None]
)
def test_a_right_op_passes(inputs: object) -> None:
    report = gradlint.check(Square, inputs, seed=3)
    origin = {type(None): "inferred", str: "--inputs"}.get(type(inputs), "given")
    assert [sample.origin for sample in report.targets[0].samples] == [origin]
    assert report.ok, report.findings
    assert report.seed == 3
    assert report.targets[0].verdict == "pass"
    assert report.to_dict()["gradlint"]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_outputs_are_judged_by_their_elements(layout: torch.layout) -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        return (x * x).to_sparse(layout=layout)

    report = gradlint.check(op, (X.reshape(2, 2),), seed=3)
    assert report.ok, report.findings
    assert report.targets[0].gradcheck.verdict == "pass"


def test_keyword_arguments_of_apply() -> None:
    report = gradlint.check(lambda x: Square.apply(x=x), (X,), seed=3)
    assert report.ok, report.findings
    assert {"GL101", "GL102", "GL104", "GL201"} <= {
        check.code for check in report.targets[0].checks if check.verdict == "pass"
    }


class Once(torch.autograd.Function):
    """A backward that works once a graph, which torch's check does not bear."""

    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x * ctx.x
        return ctx.y.detach()

    @staticmethod
    def backward(ctx, grad_output):
        return torch.autograd.grad(ctx.y, ctx.x, grad_output)


def test_torch_comes_to_no_verdict_where_its_way_of_calling_raises() -> None:
    target = gradlint.check(Once, (X,), seed=3, order=1).targets[0]
    assert {finding.code for finding in target.findings} == {"GL604", "GL605"}
    assert target.gradcheck.verdict == "fail"
    assert "a second time" in target.gradcheck.message
    assert target.gradcheck.agreement.startswith("no verdict on the values")


def test_a_wrong_op_fails() -> None:
    report = gradlint.check(Half, (X,), seed=3, select="GL401")
    assert not report.ok
    assert [finding.code for finding in report.findings] == ["GL401"]
    assert report.findings[0].cause == "scaled"


def test_options_are_checked() -> None:
    with pytest.raises(gradlint.GradlintError, match="GL9"):
        gradlint.check(Square, (X,), select="GL9x")
    report = gradlint.check(Square, (X,), dtypes=[torch.float64], order=1)
    assert not {"GL501", "GL502"} & {item.code for item in report.targets[0].checks}


def test_sys_exit_is_a_finding() -> None:
    report = gradlint.check(Quits, (X,))
    assert report.findings[-1].code == "GL005"
    assert "sys.exit(3) in backward" in report.findings[-1].message


def test_state_is_put_back() -> None:
    state = torch.get_rng_state()
    gradlint.check(Square, (X,))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_target_is_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HOSTILE)
    report = gradlint.check("hostile.py:SegfaultForward")
    assert report.findings[0].evidence["signal"] == "SIGSEGV"
    with pytest.raises(gradlint.GradlintError, match="Did you mean"):
        gradlint.check("hostile.py:SegfaultForwrd")
    with pytest.raises(TypeError, match="another process"):
        gradlint.check("hostile.py:Good", (X,))


def test_reproduction_of_what_only_python_has() -> None:
    def lines(op: object, inputs: object) -> list[str]:
        report = gradlint.check(op, inputs, seed=3, select="GL401")
        return [finding.reproduce for finding in report.findings]

    (named,) = lines(Half, None)
    assert named.startswith("gradlint check ")
    assert named.endswith(":Half --select GL401 --seed 3")
    assert lines(Half, (X,)) == ["gradlint.check(Half, inputs, select='GL401', seed=3)"]
    unnamed = lines(lambda x: Half.apply(x), (X,))
    assert unnamed == ["gradlint.check(<lambda>, inputs, select='GL401', seed=3)"]


def test_a_custom_op_as_python_has_it() -> None:
    @torch.library.custom_op("gradlint_api::tenfold", mutates_args=())
    def tenfold(x: torch.Tensor, k: float = 10.0) -> torch.Tensor:
        return x * k

    def keep(ctx, inputs, output):
        ctx.k = inputs[1]

    tenfold.register_autograd(lambda ctx, grad: (grad * ctx.k, None), setup_context=keep)
    report = gradlint.check(tenfold, seed=3)
    assert report.ok, report.findings
    assert report.targets[0].kind == "library"


def test_parameters_of_a_module_are_inputs() -> None:
    target = gradlint.check(torch.nn.Linear(4, 2), (X.reshape(1, 4),), seed=3).targets[0]
    told = [(arg.name, arg.shape, arg.requires_grad) for arg in target.samples[0].args]
    assert told == [("input", [1, 4], True), ("weight", [2, 4], True), ("bias", [2], True)]
    assert {arg.dtype for arg in target.samples[0].args} == {"float64"}


def test_a_report_in_one_line() -> None:
    right = gradlint.check(Square, (X,), select="GL401", seed=3)
    assert repr(right) == "<Report: ok; 1 target (1 pass); seed 3>"
    right.raise_if_failed()
    wrong = gradlint.check(Half, (X,), select="GL401", seed=3)
    assert repr(wrong) == "<Report: not ok; 1 target (1 fail); findings GL401; seed 3>"
    with pytest.raises(gradlint.CheckFailedError, match="GL401") as caught:
        wrong.raise_if_failed()
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value) == str(wrong)
    assert repr(gradlint.Report(seed=1)) == "<Report: not ok; 0 targets; seed 1>"
    with pytest.raises(gradlint.CheckFailedError):
        gradlint.Report().raise_if_failed()

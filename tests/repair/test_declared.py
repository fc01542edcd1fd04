"""Fixes from end to end: what is declared, formulas that stay finite, devices, and sources in which
no change has a place."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gradlint.repair.source import Source, write
from tests.conftest import Command
from tests.repair.operators import HEAD, operator, tensor
from tests.repair.test_search import mend

X = tensor(3, 4)
SUM = "ctx.shape = x.shape\nreturn x.sum()"


def one(forward: str, backward: str, doc: str = "", arguments: str = "x", more: str = "") -> str:
    return operator(forward, backward, arguments=arguments, samples=X + more, doc=doc)


TWO_OUTPUTS = (
    HEAD
    + """\
class Op(Function):
    @staticmethod
    def forward(ctx, x):
        values, index = x.max(-1)
        total = x.sum(-1)
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return values, total

    @staticmethod
    def backward(ctx, grad_values, _grad_total):
        (index,) = ctx.saved_tensors
        out = grad_values.new_zeros(ctx.shape)
        return out.scatter(-1, index.unsqueeze(-1), grad_values.unsqueeze(-1))

    @staticmethod
    def sample_inputs():
        torch.manual_seed(0)
        return [(torch.randn(3, 4, dtype=torch.float64, requires_grad=True),)]
"""
)


@dataclass
class Case:
    """An operator, and what its fix changes: text → what stands in its place."""

    text: str
    changes: dict[str, str]
    notes: tuple[str, ...] = field(default=())


# Not a bump over the step, which would be information only: nothing to mend.
SURROGATE = one(
    "ctx.save_for_backward(x)\nreturn (x > 0).to(x.dtype)",
    "(x,) = ctx.saved_tensors\ngrad_input = grad_output.clone()\n"
    "grad_input = grad_input / (1 + (-x).exp())\nreturn grad_input",
    doc="A step with a surrogate gradient.",
)
DECLARED = '    surrogate = {"x": "grad_output / (1 + (-x).exp())"}\n\n'
FORWARD = "    @staticmethod\n    def forward"
NO_LIMIT = "make sure that this is its limit"

CASES = {
    "surrogate": Case(SURROGATE, {FORWARD: DECLARED + FORWARD}),
    "not differentiable": Case(
        TWO_OUTPUTS,
        {
            "        return values, total": "        ctx.mark_non_differentiable(total)\n"
            "        return values, total"
        },
        ("does not require grad",),
    ),
    "detached": Case(
        one(
            "ctx.save_for_backward(x)\nreturn x.sin()",
            "(x,) = ctx.saved_tensors\nreturn grad_output * x.detach().cos()",
        ),
        {"x.detach().cos()": "x.cos()"},
    ),
    "detached by .data": Case(
        one(
            "ctx.save_for_backward(x)\nreturn x.sin()",
            "(x,) = ctx.saved_tensors\nreturn grad_output * x.data.cos()",
        ),
        {"x.data.cos()": "x.cos()"},
    ),
    "written to by .data": Case(
        one("x.data.mul_(3)\nreturn x + 1", "return grad_output * 3"),
        {"x.data.mul_(3)": "x = x.mul(3)"},
    ),
    "written to by .data, and returned": Case(
        one("x.data.mul_(3)\nreturn x", "return grad_output * 3"),
        {"x.data.mul_(3)": "x = x.mul(3)"},
        ("keep the write and declare it",),
    ),
    "saved as .data": Case(
        one(
            "y = x.exp()\nctx.save_for_backward(y.data)\nreturn y",
            "(y,) = ctx.saved_tensors\nreturn grad_output * y",
        ),
        {"y.data": "y"},
    ),
    "without a graph": Case(
        one(
            "ctx.save_for_backward(x)\nreturn x**3",
            "(x,) = ctx.saved_tensors\nwith torch.no_grad():\n    g = 3 * x**2\n\n"
            "    return g * grad_output",
        ),
        {
            "        with torch.no_grad():\n            g = 3 * x**2\n\n            return g": (
                "        g = 3 * x**2\n\n        return g"
            )
        },
    ),
    "once differentiable": Case(
        one(
            "ctx.x = x.detach().numpy().copy()\nreturn torch.from_numpy(ctx.x**3)",
            "return grad_output * torch.from_numpy(3 * ctx.x**2)",
        ),
        {
            "from torch.autograd import Function\n": "from torch.autograd import Function\n"
            "from torch.autograd.function import once_differentiable\n",
            "    def backward": "    @once_differentiable\n    def backward",
        },
        ("second derivatives raise then",),
    ),
    "quotient of zeros": Case(
        one(
            "ctx.save_for_backward(x)\nctx.p = p\nreturn x.abs() ** p",
            "(x,) = ctx.saved_tensors\nreturn grad_output * ctx.p * x.abs() ** ctx.p / x, None",
            arguments="x, p",
            more=", 3",
        ),
        {"/ x, None": "/ torch.where(x == 0, 1, x), None"},
        (NO_LIMIT, "second derivatives at that point"),
    ),
    "sign": Case(
        one(
            "ctx.save_for_backward(x)\nreturn x.abs()",
            "(x,) = ctx.saved_tensors\nreturn grad_output * x / x.abs()",
        ),
        {"x / x.abs()": "x.sign()"},
    ),
    "exp that overflows": Case(
        one(
            "ctx.save_for_backward(x)\nreturn torch.nn.functional.softplus(x)",
            "(x,) = ctx.saved_tensors\nreturn grad_output * torch.exp(x) / (1 + torch.exp(x))",
        ),
        {"torch.exp(x) / (1 + torch.exp(x))": "torch.sigmoid(x)"},
    ),
    "in place": Case(
        one(
            "x.mul_(3)\nreturn x",
            "return grad_output * 3",
            doc="Three times x, in place.",
        ),
        {"        x.mul_(3)": "        ctx.mark_dirty(x)\n        x.mul_(3)"},
        ("a leaf tensor that requires grad is refused",),
    ),
    "in place, by a name for the input": Case(
        one(
            "out = torch.relu_(x)\nctx.save_for_backward(out)\nreturn out",
            "(out,) = ctx.saved_tensors\nreturn grad_output * (out > 0)",
            doc="Works in-place.",
        ),
        {"        out = torch": "        ctx.mark_dirty(x)\n        out = torch"},
    ),
    "in place, with setup_context": Case(
        one(
            "return x.mul_(3)",
            "return grad_output * 3",
            doc="Three times x, in place.",
        ).replace(
            "def forward(ctx, x):\n        return x.mul_(3)\n",
            "def forward(x):\n        return x.mul_(3)\n\n    @staticmethod\n"
            "    def setup_context(ctx, inputs, output):\n        (x,) = inputs\n"
            "        ctx.factor = 3\n",
        ),
        {"        ctx.factor = 3": "        ctx.mark_dirty(x)\n        ctx.factor = 3"},
    ),
    "a copy, where nobody says in place": Case(
        one("x.mul_(3)\nreturn x", "return grad_output * 3"),
        {"x.mul_(3)": "x = x.mul(3)"},
        ("keep the write and declare it: ctx.mark_dirty(x)",),
    ),
    "a copy, where the input is not returned": Case(
        one("x.mul_(3)\nreturn x + 1", "return grad_output * 3", doc="Works in place."),
        {"x.mul_(3)": "x = x.mul(3)"},
    ),
    "device of a buffer": Case(
        one(SUM, "return grad_output * torch.ones(ctx.shape, dtype=x_type, device='meta')").replace(
            "x_type", "grad_output.dtype"
        ),
        {"device='meta'": "device=grad_output.device"},
    ),
    "device, and a gradient that is left out": Case(
        one(SUM, "return torch.ones(ctx.shape, dtype=torch.float64, device='meta')"),
        {
            "torch.ones(ctx.shape, dtype=torch.float64, device='meta')": "grad_output * "
            "torch.ones(ctx.shape, dtype=torch.float64, device=grad_output.device)"
        },
    ),
    "moved inside": Case(
        one("return x.cumsum(0)", "return grad_output.flip(0).to('meta').cumsum(0).flip(0)"),
        {".to('meta')": ""},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_fix(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    wanted = case.text
    for old, new in case.changes.items():
        assert wanted.count(old) == 1
        wanted = wanted.replace(old, new)
    found = mend(tmp_path / "ops.py", case.text)
    assert found.fix is not None, found.why
    assert found.text == wanted
    assert all(any(note in said for said in found.fix.notes) for note in case.notes)
    assert (tmp_path / "ops.py").read_text() == case.text


NEAR = {
    # A zero in one place: the quotient's limit is the product of the others.
    "a quotient whose limit is not its numerator": one(
        "out = x.prod(-1)\nctx.save_for_backward(x, out)\nreturn out",
        "x, out = ctx.saved_tensors\nreturn (grad_output * out).unsqueeze(-1) / x",
    ),
    "a gradient that is left out by mistake": TWO_OUTPUTS.replace("_grad_total", "grad_total"),
    "a surrogate that nobody declared": SURROGATE.replace(" with a surrogate gradient", ""),
}


@pytest.mark.parametrize("name", NEAR)
def test_what_is_not_meant_is_not_declared(name: str, tmp_path: Path) -> None:
    found = mend(tmp_path / "ops.py", NEAR[name])
    if found.fix is not None:
        assert found.fix.titles == ["let autograd differentiate forward"]
    for word in ("surrogate =", "mark_non_differentiable", "torch.where("):
        assert word not in found.text


# -- where nothing has a place --------------------------------------------------------------------

CLASS = """\
class {name}(Function):
    @staticmethod
    def forward(ctx, x):
        return x * {factor}

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ({factor} + 1)

    @staticmethod
    def sample_inputs():
        return [(torch.ones(3, 4, dtype=torch.float64, requires_grad=True),)]
"""


def inside(head: str, name: str, after: str = "") -> str:
    body = CLASS.format(name=name, factor="k")
    return f"{head}\n" + "".join(f"    {line}\n" for line in body.splitlines()) + after


NO_PLACE = {
    "factory": (
        HEAD + inside("def make(k):", "Made", "    return Made\n\n\nOp = make(2)\n"),
        "`Made` is defined in the function `make`: a change would be made to every class that it "
        "makes",
    ),
    "loop": (
        HEAD + inside("for k in (2, 3):", "Op"),
        "`Op` is defined in a loop: a change would be made to every class that it makes",
    ),
    "text": (
        HEAD + f"exec('''{CLASS.format(name='Op', factor=2)}''')\n",
        "its findings point to no place in a source file: its code may be made when it runs",
    ),
    "type": (
        HEAD + "def _forward(ctx, x):\n    return x * 2\n\n\ndef _backward(ctx, grad_output):\n"
        "    return grad_output * 3\n\n\ndef _samples():\n"
        "    return [(torch.ones(3, 4, dtype=torch.float64, requires_grad=True),)]\n\n\n"
        "Op = type('Op', (Function,), {'forward': staticmethod(_forward), 'backward': "
        "staticmethod(_backward), 'sample_inputs': staticmethod(_samples)})\n",
        "the fault lies in no class of this file, but in code that makes one",
    ),
}


@pytest.mark.parametrize("name", NO_PLACE)
def test_no_change_has_a_place(name: str, tmp_path: Path, gradlint: Command) -> None:
    text, why = NO_PLACE[name]
    path = tmp_path / "ops.py"
    path.write_text(text)
    done = gradlint(tmp_path, "fix", "ops.py:Op", "--write", "--seed", "1")
    assert done.returncode == 1
    assert f"no fix {why};" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stdout + done.stderr
    assert path.read_text() == text


def test_a_file_that_is_read_only(tmp_path: Path, gradlint: Command) -> None:
    path = tmp_path / "ops.py"
    text = HEAD + CLASS.format(name="Op", factor=2)
    path.write_text(text)
    path.chmod(0o444)
    done = gradlint(tmp_path, "fix", "ops.py", "--write", "--seed", "1")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert "ops.py: can't be written: it is read-only" in told
    assert "apply the diff that `gradlint fix --diff` shows" in told
    assert path.read_text() == text
    assert done.stdout.rstrip().endswith("1 of 1 failing operator has a verified fix.")
    made = {".gradlint_cache", "__pycache__"}  # by the check
    assert set(os.listdir(tmp_path)) - made == {"ops.py"}
    path.chmod(0o644)
    write(Source.read(str(path)), text)  # it could have been written

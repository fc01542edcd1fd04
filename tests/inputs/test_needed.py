"""What an op needs beside its arguments: a compiled extension, a package, a GPU."""

from __future__ import annotations

import importlib.util
import pickle
import sys
import textwrap

import pytest
import torch

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs._search import LACKING_ON_ONE_WAY
from gradlint.inputs.needed import Lacking, Need
from gradlint.inputs.not_found import NoInputsFound
from gradlint.targets.build import from_object

HEAD = """
import torch
from torch.autograd import Function

try:
    from . import _C
except ImportError:
    _C = None

try:
    import spam_cuda
except ImportError:
    print("spam_cuda was not built")

if torch.cuda.is_available():
    import spam_gpu as gpu
else:
    gpu = None

_library = None

def library():
    global _library
    try:
        _library = torch.ops.load_library("libspam.so")
    except OSError:
        _library = None
    return _library

_context = None

def use(context):
    global _context
    _context = context

"""

OP = """
class Op(Function):
    @staticmethod
    def forward(ctx, {parameters}):
{forward}

    @staticmethod
    def backward(ctx, grad):
        return (grad * 2,) * {count}
"""

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="what a machine without a GPU lacks")


@pytest.fixture
def op(tmp_path):
    def load(forward: str, parameters: str = "x"):
        text = HEAD + OP.format(
            parameters=parameters,
            forward=textwrap.indent(textwrap.dedent(forward), " " * 8),
            count=parameters.count(",") + 1,
        )
        path = tmp_path / "needs_under_test.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("needs_under_test", path)
        made = importlib.util.module_from_spec(spec)
        sys.modules["needs_under_test"] = made
        spec.loader.exec_module(made)
        return made.Op

    yield load
    sys.modules.pop("needs_under_test", None)


def lacked(op) -> Lacking:
    with pytest.raises(Lacking) as caught:
        infer(from_object(op), 0)
    return caught.value


EXTENSION = "needs its compiled extension"


@pytest.mark.parametrize(
    ("forward", "kind", "message"),
    [
        ("return _C.forward(x)", "extension", f"{EXTENSION} `_C`, which is not loaded: line 6"),
        ("return _C(x)", "extension", f"{EXTENSION} `_C`, which is not loaded: line 6"),
        ("return _C[1](x)", "extension", f"{EXTENSION} `_C`, which is not loaded: line 6"),
        ("return spam_cuda.run(x)", "extension", f"{EXTENSION} `spam_cuda`, which is not loaded"),
        ("library()\nreturn _library.run(x)", "extension", f"{EXTENSION} `_library`"),
        ("return torch.ops.spam.run(x)", "extension", "needs the operator `torch.ops.spam.run`"),
        (
            "from torch.autograd import NoSuch\nreturn NoSuch(x)",
            "module",
            "imports `NoSuch` from `torch.autograd`, which does not have it",
        ),
        (
            "from torch.autograd import no_such\nreturn no_such(x)",
            "module",
            "imports `no_such` from `torch.autograd`, which does not have it",
        ),
        (
            "from torch.autograd import _C_ext\nreturn _C_ext.run(x)",
            "extension",
            f"{EXTENSION} `torch.autograd._C_ext`",
        ),
        ("from . import _ext\nreturn _ext.run(x)", "module", "imports a package"),
        ("import spam_ext\nreturn x", "extension", f"{EXTENSION} `spam_ext`, which is not loaded"),
        ("import needs_under_test.core\nreturn x", "extension", f"{EXTENSION} `needs_under_test."),
        ("import spam\nreturn x", "module", "needs the module `spam`, which can't be found"),
        (
            "import ctypes\nreturn ctypes.CDLL('/lib/libspam.so').run(x)",
            "extension",
            "needs its compiled library `libspam.so`, which can't be loaded",
        ),
        (
            "from torch.utils.cpp_extension import load\nraise ImportError('spam.so: undefined "
            "symbol: run')",
            "extension",
            "needs its compiled library `spam.so`",
        ),
    ],
)
def test_what_is_not_built_or_installed_is_named(op, forward, kind, message):
    found = lacked(op(forward))
    assert found.need.kind == kind
    assert found.need.message.startswith(message)
    assert found.need.sure
    assert found.count <= 8
    assert found.need.location.file.endswith("needs_under_test.py")


OLD_STYLE = """
class Doubled(torch.autograd.Function):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def backward(self, grad):
        return grad * self.factor


class Layer(torch.nn.Module):
    def forward(self, x):
        return Doubled(2.0)(x)
"""


def test_a_function_that_is_instantiated_and_called_is_told_as_such(op):
    namespace = {"torch": torch, "__name__": "old_style"}
    exec(OLD_STYLE, namespace)
    need = lacked(namespace["Layer"]()).need
    assert need.message == (
        "instantiates a torch.autograd.Function and calls it, which PyTorch refuses"
    )
    assert need.hint.startswith("Make forward and backward static methods")


@NO_GPU
@pytest.mark.parametrize(
    "forward",
    [
        "assert x.is_cuda\nreturn x * 2",
        "assert x.is_cuda and x.dim() == 2, 'no'\nreturn x * 2",
        "if not x.is_cuda:\n    raise NotImplementedError\nreturn x * 2",
        "if x.is_cuda:\n    return x * 2\nraise NotImplementedError",
        "if x.device.type == 'cuda':\n    return x * 2\nelse:\n    raise ValueError('no')",
        "if x.device.type != 'cpu':\n    return x * 2\nelse:\n    raise ValueError('no')",
        "if not all(t.is_cuda for t in (x,)):\n    raise ValueError('no')\nreturn x * 2",
        "assert torch.cuda.is_available()\nreturn x * 2",
        "raise RuntimeError('x must be a CUDA tensor')",
        "raise NotImplementedError('Not implemented on the CPU')",
        "raise NotImplementedError('there is no CPU implementation')",
        "raise RuntimeError('CPU is not supported')",
        "return x * 2 + torch.zeros(3, device='cuda')",
        "with torch.cuda.device(x.device):\n    return x * 2",
        "return gpu.run(x)",
    ],
)
def test_what_runs_on_cuda_only_is_said_so(op, forward):
    found = lacked(op(forward))
    assert found.need.kind == "cuda"
    assert found.count <= (8 if found.need.sure else LACKING_ON_ONE_WAY)
    assert found.need.sure or "CPU" in forward
    assert "needs_under_test.py:" in found.need.message


def test_a_call_is_made_after_its_arguments_on_later_lines(op):
    """Sizes that do not fit fail there, and got less far than the call."""
    call = "return _C(\n    x,\n    y.reshape(x.shape[1], -1),\n)"
    need = lacked(op(call, "x, y")).need
    assert need.kind == "extension"
    assert need.message.startswith(f"{EXTENSION} `_C`")


def test_a_call_before_the_line_that_fails_is_no_need(op):
    """What is missing is left out with a mask, and something else fails behind it."""
    forward = "if mask is None:\n    return _C(\n    x)\nreturn graph.weights * x"
    with pytest.raises(NoInputsFound) as caught:
        infer(from_object(op(forward, "x, graph, mask=None")), 0)
    assert not isinstance(caught.value, Lacking)


@pytest.mark.parametrize(
    ("forward", "parameters"),
    [
        ("if impl == 'cuda':\n    return _C.run(x)\nassert impl == 'torch'\nreturn x * 2", None),
        ("return _C.run(x) if x.dim() != 4 else x * 2", "x"),
        ("if x.dim() != 4:\n    return spam_cuda.run(x)\nreturn x * 2", "x"),
        ("if x.is_cuda:\n    return gpu.run(x)\nreturn x * 2", "x"),
        ("return x * 2 + torch.zeros(1, device=device)", "x, device='cuda'"),
        ("try:\n    return _C.run(x)\nexcept AttributeError:\n    return x * 2", "x"),
    ],
)
def test_another_way_is_found(op, forward, parameters):
    """Near misses: other arguments, or the code itself, lead around what is missing."""
    samples = infer(from_object(op(forward, parameters or "x, impl='cuda'")), 0)
    assert isinstance(samples[0].args[0], torch.Tensor)


@pytest.mark.parametrize(
    "forward",
    [
        "return _context.run(x)",  # the caller is to give it
        "return graph.weights[graph.order] * x",  # an argument that is None
        "assert x.is_cuda or x.shape[0] == 1234\nreturn graph.weights * x",
        "y = None\nreturn y.run(x)",
        "if len(x) == 3:\n    return _C.run(x)\nreturn graph.weights * x",
    ],
)
def test_other_errors_are_no_need(op, forward):
    with pytest.raises(NoInputsFound) as caught:
        infer(from_object(op(forward, "x, graph")), 0)
    assert not isinstance(caught.value, Lacking)


def test_a_report_says_what_is_missing(op):
    made = op("return _C.forward(x)")
    [target] = gradlint.check(made, seed=0).targets
    [finding] = target.findings
    assert (target.verdict, finding.code, finding.severity) == ("error", "GL001", "error")
    assert finding.message == (
        "target cannot be loaded: calling it needs its compiled extension `_C`, which is not "
        "loaded: line 6 failed to load it"
    )
    assert finding.evidence["original"] == (
        "AttributeError: 'NoneType' object has no attribute 'forward'"
    )
    assert finding.help.startswith("Build it")
    assert "_C.forward" in finding.excerpt.lines[len(finding.excerpt.lines) // 2][1]


@NO_GPU
def test_a_report_skips_what_needs_a_gpu(op):
    [target] = gradlint.check(op("assert x.is_cuda\nreturn x * 2"), seed=0).targets
    assert (target.verdict, target.findings) == ("skipped", [])
    [note] = target.notes
    assert note.startswith("needs cuda, not available here: the op takes tensors on a GPU only")


@NO_GPU
def test_a_custom_op_without_a_kernel_for_the_cpu_is_skipped():
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    name = "gradlint_needed_tests::doubled"
    only = torch.library.custom_op(name, double, mutates_args=(), device_types="cuda")
    [target] = gradlint.check(only, seed=0).targets
    assert (target.verdict, target.findings) == ("skipped", [])
    assert target.notes == [f"needs cuda, not available here: `{name}` runs on CUDA only"]


def test_the_error_can_be_sent():
    need = Need("extension", "needs `_C`", "Build it.", "AttributeError: …", None, True)
    found = pickle.loads(pickle.dumps(Lacking(need, NoInputsFound([("x", "E: e")], "line", 9))))
    assert (found.need, found.count, found.line_to_add) == (need, 9, "line")

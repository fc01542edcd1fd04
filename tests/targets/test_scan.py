"""Which names of a file are operators, by its text alone."""

from __future__ import annotations

import pytest

from gradlint.targets._scan import left_out, operators
from gradlint.targets._static import static_module

PASS = """
    @staticmethod
    def forward(ctx, x): return x
    @staticmethod
    def backward(ctx, g): return g
"""

#: name → (text, the operators in it as (name, kind))
CASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "plain import": (
        f"import torch\nclass A(torch.autograd.Function):{PASS}",
        [("A", "function")],
    ),
    "alias of the class": (
        f"from torch.autograd import Function as F\nclass _Private(F):{PASS}",
        [("_Private", "function")],
    ),
    "alias of the module": (
        f"import torch.autograd as ag\nclass A(ag.Function):{PASS}",
        [("A", "function")],
    ),
    "name bound to the class": (
        f"import torch\nBase = torch.autograd.Function\nclass A(Base):{PASS}",
        [("A", "function")],
    ),
    "star import": (
        f"from torch.autograd import *\nclass A(Function):{PASS}",
        [("A", "function")],
    ),
    "torch's other bases": (
        "from torch.autograd.function import InplaceFunction, NestedIOFunction\n"
        f"class A(InplaceFunction):{PASS}\nclass B(NestedIOFunction):{PASS}",
        [("A", "function"), ("B", "function")],
    ),
    "through a base without forward": (
        "from torch.autograd import Function\nclass Base(Function):\n    scale = 2\n"
        f"class A(Base):{PASS}",
        [("A", "function")],
    ),
    "inherited forward": (
        f"from torch.autograd import Function\nclass A(Function):{PASS}\nclass B(A):\n    k = 1\n",
        [("A", "function"), ("B", "function")],
    ),
    "forward that is not implemented": (
        "from torch.autograd import Function\nclass A(Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        '''Doc.'''\n        raise NotImplementedError('no')\n",
        [],
    ),
    "base that calls what derived classes define": (
        "from torch.autograd import Function\n"
        "class A(Function):\n"
        "    @classmethod\n    def forward(cls, ctx, x): return cls.project(x)\n"
        "    @classmethod\n    def backward(cls, ctx, g): return g\n"
        "class B(A):\n    @classmethod\n    def project(cls, x): return x\n",
        [("B", "function")],
    ),
    "base with an abstract method": (
        "from abc import abstractmethod\nfrom torch.autograd import Function\n"
        "class A(Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return x\n"
        "    @abstractmethod\n    def loss(x): ...\n"
        "class B(A):\n    @staticmethod\n    def loss(x): return x\n",
        [("B", "function")],
    ),
    "setup_context and vjp": (
        "from torch.autograd import Function\nclass A(Function):\n"
        "    @staticmethod\n    def forward(x): return x\n"
        "    @staticmethod\n    def setup_context(ctx, inputs, output): pass\n"
        "    @staticmethod\n    def vjp(ctx, g): return g\n",
        [("A", "function")],
    ),
    "without backward": (
        "from torch.autograd import Function\nclass A(Function):\n"
        "    @staticmethod\n    def forward(ctx, x): return x\n",
        [("A", "function")],
    ),
    "forward assigned": (
        "from torch.autograd import Function\ndef f(ctx, x): return x\n"
        "class A(Function):\n    forward = staticmethod(f)\n",
        [("A", "function")],
    ),
    "nested in a class, not in a function": (
        "from torch.autograd import Function\nclass Layer:\n"
        "    class Inner(Function):\n"
        "        @staticmethod\n        def forward(ctx, x): return x\n"
        "def make():\n    class Hidden(Function):\n        pass\n    return Hidden\n",
        [("Layer.Inner", "function")],
    ),
    "under a condition": (
        "import torch\nif torch.cuda.is_available():\n"
        "    class A(torch.autograd.Function):\n"
        "        @staticmethod\n        def forward(ctx, x): return x\n"
        "try:\n    import triton\nexcept ImportError:\n    pass\nelse:\n"
        "    class B(torch.autograd.Function):\n"
        "        @staticmethod\n        def forward(ctx, x): return x\n",
        [("A", "function"), ("B", "function")],
    ),
    "by its looks, from a base that can't be found": (
        f"from not_installed_anywhere import Op\nclass A(Op):{PASS}",
        [("A", "function")],
    ),
    "looks alone are not enough": (f"class A:{PASS}\nclass B(dict):{PASS}", []),
    "modules are no Functions": (
        "from torch import nn\nclass A(nn.Module):\n"
        "    def forward(self, x): return x\n    def backward(self, g): return g\n",
        [],
    ),
    "module with samples": (
        "from torch import nn\nclass A(nn.Module):\n"
        "    def forward(self, x): return x\n"
        "    @staticmethod\n    def sample_inputs(): return (1,)\n",
        [("A", "module")],
    ),
    "module that applies a Function": (
        f"import torch\nfrom torch import nn\nclass F(torch.autograd.Function):{PASS}\n"
        "class A(nn.Module):\n    def forward(self, x): return F.apply(x)\n"
        "class B(nn.Module):\n    def forward(self, x): return x\n"
        "    def init(self, fn): self.apply(fn)\n"
        "class C(nn.Sequential):\n    def forward(self, x): return f(x)\n"
        "f = F.apply\n",
        [("F", "function"), ("A", "module"), ("C", "module")],
    ),
    "callables with samples": (
        "def f(x): return x\ndef g(x): return x\nf.sample_inputs = lambda: (1,)\n"
        "class C:\n    def __call__(self, x): return x\n"
        "    @staticmethod\n    def sample_inputs(): return (1,)\n",
        [("f", "callable"), ("C", "callable")],
    ),
    "custom ops": (
        "import torch\nfrom torch.library import custom_op\n"
        "@torch.library.custom_op('a::f', mutates_args=())\n"
        "def f(x: torch.Tensor) -> torch.Tensor: return x\n"
        "def g(x: torch.Tensor) -> torch.Tensor: return x\n"
        "h = custom_op('a::h', mutates_args=())(g)\n",
        [("f", "library"), ("h", "library")],
    ),
    "metaclass helper and generic base": (
        "from torch.autograd import Function\nfrom six import with_metaclass\n"
        f"class A(with_metaclass(type, Function)):{PASS}\n",
        [("A", "function")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_operators_of_a_file(write, case):
    text, expected = CASES[case]
    module = static_module(str(write("case.py", text)))
    assert module is not None, case
    assert [(op.name, op.kind) for op in operators(module)] == expected


def test_bases_are_followed_through_files(write):
    write("pkg/__init__.py", "from .base import Base as Exported\n")
    write(
        "pkg/base.py",
        """
        from torch.autograd import Function
        class Base(Function):
            @staticmethod
            def forward(ctx, x): return x
        class Loss: pass
        class LossFunction(Loss):
            @staticmethod
            def forward(ctx, x): return x
            @staticmethod
            def backward(ctx, x): return x
        """,
    )
    path = write(
        "pkg/derived.py",
        """
        from . import Exported
        from .base import Base, LossFunction
        import pkg.base as b
        class A(Base): pass
        class B(Exported): pass
        class C(b.Base): pass
        class D(LossFunction): pass
        """,
    )
    module = static_module(str(path))
    assert [op.name for op in operators(module)] == ["A", "B", "C"]


def test_columns_count_characters(write):
    path = write("wide.py", "")
    path.write_text(
        "import torch\nif 'äöü': pass\nπ = 'äß'; x = 1\n"
        "class Ärger(torch.autograd.Function):\n    def forward(ctx, x): return x\n",
        encoding="utf-8",
    )
    module = static_module(str(path))
    place = operators(module)[0].location
    assert (place.line, place.column, place.end_column) == (4, 1, 12)
    assert module.source.span(module.assigned["x"]).column == 15


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"x = '\x00'\n", b"# coding: nonsense\nx=1\n"])
def test_files_that_are_no_source(write, text):
    path = write("bad.py", "")
    path.write_bytes(text)
    assert static_module(str(path)) is None


WRAPPERS = f"""
import torch
from torch import nn
class A(torch.autograd.Function):{PASS}
def thin(x):
    return A.apply(x)
def centred(x):
    return A.apply(x - x.mean())
def twice(x):
    y = centred(x)
    return 2 * y
def train(x):
    loss = A.apply(x * 2).sum()
    loss.backward()
    return loss
def unrelated(x):
    return x + 1
class ByHelper(nn.Module):
    def forward(self, x): return centred(x)
class Plain(nn.Module):
    def forward(self, x): return x.tanh()
"""


def test_what_applies_a_function_and_does_more_is_an_operator(write) -> None:
    module = static_module(str(write("ops.py", WRAPPERS)))
    assert module is not None
    assert [(item.name, item.kind) for item in operators(module)] == [
        ("A", "function"),
        ("centred", "callable"),
        ("twice", "callable"),
        ("ByHelper", "module"),
    ]
    assert left_out(module) == [
        ("Plain", "no backward of its own"),
        ("thin", "only calls a Function"),
    ]


FACTORIES = f"""
import torch
class A(torch.autograd.Function):{PASS}
def made(slope=25):
    slope = slope
    def inner(x):
        return A.apply(x, slope)
    return inner
def chosen(kind, slope):
    if kind == "soft":
        def soft(x): return A.apply(x, slope)
        return soft
    return lambda x: A.apply(x, 2 * slope)
def helped(x):
    def inner(y):
        return A.apply(y)
    return inner(x) + 1
def sometimes(x, lazy=False):
    def inner():
        return A.apply(x) * 2
    return inner if lazy else inner()
"""


def test_what_returns_a_function_is_no_operator_itself(write) -> None:
    module = static_module(str(write("ops.py", FACTORIES)))
    assert module is not None
    assert [item.name for item in operators(module)] == ["A", "helped", "sometimes"]
    assert left_out(module) == [
        ("chosen", "returns a function"),
        ("made", "returns a function"),
    ]


MADE_BY_A_CALL = """
import torch
def factory(steps):
    if steps:
        class Stepped(torch.autograd.Function): pass
    return Stepped.apply
class Backend:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x
    def __init__(self):
        class Value(torch.autograd.Function): pass
        class Plain: pass
        self.value = Value
"""


def test_functions_that_a_call_defines_are_said_to_be_left_out(write) -> None:
    module = static_module(str(write("ops.py", MADE_BY_A_CALL)))
    assert module is not None
    assert [item.name for item in operators(module)] == ["Backend.Own"]
    assert left_out(module) == [
        ("factory.Stepped", "defined when a function is called"),
        ("Backend.__init__.Value", "defined when a function is called"),
    ]

"""Calls that the source shows are proposals for inputs; nothing of them is run."""

from __future__ import annotations

import importlib.util
import sys
import textwrap

import pytest
import torch

from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object
from gradlint.targets.example_calls import calls_of_instances, example_calls

OP = '''
import torch
from torch.autograd import Function

class Cells(Function):
    """{doc}"""

    @staticmethod
    def forward(ctx, values, rows, columns):
        if len(values) != rows * columns or (rows, columns) != (5, 3):
            raise ValueError
        return values * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None, None

def cells(values, rows, columns=3):
    return Cells.apply(values, rows, columns)
'''


@pytest.fixture
def module(tmp_path):
    def load(text: str, **others: str):
        for name, content in others.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(content))
        path = tmp_path / "cells_under_test.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("cells_under_test", path)
        made = importlib.util.module_from_spec(spec)
        sys.modules["cells_under_test"] = made
        spec.loader.exec_module(made)
        return made

    yield load
    sys.modules.pop("cells_under_test", None)


def sizes(op) -> tuple[int, int, int]:
    values, rows, columns = infer(from_object(op), 0)[0].args
    return len(values), rows, columns


def test_a_doctest_gives_the_arguments(module):
    doc = (
        "Cells.\n\n    >>> x = torch.randn(15)\n    >>> Cells.apply(x, 5, 3).shape\n    (15,)\n    "
    )
    assert sizes(module(OP.format(doc=doc)).Cells) == (15, 5, 3)


def test_a_main_block_with_gradcheck_does(module):
    main = textwrap.dedent("""
        if __name__ == "__main__":
            n = 5
            v = torch.rand(n * 3, dtype=torch.double, requires_grad=True)
            print(torch.autograd.gradcheck(lambda t: Cells.apply(t, n, 3), (v,)))
    """)
    assert sizes(module(OP.format(doc="Cells.") + main).Cells) == (15, 5, 3)


def test_a_test_beside_it_does_through_a_wrapper(module):
    tests = """
        from cells_under_test import cells
        import torch

        DTYPE = torch.float64

        def test_cells():
            values = torch.randn(15, dtype=DTYPE).cuda()
            assert cells(values, 5).shape == (15,)  # Cells
    """
    made = module(OP.format(doc="Cells."), test_cells=tests)
    found = example_calls(made.Cells)
    assert found == [{"values": "torch.randn(15)", "rows": "5", "columns": "3"}]
    assert sizes(made.Cells) == (15, 5, 3)


def test_nothing_in_an_example_is_run(module, tmp_path):
    mark = tmp_path / "ran"
    doc = f">>> Cells.apply(torch.tensor([open({str(mark)!r}, 'w').write('x')]), 5, 3)"
    made = module(OP.format(doc=doc.replace('"', "'")))
    assert len(example_calls(made.Cells)) == 1
    assert sizes(made.Cells) == (15, 5, 3)  # what can be told from the text is taken over
    assert not mark.exists()


def test_square_examples_hide_no_transposition(module):
    text = '''
import torch
from torch.autograd import Function

class Linear(Function):
    """>>> Linear.apply(torch.randn(4, 4), torch.randn(4, 4))"""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.T @ x
'''
    x, weight = infer(from_object(module(text).Linear), 0)[0].args
    assert len({*x.shape, *weight.shape}) == 3
    assert x.shape[1] == weight.shape[1]
    assert isinstance(x, torch.Tensor)


ROTATED = """
import torch
from torch.autograd import Function

class Turned(Function):
    @staticmethod
    def forward(ctx, x, angle):
        ctx.save_for_backward(angle)
        return x * angle.cos()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos(), None

def turned(x, positions):
    \"\"\"Turned by positions.

    >>> turned(torch.ones(1, 4), torch.tensor([0]))
    \"\"\"
    if x.shape[-1] % 2 or {check}:
        raise ValueError
    return Turned.apply(x, positions.to(x.dtype)[:, None])
"""


@pytest.mark.parametrize(("check", "rows"), [("False", 3), ("x.shape[0] != 1", 1)])
def test_axes_of_size_one_are_longer_where_the_op_takes_that(module, check, rows):
    turned = module(ROTATED.format(check=check)).turned
    x, positions = infer(from_object(turned), 0)[0].args
    assert x.shape == (rows, 4)
    assert positions.shape == (rows,)


def test_an_operand_that_is_broadcast_keeps_its_size_one(module):
    text = ROTATED.format(check="False").replace("torch.ones(1, 4)", "torch.ones(3, 4)")
    x, positions = infer(from_object(module(text).turned), 0)[0].args
    assert (len(x), len(positions)) == (3, 1)


LOSS = '''
import torch
from torch import nn

class Paths(nn.Module):
    """{doc}"""

    def __init__(self, blank: int = 0):
        super().__init__()
        self.blank = blank

    def forward(self, acts, labels, act_lens):
        if acts.dim() != 4 or acts.shape[1] != int(act_lens.max()):
            raise ValueError("Input length mismatch")
        if acts.shape[2] != labels.shape[1] + 1 or labels.dtype != torch.int64:
            raise ValueError("Output length mismatch")
        if labels.sum() != 5:
            raise ValueError("Labels are not known")
        return acts.exp().sum()

class Other(nn.Module):
    def forward(self, acts):
        return acts

{rest}
'''
CALL = """
    loss = Paths(blank=1).to(device)
    acts = torch.randn(1, 2, 5, 3, device=device)
    labels = torch.tensor([[0, 2, 1, 2]], dtype=torch.int64)
    act_lens = torch.tensor([2], dtype=torch.int64)
    value = loss(acts, labels, act_lens)
"""


@pytest.mark.parametrize("where", ["docstring", "main"])
def test_a_call_of_an_instance_gives_the_arguments_of_its_forward(module, where):
    prompts = "".join(f"    >>> {line.strip()}\n" for line in CALL.strip().splitlines())
    doc = f"Paths.\n\n{prompts}" if where == "docstring" else "Paths."
    rest = f"if __name__ == '__main__':{CALL}" if where == "main" else ""
    made = module(LOSS.format(doc=doc, rest=rest))
    assert calls_of_instances(made.Paths) == [
        {
            "acts": "torch.randn(1, 2, 5, 3)",
            "labels": "torch.tensor([[0, 2, 1, 2]], dtype=torch.int64)",
            "act_lens": "torch.tensor([2], dtype=torch.int64)",
        }
    ]
    (sample, *_) = infer(from_object(made.Paths()), 0)
    assert [tuple(value.shape) for value in sample.args[:3]] == [(1, 2, 5, 3), (1, 4), (1,)]


def test_a_variable_of_another_class_is_no_call_of_this_one(module):
    rest = "loss = Paths()\nloss = Other()\nloss(torch.randn(4, 3))\n"
    made = module(LOSS.format(doc="Paths.", rest=rest))
    assert calls_of_instances(made.Paths) == []
    assert calls_of_instances(made.Other) == [{"acts": "torch.randn(4, 3)"}]


FILLED = '''
import torch
from torch.autograd import Function

class Filled(Function):
    """Fills places up to a total.

    Examples
    --------
    >>> total = torch.tensor(2.5)
    >>> Filled.apply(total, 2, 3, 3, torch.double, torch.device("cpu"))
    """

    @staticmethod
    def forward(ctx, total: torch.Tensor, below: int, above: int, length: int,
                dtype: torch.dtype, device: torch.device):
        made = torch.zeros(length, dtype=dtype, device=device)
        made[:below] = 1
        if above > below:
            made[above - 1] = float(total) - below
        ctx.above = above
        return made

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.above - 1], None, None, None, None, None
'''


def test_what_a_call_passes_and_no_text_tells_stays_guessed(module):
    total, below, above, length, dtype, device = infer(from_object(module(FILLED).Filled), 0)[
        0
    ].args
    assert (total.dim(), below, above, length) == (0, 2, 3, 3)
    assert (dtype, device) == (torch.float64, torch.device("cpu"))


def test_what_a_call_leaves_out_is_not_known(module):
    short = FILLED.replace('total, 2, 3, 3, torch.double, torch.device("cpu")', "total, 2")
    found = infer(from_object(module(short).Filled), 0)
    assert all(sample.args[2:4] != (3, 3) for sample in found)

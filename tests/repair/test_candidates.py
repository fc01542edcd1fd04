"""What each family proposes for a finding, as text: no operator runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradlint.repair.candidate import changed
from gradlint.repair.propose import FAMILIES, candidates
from gradlint.repair.scene import Fault, Known, NoPlace, Scene
from gradlint.repair.tree import Tree, Unreadable

X, Y, ROW = Known("x", (3, 4)), Known("y", (3, 4)), Known("bias", (4,))


def module(forward: str, backward: str, arguments: str = "x", head: str = "") -> str:
    """A class ``Op``; the lines of the bodies are separated by semicolons."""
    bodies = [
        "".join(f"        {line}\n" for line in one.split("; ")) for one in (forward, backward)
    ]
    return (
        f"import torch\n\n\nclass Op(torch.autograd.Function):\n{head}    @staticmethod\n"
        f"    def forward(ctx, {arguments}):\n{bodies[0]}\n    @staticmethod\n"
        f"    def backward(ctx, grad_output):\n{bodies[1]}"
    )


def fault(text: str, place: str, code: str, **more: object) -> Fault:
    """A finding at ``place``, which occurs in ``text`` last in backward."""
    start = text.rindex(place)
    made = Fault(code, "", start, start + len(place), input="x", known=(X,))
    return replace(made, **more)  # type: ignore[arg-type]


def proposed(text: str, found: Fault) -> list[str]:
    """The candidates as texts, the likeliest first."""
    made = [changed(text, one.edits) for one in candidates(text, found)]
    return [one for one in made if one is not None]


RETURNED = {"label": "returned for `x`"}

#: Name → text, place, code, what else is known, and the lines that the first candidate changes.
FIRST = {
    "sign of a product": (
        module(
            "ctx.save_for_backward(x); return x.cos()",
            "(x,) = ctx.saved_tensors; return -grad_output * x.cos()",
        ),
        "-grad_output * x.cos()",
        "GL401",
        {**RETURNED, "cause": "sign"},
        [("return -grad_output * x.cos()", "return grad_output * x.cos()")],
    ),
    "sign of a difference": (
        module("return x", "return grad_output - grad_output.mean()"),
        "grad_output - grad_output.mean()",
        "GL401",
        {**RETURNED, "cause": "sign"},
        [("return grad_output - grad_output.mean()", "return grad_output.mean() - grad_output")],
    ),
    "factor that is not kept yet": (
        module("return x * scale", "return grad_output, None", "x, scale"),
        "grad_output",
        "GL401",
        {
            "label": "returned for `x`",
            "cause_text": "scaled: the returned gradient times scale agrees to 1e-10",
            "known": (X, Known("scale", None, "1.5")),
        },
        [
            ("        return x * scale\n", "        ctx.scale = scale\n        return x * scale\n"),
            ("return grad_output, None", "return grad_output * ctx.scale, None"),
        ],
    ),
    "factor that is a tensor": (
        module("return x * y", "return grad_output, None", "x, y"),
        "grad_output",
        "GL401",
        {
            "label": "returned for `x`",
            "cause_text": "scaled: the returned gradient times y agrees to 1e-10",
            "known": (X, Y),
        },
        [
            ("        return x * y\n", "        ctx.save_for_backward(y)\n        return x * y\n"),
            (
                "        return grad_output, None",
                "        (y,) = ctx.saved_tensors\n        return grad_output * y, None",
            ),
        ],
    ),
    "constant": (
        module("return x", "return grad_output"),
        "grad_output",
        "GL401",
        {
            **RETURNED,
            "cause_text": "scaled: the returned gradient times sqrt(2 pi) agrees to 1e-10",
        },
        [
            ("import torch\n", "import math\nimport torch\n"),
            ("return grad_output", "return grad_output * math.sqrt(2 * math.pi)"),
        ],
    ),
    "product transposed": (
        module("return x", "return x.T @ grad_output"),
        "x.T @ grad_output",
        "GL401",
        {**RETURNED, "cause": "transposed"},
        [("return x.T @ grad_output", "return grad_output.T @ x")],
    ),
    "sum to the shape that is kept": (
        module(
            "ctx.shape = bias.shape; return x + bias",
            "return grad_output, grad_output",
            "x, bias",
        ),
        "grad_output",
        "GL202",
        {
            "label": "returned for `bias`",
            "input": "bias",
            "known": (Known("bias", (1, 4)), X),
        },
        [
            (
                "return grad_output, grad_output",
                "return grad_output, grad_output.sum_to_size(ctx.shape)",
            )
        ],
    ),
    "gradient of a term": (
        module("return x + bias", "return grad_output, None", "x, bias"),
        "None",
        "GL103",
        {"label": "returned for `bias`", "input": "bias", "known": (X, ROW)},
        [("return grad_output, None", "return grad_output, grad_output.sum(0)")],
    ),
    "grad_output left out": (
        module("return x * y", "return y, x.clone()", "x, y"),
        "y",
        "GL401",
        {**RETURNED, "cause": "ignores-grad-output", "known": (X, Y)},
        [("return y, x.clone()", "return grad_output * y, x.clone()")],
    ),
    "clipped": (
        module("return x", "return (2 * grad_output).clamp(-1, 1)"),
        "(2 * grad_output).clamp(-1, 1)",
        "GL401",
        {**RETURNED, "cause": "not-linear"},
        [("return (2 * grad_output).clamp(-1, 1)", "return 2 * grad_output")],
    ),
    "cast at the end": (
        module("return x", "return (2 * grad_output).half()"),
        "(2 * grad_output).half()",
        "GL203",
        RETURNED,
        [("return (2 * grad_output).half()", "return 2 * grad_output")],
    ),
    "flags exchanged": (
        module(
            "return x * y",
            "a = grad_output if ctx.needs_input_grad[1] else None; "
            "b = grad_output if ctx.needs_input_grad[0] else None; return a, b",
            "x, y",
        ),
        "a",
        "GL110",
        {"known": (X, Y)},
        [
            (
                "a = grad_output if ctx.needs_input_grad[1]",
                "a = grad_output if ctx.needs_input_grad[0]",
            ),
            (
                "b = grad_output if ctx.needs_input_grad[0]",
                "b = grad_output if ctx.needs_input_grad[1]",
            ),
        ],
    ),
    "layout": (
        module("return x", "return kernel(grad_output)"),
        "kernel(grad_output)",
        "GL701",
        {**RETURNED, "cause": "layout-ignored"},
        [("kernel(grad_output)", "kernel(grad_output.contiguous())")],
    ),
    "view": (
        module("return x", "return grad_output.view(-1)"),
        "grad_output.view(-1)",
        "GL701",
        {"label": "raised here", "cause": "layout-refused"},
        [("grad_output.view(-1)", "grad_output.reshape(-1)")],
    ),
    "written to": (
        module("return x * 3", "return grad_output.mul_(3)"),
        "grad_output.mul_(3)",
        "GL602",
        {"label": "written to here", "input": ""},
        [("mul_(3)", "mul(3)")],
    ),
    "index written to": (
        module("index.remainder_(4); return x[index]", "return grad_output, None", "x, index"),
        "index.remainder_(4)",
        "GL601",
        {"label": "written to here", "input": "index"},
        [("index.remainder_(4)", "index = index.remainder(4)")],
    ),
    "written to and returned": (
        module("x.mul_(3); return x", "return grad_output * 3"),
        "x.mul_(3)",
        "GL601",
        {"label": "written to here"},
        [("x.mul_(3)", "x = x.mul(3)")],
    ),
    "written to and returned, in place as it is said": (
        module("x.mul_(3); return x", "return grad_output * 3", head='    """In place."""\n'),
        "x.mul_(3)",
        "GL601",
        {"label": "written to here"},
        [("        x.mul_(3)", "        ctx.mark_dirty(x)\n        x.mul_(3)")],
    ),
    "in place, but another tensor is returned": (
        module("x.mul_(3); return x + 1", "return grad_output * 3", head='    """In place."""\n'),
        "x.mul_(3)",
        "GL601",
        {"label": "written to here"},
        [("x.mul_(3)", "x = x.mul(3)")],
    ),
    "not in place, as it is said": (
        module("x.mul_(3); return x", "return grad_output", head='    """Never in place."""\n'),
        "x.mul_(3)",
        "GL601",
        {"label": "written to here"},
        [("x.mul_(3)", "x = x.mul(3)")],
    ),
    "one of two is declared": (
        module(
            "ctx.mark_dirty(x); x.mul_(3); y.mul_(2); return x, y",
            "return grad_output * 3, grad_output * 2",
            "x, y",
            head="    # in place\n",
        ),
        "y.mul_(2)",
        "GL601",
        {"label": "written to here", "input": "y"},
        [("ctx.mark_dirty(x)", "ctx.mark_dirty(x, y)")],
    ),
    "in place if asked": (
        module(
            "y = F.relu(x, inplace=inplace); ctx.save_for_backward(y); return y",
            "(y,) = ctx.saved_tensors; return grad_output * (y > 0), None",
            "x, inplace",
        ),
        "y = F.relu(x, inplace=inplace)",
        "GL601",
        {"label": "written to here"},
        [("        y = F", "        ctx.mark_dirty(x)\n        y = F")],
    ),
    "a flag that says in place": (
        module("return F.relu(x, inplace=True)", "return grad_output"),
        "return F.relu(x, inplace=True)",
        "GL601",
        {"label": "written to here"},
        [("F.relu(x, inplace=True)", "F.relu(x)")],
    ),
    "added to": (
        module("return x", "grad_output += x; return grad_output"),
        "grad_output += x",
        "GL602",
        {"label": "written to here", "input": ""},
        [("grad_output += x", "grad_output = grad_output + x")],
    ),
    "contiguous() taken for a copy": (
        module("return x", "g = grad_output.contiguous(); g[0] = 0; return g"),
        "g[0] = 0",
        "GL602",
        {"label": "written to here", "input": ""},
        [("grad_output.contiguous()", "grad_output.clone()")],
    ),
    "kept on ctx": (
        module("ctx.x = x; return x.sin()", "return grad_output * ctx.x.cos()"),
        "ctx.x = x",
        "GL604",
        {"label": "kept here"},
        [
            ("ctx.x = x", "ctx.save_for_backward(x)"),
            (
                "        return grad_output * ctx.x.cos()",
                "        (x,) = ctx.saved_tensors\n        return grad_output * x.cos()",
            ),
        ],
    ),
    "kept on ctx beside what is saved": (
        module(
            "ctx.save_for_backward(x); ctx.y = y; return x * y",
            "(x,) = ctx.saved_tensors; return grad_output * ctx.y, grad_output * x",
            "x, y",
        ),
        "ctx.y = y",
        "GL604",
        {"label": "kept here", "input": "y", "known": (X, Y)},
        [
            ("ctx.save_for_backward(x)", "ctx.save_for_backward(x, y)"),
            ("        ctx.y = y\n", ""),
            ("(x,) = ctx.saved_tensors", "x, y = ctx.saved_tensors"),
            ("grad_output * ctx.y", "grad_output * y"),
        ],
    ),
    "undefined gradient": (
        module("ctx.set_materialize_grads(False); return x", "return grad_output.sum()"),
        "grad_output.sum()",
        "GL405",
        {"label": "raised here", "cause": "undefined-grad-output"},
        [("        ctx.set_materialize_grads(False)\n", "")],
    ),
    "second axis for the last": (
        module("return x", "return grad_output.sum(1)"),
        "grad_output.sum(1)",
        "GL706",
        {**RETURNED, "cause": "rank"},
        [("sum(1)", "sum(-1)")],
    ),
    "mean of nothing": (
        module("return x", "return grad_output.mean(0) * len(grad_output)"),
        "grad_output.mean(0) * len(grad_output)",
        "GL705",
        {**RETURNED, "cause": "empty"},
        [("grad_output.mean(0) * len(grad_output)", "grad_output.sum(0)")],
    ),
    "stable": (
        module("return torch.log(1 + torch.exp(x))", "return grad_output"),
        "grad_output",
        "GL303",
        {},
        [("torch.log(1 + torch.exp(x))", "torch.nn.functional.softplus(x)")],
    ),
    "surrogate where one is meant": (
        module(
            "return x.round()",
            "return grad_output.clone()",
            head='    """A straight-through estimator."""\n\n',
        ),
        "grad_output.clone()",
        "GL401",
        {**RETURNED, "cause": "straight-through"},
        [
            (
                "    @staticmethod\n    def forward",
                '    surrogate = {"x": "grad_output"}\n\n    @staticmethod\n    def forward',
            )
        ],
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_candidate(name: str) -> None:
    text, place, code, more, changes = FIRST[name]
    expected = text
    for old, new in changes:
        assert old in expected
        head, _, tail = expected.rpartition(old)
        expected = head + new + tail
    texts = proposed(text, fault(text, place, code, **more))
    assert texts[:1] == [expected]


def test_no_family_fails_on_any_of_these() -> None:
    """Errors are swallowed for the user's sake; here none may occur."""
    for text, place, code, more, _ in FIRST.values():
        found, tree = fault(text, place, code, **more), Tree(text)
        codes = (code, "GL101", "GL401", "GL601", "GL603", "GL706", "GL110", "GL402", "GL303")
        for scene in [Scene(tree, replace(found, code=other)) for other in codes]:
            for family in FAMILIES:
                list(family(scene))


def test_a_number_comes_after_an_argument_that_is_not_used() -> None:
    """With the factor 1/2, `alpha` may be 1/2, and a number in its place would be wrong."""
    text = module(
        "ctx.alpha = alpha; return alpha * x.square()", "return 2 * grad_output, None", "x, alpha"
    )
    times = "scaled: the returned gradient times 1/2 agrees to 1e-10"
    found = proposed(text, fault(text, "2 * grad_output", "GL401", **RETURNED, cause_text=times))
    right = text.replace("2 * grad_output", "2 * grad_output * ctx.alpha")
    literal = text.replace("2 * grad_output", "grad_output")
    assert found.index(right) < found.index(literal)


def test_a_gradient_that_begins_as_none_is_found() -> None:
    text = module(
        "ctx.save_for_backward(x); return x.cos()",
        "(x,) = ctx.saved_tensors; g = None; g = grad_output * x.sin(); return g",
    )
    found = proposed(text, fault(text, "g", "GL401", **RETURNED, cause="sign"))
    assert text.replace("g = grad_output", "g = -grad_output") in found


def test_a_size_that_is_kept_is_used() -> None:
    text = module(
        "ctx.n = x.numel(); ctx.save_for_backward(x); return x.square().sum() / x.numel()",
        "(x,) = ctx.saved_tensors; return 2 * x * grad_output",
    )
    times = "scaled: the returned gradient times 1/x.numel() agrees to 1e-10"
    found = proposed(
        text, fault(text, "2 * x * grad_output", "GL401", **RETURNED, cause_text=times)
    )
    assert found[0] == text.replace(
        "return 2 * x * grad_output", "return 2 * x * grad_output / ctx.n"
    )


def test_a_surrogate_is_not_declared_where_none_is_meant() -> None:
    text = module("return x.round()", "return grad_output.clone()")
    found = proposed(
        text, fault(text, "grad_output.clone()", "GL401", **RETURNED, cause="straight-through")
    )
    assert not any("surrogate" in one for one in found)


def test_what_asks_for_a_write_also_asks_for_its_declaration() -> None:
    text = module(
        "y = F.relu(x, inplace=inplace); ctx.save_for_backward(y); return y",
        "(y,) = ctx.saved_tensors; return grad_output * (y > 0), None",
        "x, inplace",
    )
    found = fault(text, "y = F.relu(x, inplace=inplace)", "GL601", label="written to here")
    asked = "        if inplace:\n            ctx.mark_dirty(x)\n        y = F"
    assert text.replace("        y = F", asked) in proposed(text, found)


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        ("stats.mul_(0.9); return x * 2", True),
        ("stats += x.mean(0); return x * 2", True),
        ("stats.mul_(0.9); return x * stats", False),
        ("y = stats.mul_(0.9); return x * y", False),
    ],
)
def test_a_write_for_the_caller_is_not_lost(body: str, lost: bool) -> None:
    """Where forward reads what it wrote, a copy does; else the caller is meant to."""
    text = module(body, "return grad_output * 2, None", "x, stats")
    place = body.split("; ")[0]
    found = fault(text, place, "GL601", label="written to here", input="stats")
    made = [one for one in proposed(text, found) if "stats.mul(" in one or "stats.clone" in one]
    assert (not made) == lost
    assert not any("stats = stats +" in one for one in proposed(text, found))


def test_by_autograd_comes_last_and_says_that_it_is_slower() -> None:
    text = module("ctx.save_for_backward(x); return x.sin()", "return grad_output")
    *_, last = candidates(text, fault(text, "grad_output", "GL401", **RETURNED, cause="sign"))
    assert last.title == "let autograd differentiate forward"
    assert "slower" in last.note
    made = changed(text, last.edits)
    assert made == module(
        "ctx.save_for_backward(x); return x.sin()",
        "(x,) = ctx.saved_tensors; with torch.enable_grad():;     x = x.view_as(x);     "
        "output = x.sin(); inputs = [one for one in (x,) if one.requires_grad]; "
        "grads = iter(;     torch.autograd.grad(;         "
        "output, inputs, grad_output, create_graph=torch.is_grad_enabled(), allow_unused=True;"
        "     ); ); return next(grads) if x.requires_grad else None",
    )


@pytest.mark.parametrize(
    "body",
    [
        "ctx.save_for_backward(x); return x.clamp_(min=0)",
        "with torch.no_grad():;     y = x; return y",
    ],
)
def test_forward_that_autograd_could_not_run_is_not_used(body: str) -> None:
    text = module(body, "return grad_output")
    found = candidates(text, fault(text, "grad_output", "GL401", **RETURNED))
    assert not any("autograd" in one.title for one in found)


def test_a_loop_of_classes_has_no_place() -> None:
    inner = "".join(
        f"    {line}\n" for line in module("return x", "return -grad_output").splitlines()[3:]
    )
    text = f"import torch\n\nfor k in range(3):\n{inner}"
    with pytest.raises(NoPlace, match="in a loop"):
        candidates(text, fault(text, "-grad_output", "GL401", **RETURNED, cause="sign"))


def test_what_derives_from_the_class_is_named() -> None:
    text = module("return x", "return -grad_output") + "\n\nclass Heir(Op):\n    pass\n"
    found = candidates(text, fault(text, "-grad_output", "GL401", **RETURNED, cause="sign"))
    assert found[0].note == "`Heir`, derived from `Op`, may change too"


def test_comments_and_line_ends_stay() -> None:
    text = module("return x  # as it is", "return (-grad_output  # minus\n            )").replace(
        "\n", "\r\n"
    )
    (first, *_) = proposed(text, fault(text, "-grad_output", "GL401", **RETURNED, cause="sign"))
    assert first == text.replace("(-grad_output  # minus", "(grad_output  # minus")


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n  y = 2\n", "\x00"])
def test_what_can_not_be_read_is_told(text: str) -> None:
    with pytest.raises(Unreadable):
        Tree(text)

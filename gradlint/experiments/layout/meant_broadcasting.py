"""Whether an op is meant to take an operand of size 1 where another has more.

Arithmetic of tensors broadcasts without being asked, so that forward returns something for
operands of many shapes. It is meant where the documentation says so, where the code sums to shapes
or expands, where the operand is already the smaller one in the sample, or where backward sums a
gradient for it. Two arguments of one documented shape, a target without a gradient, or a buffer of
a module beside an argument of size 1 are no sign of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.inputs.described import ANY, Described, said_of_arguments
from gradlint.inputs.documentation import prose
from gradlint.model.sample import Sample
from gradlint.targets.nodes import registered_backward, source_text

#: Documentation that speaks of broadcasting, and does not deny it.
_SAID = re.compile(r"(?i)(?<!no )(?<!not )(?<!without )\bbroadcast(?!ing is not|s? nothing)\w*")

#: Code that treats operands of other shapes: sums to a shape, compares sizes with one or numbers
#: of axes, or calls a helper of such a name. (``expand`` is also how the gradient of a sum is
#: spread.)
_HANDLED = re.compile(
    r"\bsum_to_size\b|\bbroadcast_(?:tensors|shapes|to)\b|\b_?(?:unbroadcast|un_?expand)\w*|"
    r"\b\w*(?:sum|reduce|match|fold|shrink)_(?:to|like|as|shape)\w*\(|\b_?sum_?(?:to|like)\w*\(|"
    r"(?:\.shape|\.size\(|\bsizes?\b)[^\n]*(?:==|!=|>)\s*1\b|"
    r"\bs\b\s*(?:==|!=|>)\s*1\b(?!\s*[-+*/.])|"
    r"\b(?:dim\(\)|ndim)\s*(?:>|<|!=|-)\s*\w+(?:\.\w+)*\.(?:dim\(\)|ndim)|"
    r"\.numel\(\)\s*==\s*1\b"
)

#: How a gradient gets the shape of an operand that forward has broadcast.
_SUMMED = re.compile(r"sum|mean|reduce|broadcast|expand|shrink|fold|match|count")

#: A tensor whose shape is read in a line.
_SHAPE_OF = re.compile(r"\b(\w+)\.(?:shape|size\(|dim\(|ndim)")

#: Functions and classes that are read, at most.
MOST_PARTS = 12

#: Names of arguments that are one number a channel, a row or a batch, as a rule.
_SMALLER = re.compile(
    r"(?:\w+_)?(?:bias|scales?|weights?|gamma|beta|alpha|mask|gain|shift|offset|temperature|temp|"
    r"sigma|std|var|mean|mu|eps|slope|zero_?point|step_?size|threshold|margin|lam|lambd|valid)s?"
)


def broadcasting_is_meant(
    subject: Subject, sample: Sample, operands: Collection[str], wrong: Collection[str] = ()
) -> bool:
    """Whether the op is meant to take ``sample``, in which some arguments have size 1, or an axis
    less, where those of the sample of ``subject`` have more.

    Args:
        operands: names of the arguments that are smaller.
        wrong: names of the inputs whose gradients are wrong there.
    """
    if is_said_or_handled(subject, operands):
        return True
    known = said_of_arguments(subject.op)
    forms = [_as_documented(known, name, _rank(sample, subject, name)) for name in operands]
    if any(form is not None for form in forms):
        return any(forms)
    gradients = subject.run.gradients or [None] * len(subject.problem.inputs)
    with_gradient = {
        item.name
        for item, gradient in zip(subject.problem.inputs, gradients, strict=True)
        if gradient is not None
    }
    if not with_gradient.isdisjoint(operands):
        # Backward has summed a gradient for it: one of another shape is no evidence. Who thought of
        # that has not got the gradients of all the others wrong, too, and has written a sum.
        others = with_gradient.difference(operands)
        if not (others and others <= {*wrong}) and _backward_sums(subject):
            return True
    return any(_SMALLER.fullmatch(name.lower()) or _is_smaller(subject, name) for name in operands)


def is_said(subject: Subject) -> bool:
    """Whether the documentation speaks of broadcasting."""
    return any(_SAID.search(prose(thing)) for thing in parts_of(subject))


def is_said_or_handled(subject: Subject, operands: Collection[str]) -> bool:
    """Whether the documentation speaks of broadcasting, or the code has a part for it: for one of
    ``operands`` where it reads the shape of an argument of that name, else for all."""
    things = parts_of(subject)
    if is_said(subject):
        return True
    helpers = [thing for thing in things if inspect.isfunction(thing) and thing is not things[0]]
    own = [thing for thing in things if not any(thing is helper for helper in helpers)]
    arguments = {name for thing in own for name in _arguments_of(thing)}
    called = "|".join(helper.__name__ for helper in helpers if _HANDLED.search(text_of(helper)))
    handled = re.compile(rf"{_HANDLED.pattern}|\b(?:{called or '(?!)'})\(")
    for line in (line for thing in own for line in text_of(thing).splitlines()):
        if not handled.search(line):
            continue
        read = arguments & set(_SHAPE_OF.findall(line))
        if not read or any(name in read or name not in arguments for name in operands):
            return True
    return False


def own_state_has(subject: Subject, size: int) -> bool:
    """Whether a parameter or buffer of the op itself has an axis of ``size``."""
    module = subject.op.module
    if module is None:
        return False
    return any(size in tensor.shape for tensor in module.state_dict().values())


def smaller_operands(before: Sample, after: Sample, subject: Subject) -> list[str]:
    """Names of the arguments that broadcast in ``after``: those with fewer elements than in
    ``before``; where none has, all but those with more."""
    signature = subject.op.signature
    old = dict(before.named_tensors(signature))
    new = dict(after.named_tensors(signature))
    both = [name for name in new if name in old]
    fewer = [name for name in both if new[name].numel() < old[name].numel()]
    return fewer or [name for name in both if new[name].numel() == old[name].numel()]


def parts_of(subject: Subject) -> list[Any]:
    """The functions and classes that the op is made of, those included that it calls by name in
    its own module."""
    op = subject.op
    owner = op.function or (type(op.module) if op.module is not None else op.defining)
    found = [thing for thing in (owner, op.defining) if thing is not None]
    for thing in found:  # grows
        for function in _functions_of(thing):
            called = (function.__globals__.get(name) for name in function.__code__.co_names)
            found += [
                other
                for other in called
                if getattr(other, "__module__", None) == function.__module__
                and (inspect.isfunction(other) or inspect.isclass(other))
                and not any(other is known for known in found)
            ]
        if len(found) > MOST_PARTS:
            break
    return list({id(thing): thing for thing in found}.values())


def _backward_sums(subject: Subject) -> bool:
    """Whether a backward that ran, or a function that it calls by name, has a word for a sum; also
    where none can be read."""
    ran = [node.function for node in subject.run.nodes]
    found = [registered_backward(one) or getattr(one, "backward", None) for one in ran]
    functions = [inspect.unwrap(item) for item in found if callable(item)]
    functions = [item for item in functions if inspect.isfunction(item)]
    for function in functions:  # grows
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        functions += [
            other
            for other in called
            if inspect.isfunction(other)
            and other.__module__ == function.__module__
            and not any(other is known for known in functions)
        ]
        if len(functions) > MOST_PARTS:
            break
    texts = [text for text in map(text_of, functions) if text]
    return not texts or any(map(_SUMMED.search, texts))


def _functions_of(thing: Any) -> list[Callable[..., Any]]:
    """``thing``, or the methods of it that may be a forward or a backward."""
    names = ("forward", "backward", "setup_context", "vjp") if inspect.isclass(thing) else ()
    found = [getattr(thing, name, None) for name in names] if names else [thing]
    plain = [inspect.unwrap(item) for item in found if callable(item)]
    return [
        item
        for item in plain
        if inspect.isfunction(item) and not (item.__module__ or "").startswith("torch.")
    ]


def _arguments_of(thing: Any) -> list[str]:
    return [
        name
        for function in _functions_of(thing)
        if function.__name__ != "backward"
        for name in function.__code__.co_varnames[: function.__code__.co_argcount]
    ]


def text_of(thing: Any) -> str:
    """The source of ``thing`` without its docstrings and comments."""
    try:
        source = source_text(thing)
    except (OSError, TypeError):
        return ""
    return re.sub(r'#[^\n]*|"""[\s\S]*?"""', "", source)


def _rank(sample: Sample, subject: Subject, name: str) -> int:
    found = dict(sample.named_tensors(subject.op.signature)).get(name)
    return -1 if found is None else found.dim()


def _as_documented(known: dict[str, Described], name: str, rank: int) -> bool | None:
    """Whether documentation gives an argument a size of 1; None where it tells nothing of it."""
    item = known.get(name, Described())
    if not item.axes and not item.like:
        return None
    forms: Sequence[tuple[str, ...]] = [form for form in (item.axes, item.other) if form]
    if any("=1" in form for form in forms):
        return True
    # A second form with fewer axes is a smaller operand.
    return any(len(form) == rank < len(item.axes) and not set(form) & ANY for form in forms)


def _is_smaller(subject: Subject, name: str) -> bool:
    """Whether an argument broadcasts with another one in the sample itself. One of (4,) beside one
    of (4, 4) may as well have one element a row."""
    tensors = dict(subject.sample.named_tensors(subject.op.signature))
    own = tensors.get(name)
    if own is None:
        return False
    return any(
        _expands_to(own.shape, other.shape)
        and not (own.dim() and own.shape == other.shape[: own.dim()])
        for other in tensors.values()
        if other is not own and (other.is_floating_point() or other.is_complex())
    )


def _expands_to(shape: torch.Size, wanted: torch.Size) -> bool:
    try:
        return shape != wanted and torch.broadcast_shapes(shape, wanted) == wanted
    except RuntimeError:
        return False

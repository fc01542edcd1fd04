"""What backward returns, before autograd's engine sums, casts or rejects it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gradlint.reproduction.torch_alone.case import Case, Defect, pulled, tensors


def nodes_of(outputs: Sequence[torch.Tensor]) -> Iterator[Any]:
    """The nodes of the graph behind `outputs`, those of Python Functions only."""
    ahead = [y.grad_fn for y in outputs if y.grad_fn is not None]
    seen = set()
    while ahead:
        node = ahead.pop()
        if node in seen:
            continue
        seen.add(node)
        ahead += [before for before, _ in node.next_functions if before is not None]
        if hasattr(node, "_forward_cls"):
            yield node


@contextmanager
def watching(case: Case, phase: str, note: Callable[[Any, Any, Any], None]) -> Iterator[None]:
    """While the body runs, `note` is told of each call of forward or backward of a Function that
    the operator calls: the class, the arguments beside `ctx`, and what was returned."""
    _, outputs = case.run()
    functions = list(dict.fromkeys(node._forward_cls for node in nodes_of(outputs)))
    kept: list[tuple[Any, str, Any]] = []

    def watch(cls: Any, name: str, first: int) -> None:
        call = getattr(cls, name)
        kept.append((cls, name, vars(cls).get(name)))

        def watched(*args: Any) -> Any:
            found = call(*args)
            note(cls, args[first:], found)
            return found

        setattr(cls, name, staticmethod(watched))

    for cls in functions:
        if phase == "forward":
            split = cls.setup_context is not torch.autograd.Function.setup_context
            watch(cls, "forward", 0 if split else 1)
        else:
            own = cls.backward is not torch.autograd.Function.backward
            watch(cls, "backward" if own else "vjp", 1)
    try:
        yield
    finally:
        for cls, name, own in kept:
            if own is None:
                delattr(cls, name)
            else:
                setattr(cls, name, own)


def recorded(case: Case) -> list[tuple[str, Sequence[Any], Any]]:
    """For each Function that the operator calls: its name, what forward got, and what backward
    returned."""
    given: list[tuple[Any, Sequence[Any]]] = []
    returned: list[tuple[Any, Any]] = []
    with (
        watching(case, "forward", lambda cls, args, _: given.append((cls, args))),
        watching(case, "backward", lambda cls, _, found: returned.append((cls, found))),
    ):
        given.clear()  # of looking for the Functions
        leaves, outputs = case.run()
        try:
            pulled(outputs, leaves, case.cotangents(outputs))
        except Exception:
            pass  # the engine rejects what was recorded
    pairs = []
    for cls, found in returned:
        for place in reversed(range(len(given))):  # backward runs in the reverse order
            if given[place][0] is cls:
                pairs.append((cls.__name__, given.pop(place)[1], found))
                break
    return pairs


def wrong_return(case: Case, name: str = "") -> Defect | None:
    """A number of gradients that is not that of forward's arguments, or a gradient that has not the
    shape, dtype or device of its argument."""
    for function, arguments, found in recorded(case):
        gradients = list(found) if isinstance(found, (tuple, list)) else [found]
        what = f"{function}.backward returns "
        source = "one for each argument of forward, like the argument"
        while len(gradients) > len(arguments) and gradients[-1] is None:
            gradients.pop()  # the engine lets surplus None pass
        if len(gradients) != len(arguments):
            counts = f"{len(arguments)} gradients", f"{len(gradients)}"
            return Defect(what + "a wrong number of gradients", *counts, source)
        for place, (argument, gradient) in enumerate(zip(arguments, gradients)):
            which = what + f"gradient {place + 1} "
            if gradient is None:
                continue
            if not isinstance(gradient, torch.Tensor):
                return Defect(which + "that is no tensor", "a tensor", repr(type(gradient)), source)
            if not isinstance(argument, torch.Tensor):
                got = f"a tensor of shape {tuple(gradient.shape)}"
                return Defect(which + "for what is no tensor", "None", got, source)
            if not argument.requires_grad:
                continue
            for word, a, b in (
                ("shape", tuple(argument.shape), tuple(gradient.shape)),
                ("dtype", argument.dtype, gradient.dtype),
                ("device", argument.device, gradient.device),
            ):
                if a != b:
                    return Defect(which + f"in another {word}", str(a), str(b), source)
    return None


def kept_on_context(case: Case) -> Defect | None:
    """An input or an output that an attribute of `ctx` holds."""
    leaves, outputs = case.run()
    known = [(f"input `{n}`", x) for n, x in zip(case.names, leaves)]
    known += [(f"output {k}", y) for k, y in enumerate(outputs)]
    for node in nodes_of(outputs):
        for attribute, value in vars(node).items():
            for one in tensors(value):
                for words, tensor in known:
                    if one.data_ptr() == tensor.data_ptr() != 0:
                        return Defect(
                            f"ctx.{attribute} keeps a tensor alive",
                            "tensors are saved by ctx.save_for_backward",
                            f"ctx.{attribute} holds {words}",
                            "attributes of ctx live as long as the graph",
                        )
    return None

"""What forward and backward write to, and what a call leaves behind for another."""

from __future__ import annotations

from typing import Any

import torch

from gradlint.reproduction.torch_alone.case import (
    Case,
    Defect,
    compared,
    copied,
    each_compared,
    pulled,
    tensors,
)
from gradlint.reproduction.torch_alone.raised import in_words
from gradlint.reproduction.torch_alone.returned import nodes_of, watching


def argument_changed(case: Case) -> Defect | None:
    """An argument that forward or backward writes to without returning it."""
    before = [copied(t) for t in tensors(case.given)]
    leaves, outputs = case.run()
    passed = list(tensors(case.passed))
    vs = case.cotangents(outputs)
    returned = {id(y) for y in outputs}
    for phase in ("forward", "backward"):
        if phase == "backward":
            try:
                pulled(outputs, leaves, vs)
            except Exception:
                pass  # it may refuse to go on because of what it wrote
        for number, (now, was) in enumerate(zip(passed, before)):
            what = f"{phase} changes tensor {number + 1} of its arguments"
            found = compared(now, was, what, "its values before the call", roundings=0.0)
            if found is not None and id(now) not in returned:
                return found
    return None


def aliased_output(case: Case) -> Defect | None:
    """An output that is memory of an input."""
    _, outputs = case.run()
    for number, y in enumerate(outputs):
        for place, x in enumerate(tensors(case.passed)):
            if y is not x and not y._is_view() and y.numel() and y.data_ptr() == x.data_ptr():
                return Defect(
                    f"output {number} is the memory of tensor {place + 1} of the arguments",
                    "memory of its own, or a view that autograd knows of",
                    "the same memory",
                    "writing to one changes the other",
                )
    return None


def grad_output_changed(case: Case) -> Defect | None:
    """A gradient that backward receives and writes to."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    before = [None if v is None else v.clone() for v in vs]
    try:
        pulled(outputs, leaves, vs)
    except Exception:
        pass  # it may refuse to go on because of what it wrote
    for number, (now, was) in enumerate(zip(vs, before)):
        what = f"backward changes grad_output of output {number}"
        found = compared(now, was, what, "its values before the call", roundings=0.0)
        if found is not None:
            return found
    return None


def grad_output_changed_inside(case: Case) -> Defect | None:
    """The same for a Function that the operator calls."""
    seen: list[tuple[str, torch.Tensor, int]] = []

    def note(cls: Any, args: Any, _: Any) -> None:
        seen.extend((cls.__name__, t, t._version) for t in tensors(list(args)))

    with watching(case, "backward", note):
        leaves, outputs = case.run()
        pulled(outputs, leaves, case.cotangents(outputs))
    for name, _, version in seen:
        if version:
            return Defect(
                f"{name}.backward writes to the gradient that it receives",
                "0 writes",
                f"{version}",
                "the version of the tensor, which PyTorch counts up at every write",
            )
    return None


def saved_tensor_changed(case: Case) -> Defect | None:
    """A tensor that was saved for backward and is written to before or while backward reads it."""
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def pack(tensor: torch.Tensor) -> Any:
        kept.append((tensor, tensor.detach().clone()))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        leaves, outputs = case.run()
        vs = case.cotangents(outputs)
        for phase in ("forward", "backward"):
            if phase == "backward":
                try:
                    pulled(outputs, leaves, vs)
                except Exception:
                    pass  # it may refuse to go on because of what was written
            else:
                held = {
                    f"ctx.{name}": (value, value.detach().clone())
                    for node in nodes_of(outputs)
                    for name, value in vars(node).items()
                    if isinstance(value, torch.Tensor)
                }
            named = {f"saved tensor {k + 1}": pair for k, pair in enumerate(kept)} | held
            for name, (now, was) in named.items():
                what = f"{name} is overwritten in {phase}"
                found = compared(now, was, what, "its values when it was saved", roundings=0.0)
                if found is not None:
                    return found
    return None


def change_goes_unnoticed(case: Case) -> Defect | None:
    """A gradient that changes when an output, or an input, is written to after forward: PyTorch
    raises where the tensor was saved as it should be."""
    expected = case.gradients()
    _, outputs = case.run()
    for number in range(len(outputs)):
        leaves, outputs = case.run()
        vs = case.cotangents(outputs)
        if not outputs[number].is_floating_point():
            continue
        try:
            with torch.no_grad():
                outputs[number].mul_(0.5).add_(1.0)
            got = pulled(outputs, leaves, vs)
        except RuntimeError:
            continue  # noticed
        what = (
            f"writing to output {number} after forward goes unnoticed and changes the gradient of"
        )
        found = each_compared(case, got, expected, what, "the gradient without it")
        if found is not None:
            return found
    return None


def second_backward_differs(case: Case) -> Defect | None:
    """A gradient that is another one when backward runs a second time through one graph."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    first = pulled(outputs, leaves, [None if v is None else v.clone() for v in vs], True)
    try:
        again = pulled(outputs, leaves, [None if v is None else v.clone() for v in vs], True)
    except Exception as error:
        return Defect(
            "a second backward through the same graph raises",
            "the same gradients again",
            in_words(error),
            "the first backward, with retain_graph=True",
        )
    what = "a second backward through the same graph gives another gradient for"
    return each_compared(case, again, first, what, "the first backward, with retain_graph=True")


#: Pairs of identical calls that are compared.
REPEATS = 5


def nondeterministic(case: Case) -> Defect | None:
    """A result that is another one when the same call is made again."""
    _, first = case.run()
    expected = case.gradients()
    for _ in range(REPEATS):
        _, again = case.run()
        source = "the same call before, with the same seed"
        for number, (now, was) in enumerate(zip(again, first)):
            found = compared(now, was, f"output {number} is another one", source)
            if found is not None:
                return found
        found = each_compared(case, case.gradients(), expected, "another gradient for", source)
        if found is not None:
            return found
    return None


def uninitialised_memory(case: Case) -> Defect | None:
    """A result that holds memory that was never written: PyTorch fills what it allocates with NaN
    here."""
    expected, mode = case.gradients(), torch.are_deterministic_algorithms_enabled()
    _, plain = case.run()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        _, outputs = case.run()
        gradients = case.gradients()
    finally:
        torch.use_deterministic_algorithms(mode)
    source = "the same call without torch.use_deterministic_algorithms, which fills new memory"
    for number, (now, was) in enumerate(zip(outputs, plain)):
        found = compared(now, was, f"output {number} holds memory that was never written", source)
        if found is not None:
            return found
    what = "memory that was never written is in the gradient of"
    return each_compared(case, gradients, expected, what, source)


def later_call_interferes(case: Case) -> Defect | None:
    """An output or a gradient that changes because the operator is called again meanwhile."""
    expected = case.gradients()
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    before = [copied(y) for y in outputs]
    other = case.moved(0.75)
    others, later = other.run()
    source = "the same call with no other after it"
    for number, (now, was) in enumerate(zip(outputs, before)):
        what = f"a later call changes output {number}"
        found = compared(now, was, what, source, roundings=0.0)
        if found is not None:
            return found
    what = "a later call changes the gradient of"
    try:
        got = pulled(outputs, leaves, vs, True)
        first = [None if g is None else copied(g) for g in got]
        found = each_compared(case, got, expected, what, source)
        if found is not None:
            return found
        pulled(later, others, other.cotangents(later))
    except Exception as error:
        return Defect("backward raises after a later call", "gradients", in_words(error), source)
    what = "the backward of a later call changes the gradient of"
    return each_compared(case, got, first, what, source, roundings=0.0)


def earlier_call_interferes(case: Case) -> Defect | None:
    """A result that depends on a call with other values before."""
    source = "the same call before any other"
    _, first = case.run()
    expected = case.gradients()
    case.moved(0.75).gradients()
    _, outputs = case.run()
    for number, (now, was) in enumerate(zip(outputs, first)):
        found = compared(now, was, f"an earlier call changes output {number}", source)
        if found is not None:
            return found
    what = "an earlier call changes the gradient of"
    return each_compared(case, case.gradients(), expected, what, source)


def fails_with_hooks(case: Case) -> Defect | None:
    """A gradient that is another one where saved tensors are packed into copies, or recomputed."""
    source = "the same call without it"

    def packed(at: Case) -> list[torch.Tensor | None]:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
            return at.gradients()

    def recomputed(at: Case) -> list[torch.Tensor | None]:
        def call(given: Any) -> Any:
            return torch.utils.checkpoint.checkpoint(case.call, given, use_reentrant=False)

        return Case(call, at.given, at.names, at.seed).gradients()

    ways = ((recomputed, "torch.utils.checkpoint"), (packed, "saved-tensor hooks"))
    # The plain call comes last: what it leaves behind may make the others work.
    for at in (case, case.moved(0.8125)):
        for way, words in ways:
            try:
                got = way(at)
            except Exception as error:
                what = f"backward raises under {words}"
                return Defect(what, "gradients", in_words(error), source)
            what = f"under {words}, another gradient for"
            found = each_compared(at, got, at.gradients(), what, source)
            if found is not None:
                return found
    return None

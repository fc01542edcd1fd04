"""Errors that forward, backward or autograd's engine raises."""

from __future__ import annotations

import torch

from gradlint.reproduction.torch_alone.case import Case, Defect, each_compared, pulled


def in_words(error: BaseException) -> str:
    """The type of an error and the first line of its text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def raises_in_forward(case: Case) -> Defect | None:
    """What forward raises."""
    try:
        case.run()
    except Exception as error:
        return Defect("forward raises", "a result", in_words(error), "these arguments are valid")
    return None


def raises_in_backward(case: Case) -> Defect | None:
    """What backward raises, or the engine that looks at what it returned."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    try:
        pulled(outputs, leaves, vs)
    except Exception as error:
        source = "forward accepts these arguments"
        return Defect("backward raises", "gradients", in_words(error), source)
    return None


def fails_with_unused_outputs(case: Case) -> Defect | None:
    """What backward raises, or returns that is not what the other outputs lack, where only one
    output is used, or where its gradient is zero."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    for number, v in enumerate(vs):
        if v is None:
            continue
        alone = [w if k == number else None for k, w in enumerate(vs)]
        zeros = [
            None if w is None else w if k == number else torch.zeros_like(w)
            for k, w in enumerate(vs)
        ]
        nothing = [None if w is None else torch.zeros_like(w) for w in vs]
        for chosen, words in ((alone, f"only output {number} is used"), (nothing, "it is zero")):
            try:
                leaves, outputs = case.run()
                got = pulled(outputs, leaves, chosen)
            except Exception as error:
                what = f"backward raises where {words}"
                return Defect(what, "gradients", in_words(error), "forward returned this output")
            if chosen is not alone:
                continue
            leaves, outputs = case.run()
            expected = pulled(outputs, leaves, zeros)
            found = each_compared(
                case,
                got,
                expected,
                f"where {words}, a wrong gradient for",
                "the same with zeros for the other outputs",
            )
            if found is not None:
                return found
    return None

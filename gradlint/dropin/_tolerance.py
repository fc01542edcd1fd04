"""Steps and tolerances that the caller gave: they widen what is accepted."""

from __future__ import annotations

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from gradlint.dropin._torch import ask_torch, unaffordable
from gradlint.numerics._decide import Decision
from gradlint.numerics._elements import measure_elements
from gradlint.numerics._map import Map
from gradlint.numerics._products import widened


def accepted(
    function: Function, judged: Map, decision: Decision, place: int, options: Options
) -> bool:
    """Whether the tolerances of the call accept a gradient that the measurements don't.

    They do if torch's slow path passes with them, or if every element that was measured is within
    atol + rtol·|derivative|.
    """
    if not unaffordable(function, options):
        try:
            ask_torch(function.call, function.args, options, function=function)
        except GradcheckError:
            pass
        else:
            return True
    item = decision.judgement.inputs[place]
    worst = sorted(range(len(item.pairs)), key=lambda k: -item.pairs[k].error)[:2]
    for k in worst:
        vs = decision.judgement.cotangents[k]
        claimed = decision.judgement.gradients[k][item.index]
        found = measure_elements(
            judged, item.index, vs, claimed, kappa=item.kappa, seed=options.seed
        )
        own = widened(claimed).flatten().cpu()[found.indices]
        allowed = options.atol + options.rtol * found.measured.abs() + found.bars
        if not bool(((own - found.measured).abs() <= allowed).all()):
            return False
    return bool(torch.tensor(len(worst)) > 0)

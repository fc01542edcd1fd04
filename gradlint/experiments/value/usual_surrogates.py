"""Usual surrogates: forward and backward show what may be meant, whatever the words are.

A Function whose forward rounds, takes signs, compares or chooses has a derivative of no use: zero,
or that of the scale in which it rounds. Whoever writes a backward for it that returns something
else means a surrogate. Which one is right only its author knows, but some are usual, and none of
them comes about by accident:

- the derivative of forward with rounding, or signs, taken as the identity (Bengio, Léonard &
  Courville, Estimating or propagating gradients through stochastic neurons, 2013), for a step size
  or a bound as well (Esser et al., Learned step size quantization, ICLR 2020); signs may be the
  identity between -1 and 1 (Courbariaux et al., Binarized neural networks, 2016);
- the gradient that is passed on as it is, everywhere or between -1 and 1;
- a bump over a step, and for its threshold the opposite;
- the gradient of the zeros and ones by which forward selects, for the scores it selects by;
- the derivative of something that forward computes on its way, such as the softmax of which it
  takes the largest (Jang, Gu & Poole, Categorical reparameterization, ICLR 2017), or of the softmax
  or sigmoid of that (Maddison, Mnih & Teh, The concrete distribution, ICLR 2017).

What is seen at the sample must hold far beyond it, where bounds matter. A mask that lacks a side, a
factor, or a gradient at another place is none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence

import torch

from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.forward_under_autograd import through_autograd, values_on_the_way
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.left_out import MOVE, RoundingInside
from gradlint.experiments.value.other_float_arguments import with_other_floats
from gradlint.experiments.value.rounding import RoundingAsIdentity
from gradlint.experiments.value.selections import gradients_of_selections
from gradlint.experiments.value.step_surrogates import is_bump_over_step
from gradlint.inputs.documentation import prose
from gradlint.numerics.directions import cotangent
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised

#: How documentation says that the gradient is zero beyond a bound of 1.
BOUNDED = re.compile(r"(?i)\|\s*\w+\s*\|\s*(?:<=?|≤|>=?|≥)|clip|hard|\[-1, ?1\]|inside|within")

#: Factors by which values are multiplied to see what a surrogate is beyond the bounds of forward,
#: upper ones first.
BEYOND = (30.0, -30.0, 1 / 30)

#: Relative disagreement allowed between two gradients that are meant to be the same, in units of
#: the dtype's epsilon: the two may order their operations differently (heuristic).
ROUNDINGS = 1e3


def usual_surrogates(subject: Subject, wrong: Collection[str]) -> set[str]:
    """Those of the ``wrong`` inputs of a Function whose gradient is a usual surrogate, and is one
    with other numbers among the arguments, too: a temperature of one hides that it is left out."""
    found = _usual_here(subject, wrong)
    sample = with_other_floats(subject) if found else None
    if sample is None:
        return found
    there = Subject(subject.op, sample, subject.settings)
    return _usual_here(there, found) if there.run.gradients is not None else found


def _usual_here(subject: Subject, wrong: Collection[str]) -> set[str]:
    """Those of the ``wrong`` inputs whose gradient is a usual surrogate at the sample."""
    subject = _in_float64(subject)
    names = [item.name for item in subject.problem.inputs]
    asked = [name for name in names if name in wrong]
    if len(subject.first_order_map.outputs) != 1 or any(
        item.value.is_complex() for item in subject.problem.inputs
    ):
        return set()
    flat = {name for name in asked if is_flat(subject, names.index(name))}
    if flat and returns_one_number(subject, asked):
        return set()
    try:
        rounds, found = _of_rounding(subject, asked, flat)
        left = [name for name in asked if name in flat and name not in found]
        words = prose(subject.op.function or subject.op.defining)
        for name in [] if rounds else left:
            position = names.index(name)
            if passes_as_identity(subject, name, words) or any(
                is_bump_over_step(subject, position, threshold)
                for threshold in (None, *_thresholds(subject, position))
            ):
                found.add(name)
        found |= {name for name in left if name not in found and _of_a_selection(subject, name)}
        left = [name for name in left if name not in found]
        found |= _of_something_on_the_way(subject, left) if left and not rounds else set()
        found |= {name for name in left if _is_opposite(subject, name, found)}
        for name in [] if rounds else asked:
            if name not in flat | found and _is_coded(subject, names.index(name)):
                found |= {name} if passes_as_identity(subject, name, words) else set()
    except (OpRaised, RuntimeError, ValueError):
        return set()
    return found


def _in_float64(subject: Subject) -> Subject:
    """The same op at the same values in float64, where what is equal is told from what is near."""
    values = [item.value for item in subject.problem.inputs]
    if all(value.dtype in (torch.float64, torch.complex128) for value in values):
        return subject
    wide = subject.sample.converted(torch.float64, str(values[0].device))
    found = Subject(subject.op, wide, subject.settings)
    runs = found.run.error is None and found.run.gradients is not None
    return found if runs else subject


def returns_one_number(subject: Subject, names: Collection[str] | None = None) -> bool:
    """Whether forward returns one number throughout, here and with the inputs ``names``, or all,
    far larger: no steps are seen then, as where a mask leaves nothing."""
    numbers = set()
    for factor in (1.0, *BEYOND):
        values = [
            item.value.detach() * factor
            if names is None or item.name in names
            else item.value.detach()
            for item in subject.problem.inputs
        ]
        try:
            for item in subject.problem.forward(values):
                numbers |= set(item.value.detach().reshape(-1).tolist())
        except OpRaised:
            continue
    return len(numbers) == 1


def _is_coded(subject: Subject, position: int) -> bool:
    """Whether forward returns a few numbers in the place of many: each of its elements is zero or
    as large as another one, while no two of the input are, has the sign of the input's, and stays
    so where each element of the input is moved by a share of its own. Ternary weights are that, in
    units of their mean."""
    values = subject.problem.values()
    x = values[position]
    generator = torch.Generator().manual_seed(subject.seed)
    shares = torch.rand(x.shape, generator=generator, dtype=torch.float64).to(x)
    groups = []
    for share in (0.0, MOVE):
        values[position] = x * (1.0 + share * shares)
        (output,) = [item.value for item in subject.problem.forward(values)]
        if output.shape != x.shape or len(x.abs().unique()) < x.numel():
            return False
        near = torch.isclose(output.abs().reshape(-1, 1), output.abs().reshape(1, -1), 1e-12, 0.0)
        if not bool(((near.sum(1) > 1) | (output.reshape(-1) == 0)).all()) or bool(near.all()):
            return False
        signs = output.reshape(-1).sgn()
        if bool((signs * x.reshape(-1) < 0).any()) or not {-1.0, 1.0} <= set(signs.tolist()):
            return False
        groups.append((near, signs))
    return all(map(torch.equal, *groups))


def is_flat(subject: Subject, position: int) -> bool:
    """Whether forward returns the same where one input is moved a little, up and down."""
    values = subject.problem.values()
    try:
        before = [item.value for item in subject.problem.forward(values)]
        for share in (MOVE, -MOVE):
            moved = list(values)
            moved[position] = values[position] * (1.0 + share)
            after = [item.value for item in subject.problem.forward(moved)]
            if len(after) != len(before) or not all(map(torch.equal, before, after)):
                return False
    except OpRaised:
        return False
    return True


def _of_rounding(subject: Subject, asked: Sequence[str], flat: set[str]) -> tuple[bool, set[str]]:
    """Whether forward rounds, and the inputs whose gradient is that of forward with rounding or
    signs taken as the identity."""
    words = prose(subject.op.function or subject.op.defining)
    # Beside what is rounded, a sign may be a factor that does not change.
    signs = ("", "hardtanh") if BOUNDED.search(words) else ("", "identity", "hardtanh")
    scaled = _spread_over_the_output(subject, flat or asked)
    rounds, found = False, set()
    for bounds_first, taken in itertools.product((False, True), signs):
        forms: list[set[str]] = []
        for factor in (1.0, *BEYOND):
            seen = _with_rounding_as_identity(subject, scaled, factor, bounds_first, taken)
            if seen is None:
                break
            rounds |= seen[0]
            forms.append(seen[1])
        else:
            found |= set.intersection(*forms)
    missing = [name for name in asked if name not in found]
    if rounds and missing and flat <= found:
        found |= _without_rounding(subject, missing, scaled, (1.0, BEYOND[0]))
    elif rounds and flat == set(missing):
        found |= _without_rounding(subject, missing, scaled, (1.0, BEYOND[0], BEYOND[-1]))
    if rounds and not flat and not _is_near_without_rounding(subject, scaled):
        return True, set()
    return rounds, found & set(asked)


def _spread_over_the_output(subject: Subject, names: Collection[str]) -> set[str]:
    """The inputs of the output's shape, or all where there are none: what is brought beyond bounds
    is what is rounded, not a bound or a step size."""
    (output,) = subject.first_order_map.outputs
    inputs = {item.name: item.value for item in subject.problem.inputs if item.name in names}
    return {name for name, value in inputs.items() if value.shape == output.shape} or set(inputs)


def _with_rounding_as_identity(
    subject: Subject, scaled: Collection[str], factor: float, bounds_first: bool, signs: str
) -> tuple[bool, set[str]] | None:
    """Whether forward rounds, and the inputs whose gradient is what autograd makes of it with
    rounding taken as the identity, or that times a number that forward does not use; None where
    forward takes no such steps, or consists of other operations than autograd's."""
    vs, values, own = _pulled(subject, scaled, factor)
    with RoundingAsIdentity(bounds_first, signs) as rounding:
        problem = through_autograd(subject)
        if problem is None or not rounding.seen:
            return None
        others = problem.pull(vs, values)
    equal = set()
    for item, mine, other in zip(subject.problem.inputs, own, others, strict=True):
        if mine is None or other is None or (factor == 1.0 and not bool(mine.any())):
            continue  # nothing shows in zeros, but far beyond the bounds all may be zero
        if same(mine, other.detach()) or any(
            same(mine, scale * other.detach()) for scale in _unused_numbers(subject)
        ):
            equal.add(item.name)
    return rounding.rounded, equal


def _pulled(
    subject: Subject, scaled: Collection[str], factor: float
) -> tuple[dict[str, torch.Tensor], list[torch.Tensor], Sequence[torch.Tensor | None]]:
    """Cotangents, values with some of them multiplied by ``factor``, and the gradients there."""
    generator = torch.Generator().manual_seed(subject.seed)
    names = [item.name for item in subject.run.outputs if item.differentiable]
    parts = [cotangent(output, generator) for output in subject.first_order_map.outputs]
    vs = dict(zip(names, parts, strict=True))
    values = [
        item.value.detach() * factor if item.name in scaled else item.value.detach()
        for item in subject.problem.inputs
    ]
    return vs, values, subject.problem.pull(vs, values)


def _unused_numbers(subject: Subject) -> list[float]:
    """Numbers among the arguments that forward does not use: the scale of a gradient may be one."""
    return subject.once(_find_unused_numbers)


def _find_unused_numbers(subject: Subject) -> list[float]:
    sample = subject.sample
    found = []
    before = [item.value for item in subject.problem.forward()]
    for place, value in enumerate(sample.args):
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        args = (*sample.args[:place], 2 * value + 1, *sample.args[place + 1 :])
        moved = subject.problem.at(type(sample)(sample.label, sample.origin, args, sample.kwargs))
        try:
            after = [item.value for item in moved.forward()]
        except OpRaised:
            continue
        if len(before) == len(after) and all(map(torch.equal, before, after)):
            found.append(value)
    return found


def _without_rounding(
    subject: Subject, names: Collection[str], scaled: Collection[str], factors: Sequence[float]
) -> set[str]:
    """The inputs whose gradient is the measured derivative of forward without rounding, where the
    inputs ``scaled`` are multiplied by each of ``factors``."""
    wanted = [k for k, item in enumerate(subject.problem.inputs) if item.name in names]
    right = set(names)
    for factor in factors:
        values = _pulled(subject, scaled, factor)[1]
        problem = subject.problem.through(lambda invoke: invoke)
        problem.put(dict(enumerate(values)))
        problem.surroundings = RoundingInside().around
        judged = judge(first_order(problem), seed=subject.seed, inputs=wanted).inputs
        for item in judged:
            if item.verdict not in (AGREES, ROUNDED):
                right.discard(subject.problem.inputs[item.index].name)
    return right


#: How far, beside its size, forward may be from what it is without rounding (heuristic: two bits
#: are 0.3 off; what wraps around is off by all of it, far from zero).
_NEAR = 0.5


def _is_near_without_rounding(subject: Subject, scaled: Collection[str]) -> bool:
    """Whether forward returns about the same without rounding, at larger values as well: it does
    where it quantizes, and does not where it wraps numbers around."""
    for factor in (1.0, BEYOND[0]):
        values = _pulled(subject, scaled, factor)[1]
        rounded = [item.value for item in subject.problem.forward(values)]
        problem = subject.problem.through(lambda invoke: invoke)
        problem.surroundings = RoundingInside().around
        plain = [item.value for item in problem.forward(values)]
        for one, other in zip(rounded, plain, strict=True):
            if not float((one - other).norm()) <= _NEAR * float(other.norm()):
                return False
    return True


def passes_as_identity(subject: Subject, name: str, words: str) -> bool:
    """Whether the gradient of an input, of which forward makes the sign or the like, is that of the
    identity, or of the identity between -1 and 1; the latter where ``words`` tell of a bound."""
    position = next(k for k, item in enumerate(subject.problem.inputs) if item.name == name)
    probe = subject.first_order.judgement.probe(0)
    names = [item.name for item in subject.run.outputs if item.differentiable]
    vs = dict(zip(names, probe.cotangents, strict=True))
    forms = {True} if BOUNDED.search(words) else {True, False}
    for factor in (1.0, *BEYOND):
        values = subject.problem.values()
        values[position] = values[position] * factor
        if len(vs) != 1 or probe.cotangents[0].shape != values[position].shape:
            return False
        try:
            own = subject.problem.pull(vs, values)[position]
        except OpRaised:
            if factor == 1.0:
                return False
            continue  # such as a probability beyond 1
        if own is None:
            return False
        inside = values[position].abs() <= 1.0
        passed = {True: probe.cotangents[0] * inside, False: probe.cotangents[0]}
        forms = {form for form in forms if same(own, passed[form])}
    return bool(forms)


def _of_something_on_the_way(subject: Subject, names: Collection[str]) -> set[str]:
    """The inputs whose gradient is the derivative of a value, one and the same, that forward
    computes on its way, or of a relaxation of it."""
    positions = [k for k, item in enumerate(subject.problem.inputs) if item.name in names]
    candidates: set[int] | None = None
    for factor in (1.0, *BEYOND):
        vs, values, own = _pulled(subject, names, factor)
        (v,) = vs.values()
        found = set()
        leaves, passed = values_on_the_way(subject, values, v.shape)
        given = [leaves[k] for k in positions] if leaves else []
        relaxed = (form for value in passed for form in _relaxed(subject, value))
        for place, value in enumerate(relaxed):
            others = torch.autograd.grad(value, given, v, retain_graph=True, allow_unused=True)
            pairs = [(own[k], other) for k, other in zip(positions, others, strict=True)]
            if all(
                mine is not None
                and other is not None
                and (factor != 1.0 or mine.any())
                and same(mine, other)
                for mine, other in pairs
            ):
                found.add(place)
        candidates = found if candidates is None else candidates & found
    return set(names) if candidates else set()


def _of_a_selection(subject: Subject, name: str) -> bool:
    """Whether the gradient of an input is that of the zeros and ones that forward makes of it."""
    position = [item.name for item in subject.problem.inputs].index(name)
    for factor in (1.0, *BEYOND):
        vs, values, own = _pulled(subject, (name,), factor)
        mine = own[position]
        others = gradients_of_selections(subject, position, values, list(vs.values()))
        if mine is None or not any(same(mine, other) for other in others):
            return False
    return True


def _thresholds(subject: Subject, position: int) -> Iterator[torch.Tensor]:
    """The values of other inputs that are thresholds of one: forward stays the same where both move
    alike, and they broadcast to its shape. A forward call for each."""
    values = subject.problem.values()
    x = values[position]
    before = [item.value for item in subject.problem.forward(values)]
    for k, value in enumerate(values):
        fits = value.numel() > 1 and value.dtype == x.dtype
        if k == position or not fits or not _broadcasts(value, x):
            continue
        moved = [other + 0.5 if j in (k, position) else other for j, other in enumerate(values)]
        after = [item.value for item in subject.problem.forward(moved)]
        if all(map(torch.equal, before, after)):
            yield value.detach()


def _broadcasts(value: torch.Tensor, to: torch.Tensor) -> bool:
    """Whether the shape of ``value`` broadcasts to that of ``to``."""
    try:
        return torch.broadcast_shapes(value.shape, to.shape) == to.shape
    except RuntimeError:
        return False


def _relaxed(subject: Subject, value: torch.Tensor) -> Iterator[torch.Tensor]:
    """``value``, of which forward may take the largest or the sign, and what stands for these where
    a gradient is wanted: the softmax along the last axis, and the sigmoid, at the temperature or of
    the slope that is a number among the arguments (Jang, Gu & Poole 2017; Maddison et al. 2017)."""
    yield value
    given = [abs(float(n)) for _, n in subject.arguments() if type(n) in (int, float) and n]
    for number in given or [1.0]:
        if value.dim():
            yield (value / number).softmax(-1)
        yield (value * number).sigmoid()
        yield (value / number).sigmoid()


def _is_opposite(subject: Subject, name: str, known: Collection[str]) -> bool:
    """Whether an input is the threshold of one whose surrogate is known: forward stays the same
    where both move alike, and the gradients are opposite."""
    names = [item.name for item in subject.problem.inputs]
    values = subject.problem.values()
    k = names.index(name)
    before = [item.value for item in subject.problem.forward(values)]
    _, _, own = _pulled(subject, (), 1.0)
    for other in known:
        j = names.index(other)
        moved = list(values)
        moved[j], moved[k] = moved[j] + 0.5, moved[k] + 0.5
        after = [item.value for item in subject.problem.forward(moved)]
        mine, its = own[k], own[j]
        if mine is None or its is None or not all(map(torch.equal, before, after)):
            continue
        try:
            total = its.sum_to_size(mine.shape)
        except RuntimeError:
            continue
        if same(mine, -total):
            return True
    return False


def straight_through(
    subject: Subject, scaled: Collection[str] = (), factor: float = 1.0
) -> dict[str, bool]:
    """Input → whether its gradient is what autograd makes of forward with rounding taken as the
    identity; empty where forward doesn't round, or consists of other operations than autograd's.

    Args:
        scaled: inputs whose values are multiplied by ``factor``, so that they exceed bounds.
    """
    probe = subject.first_order.judgement.probe(0)
    names = [item.name for item in subject.run.outputs if item.differentiable]
    vs = dict(zip(names, probe.cotangents, strict=True))
    values = [
        item.value * factor if item.name in scaled else item.value
        for item in subject.problem.inputs
    ]
    own: Sequence[torch.Tensor | None] = probe.gradients
    equal: dict[str, bool] = {}
    try:
        if factor != 1.0:
            own = subject.problem.pull(vs, values)
        for bounds_first in (False, True):
            with RoundingAsIdentity(bounds_first) as rounding:
                problem = through_autograd(subject)
                if problem is None or not rounding.seen:
                    return {}
                found = problem.pull(vs, values)
            for item, mine, other in zip(subject.problem.inputs, own, found, strict=True):
                if mine is not None and other is not None and same(mine, other.detach()):
                    equal[item.name] = True
    except (OpRaised, ValueError):
        return {}
    return equal


def passed_through(subject: Subject, rounds: Collection[str], names: Collection[str]) -> set[str]:
    """Those of ``names`` whose gradients are what autograd makes of forward with rounding taken as
    the identity, at the sample and where the inputs that it ``rounds`` exceed bounds."""
    found = {name for name, equal in straight_through(subject).items() if equal}
    return {
        name
        for name in found.intersection(names)
        if all(straight_through(subject, rounds, k).get(name) for k in BEYOND)
    }


def same(own: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two gradients are the same up to rounding."""
    if own.shape != other.shape or not own.numel():
        return False
    bar = ROUNDINGS * torch.finfo(own.dtype).eps * float(own.abs().max())
    return bool(((own - other).abs() <= bar).all())

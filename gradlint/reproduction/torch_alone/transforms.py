"""Program transforms: none of them may change a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradlint.reproduction.torch_alone.case import (
    Case,
    Defect,
    compared,
    copied,
    each_compared,
    mapped,
    pulled,
    seed_all,
    tensors,
)
from gradlint.reproduction.torch_alone.raised import in_words


def pure(case: Case) -> Callable[..., Any]:
    """A function of the differentiable inputs that returns the outputs that have a gradient."""
    _, outputs = case.run()
    chosen = [k for k, y in enumerate(outputs) if y.requires_grad]

    def call(*values: torch.Tensor) -> Any:
        new = {id(x): value for x, value in zip(case.inputs, values)}
        found = list(tensors(case.call(mapped(case.given, lambda t: new.get(id(t), t)))))
        return tuple(found[k] for k in chosen)

    return call


def _weights(case: Case) -> tuple[torch.Tensor, ...]:
    _, outputs = case.run()
    return tuple(v for v in case.cotangents(outputs) if v is not None)


def _elsewhere(case: Case) -> list[torch.Tensor]:
    """Other values of the inputs, near theirs."""
    return [(x.detach() * 0.875).detach() for x in case.inputs]


def _first_different(
    case: Case,
    got: Sequence[Any],
    expected: Sequence[Any],
    gradients: Sequence[Any],
    plain: Sequence[Any],
    words: str,
    source: str,
    roundings: float = 1000.0,
) -> Defect | None:
    for number, (now, was) in enumerate(zip(got, expected)):
        what = f"output {number} is another one {words}"
        found = compared(now, was, what, source, roundings=roundings)
        if found is not None:
            return found
    what = f"{words}, another gradient for"
    return each_compared(case, gradients, plain, what, source, roundings)


def wrong_under_vmap(case: Case) -> Defect | None:
    """A result of torch.func.vmap that is not that of a loop over the batch."""
    first, second = [x.detach() for x in case.inputs], _elsewhere(case)
    call, vs = pure(case), _weights(case)

    def both(*values: torch.Tensor) -> Any:
        outputs, pull, *_ = torch.func.vjp(call, *values)
        return outputs, pull(vs)

    ways: list[tuple[str, list[int | None], Callable[..., Any]]] = []
    at_end: list[int | None] = [first[0].dim(), *[0 for _ in first[1:]]]
    ways.append(("vmap", at_end, call))
    ways.append(("vmap of vjp", [0 for _ in first], both))
    if len(first) > 1:
        ways.append(("vmap of vjp", [None, *[0 for _ in first[1:]]], both))
    for words, dims, function in ways:
        points = [first, [a if d is None else b for a, b, d in zip(first, second, dims)]]
        given = [
            x if dim is None else torch.stack([p[k] for p in points], dim)
            for k, (x, dim) in enumerate(zip(first, dims))
        ]
        told = f"under {words} (in_dims={tuple(dims)})"
        source = "a loop over the batch"
        if function is call:
            given = [x.requires_grad_() for x in given]
        try:
            seed_all(case.seed)
            got = torch.func.vmap(function, in_dims=tuple(dims), randomness="same")(*given)
            outputs = got if function is call else got[0]
            gradients: Sequence[Any]
            if function is call:
                pairs = [(y, v.expand_as(y)) for y, v in zip(outputs, vs) if y.requires_grad]
                found = torch.autograd.grad(
                    [y for y, _ in pairs], given, [v for _, v in pairs], allow_unused=True
                )
                gradients = [
                    None if g is None else g.movedim(d or 0, 0) for g, d in zip(found, dims)
                ]
            else:
                gradients = got[1]
        except Exception as error:
            return Defect(f"it raises {told}", "a result", in_words(error), source)
        for number, values in enumerate(points):
            there = Case(case.call, case.given, case.names, case.seed)
            leaves, plain = there.run(values)
            plain_vs = there.cotangents(plain)
            expected = pulled(plain, leaves, plain_vs)
            seen = _first_different(
                case,
                [y[number] for y in outputs],
                [y for y, v in zip(plain, plain_vs) if v is not None],
                [None if g is None else g[number] for g in gradients],
                expected,
                told,
                source,
            )
            if seen is not None:
                return seen
    return None


def wrong_under_torch_func(case: Case) -> Defect | None:
    """A derivative by torch.func that is not that of plain autograd."""
    call, vs = pure(case), _weights(case)
    leaves, outputs = case.run()
    kept = [y for y in outputs if y.requires_grad]
    expected = pulled(outputs, leaves, case.cotangents(outputs))
    values = [x.detach() for x in case.inputs]
    source = "plain autograd"
    generator = torch.Generator().manual_seed(case.seed)
    us = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in values]

    def first(*passed: torch.Tensor) -> Any:
        seed_all(case.seed)
        found, pull, *_ = torch.func.vjp(call, *passed)
        return pull(vs), found

    try:
        gradients, got = first(*values)
    except Exception as error:
        return Defect("it raises under torch.func.vjp", "a result", in_words(error), source)
    seen = _first_different(case, got, kept, gradients, expected, "under torch.func.vjp", source)
    if seen is not None:
        return seen
    again = [copied(x).requires_grad_() for x in values]
    pairs = list(zip(call(*again), vs))
    plain = torch.autograd.grad(
        [y for y, _ in pairs], again, [v for _, v in pairs], create_graph=True, allow_unused=True
    )
    chosen = [(g, u) for g, u in zip(plain, us) if g is not None and g.requires_grad]
    if chosen:
        try:
            second = torch.autograd.grad(
                [g for g, _ in chosen], again, [u for _, u in chosen], allow_unused=True
            )
            pull = torch.func.vjp(lambda *p: first(*p)[0], *values)[1]
            by_func = pull(tuple(us))
        except Exception:
            second = by_func = ()
        what = "under torch.func.vjp twice, another second derivative for"
        seen = each_compared(case, by_func, second, what, source)
        if seen is not None:
            return seen
    try:
        tangents = torch.func.jvp(call, tuple(values), tuple(us))[1]
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(copied(x), u) for x, u in zip(values, us)]
            own = [torch.autograd.forward_ad.unpack_dual(y).tangent for y in call(*duals)]
    except Exception:
        return None
    for number, (now, was) in enumerate(zip(tangents, own)):
        what = f"under torch.func.jvp, another tangent of output {number}"
        seen = compared(now, was, what, "plain forward-mode autograd")
        if seen is not None:
            return seen
    return None


def wrong_when_compiled(case: Case) -> Defect | None:
    """A result of torch.compile that is not that of the plain call."""
    source = "the same call without torch.compile"

    def compiled() -> Case:
        torch._dynamo.reset()
        call = torch.compile(case.call, backend="aot_eager", dynamic=False)
        return Case(call, case.given, case.names, case.seed)

    for values, words in (
        (None, "under torch.compile"),
        (_elsewhere(case), "under torch.compile, at other values"),
    ):
        leaves, outputs = case.run(values)
        expected = pulled(outputs, leaves, case.cotangents(outputs))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fast = compiled()
                if values is not None:
                    fast.gradients()
                leaves, got = fast.run(values)
                gradients = pulled(got, leaves, case.cotangents(outputs))
        except Exception as error:
            return Defect(f"it raises {words}", "a result", in_words(error), source)
        found = _first_different(case, got, outputs, gradients, expected, words, source, 1e5)
        if found is not None:
            return found
    leaves, outputs = case.run()
    expected = pulled(outputs, leaves, case.cotangents(outputs))
    leaves, outputs = case.run()
    try:
        with torch._dynamo.compiled_autograd._enable(  # noqa: SLF001, there is no public way
            torch.compile(backend="aot_eager")
        ):
            gradients = pulled(outputs, leaves, case.cotangents(outputs))
    except Exception:
        return None
    what = "under compiled autograd, another gradient for"
    return each_compared(case, gradients, expected, what, source, 1e5)


def fails_opcheck(case: Case) -> Defect | None:
    """What torch.library.opcheck says of a registered operator."""
    case.run()
    try:
        torch.library.opcheck(case.operator, case.passed[0], case.passed[1])
    except Exception as error:
        return Defect("torch.library.opcheck fails", "no error", in_words(error), "opcheck")
    return None


def wrong_under_autocast(case: Case) -> Defect | None:
    """A gradient after a forward under autocast that rounding to bfloat16 does not explain."""
    single = case.changed(lambda t: t.float() if t.dtype == torch.float64 else t)
    expected = single.gradients()
    source = "the same call without autocast"
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            leaves, outputs = single.run()
    except Exception:
        return None
    try:
        gradients = pulled(outputs, leaves, single.cotangents(outputs))
    except Exception as error:
        what = "backward raises after a forward under autocast"
        return Defect(what, "gradients", in_words(error), source)
    what = "after a forward under autocast, a wrong gradient for"
    # Eight roundings to bfloat16, which has 8 bits.
    return each_compared(single, gradients, expected, what, source, 0.0625 / 1.2e-7)


def wrong_when_exported(case: Case) -> Defect | None:
    """An output of the exported program that is not that of the operator."""

    class Exported(torch.nn.Module):
        def forward(self, *values: torch.Tensor) -> Any:
            new = dict(zip(map(id, given), values))
            return case.call(mapped(case.given, lambda t: new.get(id(t), t)))

    given = list({id(t): t for t in tensors(case.given)}.values())
    traced = tuple(t.detach() for t in given)
    other = tuple(t.detach() * 0.875 if t.is_floating_point() else t for t in given)
    moved = dict(zip(map(id, given), other))
    with torch.no_grad():
        seed_all(case.seed)
        expected = list(tensors(case.call(mapped(case.given, lambda t: moved[id(t)]))))
    programs: list[tuple[str, Callable[[], Any]]] = [
        ("torch.export", lambda: torch.export.export(Exported(), traced).module()),
        ("a TorchScript trace", lambda: torch.jit.trace(Exported(), traced, check_trace=False)),
    ]
    for words, make in programs:
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                program = make()
                seed_all(case.seed)
                got = list(tensors(program(*other)))
        except Exception:
            continue
        source = "the operator itself, at the same values"
        for number, (now, was) in enumerate(zip(got, expected)):
            what = f"output {number} is another one in {words}"
            found = compared(now, was, what, source, roundings=1e5)
            if found is not None:
                return found
    return None


class Subclass(torch.Tensor):
    """A subclass of Tensor that changes nothing."""


def wrong_for_subclasses(case: Case) -> Defect | None:
    """A result for tensors of a subclass that is not that for plain tensors."""
    _, outputs = case.run()
    expected = case.gradients()
    source = "the same call with plain tensors"
    plain = case.call
    kinds: list[type] = []

    def call(given: Any) -> Any:
        fed = mapped(given, lambda t: t.clone().as_subclass(Subclass) if t.requires_grad else t)
        returned = plain(fed)
        kinds[:] = [type(y) for y in tensors(returned)]
        return mapped(returned, lambda t: t.as_subclass(torch.Tensor))

    fed = Case(call, case.given, case.names, case.seed)
    try:
        leaves, got = fed.run()
        gradients = pulled(got, leaves, case.cotangents(outputs))
    except Exception:
        return None  # refused openly
    words = "for a subclass of torch.Tensor"
    found = _first_different(case, got, outputs, gradients, expected, words, source)
    if found is None and Subclass not in kinds:
        what = "the outputs for a subclass of torch.Tensor are plain tensors"
        return Defect(what, "the subclass", "torch.Tensor", "PyTorch's own operators keep it")
    return found

"""Further samples with one tensor more, for an op that takes any number of them: what backward does
for the first and the second may not be what it does for each."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs.designed import SAME_SIGN, Designed, is_floating, leaf_like
from gradlint.inputs.designed_arguments import with_arguments
from gradlint.inputs.documentation import documented_from_one
from gradlint.inputs.domains import DOMAINS
from gradlint.inputs.handed_on import prose_about
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names

#: Share of the last tensor, of the first, in the one that is added: between two values of a domain
#: without gaps lie others of it (heuristic: neither half, nor near to one of them).
MIXED = (0.6, 0.3)


def one_more(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with a tensor added to a list, a tuple or ``*args`` of two tensors or more; to all
    that are as long together, because their tensors may be pairs."""
    counts = _counts(op, sample)
    for count in dict.fromkeys(counts.values()):
        names = [name for name in counts if counts[name] == count]
        label = f"with {count + 1} tensors in {', '.join(f'`{name}`' for name in names)}"
        yield Designed(_longer(op, sample, names, label), {}, only_if_seen=True)


def with_empty_part(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with an empty part first, where a list of numbers says how long the parts of an
    axis are: experts that get no tokens, graphs without nodes. The next part gets its elements."""
    sizes = {size for _, tensor in sample.named_tensors(op.signature) for size in tensor.shape}
    names = positional_names(op.signature, len(sample.args)) if op.signature is not None else []
    given: Iterator[tuple[str, Any]] = zip(names, sample.args, strict=False)
    for name, value in (*given, *sample.kwargs.items()):
        parts: list[Any] = list(value) if type(value) in (list, tuple) else []
        if len(parts) < 2 or not all(type(part) is int and part > 0 for part in parts):
            continue
        if sum(parts) in sizes and not documented_from_one(prose_about(op, name), name):
            moved = type(value)([0, parts[0] + parts[1], *parts[2:]])
            label = f"where the first of `{name}` is 0"
            changed = replace(with_arguments(op, sample, {name: moved}), moved=())
            yield Designed(replace(changed, label=label, kind="special"), {}, must_run=True)


def _counts(op: Op, sample: Sample) -> dict[str, int]:
    """Argument → how many tensors it holds, where it can hold any number."""
    variadic = _variadic(op)
    names = positional_names(op.signature, len(sample.args)) if op.signature is not None else []
    plain = names[: len(names) if variadic is None else variadic[1]]
    given = {**dict(zip(plain, sample.args, strict=False)), **sample.kwargs}
    if variadic is not None:
        given[variadic[0]] = sample.args[variadic[1] :]
    return {
        name: len(value)
        for name, value in given.items()
        if type(value) in (list, tuple) and _may_grow(value) and _is_free(sample, name)
    }


def _variadic(op: Op) -> tuple[str, int] | None:
    """The name of ``*args``, and the number of arguments before them."""
    parameters = list(op.signature.parameters.values()) if op.signature is not None else []
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return None
    place = kinds.index(inspect.Parameter.VAR_POSITIONAL)
    return parameters[place].name, place


def _may_grow(values: Any) -> bool:
    """Whether ``values`` are two floating tensors or more, of one shape."""
    if len(values) < 2 or not all(isinstance(value, torch.Tensor) for value in values):
        return False
    return all(is_floating(value) and value.shape == values[0].shape for value in values)


def _is_free(sample: Sample, name: str) -> bool:
    """Whether a weighted mean of two values of an argument is one, too."""
    held = {v for k, v in sample.domains.items() if k.partition("[")[0] == name}
    return held <= {*SAME_SIGN, DOMAINS["unit"]}


def _longer(op: Op, sample: Sample, names: Collection[str], label: str) -> Sample:
    variadic = _variadic(op)
    places = positional_names(op.signature, len(sample.args)) if op.signature is not None else []

    def grown(value: Any) -> Any:
        first, last = value[0].detach(), value[-1].detach()
        made = leaf_like(MIXED[0] * last + MIXED[1] * first, value[-1])
        return [*value, made] if isinstance(value, list) else (*value, made)

    args = tuple(
        grown(value) if name in names and isinstance(value, (list, tuple)) else value
        for name, value in zip(places, sample.args, strict=True)
    )
    if variadic is not None and variadic[0] in names:
        args = (*args[: variadic[1]], *grown(args[variadic[1] :]))
    kwargs = {k: grown(value) if k in names else value for k, value in sample.kwargs.items()}
    return replace(sample, label=label, kind="same", args=args, kwargs=kwargs)

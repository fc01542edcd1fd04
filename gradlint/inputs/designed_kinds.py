"""Further samples of another kind: complex numbers, a batch, float64, matrices whose eigenvalues
are equal, sequences of length zero. Each is made only where the code or its documentation gives a
reason to expect that the op takes it."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

import torch

from gradlint.inputs import _names
from gradlint.inputs.designed import (
    Designed,
    domain_of,
    exchanged,
    is_floating,
    leaf_like,
    replaced,
)
from gradlint.inputs.documentation import documented_from_one, documented_ranks, prose
from gradlint.inputs.domains import DOMAINS
from gradlint.inputs.handed_on import prose_about
from gradlint.model.op import Op
from gradlint.model.sample import Sample, SampleKind

#: The eigenvalue of a matrix that has only one (neither 0 nor 1, where logarithms and powers hide
#: factors).
EIGENVALUE = 1.7

#: Share of the imaginary part of a Hermitian matrix (heuristic: so little that it stays definite).
HERMITIAN = 0.1

#: Documentation of an op that takes many arguments of a kind at once.
_BATCHED = re.compile(r"\bbatch(?:es|ed)?\b|\(\.\.\.,|\[\.\.\.,")
#: Documentation that calls the members of a batch the same: "identical along the batch axis".
_ALIKE = re.compile(
    r"(?i)\b(?:identical|equal|the same|copied|repeated|constant)\s+(?:along|across|over|in)\s+"
    r"(?:the\s+|an?\s+|all\s+|every\s+|each\s+)?(?:\w+\s+)?(?:batch|first\s+ax[ei]s|first\s+dim)"
)

#: Documentation of an op that takes complex numbers, and of one that does not.
_COMPLEX = re.compile(r"\bcomplex\b")
#: What may be done with complex numbers that are given by their real and imaginary parts.
_BY_PARTS = re.compile(
    r"\bcomplex (?:magnitudes?|modulus|moduli|absolute|amplitudes?|phases?|angles?|norms?|"
    r"multipl\w+|products?|division|conjugat\w+|arithmetic|wavelets?|filters?)\b"
)
_ONLY_REAL = re.compile(r"\b(?:not?|non-?|never|real only|only real)\b[^.]*\bcomplex\b")


def with_empty_lengths(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with lengths of which one is zero, unless they are documented to begin at one."""
    for name, tensor in sample.named_tensors(op.signature):
        if documented_from_one(prose_about(op, name), name):
            continue
        if domain_of(sample, name) == "sizes" and tensor.numel() > 1:
            flat = tensor.reshape(-1).clone()
            flat[0] = 0
            yield replaced(sample, tensor, flat, f"where one of `{name}` is 0", "special")


def with_equal_eigenvalues(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with multiples of the identity in place of definite matrices."""
    for name, tensor in sample.named_tensors(op.signature):
        definite = domain_of(sample, name) == DOMAINS["spd"] and is_floating(tensor)
        if definite and tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 1:
            eye = torch.eye(tensor.shape[-1], dtype=tensor.dtype)
            flat = (EIGENVALUE * eye).expand(tensor.shape).reshape(-1).clone()
            label = f"where the eigenvalues of `{name}` are equal"
            yield replaced(sample, tensor, flat, label, "special")


#: Domains of what stays real beside complex numbers: a weight, a width.
_STAY_REAL = (DOMAINS["positive"], "nonnegative")


def as_complex(
    op: Op, sample: Sample, *, expected: bool, real: Collection[str] = ()
) -> Iterator[Designed]:
    """``sample`` with complex numbers in place of all real ones but ``real``, masks, and those that
    have a sign, if none is there and they are ``expected`` or documented; as inputs of another kind
    where documentation tells of an operation on complex numbers, and there are two tensors or more,
    which may be their parts. Not where complex numbers are documented and a last axis of size 2 may
    hold them."""
    text = prose(op.defining) if op.defining is not None else ""
    if not (expected or _COMPLEX.search(text)) or _ONLY_REAL.search(text):
        return
    named = sample.named_tensors(op.signature)
    if any(tensor.is_complex() for _, tensor in named):
        return
    if not expected and any(is_floating(t) and t.shape[-1:] == (2,) for _, t in named):
        return
    exchange = {}
    for name, tensor in sample.named_tensors(op.signature):
        is_mask = "mask" in _names.kinds(name)
        if is_floating(tensor) and name not in real and not is_mask:
            domain, moved = domain_of(sample, name), tensor.detach().flatten().roll(1)
            imaginary = 0.7 * moved.reshape(tensor.shape)
            if domain == DOMAINS["spd"]:
                imaginary = HERMITIAN * (imaginary - imaginary.mT)
            elif domain in _STAY_REAL:
                continue
            elif domain != DOMAINS["real"]:
                return
            made = torch.complex(tensor.detach(), imaginary)
            exchange[id(tensor)] = leaf_like(made, tensor)
    parts = len(exchange) > 1 and not expected and not _COMPLEX.search(_BY_PARTS.sub("", text))
    if exchange:
        kind: SampleKind = "special" if parts else "same"
        yield Designed(exchanged(sample, exchange, "with complex numbers", kind), {})


def as_batch(op: Op, sample: Sample) -> Iterator[Designed]:
    """A batch of the only tensor, as many as its last axis is long: a gradient of the output that
    is broadcast along the wrong axis then fits. Not where its members are documented to be the
    same: these differ; nor where a shape is documented that has as many axes as it already, such as
    "images (B, C, H, W)"."""
    tensors = [t for _, t in sample.named_tensors(op.signature)]
    if len(tensors) != 1 or not is_floating(tensors[0]) or tensors[0].dim() < 2:
        return
    text = prose(op.defining) if op.defining is not None else ""
    if not _BATCHED.search(text) or _ALIKE.search(" ".join(text.split())):
        return
    (tensor,) = tensors
    if tensor.dim() in documented_ranks(op):
        return
    count = tensor.shape[-1]
    more = torch.stack([tensor.detach() * (1 + 0.1 * k) for k in range(count)])
    label = f"with a batch of {count}"
    made = {id(tensor): leaf_like(more, tensor)}
    yield Designed(exchanged(sample, made, label, "other-rank"), {})


def in_double(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` in float64 where the inferred one is in float32, because something refused more
    digits, or because only the parameters of a module are floating numbers: if forward takes them,
    backward has to."""
    named = [tensor for _, tensor in sample.named_tensors(op.signature) if is_floating(tensor)]
    there = replace(sample, label="in float64", kind="same", notes=[])
    if named and all(tensor.dtype == torch.float32 for tensor in named):
        made = {id(tensor): leaf_like(tensor.double(), tensor) for tensor in named}
        yield Designed(exchanged(there, made, there.label, "same"), {}, must_run=True)
    elif not named and op.module is not None:
        held = [*op.module.parameters(), *op.module.buffers()]
        if not all(value.dtype == torch.float32 for value in held if value.is_floating_point()):
            return
        try:
            double = copy.deepcopy(op.module).double()
        except Exception:  # of a module that can't be copied: anything
            return
        changed = replace(op, module=double, call=double)
        yield Designed(there, {}, op=changed, must_run=True)

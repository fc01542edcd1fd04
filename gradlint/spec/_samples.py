"""From the inputs of a spec to concrete arguments."""

from __future__ import annotations

import inspect
import math
import zlib
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.base.errors import SpecError
from gradlint.base.text import did_you_mean, error_line
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.expressions.limits import ExpressionError
from gradlint.inputs.values import spread
from gradlint.model.sample import Sample
from gradlint.spec._dims import size_of
from gradlint.spec._domains import INFERRED, Domain, parse_domain
from gradlint.spec._model import Input, OpSpec
from gradlint.spec._yaml import Document, Path
from gradlint.spec.plan import Planned, planned

#: What torch raises for values that it does not take.
_REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, OverflowError)

#: Integers that are listed to be drawn from (heuristic: more than the elements of most samples).
_MOST_LISTED = 2**20
_LARGEST = 2**63 - 1

_REALS = parse_domain("reals")

#: Domain of a spec → the kind of values that :func:`gradlint.inputs.values.spread` makes for it.
_KINDS = {
    "reals": "real",
    "nonzero": "real",
    "positive": "positive",
    "nonnegative": "positive",
    "negative": "negative",
    "nonpositive": "negative",
    "unit": "unit",
    "open unit": "unit",
    "probability": "rows",
    "spd": "spd",
    "unit vectors": "lengths",
    "increasing": "ordered",
}


def make_samples(
    spec: OpSpec,
    document: Document,
    seed: int,
    signature: inspect.Signature | None,
    *,
    by_name: bool,
) -> list[Sample]:
    """The samples that ``spec`` describes, on the CPU, floating tensors in float64.

    Args:
        signature: of the op's forward; decides which inputs go by position.
        by_name: whether the op takes keyword arguments. Where it doesn't, defaults of omitted
            arguments before a given one are filled in.

    Raises:
        SpecError: inputs don't fit the signature, or an expression can't be computed.
    """
    samples = []
    for plan in planned(spec):
        maker = _Maker(plan, seed, document)
        values = {}
        keywords = set()
        for name, item in plan.inputs.items():
            values[name] = maker.argument(name, item, plan.places[name])
            if item.keyword:
                keywords.add(name)
        arranged = _Arranged(document, plan, signature, by_name)
        args, kwargs = arranged.call(values, keywords)
        samples.append(
            Sample(plan.label, "spec", tuple(args), kwargs, list(maker.notes), maker.domains)
        )
    if document.problems:
        raise SpecError(document.path, list(dict.fromkeys(document.problems)))
    return samples


def constructor_arguments(spec: OpSpec, document: Document) -> dict[str, Any] | None:
    """The arguments by which ``spec`` makes a module; None where it does not say.

    Raises:
        SpecError: an expression can't be computed.
    """
    if spec.constructor is None:
        return None
    dims = {name: sizes[0] for name, sizes in spec.dims.items()}
    maker = _Maker(Planned("the constructor", dims, {}, {}), 0, document)
    made = {
        name: maker.argument(name, item, ("constructor", name))
        for name, item in spec.constructor.items()
    }
    if document.problems:
        raise SpecError(document.path, list(dict.fromkeys(document.problems)))
    return made


class _Maker:
    """Makes the arguments of one sample."""

    def __init__(self, plan: Planned, seed: int, document: Document) -> None:
        self.plan = plan
        self.seed = seed
        self.document = document
        self.domains: dict[str, str] = {}
        self.notes: list[str] = []

    def argument(self, name: str, item: Input, path: Path) -> Any:
        """The value of one argument."""
        if item.shape is not None:
            try:
                return self.tensor(name, item)
            except (*_REFUSALS, MemoryError) as error:
                # What the loader, which knows nothing of torch, did not foresee.
                message = f"can't be made at {self.plan.label}: {error_line(error)}"
                self.document.problem(self.document.key(path), f"`{name}` {message}")
                return None
        if item.expression is not None:
            return self.computed(name, item, (*path, "expression"))
        if item.items_list is not None or item.items_tuple is not None:
            parts = item.items_list if item.items_list is not None else item.items_tuple
            key = "list" if item.items_list is not None else "tuple"
            made = [
                self.argument(f"{name}[{index}]", part, (*path, key, index))
                for index, part in enumerate(parts or ())
            ]
            return made if item.items_list is not None else tuple(made)
        if item.items_dict is not None:
            return {
                key: self.argument(f"{name}[{key!r}]", part, (*path, "dict", key))
                for key, part in item.items_dict.items()
            }
        return item.value

    def tensor(self, name: str, item: Input) -> torch.Tensor:
        shape = [size_of(size, self.plan.dims) for size in item.shape or ()]
        generator = self.generator(name)
        wanted = _dtype(item)
        domain = parse_domain(item.domain) if item.domain is not None else _REALS
        if item.value is not None:
            made = _filled(item.value, shape, wanted)
        elif item.range is not None:
            low, high = (size_of(end, self.plan.dims) for end in item.range)
            made = _integers(low, high, shape, generator).to(wanted or torch.int64)
        elif item.values is not None:
            made = _spread(_filled(item.values, [len(item.values)], wanted), shape, generator)
        elif wanted == torch.bool:
            made = _spread(torch.tensor([True, False]), shape, generator)
        else:
            made = self.drawn(name, domain, shape, generator, wanted or torch.float64)
        if item.sparse is not None:
            # Every other element is left out, or the tensor would be sparse in name only.
            kept = _spread(torch.tensor([True, False]), shape, generator)
            made = made * kept
            made = made.to_sparse() if item.sparse == "coo" else made.to_sparse_csr()
        if made.is_floating_point() or made.is_complex():
            made = made.detach().requires_grad_(item.requires_grad is not False)
        return made

    def drawn(
        self,
        name: str,
        domain: Domain,
        shape: list[int],
        generator: torch.Generator,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        made = draw(domain, shape, generator)
        self.domains[name] = domain.words
        if dtype.is_complex:
            made = torch.complex(made, draw(domain, shape, generator))
        return made.to(dtype)

    def computed(self, name: str, item: Input, path: Path) -> Any:
        assert item.expression is not None
        try:
            expression = compile_expression(item.expression, self.plan.dims)
            made = evaluate(
                expression,
                self.plan.dims,
                generator=self.generator(name),
                dtype=torch.float64,
                device="cpu",
            )
        except ExpressionError as error:
            mark = self.document.inside(path, error.column - 1)
            self.document.problem(mark, f"{error.message} (at {self.plan.label})", error.hint)
            return None
        if isinstance(made, torch.Tensor) and (made.is_floating_point() or made.is_complex()):
            made = made.detach().requires_grad_(item.requires_grad is not False)
        return made

    def generator(self, name: str) -> torch.Generator:
        # Each argument of each sample has its own stream, whatever the others draw.
        key = f"{self.seed}/{self.plan.label}/{name}".encode()
        return torch.Generator().manual_seed(zlib.crc32(key))


def draw(domain: Domain, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """A float64 tensor of ``shape`` inside ``domain``, away from its ends and from ties."""

    def made(kind: str) -> torch.Tensor:
        return spread(kind, shape, math.prod(shape), generator)

    low, high = domain.low, domain.high
    if domain.name != "interval":
        return made(_KINDS.get(domain.name) or INFERRED[domain.name])
    if (low, high) == (-1.0, 1.0):
        return made("small")
    if math.isfinite(low) and math.isfinite(high):
        return low + (high - low) * made("unit")
    if math.isfinite(low):
        return low - 1 + made("above")
    return high + made("negative") if math.isfinite(high) else made("real")


def _dtype(item: Input) -> torch.dtype | None:
    if item.dtype is not None:
        return getattr(torch, item.dtype.removeprefix("torch."))
    if item.boolean:
        return torch.bool
    return torch.complex128 if item.complex else None


def _filled(value: Any, shape: list[int], dtype: torch.dtype | None) -> torch.Tensor:
    made = torch.tensor(value, dtype=dtype)
    if dtype is None and made.is_floating_point():
        made = torch.tensor(value, dtype=torch.float64)
    return made.expand(shape).clone() if not isinstance(value, list) else made.reshape(shape)


def _integers(low: int, high: int, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Integers from ``low`` to ``high`` (left out), each as often as the others where all fit."""
    if high - low <= _MOST_LISTED:
        return _spread(torch.arange(low, high), shape, generator)
    # torch draws from at most 2^63 - 1 integers.
    offset = torch.randint(min(high - low, _LARGEST), shape, generator=generator)
    return offset + low


def _spread(values: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """``values`` repeated until they fill ``shape``, in random order: each occurs where it can."""
    count = 1
    for size in shape:
        count *= size
    if len(values) > count:
        values = values[torch.randperm(len(values), generator=generator)]
    repeated = values.repeat(-(-count // max(len(values), 1)))[:count]
    return repeated[torch.randperm(count, generator=generator)].reshape(shape)


@dataclass
class _Arranged:
    """Names of arguments put in the order of a signature."""

    document: Document
    plan: Planned
    signature: inspect.Signature | None
    by_name: bool

    def call(self, values: dict[str, Any], keywords: set[str]) -> tuple[list[Any], dict[str, Any]]:
        if self.signature is None:
            args = [value for name, value in values.items() if name not in keywords]
            return args, {name: values[name] for name in values if name in keywords}
        args, kwargs = [], {}
        rest = dict(values)
        skipped: list[inspect.Parameter] = []
        takes_any_name = takes_more = False
        for parameter in self.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                takes_more = True
                numbered = [name for name in rest if name.startswith(f"{parameter.name}[")]
                args += [rest.pop(name) for name in numbered]
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                takes_any_name = True
            elif parameter.name not in rest:
                self.missing(parameter)
                if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                    skipped.append(parameter)
            elif (
                parameter.kind is inspect.Parameter.KEYWORD_ONLY
                or parameter.name in keywords
                or (skipped and self.by_name)
            ):
                kwargs[parameter.name] = rest.pop(parameter.name)
            else:
                args += [parameter.default for parameter in skipped]
                skipped = []
                args.append(rest.pop(parameter.name))
        if takes_more:
            args += [rest.pop(name) for name in list(rest) if name not in keywords]
        if takes_any_name:
            return args, kwargs | rest
        for name in rest:
            self.unknown(name)
        return args, kwargs

    def missing(self, parameter: inspect.Parameter) -> None:
        if parameter.default is inspect.Parameter.empty:
            self.document.problem(
                self.document.key(("inputs",)),
                f"the op also needs `{parameter.name}`",
                f"its signature is {self.shown()}",
            )

    def unknown(self, name: str) -> None:
        assert self.signature is not None
        hint = did_you_mean(name, self.signature.parameters, f"its signature is {self.shown()}")
        place = self.document.key(self.plan.places[name])
        self.document.problem(place, f"the op has no argument `{name}`", hint)

    def shown(self) -> str:
        names = ", ".join(str(p).split(":")[0] for p in (self.signature or _NO).parameters.values())
        return f"({names})"


_NO = inspect.Signature()

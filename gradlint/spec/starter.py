"""The starter spec that ``gradlint init`` writes: inferred inputs in the language of a spec."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gradlint.base.text import printable, short_text
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names
from gradlint.spec._domains import parse_domain

#: Tensors of at most this many integers or booleans are written out (heuristic: one line).
_WRITTEN_OUT = 128
#: Characters of a comment (heuristic: command lines may be of any length).
_LONGEST_COMMENT = 300
_LETTERS = ("N", "M", "K", "L", "P", "Q", "R", "S", "U", "V", "W", "X", "Y", "Z")

_MODELINE = "# yaml-language-server: $schema=gradlint.schema.json"


def dump_starter(
    op: Op,
    samples: list[Sample],
    folder: str = ".",
    *,
    header: Sequence[str] = (),
    imports: Sequence[str] = (),
    exact: Mapping[str, frozenset[str]] | None = None,
) -> str:
    """The text of a spec in ``folder`` that checks ``op`` on ``samples``, wherever it is run.

    Loaded back it gives samples of the same shapes, dtypes and domains, with the same plain
    values and the same integers. Axes of equal size become one dim.

    Args:
        op: the operator.
        samples: what it is checked on.
        folder: where the spec will be.
        header: comments, one for each line.
        imports: what is imported before ``op`` is loaded.
        exact: label of a sample → the tensors in it whose values are written down.
    """
    writer = _Writer(exact or {})
    lines = [
        _MODELINE,
        *(f"# {printable(line)[:_LONGEST_COMMENT]}" for line in header),
        "# The schema lets an editor complete and check this file:",
        "#   gradlint schema spec -o gradlint.schema.json",
        f"op: {_text(_seen_from(folder, op.target))}",
    ]
    if imports:
        lines.append(f"import: [{', '.join(map(_text, imports))}]")
    lines += writer.constructor(op)
    base = samples[0] if samples else Sample("none", "spec")
    described = writer.describe(op, base)
    others = [writer.case(op, described, sample) for sample in samples[1:]]
    if writer.dims:
        sizes = ", ".join(f"{name}: {size}" for size, name in writer.dims.items())
        lines += [
            "# Axes that share a name have one size. A list such as [1, 4, 33] is swept.",
            f"dims: {{{sizes}}}",
        ]
    lines += _inputs(described, writer.comments)
    if others:
        lines += ["# One entry per sample: what differs from the above.", "cases:"]
        lines.append(f"  - {{label: {_text(base.label)}}}")
        for sample, entries in zip(samples[1:], others, strict=True):
            lines.append(f"  - {{{', '.join([f'label: {_text(sample.label)}', *entries])}}}")
    lines += _guide(op)
    return "\n".join(lines) + "\n"


def _seen_from(folder: str, target: str) -> str:
    """``target`` with the path of its file as seen from ``folder``, where the spec will be.

    A module that Python finds only because it lies under the current folder is named by its file,
    too: from another folder its name means nothing.
    """
    module, colon, name = target.rpartition(":")
    path = module if module.endswith(".py") else _under_current_folder(module)
    if not colon or os.path.isabs(path) or not os.path.isfile(path):
        return target
    return f"{os.path.relpath(path, folder)}:{name}".replace(os.sep, "/")


def _under_current_folder(module: str) -> str:
    """The file of the imported ``module`` if the current folder leads to it by name, or ""."""
    path = os.path.join(*module.split(".")) + ".py"
    file = getattr(sys.modules.get(module), "__file__", None)
    found = file is not None and os.path.isfile(path) and os.path.samefile(path, file)
    return path if found else ""


def _inputs(described: dict[str, str], comments: dict[str, str]) -> list[str]:
    if not described:
        return ["inputs: {}"]
    lines = ["# Arguments by their names in forward, in order.", "inputs:"]
    for name, text in described.items():
        comment = f"  # {comments[name]}" if name in comments else ""
        lines.append(f"  {_key(name)}: {text}{comment}")
    return lines


def _guide(op: Op) -> list[str]:
    lines = [
        "# What else can be said (`gradlint schema spec` lists every key):",
        '# reference: "input @ weight.mT"      # what forward should give, in torch expressions',
        "# dtypes: [float64, float32, bfloat16]",
        "# devices: [cpu, cuda]",
    ]
    for key, value in (("order", op.order), ("stochastic", op.intent.stochastic)):
        if value is not None:
            lines.append(f"{key}: {_plain(value)}")
    if op.intent.once_differentiable:
        lines.append("once_differentiable: true")
    if op.intent.surrogate:
        lines.append("surrogate:")
        lines += [f"  {_key(key)}: {_text(text)}" for key, text in op.intent.surrogate.items()]
    else:
        lines.append(
            '# surrogate: {x: "grad_output * (abs(x) <= 1)"}   # a gradient wrong on purpose'
        )
    if op.ignores:
        lines.append("ignore:")
        lines += [
            f"  - {{code: {code}, reason: {_text(reason or 'accepted')}}}"
            for code, reason in op.ignores.items()
        ]
    else:
        lines.append('# ignore: [{code: GL503, reason: "first order only, by contract"}]')
    return lines


class _Writer:
    """Describes arguments, naming sizes as it meets them."""

    def __init__(self, exact: Mapping[str, frozenset[str]]) -> None:
        self.dims: dict[int, str] = {}
        self.comments: dict[str, str] = {}
        self.exact = exact

    def constructor(self, op: Op) -> list[str]:
        """Lines that say how a module is made; none where it is not, or no spec can say it."""
        if op.module is None or not all(map(_is_sayable, op.constructor.values())):
            return []
        if not op.constructor:
            return []
        none = Sample("none", "spec")
        items = (
            f"{_key(name)}: {self.item(name, value, none, [])}"
            for name, value in op.constructor.items()
        )
        return ["# How the module is made.", f"constructor: {{{', '.join(items)}}}"]

    def describe(self, op: Op, sample: Sample) -> dict[str, str]:
        """Argument → its description as a YAML value in flow style."""
        described = {}
        names = positional_names(op.signature, len(sample.args))
        for name, value in zip(names, sample.args, strict=True):
            described[name] = self.item(name, value, sample, [])
        for name, value in sample.kwargs.items():
            described[name] = self.item(name, value, sample, ["keyword: true"])
        return described

    def case(self, op: Op, base: dict[str, str], sample: Sample) -> list[str]:
        """What of ``sample`` differs from ``base``, as entries of a case."""
        described = self.describe(op, sample)
        changed = [
            f"{_key(name)}: {text}" for name, text in described.items() if base.get(name) != text
        ]
        missing = [_text(name) for name in base if name not in described]
        entries = [f"inputs: {{{', '.join(changed)}}}"] if changed else []
        return [*entries, f"omit: [{', '.join(missing)}]"] if missing else entries

    def item(self, name: str, value: Any, sample: Sample, extra: list[str]) -> str:
        if isinstance(value, torch.Tensor):
            exact = name in self.exact.get(sample.label, ())
            return _flow([*self.tensor(name, value, sample.domains.get(name), exact), *extra])
        if isinstance(value, (list, tuple, dict)) and not _is_plain(value):
            return _flow([self.group(name, value, sample), *extra])
        if isinstance(value, (torch.dtype, complex)):
            text = str(value).strip("()")
            return _flow([f"expression: {_text(text)}", *extra])
        if not _is_plain(value):
            self.comments[name.split("[")[0]] = (
                f"gradlint can't write {short_text(value, 40)}: fill in"
            )
            return _flow(["value: null", *extra])
        if isinstance(value, (list, dict)) or extra:
            return _flow([f"value: {_plain(value)}", *extra])
        return _plain(value)

    def group(self, name: str, value: Any, sample: Sample) -> str:
        """The entry for a list, a tuple or a dict that holds more than plain values."""
        if isinstance(value, dict):
            parts = ", ".join(
                f"{_key(str(key))}: {self.item(f'{name}[{key!r}]', part, sample, [])}"
                for key, part in value.items()
            )
            return f"dict: {{{parts}}}"
        kind = "list" if isinstance(value, list) else "tuple"
        items = ", ".join(
            self.item(f"{name}[{index}]", part, sample, []) for index, part in enumerate(value)
        )
        return f"{kind}: [{items}]"

    def tensor(self, name: str, value: torch.Tensor, domain: str | None, exact: bool) -> list[str]:
        """Entries that describe a tensor; ``exact``: by its values."""
        sizes = ", ".join(self.size(size) for size in value.shape)
        entries = [f"shape: [{sizes}]"]
        dtype = str(value.dtype).removeprefix("torch.")
        layout = {torch.sparse_coo: "coo", torch.sparse_csr: "csr"}.get(value.layout)
        if not value.is_floating_point() and not value.is_complex():
            entries += [f"dtype: {dtype}", *_integers(value, exact)]
            return [*entries, f"sparse: {layout}"] if layout else entries
        if exact and layout is None and not value.is_complex():
            entries.append(f"value: {_plain(value.tolist())}")
        elif layout is None:
            known = _known(domain) if domain else _seen(value)
            if known != "reals":
                entries.append(f"domain: {_text(known)}")
        if value.is_complex():
            entries.append("complex: true")
        if dtype not in ("float64", "complex128"):
            entries.append(f"dtype: {dtype}")
        if layout:
            entries.append(f"sparse: {layout}")
        if not value.requires_grad:
            entries.append("requires_grad: false")
        return entries

    def size(self, size: int) -> str:
        """The dim of ``size``; sizes 0 and 1 are written as numbers, they are rarely tied."""
        if size < 2:
            return str(size)
        if size not in self.dims:
            count = len(self.dims)
            letter = _LETTERS[count % len(_LETTERS)]
            self.dims[size] = letter if count < len(_LETTERS) else f"{letter}{count}"
        return self.dims[size]


def _integers(value: torch.Tensor, exact: bool) -> list[str]:
    """Entries for the values of integers and booleans: all of them if they are few or ``exact``."""
    dense = value if value.layout == torch.strided else value.to_dense()
    some = dense.numel() <= _WRITTEN_OUT or exact
    if some and (dense.numel() or dense.dim() == 1):
        return [f"value: {_plain(dense.tolist())}"]
    if value.dtype == torch.bool:
        return []
    low, high = (int(dense.min()), int(dense.max()) + 1) if dense.numel() else (0, 1)
    return [f"range: [{low}, {high}]"]


def _known(words: str) -> str:
    """The domain of a spec for the words of a report."""
    try:
        domain = parse_domain(words)
    except ValueError:
        try:
            domain = parse_domain(words.removeprefix("in "))
        except ValueError:
            return "reals"
    if domain.name != "interval":
        return domain.name
    left = "(" if domain.words.startswith("in (") else "["
    low, high = ("inf" if math.isinf(end) else f"{end:g}" for end in (domain.low, domain.high))
    low = f"-{low}" if math.isinf(domain.low) else low
    return f"{left}{low}, {high}{')' if math.isinf(domain.high) else ']'}"


def _seen(value: torch.Tensor) -> str:
    """A domain for values about which nothing else is known."""
    if value.is_complex() or not value.numel() or not bool(value.isfinite().all()):
        return "reals"
    rows = value.dim() > 0 and value.shape[-1] > 1 and bool((value >= 0).all())
    if rows and bool(((value.sum(-1) - 1).abs() < 1e-6).all()):
        return "probability"
    if bool((value > 0).all()):
        return "unit" if bool((value < 1).all()) else "positive"
    return "nonnegative" if bool((value >= 0).all()) else "reals"


def _is_sayable(value: Any) -> bool:
    """Whether a spec can say ``value``, which is no tensor."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_sayable, value))
    return _is_plain(value) or isinstance(value, (torch.dtype, complex))


def _is_plain(value: Any) -> bool:
    """Whether YAML alone can say ``value`` exactly."""
    if value is None or type(value) in (bool, int, float, str):
        return True
    if type(value) is list:
        return all(_is_plain(part) for part in value)
    return type(value) is dict and all(
        type(key) is str and _is_plain(part) for key, part in value.items()
    )


def _flow(entries: list[str]) -> str:
    return f"{{{', '.join(entries)}}}"


def _plain(value: Any) -> str:
    """A plain value as YAML in flow style."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, list):
        return f"[{', '.join(_plain(part) for part in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)}: {_plain(part)}' for key, part in value.items())}}}"
    return {None: "null", True: "true", False: "false"}[value] if _is_word(value) else repr(value)


def _is_word(value: Any) -> bool:
    """Whether YAML writes ``value`` as a word; 1 equals True, and is not one."""
    return value is None or isinstance(value, bool)


def _text(text: str) -> str:
    """``text`` between double quotes, on one line, whatever it holds."""
    return f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code < 0xE000:  # half of a pair: no text file can hold it
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"


def _key(name: str) -> str:
    plain = name.isidentifier() and name.isascii() and name.lower() not in ("true", "false", "null")
    return name if plain else _text(name)

"""Integers of which no two are alike, where documentation asks for it: rows of coordinates that are
written to, items of a ranking, a permutation.

What an op returns where they are alike is undefined, so that backward can't be judged there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch

from gradlint.inputs.documentation import clauses

#: How documentation says that no two are alike.
_UNLIKE = re.compile(
    r"(?i)\bno two\b[^.;]{0,30}?\b(?:alike|equal|identical|the same|coincide)\b"
    r"|\b(?:all|pairwise|mutually)\s+(?:different|distinct|unequal)\b|(?<!not )\bdistinct\b"
    r"|(?<!not )\bunique\b|\b(?:no|without)\s+(?:duplicates?|repetitions?|repeats?)\b"
    r"|\b(?:no|never an?)\s+\w+\s+twice\b|\beach\s+(?:\w+\s+)?(?:at most|exactly|only)\s+once\b"
)
_PERMUTATION = re.compile(r"(?i)(?<!not )\ba?\s*permutation\b(?!\s+(?:matri|invarian))")
#: … and that it says so of whole rows.
_ROWS = re.compile(r"(?i)\b(?:rows?|pairs?|triples?|triplets?|tuples?|coordinates|cells?|edges?)\b")

#: Names of the corners of triangles and tetrahedra: where two of one are the same point, it has no
#: area, and so no direction.
_CORNERS = re.compile(r"(?i)(?:\w+_)?(?:faces|triangles|tris|tets|tetrahedra|simplices)")

#: Draws for a row of corners that are not known yet, at most (heuristic: four triangles of four
#: points are found by then).
_MOST_DRAWN = 16

#: Rows that are drawn from, at most.
_MOST = 10**6


def documented_unlike(text: str, name: str, names: Iterable[str]) -> str:
    """Which integers of an argument are never alike by ``text``: "permutation", the "rows" of a
    matrix, the "elements" of a row; "" where nothing is said."""
    for clause in clauses(text, name, names):
        told = " ".join(clause.split())
        if _UNLIKE.search(told):
            return "rows" if _ROWS.search(told) else "elements"
        if _PERMUTATION.search(told):
            return "permutation"
    return ""


def named_unlike(name: str) -> str:
    """Which integers of an argument are never alike by its name: the "corners" of a row; or ""."""
    return "corners" if _CORNERS.fullmatch(name) else ""


def some_alike(tensor: torch.Tensor, which: str) -> bool:
    """Whether two are alike of what is "rows" or "elements" in :func:`documented_unlike`, or
    "corners", the elements of a row of a matrix."""
    if tensor.dim() < 1 + (which == "corners") or not tensor.numel():
        return False
    if which == "rows" and tensor.dim() == 2:
        return len(torch.unique(tensor, dim=0)) < len(tensor)
    return bool((tensor.sort(-1).values.diff(dim=-1) == 0).any())


def made_unlike(tensor: torch.Tensor, which: str, generator: torch.Generator) -> torch.Tensor:
    """``tensor`` with others in place of those that are alike, from zero up to the largest; as it
    is where there are too few."""
    if which == "corners" and tensor.dim() == 2 and tensor.numel() and int(tensor.min()) >= 0:
        return _corners(tensor, generator)
    if not some_alike(tensor, which) or int(tensor.min()) < 0:
        return tensor
    if which == "rows" and tensor.dim() == 2:
        ends = (tensor.amax(0) + 1).tolist()
        room = 1
        for end in ends:
            room *= end
        if not len(tensor) <= room <= _MOST:
            return tensor
        code = torch.randperm(room, generator=generator)[: len(tensor)]
        columns = []
        for end in reversed(ends):
            columns.append(code % end)
            code = code // end
        return torch.stack(columns[::-1], 1)
    room, count = int(tensor.max()) + 1, tensor.shape[-1]
    if room < count:
        return tensor
    rows = [torch.randperm(room, generator=generator)[:count] for _ in tensor.reshape(-1, count)]
    return torch.stack(rows).reshape(tensor.shape)


def _corners(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Rows of different points, which are other points in each row as long as there are others. All
    are turned the same way, so that two triangles of the same corners do not cancel."""
    room, count = int(tensor.max()) + 1, tensor.shape[-1]
    if room < count:
        return tensor
    known: list[list[int]] = []
    rows = []
    for _ in range(len(tensor)):
        for _ in range(_MOST_DRAWN):
            row = sorted(torch.randperm(room, generator=generator)[:count].tolist())
            if row not in known:
                break
        known.append(row)
        turn = int(torch.randint(count, (), generator=generator)) if count % 2 else 0
        rows.append([*row[turn:], *row[:turn]])  # an even permutation
    return torch.tensor(rows, dtype=tensor.dtype, device=tensor.device)

"""All candidates for one finding, the likeliest first. Runs no code of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradlint.repair import (
    autograd,
    conditions,
    dtypes,
    factors,
    flags,
    in_place,
    incoming,
    kept,
    layout,
    marks,
    reductions,
    returned_tuple,
    sizes,
    stable,
    transposes,
    writes,
)
from gradlint.repair.candidate import Candidate, Edit, Fit, changed, narrowed
from gradlint.repair.scene import Fault, Known, NoPlace, Scene
from gradlint.repair.tree import Tree, Unreadable

Family = Callable[[Scene], Iterator[Candidate]]

#: Every family, in the order in which equally good candidates are tried.
FAMILIES: tuple[Family, ...] = (
    *returned_tuple.FAMILY,
    *flags.FAMILY,
    *factors.FAMILY,
    *transposes.FAMILY,
    *reductions.FAMILY,
    *incoming.FAMILY,
    *dtypes.FAMILY,
    *layout.FAMILY,
    *in_place.FAMILY,
    *writes.FAMILY,
    *kept.FAMILY,
    *sizes.FAMILY,
    *conditions.FAMILY,
    *stable.FAMILY,
    *marks.FAMILY,
    *autograd.FAMILY,
)

#: Candidates for one finding (heuristic: of the planted bugs, none needed more than 30).
MOST = 60


def candidates(text: str, fault: Fault) -> list[Candidate]:
    """The candidates for ``fault`` in ``text``, by how well they fit, then by their size.

    Raises:
        NoPlace: no change can be placed; says why.
        Unreadable: ``text`` can't be read.
    """
    scene = Scene(Tree(text), fault)
    found: dict[str, Candidate] = {}
    for family in FAMILIES:
        for one in _from(family, scene):
            edits = tuple(narrowed(text, edit) for edit in one.edits)
            new = changed(text, edits)
            if new is None or new == text:
                continue
            one = Candidate(one.title, edits, one.fit, one.note or _shared(scene, edits))
            known = found.get(new)
            if known is None or (one.fit, one.size) < (known.fit, known.size):
                found[new] = one
    ordered = sorted(found.values(), key=lambda one: (one.fit, one.size))
    kept = [one for one in ordered if one.fit < Fit.REWRITE][:MOST]
    return [*kept, *(one for one in ordered if one.fit == Fit.REWRITE)]


def _shared(scene: Scene, edits: tuple[Edit, ...]) -> str:
    """A warning where other classes inherit what is changed."""
    heirs = " and ".join(f"`{name}`" for name in scene.heirs(edits))
    return f"{heirs}, derived from `{scene.owner.name.value}`, may change too" if heirs else ""


def _from(family: Family, scene: Scene) -> list[Candidate]:
    """What ``family`` proposes; nothing where it can't read what people write."""
    try:
        return list(family(scene))
    except Exception:  # the other families go on: what they propose is verified anyway
        return []


def proposed(text: str, fault: dict[str, Any]) -> dict[str, Any]:
    """:func:`candidates` as plain data, for a worker: ``{"candidates": [...]}``, or ``{"why": …}``
    where there can be none."""
    made = dict(fault)
    made["others"] = tuple(fault["others"])
    made["known"] = tuple(
        Known(one["name"], None if one["shape"] is None else tuple(one["shape"]), one["value"])
        for one in fault["known"]
    )
    try:
        found = candidates(text, Fault(**made))
    except NoPlace as error:
        return {"why": str(error)}
    except Unreadable as error:
        return {"why": f"the source can't be read by libcst: {error}"}
    return {
        "candidates": [
            {
                "title": one.title,
                "fit": int(one.fit),
                "note": one.note,
                "edits": [[edit.start, edit.end, edit.text] for edit in one.edits],
            }
            for one in found
        ]
    }

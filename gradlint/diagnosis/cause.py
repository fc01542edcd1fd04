"""A named cause."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cause:
    """A named cause.

    Args:
        slug: as in the JSON contract.
        text: one line for a reader, with how well it explains the evidence.
        help: what to change; ``{expression}`` stands for the source of the returned gradient.
        misfit: largest deviation left, relative to the largest measurement.
        others: slugs of the causes that explain the evidence as well.
    """

    slug: str
    text: str
    help: str
    misfit: float = 0.0
    others: tuple[str, ...] = ()


def together(causes: list[Cause]) -> Cause | None:
    """The first of ``causes``, which all explain the evidence; the others are named in its text."""
    if not causes:
        return None
    first, rest = causes[0], causes[1:]
    if not rest:
        return first
    return replace(
        first,
        text="; or, as well, ".join(cause.text for cause in causes),
        others=tuple(dict.fromkeys(cause.slug for cause in rest if cause.slug != first.slug)),
    )

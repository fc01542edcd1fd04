"""A named cause."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cause:
    """A named cause.

    Args:
        slug: name of the cause in JSON output.
        text: one line for a reader, which says how well the cause explains the evidence.
        help: what to change; ``{expression}`` stands for the source of the returned gradient.
        misfit: largest remaining deviation, relative to the largest measurement.
        others: slugs of other causes that explain the evidence equally well.
    """

    slug: str
    text: str
    help: str
    misfit: float = 0.0
    others: tuple[str, ...] = ()


def together(causes: list[Cause]) -> Cause | None:
    """Combine ``causes``, which all explain the evidence, into the first of them."""
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

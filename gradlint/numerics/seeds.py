"""Seeds that follow from one seed, and whose draws have nothing to do with each other's."""

from __future__ import annotations

#: Purposes of seeds beside that of the inputs, which is the seed itself: parameters that start from
#: the same numbers as the inputs would be equal to them.
ON_IMPORT, PARAMETERS = 1, 2


def mixed(*parts: int) -> int:
    """One seed from several numbers (the multiplier of Knuth's MMIX generator spreads them).

    Args:
        parts: of any size; the order counts.

    Returns:
        A number below 2⁶³.
    """
    found = 0
    for part in parts:
        found = (found * 6364136223846793005 + part + 1442695040888963407) % 2**63
    return found

"""Derive several seeds from one, such that their random draws are independent."""

from __future__ import annotations

#: Purposes of derived seeds. Inputs use the seed itself; parameters drawn from the same seed would
#: be equal to the inputs.
ON_IMPORT, PARAMETERS = 1, 2


def mixed(*parts: int) -> int:
    """One seed from several numbers (the multiplier of Knuth's MMIX generator spreads them).

    Args:
        parts: integers of any size; their order matters.

    Returns:
        A number below 2⁶³.
    """
    found = 0
    for part in parts:
        found = (found * 6364136223846793005 + part + 1442695040888963407) % 2**63
    return found

"""How a module was made in the program that called it."""

from __future__ import annotations

import collections
import json
from collections.abc import Sequence
from typing import Any

from gradlint.recorded.calls import Call, value_of


def constructor_of(
    calls: Sequence[Call],
) -> tuple[dict[str, Any] | None, list[Call], list[str]]:
    """The arguments of the constructor, the calls of modules that were made so, and what is not
    kept, as sentences.

    A spec makes its module in one way: the one with most calls of those that can be written down.
    Where there is none, the arguments are None, and the calls are all of them.
    """
    counted = collections.Counter(call.constructor for call in calls)
    if set(counted) <= {None}:
        return None, list(calls), []
    found: dict[str, Any] | None = None
    lost: list[str] = []
    for text, _ in counted.most_common():
        if text is None:
            continue
        try:
            found = {name: value_of(item) for name, item in json.loads(text)}
        except (ValueError, TypeError, KeyError) as error:
            lost.append(f"no spec can make a module as the program does: {error}")
            continue
        others = len(counted) - 1
        notes = []
        if others:
            ways = "another way" if others == 1 else f"{others} other ways"
            notes = [f"it was also made in {ways}: calls of those modules are left out"]
        return found, [call for call in calls if call.constructor == text], notes
    return None, list(calls), lost[:1]

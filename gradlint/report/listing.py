"""The page of ``gradlint list``: what would run, with which inputs, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from gradlint.base.terminal import lines_of
from gradlint.model.report import Argument, SampleReport
from gradlint.report import wording
from gradlint.report.text import Page

#: Samples, and names of one reason, that are shown without ``-v``.
SAMPLES, NAMES = 4, 8


def add_listing(page: Page, listing: Mapping[str, Any]) -> None:
    """Add what ``gradlint.gate.listing.entries`` returned to ``page``."""
    everywhere = _everywhere(listing["targets"])
    for target in listing["targets"]:
        _target(page, target, {} if page.verbose else everywhere)
        page.blank()
    page.paragraph(_summary(listing["targets"]))
    for reason, names in everywhere.items():
        page.paragraph(f"Left out of all of them: {_some(page, names)}: {reason}", hanging=2)
    reasons = [(why, list(names)) for why, names in listing["left_out"].items()] + [
        (why, [what]) for what, why in listing["skipped"].items()
    ]
    for why, names in reasons:
        told = len(names) == 1 and names[0] in why
        page.paragraph(f"Left out: {why if told else f'{_some(page, names)}: {why}'}", hanging=2)
    page.paragraph(f"seed {listing['seed']}" + _shard(listing["shard"]))


def _shard(shard: str) -> str:
    return f", shard {shard}" if shard else ""


def _summary(targets: Sequence[Mapping[str, Any]]) -> str:
    runs = sum(target["runs"] for target in targets)
    can_not = len(targets) - runs
    text = f"{wording.plural(runs, 'operator')} would be checked"
    return text + (f", {can_not} can't be." if can_not else ".")


def _everywhere(targets: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What is left out of every target that runs: it is said once for all of them."""
    groups = [_left_out(target) for target in targets if target["runs"]]
    if len(groups) < 2:
        return {}
    first, *others = groups
    return {why: names for why, names in first.items() if all(o.get(why) == names for o in others)}


def _left_out(target: Mapping[str, Any]) -> dict[str, list[str]]:
    """Why rules are left out of ``target``, and their codes and names."""
    groups: dict[str, list[str]] = {}
    for item in target["left_out"]:
        groups.setdefault(item["reason"], []).append(f"{item['code']} {item['name']}")
    return groups


def _target(page: Page, target: Mapping[str, Any], everywhere: Mapping[str, Sequence[str]]) -> None:
    head = Text().append(page.clean(target["target"]), "bold")
    if target["kind"] != "unknown":
        head.append(f"  ({target['kind']})")
    place = target["location"]
    if place is not None:
        head.append(page.clean(f"  {place['file']}:{place['line']}"))
    page.paragraph(head, hanging=2)
    found = target["problem"]
    if found is not None:
        lines = [f"{found['code']} {found['name']}: {found['message']}"]
        page.row("can't run", lines + ([found["help"]] if found["help"] else []))
    shown = target["samples"] if page.verbose else target["samples"][:SAMPLES]
    for sample in map(_sample, shown):
        words = wording.origin(sample)
        if sample.label != sample.origin:
            named = sample.label.startswith(sample.origin)  # as in ``inferred [float32]``
            words = sample.label if named else f"{words}, {sample.label}"
        lines = [f"{words}: {wording.arguments(sample)}"]
        lines += [line for note in sample.notes for line in lines_of(note, page.ascii)]
        page.row("inputs", lines)
    more = len(target["samples"]) - len(shown)
    if more:
        page.row("", [f"and {wording.plural(more, 'more sample')} (-v shows them)"])
    for note in target["notes"]:
        page.row("note", lines_of(note, page.ascii))
    if target["runs"]:
        _rules(page, target, everywhere)


def _rules(page: Page, target: Mapping[str, Any], everywhere: Mapping[str, Sequence[str]]) -> None:
    count = len(target["rules"])
    words = wording.plural(count, "rule")
    page.row("rules", [f"{words}: {', '.join(target['rules'])}" if page.verbose else words])
    for reason, names in _left_out(target).items():
        if reason not in everywhere:
            page.row("left out", [f"{_some(page, names)}: {reason}"])


def _some(page: Page, names: Sequence[str]) -> str:
    if page.verbose or len(names) <= NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:NAMES])} and {len(names) - NAMES} more"


def _sample(entry: Mapping[str, Any]) -> SampleReport:
    args = [Argument(**arg) for arg in entry["args"]]
    return SampleReport(entry["label"], entry["origin"], args, list(entry["notes"]))

"""What is said after a program was recorded."""

from __future__ import annotations

import os

from gradlint.base.terminal import clean
from gradlint.recording import Recorded

#: Notes on an operator that are shown, and operators whose notes are (heuristic: a screen).
NOTES, OPERATORS = 3, 30


def summary(found: Recorded, folder: str) -> str:
    """Lines for a terminal: what was learned, and what was not kept."""
    recording = found.recording
    lines = []
    if found.exit_code:
        lines.append(f"the program ended with exit code {found.exit_code}")
    specs = len(found.paths)
    calls = sum(outcome.operator.calls for outcome in found.outcomes)
    looked = sum(outcome.operator.looked for outcome in found.outcomes)
    many = len(found.outcomes)
    if not recording.processes and found.exit_code:
        lines.append("no call was seen: it did not get as far as importing torch")
    elif not recording.processes:
        lines.append(
            "no Python process of the program imported torch where gradlint could watch it: "
            "python -I, -E and -S, and an environment without PYTHONPATH, keep it out"
        )
    elif not many:
        lines.append("no Function, registered operator or named callable was called")
    else:
        lines.append(
            f"{_count(many, 'operator')} in {_count(calls, 'call')} and "
            f"{_count(recording.processes, 'process')}: {_count(specs, 'spec')} in {folder}"
        )
        if looked < calls:
            lines.append(f"looked at {looked} of {calls} calls, so as not to slow the program down")
    cast = sum(bool(outcome.operator.autocast) for outcome in found.outcomes if outcome.path)
    if cast:
        were = "was" if cast == 1 else "were"
        lines.append(
            f"{_count(cast, 'operator')} {were} called under autocast: GL904 checks that, "
            "and the other rules run without it"
        )
    if recording.unfinished:
        lines.append(
            f"{_count(recording.unfinished, 'process')} did not end in order: calls that were not "
            "written by then are lost, and counts are the least"
        )
    if recording.unreadable:
        lines.append(f"{_count(recording.unreadable, 'file')} of the recording can't be read")
    shown = 0
    for outcome in found.outcomes:
        if outcome.path and not outcome.notes:
            continue
        shown += 1
        if shown > OPERATORS:
            lines.append("… and further operators with something that was not kept")
            break
        name = outcome.target or outcome.operator.name
        what = os.path.basename(outcome.path) if outcome.path else "no spec"
        notes = "; ".join(outcome.notes[:NOTES]) or "no call of it could be kept"
        lines.append(f"  {clean(name)} ({what}): {clean(notes)}")
    return "".join(f"gradlint: {line}\n" if line[0] != " " else f"{line}\n" for line in lines)


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"

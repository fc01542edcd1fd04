"""Which operators a run is about: one shard of them, those that failed, those that changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular, write_whole
from gradlint.gate.changed import Changes, unchanged
from gradlint.model.op import OpRef
from gradlint.model.report import Report
from gradlint.model.settings import Settings
from gradlint.running.run import LeaveOut
from gradlint.targets.resolve import EVERY

#: Folder of what gradlint remembers from run to run, below the working directory.
CACHE = ".gradlint_cache"

#: The file of what failed, in :data:`CACHE`, and its version.
_FAILED, _VERSION = "last_failed.json", 1

#: Bytes of that file that are read: some 100,000 targets.
_MAX_BYTES = 2**24


@dataclass(frozen=True)
class Choice:
    """What was asked for of all operators that the targets name.

    Args:
        shard: "I/N": the I-th of N parts; "" for all.
        changed_since: a revision of git; None for what did not change, too.
        last_failed: whether only to check what failed when it was checked last.
    """

    shard: str = ""
    changed_since: str | None = None
    last_failed: bool = False

    def leave_out(self, settings: Settings, warn: Callable[[str], None]) -> LeaveOut | None:
        """Says of an operator why it is left out; None where none is.

        Raises:
            GradlintError: the shard, or the revision, can't be used.
        """
        reasons: list[LeaveOut] = []
        if self.last_failed:
            failed = read_failed(warn)
            if failed:
                reasons.append(lambda ref: _not_failed(ref, failed))
            else:
                warn("--last-failed: no failure is remembered here, so nothing is left out")
        if self.changed_since is not None:
            changes = Changes(self.changed_since)
            reasons.append(lambda ref: unchanged(changes, settings, ref))
        if self.shard:
            part, parts = parse_shard(self.shard)
            reasons.append(lambda ref: _elsewhere(ref, part, parts))
        if not reasons:
            return None
        return lambda ref: next((why for reason in reasons if (why := reason(ref))), "")


# -- shards ----------------------------------------------------------------------------------------


def parse_shard(text: str) -> tuple[int, int]:
    """``(1, 4)`` for "1/4".

    Raises:
        GradlintError: it is not of that form, or there is no such part.
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
    part, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= part <= parts:
        raise GradlintError(
            f"{text!r} is not a shard",
            place="--shard",
            hint="write I/N with I from 1 to N: 1/4, 2/4, 3/4 and 4/4 are the whole together",
        )
    return part, parts


def shard_of(target: str, parts: int) -> int:
    """The part of ``parts``, from 1, that a target belongs to: the first 8 bytes of the SHA-256 of
    its name in UTF-8, as a big-endian number, modulo ``parts``, plus 1."""
    digest = hashlib.sha256(target.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % parts + 1


def _elsewhere(ref: OpRef, part: int, parts: int) -> str:
    # A module that must be imported to list its operators is imported in every shard.
    here = ref.attribute == EVERY or shard_of(ref.target, parts) == part
    return "" if here else f"not in shard {part}/{parts}"


# -- what failed last ------------------------------------------------------------------------------


def _not_failed(ref: OpRef, failed: Iterable[str]) -> str:
    if ref.attribute == EVERY:
        known = any(name == ref.target or name.startswith(f"{ref.target}:") for name in failed)
    else:
        known = ref.target in set(failed)
    return "" if known else "did not fail when last checked"


def read_failed(warn: Callable[[str], None]) -> frozenset[str]:
    """The targets that are remembered as failing; ``warn`` is told of a file that is damaged."""
    path = os.path.join(CACHE, _FAILED)
    try:
        data = json.loads(read_regular(path, _MAX_BYTES).decode())
        if data["version"] != _VERSION:
            raise ValueError(f"version {data['version']!r}")
        failed = data["failed"]
        if not isinstance(failed, list) or not all(isinstance(name, str) for name in failed):
            raise ValueError("no list of names")
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        warn(f"{path} is damaged and not looked at ({type(error).__name__})")
        return frozenset()
    return frozenset(failed)


def remember_failed(report: Report) -> None:
    """Keep which targets of ``report`` fail; those that it is not about keep what is known.

    Where nothing fails and nothing is remembered, no file is made. What can't be written is not
    remembered: it is a convenience.
    """
    before = read_failed(lambda _: None)
    done = {
        target.target
        for target in report.targets
        if target.judged or target.verdict == "error" or target.findings
    }
    failing = {target.target for target in report.targets if report.fails(target)}
    after = sorted((before - done) | failing)
    path = os.path.join(CACHE, _FAILED)
    if not after and not os.path.exists(path):
        return
    text = json.dumps({"version": _VERSION, "failed": after}, indent=2) + "\n"
    try:
        keep_folder()
        write_whole(path, [text])
    except (OSError, ValueError):
        return


def keep_folder() -> None:
    """Make the folder of what is remembered, which git ignores.

    Raises:
        OSError: it can't be made.
    """
    os.makedirs(CACHE, exist_ok=True)
    ignore = os.path.join(CACHE, ".gitignore")
    if not os.path.exists(ignore):
        write_whole(ignore, ["*\n"])

"""What compute-sanitizer wrote: from its text to the distinct errors in it.

Every line of the tool starts with ``=========``. An error is a line without further indentation,
the indented lines below it say where and by whom. The format is that of NVIDIA's manual,
https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html, sections 3 to 6. Places are
written ``kernel(int *)+0x70 in file.cu:7``; earlier releases have ``0x70 in file.cu:7:kernel(int
*)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

_MARK = "========="

#: Lines that do not start an error: banners, and failed calls of CUDA's API, which often follow
#: from an error.
_NO_ERROR = (
    "COMPUTE-SANITIZER",
    "ERROR SUMMARY",
    "RACECHECK SUMMARY",
    "LEAK SUMMARY",
    "Program hit",
    "Warning: ",
    "Info: ",
)

#: Lines that say that the tool itself could not do its work.
_TROUBLE = ("Internal Sanitizer Error", "Target application", "Error: ", "Fatal", "Unable to")

_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) ")
_RACE = re.compile(r"(Error|Warning|Info): Race reported between (\w+) access at (.+)")
_OTHER_ACCESS = re.compile(r"and (\w+) access at (.+?)(?: \[(\d+) hazards?\])?$")
_THREAD = re.compile(r"by thread (\([^)]*\)) in block (\([^)]*\))")
_ADDRESS = re.compile(r"(?:Address|Access (?:at|to)) (0x[0-9a-f]+.*)")
_FRAME = re.compile(r"Device Frame: ?(.+)")
_NEW_PLACE = re.compile(r"(?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>.+):(?P<line>\d+))?$")
_OLD_PLACE = re.compile(r"0x[0-9a-f]+ in (?:(?P<file>.+?):(?P<line>\d+):)?(?P<kernel>.+)$")


@dataclass(frozen=True)
class DeviceError:
    """One error on the device, however often it came.

    Args:
        kind: in the tool's words, such as "Invalid __global__ read of size 4 bytes".
        kernel: the function that ran, with its arguments' types.
        file, line: in the source, where the kernel was compiled with ``-lineinfo``; else "" and 0.
        thread, block: of the first occurrence, such as "(31,0,0)".
        address: what the tool says about the address.
        others: the other sides of a race: "Read access at f(int *) in a.cu:12".
        launched: the kernel that was launched, where ``kernel`` is a function called in it.
        warning: whether the tool calls it a warning.
        count: how often.
    """

    kind: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    thread: str = ""
    block: str = ""
    address: str = ""
    others: tuple[str, ...] = ()
    launched: str = ""
    warning: bool = False
    count: int = 1


@dataclass
class SanitizerReport:
    """Everything in a report.

    Args:
        errors: distinct ones, in the order of first occurrence.
        total: how many errors the summary counts; None without a summary, because the tool did
            not finish.
        troubles: problems that the tool reported about itself.
    """

    errors: list[DeviceError] = field(default_factory=list)
    total: int | None = None
    troubles: list[str] = field(default_factory=list)


def parse_report(text: str) -> SanitizerReport:
    """The report in ``text``; lines that are not the tool's are left out."""
    report = SanitizerReport()
    distinct: dict[tuple[object, ...], DeviceError] = {}
    for head, details in _records(text):
        summary = _SUMMARY.match(head)
        race = _RACE.match(head)
        if summary is not None:
            report.total = (report.total or 0) + int(summary[1])
        elif race is not None:
            _add(distinct, _raced(race, details))
        elif head.startswith(_TROUBLE):
            report.troubles.append(head)
        elif not head.startswith(_NO_ERROR):
            _add(distinct, _error(head, details))
    report.errors = list(distinct.values())
    return report


def _records(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each line without indentation, with the indented lines below it."""
    head, details = "", []
    for line in text.splitlines():
        if not line.startswith(_MARK):
            continue
        rest = line[len(_MARK) :].removeprefix(" ").rstrip()
        if rest.startswith(" "):
            details.append(rest.strip())
            continue
        if head:
            yield head, details
        head, details = rest, []
    if head:
        yield head, details


def _error(head: str, details: list[str]) -> DeviceError:
    found = DeviceError(head.rstrip("."))
    for line in details:
        thread, address = _THREAD.match(line), _ADDRESS.match(line)
        frame = _FRAME.match(line)
        if line.startswith("at ") and not found.kernel:
            found = _with_place(found, line.removeprefix("at "))
        elif thread is not None:
            found = replace(found, thread=thread[1], block=thread[2])
        elif address is not None:
            found = replace(found, address=address[1])
        elif line.startswith("and is ") and found.address:
            found = replace(found, address=f"{found.address} {line}")
        elif frame is not None:
            found = replace(found, launched=_with_place(found, frame[1]).kernel)
    return found


def _raced(race: re.Match[str], details: list[str]) -> DeviceError:
    found = _with_place(DeviceError("Race", warning=race[1] != "Error"), race[3])
    kinds, others, hazards = [race[2]], [], 0
    for line in details:
        other = _OTHER_ACCESS.match(line)
        if other is not None:
            kinds.append(other[1])
            others.append(f"{other[1]} access at {_shown(_with_place(found, other[2]))}")
            hazards += int(other[3] or 0)
    kind = f"Race between {' and '.join(dict.fromkeys(kinds)).lower()} access to shared memory"
    return replace(found, kind=kind, others=tuple(others), count=max(1, hazards))


def _with_place(error: DeviceError, place: str) -> DeviceError:
    """``error`` with the kernel and line of ``place``."""
    found = _OLD_PLACE.match(place) or _NEW_PLACE.match(place)
    if found is None:
        return replace(error, kernel=place)
    line = int(found["line"] or 0)
    return replace(error, kernel=found["kernel"], file=found["file"] or "", line=line)


def _shown(error: DeviceError) -> str:
    return f"{error.kernel} in {error.file}:{error.line}" if error.file else error.kernel


def _add(distinct: dict[tuple[object, ...], DeviceError], error: DeviceError) -> None:
    key = (error.kind, error.kernel, error.file, error.line, error.others, error.warning)
    first = distinct.get(key)
    distinct[key] = error if first is None else replace(first, count=first.count + error.count)

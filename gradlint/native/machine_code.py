"""What nvcc made of CUDA kernels: registers, spills, widths of accesses, and the hot path.

nvcc alone gives PTX and what ptxas says of each kernel. The instructions that a GPU really executes
(SASS) are read with nvdisasm, which a toolkit may lack: it comes with the package
``nvidia-cuda-nvdisasm`` too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Places below a folder of Python packages where NVIDIA's and Triton's packages put nvdisasm.
_CARRIED = ("nvidia/*/bin/nvdisasm", "triton/backends/nvidia/bin/nvdisasm")

#: Bytes of a type in PTX, by its bits; .pred and untyped ones do not occur in global memory.
_ACCESS = re.compile(
    r"^\s*(?:@!?%p\d+\s+)?(ld|st|ldu|red|atom)(?:\.volatile|\.relaxed\.\w+)?\.global"
    r"(?:\.(?!v[248]\b|[bsuf]\d)\w+(?:::\w+)?)*(?:\.v([248]))?\.[bsuf](\d+)"
)

_ENTRY = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+([\w$]+)")
_MOST_THREADS = re.compile(r"^\s*\.maxntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")

_COMPILING = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$]+),")
_LABEL = re.compile(r"^(\.L[\w$]*):")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)(.*?);")
_TARGET = re.compile(r"`\((\.L[\w$]*)\)")
_REGISTER = re.compile(r"\bR(\d+)\b")

#: Threads of the largest block that CUDA launches: what a kernel without launch bounds must allow.
LARGEST_BLOCK = 1024


@dataclass(frozen=True)
class Section:
    """Instructions that a thread executes one after the other.

    Args:
        instructions: how many of each opcode, such as FFMA or LDG.E.128.
        loaded, stored: bytes of global memory that it reads and writes in the accesses that were
            looked for.
    """

    instructions: Counter[str]
    loaded: int
    stored: int


@dataclass(frozen=True)
class HotPath:
    """The instructions of a kernel that move the most memory.

    Args:
        whole: from its entry to its exit, each loop gone through once.
        loop: of these, the loop that moves the most, once; None where no loop moves anything.
        in_flight: most bytes that a thread has asked for before it uses the first of them.
    """

    whole: Section
    loop: Section | None
    in_flight: int


@dataclass
class Kernel:
    """One kernel, compiled for one architecture.

    Args:
        symbol: its mangled name.
        name: as written in C++, where c++filt is at hand.
        registers: of a thread.
        spilled: bytes that a thread writes to or reads from local memory for want of registers.
        threads: most of a block, by its launch bounds.
        bounded: whether it has launch bounds.
        loads, stores: how many accesses of each width, in bytes, its PTX has to global memory.
        disassembled: whether its machine code was read.
        wide, single: the path that moves the most in accesses of 16 bytes, and in others; None
            without a disassembler.
    """

    symbol: str
    name: str = ""
    registers: int = 0
    spilled: int = 0
    threads: int = LARGEST_BLOCK
    bounded: bool = False
    loads: Counter[int] = field(default_factory=Counter)
    stores: Counter[int] = field(default_factory=Counter)
    disassembled: bool = False
    wide: HotPath | None = None
    single: HotPath | None = None


def kernels_of(ptx: str, log: str, sass: str | None) -> list[Kernel]:
    """The kernels in ``ptx``, with what ptxas (``-v``) said in ``log`` and nvdisasm's ``sass``."""
    found = _accesses(ptx)
    _resources(log, found)
    if sass is not None:
        for symbol, lines in _sections(sass).items():
            if symbol in found:
                blocks = _blocks(lines)
                found[symbol].disassembled = True
                found[symbol].wide = _hot_path(blocks, wide=True)
                found[symbol].single = _hot_path(blocks, wide=False)
    for kernel, name in zip(found.values(), _readable(list(found)), strict=True):
        kernel.name = name
    return list(found.values())


def disassembler(beside: str) -> str | None:
    """nvdisasm: beside nvcc (``beside``), on PATH, or in a Python package; None without one."""
    there = shutil.which("nvdisasm", path=str(Path(beside).resolve().parent))
    there = there or shutil.which("nvdisasm")
    if there:
        return there
    for folder in sys.path:
        for pattern in _CARRIED if folder else ():
            for path in sorted(Path(folder).glob(pattern)):
                found = shutil.which(str(path))
                if found:
                    return found
    return None


def disassembled(tool: str, cubin: Path) -> str | None:
    """The SASS in ``cubin``; None where ``tool`` can't read it."""
    done = subprocess.run(
        [tool, "-c", str(cubin)],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def _accesses(ptx: str) -> dict[str, Kernel]:
    found: dict[str, Kernel] = {}
    kernel: Kernel | None = None
    for line in ptx.splitlines():
        entry = _ENTRY.match(line)
        if entry:
            kernel = found[entry[1]] = Kernel(entry[1])
        elif kernel is None:
            continue
        elif line.startswith("}"):
            kernel = None
        elif bounds := _MOST_THREADS.match(line):
            kernel.threads, kernel.bounded = 1, True
            for size in bounds.groups():
                kernel.threads *= int(size or 1)
        elif access := _ACCESS.match(line):
            width = int(access[2] or 1) * int(access[3]) // 8
            (kernel.loads if access[1].startswith("ld") else kernel.stores)[width] += 1
    return found


def _resources(log: str, kernels: dict[str, Kernel]) -> None:
    kernel: Kernel | None = None
    for line in log.splitlines():
        if started := _COMPILING.search(line):
            kernel = kernels.get(started[1])
        elif kernel is None:
            continue
        elif spills := _SPILLS.search(line):
            kernel.spilled = int(spills[2]) + int(spills[3])
        elif used := _REGISTERS.search(line):
            kernel.registers = int(used[1])
            kernel = None


def _readable(symbols: Sequence[str]) -> Sequence[str]:
    tool = shutil.which("c++filt")
    if tool is None or not symbols:
        return symbols
    done = subprocess.run(
        [tool], input="\n".join(symbols), capture_output=True, text=True, check=False
    )
    names = done.stdout.splitlines()
    return names if len(names) == len(symbols) else symbols


@dataclass
class _Instruction:
    opcode: str
    operands: str

    def moved(self, kind: str, wide: bool) -> int:
        """Bytes that it reads (LDG) or writes (STG), if it is of 16 bytes, or if it is not."""
        if not self.opcode.startswith(kind + "."):
            return 0
        width = 16 if ".128" in self.opcode else 8 if ".64" in self.opcode else 4
        if re.search(r"\.[US]16\b", self.opcode):
            width = 2
        elif re.search(r"\.[US]8\b", self.opcode):
            width = 1
        return width if (width == 16) == wide else 0


@dataclass
class _Block:
    instructions: list[_Instruction] = field(default_factory=list)
    next: list[int] = field(default_factory=list)
    ends: bool = False


def _sections(sass: str) -> dict[str, list[str]]:
    """The lines of each kernel."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in sass.splitlines():
        section = _SECTION.match(line)
        if section:
            lines = sections.setdefault(section[1], [])
        else:
            lines.append(line)
    return sections


def _blocks(lines: Iterable[str]) -> list[_Block]:
    """Basic blocks in the order of their addresses."""
    blocks = [_Block()]
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str]] = []

    def split(goes_on: bool) -> None:
        if goes_on:
            blocks[-1].next.append(len(blocks))
        blocks.append(_Block())

    for line in lines:
        label = _LABEL.match(line)
        if label:
            split(goes_on=True)
            labels[label[1]] = len(blocks) - 1
            continue
        found = _INSTRUCTION.match(line)
        if not found or found[3] == "NOP":
            continue
        operation = found[3].partition(".")[0]
        # `BRA P4, label` has a condition too; a branch for warps whose threads diverged is cold.
        guarded = found[2] is not None or bool(re.match(r"\s*!?U?P\d", found[4]))
        blocks[-1].instructions.append(_Instruction(found[3], found[4]))
        target = _TARGET.search(found[4])
        # sm_80 leaves some loops by a call of the label behind them, from which nothing returns.
        if operation in ("BRA", "UBRA", "CALL") and target and ".DIV" not in found[3]:
            jumps.append((len(blocks) - 1, target[1]))
            split(goes_on=guarded)
        elif operation in ("EXIT", "RET", "KILL"):
            blocks[-1].ends = operation == "EXIT"
            split(goes_on=guarded)
    for source, name in jumps:
        if name in labels:
            blocks[source].next.append(labels[name])
    return blocks


#: What makes a path hot, in this order: bytes stored and bytes loaded in the accesses that are
#: looked for; none of the others; no calls, which divisions of extreme numbers take; then all that
#: may be executed, so that the count is never too low.
_Weight = tuple[int, int, int, int, int]


def _weight(block: _Block, wide: bool) -> _Weight:
    code = block.instructions
    stored = sum(each.moved("STG", wide) for each in code)
    loaded = sum(each.moved("LDG", wide) for each in code)
    others = sum(each.moved("STG", not wide) + each.moved("LDG", not wide) for each in code)
    calls = sum(each.opcode.startswith("CALL") for each in code)
    return stored, loaded, -others, -calls, len(code)


def _hot_path(blocks: list[_Block], wide: bool) -> HotPath | None:
    """The heaviest path, each loop gone through once, and its loop that moves most."""
    weights = [_weight(block, wide) for block in blocks]
    found = _heaviest(blocks, weights, 0, None)
    if found is None:
        return None
    loops = []
    for index in found:
        for start in blocks[index].next:
            if start <= index and start in found:
                inside = _heaviest(blocks, weights, start, index)
                if inside is not None:
                    loops.append(inside)
    best = max(loops, key=lambda path: _joined(weights, path)[:2], default=None)
    code = [each for index in found for each in blocks[index].instructions]
    if best is not None and not any(_joined(weights, best)[:2]):
        best = None
    return HotPath(
        _section_of(code, wide),
        None
        if best is None
        else _section_of([each for index in best for each in blocks[index].instructions], wide),
        _most_in_flight(code),
    )


def _section_of(code: Sequence[_Instruction], wide: bool) -> Section:
    return Section(
        Counter(each.opcode for each in code),
        sum(each.moved("LDG", wide) for each in code),
        sum(each.moved("STG", wide) for each in code),
    )


def _joined(weights: Sequence[_Weight], path: Sequence[int]) -> _Weight:
    total = [0] * 5
    for index in path:
        total = [a + b for a, b in zip(total, weights[index], strict=True)]
    return tuple(total)  # type: ignore[return-value]


def _heaviest(
    blocks: list[_Block], weights: Sequence[_Weight], start: int, end: int | None
) -> list[int] | None:
    """The heaviest path from ``start`` to ``end``, or to an exit; jumps back are not taken."""
    best: dict[int, tuple[_Weight, int | None]] = {}
    last = len(blocks) - 1 if end is None else end
    for index in range(last, start - 1, -1):
        own = weights[index]
        stops = index == end if end is not None else blocks[index].ends
        options: list[tuple[_Weight, int | None]] = [(own, None)] if stops else []
        for following in blocks[index].next:
            if index < following <= last and following in best:
                after = best[following][0]
                joined = tuple(a + b for a, b in zip(own, after, strict=True))
                options.append((joined, following))  # type: ignore[arg-type]
        if options:
            best[index] = max(options, key=lambda option: option[0])
    if start not in best:
        return None
    path = [start]
    while (following_one := best[path[-1]][1]) is not None:
        path.append(following_one)
    return path


def _most_in_flight(code: Sequence[_Instruction]) -> int:
    """Most bytes of loads that are under way at once: until one of their results is used."""
    waiting: dict[int, int] = {}
    most = 0
    for each in code:
        registers = [int(number) for number in _REGISTER.findall(each.operands)]
        width = each.moved("LDG", wide=True) or each.moved("LDG", wide=False)
        used = registers[1:] if width else registers
        if not waiting.keys().isdisjoint(used):
            waiting = {}
        if width and registers:
            waiting[registers[0]] = width  # guarded ones may read the same operand in another way
            most = max(most, sum(waiting.values()))
    return most

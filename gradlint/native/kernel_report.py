"""What a kernel's machine code lets expect of it on a GPU, and what in it must not be.

The prediction has three parts. Memory: Little's law says how many bytes must be under way at once
(Volkov 2016, "Understanding Latency Hiding on GPUs", chapter 4). Instructions: each takes a slot of
a scheduler and of the unit that does it. Both go on at the same time, but not perfectly: their
times are joined by a norm. Caches, launches and the last blocks of a grid are left out.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from gradlint.base.scratch import scratch_folder
from gradlint.native import _tools
from gradlint.native.compile import Compiled, checked_nvcc, compiled_for_report
from gradlint.native.gpus import GPUS, ISSUED, MOST_BLOCKS, REGISTERS, Gpu, Rates, gpus_for
from gradlint.native.kernel_budgets import Budget, Shape, budget_of
from gradlint.native.machine_code import (
    HotPath,
    Kernel,
    Section,
    disassembled,
    disassembler,
    kernels_of,
)
from gradlint.native.roots import kernels_root

#: Seconds until a load arrives, while the memory is busy (heuristic: twice what an idle one takes).
LATENCY_S = 6e-7

#: Exponent of the norm that joins the times of memory and of instructions (heuristic: where both
#: would take as long, 76 % of the bandwidth are reached; a sum would say 50 %, a maximum 100 %).
OVERLAP = 2.5

#: Bytes of an element.
_SIZES = {"double": 8, "float": 4, "Half": 2, "Bfloat16": 2}

_DTYPES = {"double": "float64", "float": "float32", "Half": "float16", "Bfloat16": "bfloat16"}

#: Kernels that read masks of bytes.
_BYTES = re.compile(r"^MaskedSoftmax<")

_UNITS = {
    "fp64": re.compile(r"D(ADD|MUL|FMA|SETP|MNMX)\b"),
    "convert": re.compile(r"(F2F|I2F|F2I|FRND)\b.*64"),
    "xu": re.compile(r"(MUFU|F2F|I2F|F2I|FRND|POPC|FLO|BREV)\b"),
    "lsu": re.compile(r"(LDG|STG|LDS|STS|LDL|STL|LD|ST|SHFL|ATOM|ATOMG|ATOMS|RED)\b"),
    "fma": re.compile(r"(FADD|FMUL|FFMA|FFMA2|HADD2|HMUL2|HFMA2)\b"),
    "none": re.compile(r"(U[A-Z]|BRA|BSSY|BSYNC|EXIT|BAR|NOP|CALL|RET|WARPSYNC|LDC|S2)"),
}


@dataclass(frozen=True)
class Judged:
    """One kernel for one architecture.

    Args:
        file: its source.
        kernel: its name, without namespaces.
        dtype: of its elements; "" where there are several.
        architecture: such as sm_90.
        registers, spilled: of a thread; bytes that did not fit into registers.
        threads: most of a block.
        loads, stores: how many accesses to global memory of each width in bytes.
        instructions, allowed: of a thread for each element, and for how many there is time while
            the memory moves it; None where that is not known.
        share: predicted share of a copy's bandwidth, by the name of the GPU.
        goal: the least that it must be on the first GPU of the architecture; None if it is exempt.
        exempt: why there is no goal; empty where there is one.
        faults: what must not be, in words.
    """

    file: str
    kernel: str
    dtype: str
    architecture: str
    registers: int
    spilled: int
    threads: int
    loads: dict[int, int]
    stores: dict[int, int]
    instructions: float | None = None
    allowed: float | None = None
    share: dict[str, float] = field(default_factory=dict)
    goal: float | None = None
    exempt: str = ""
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything that was compiled.

    Args:
        compiled: what nvcc said, one result for each file and architecture.
        kernels: what it made.
        disassembled: whether instructions could be counted.
    """

    compiled: list[Compiled]
    kernels: list[Judged]
    disassembled: bool


def report_kernels(
    architectures: Sequence[str],
    *,
    sources: Sequence[Path] | None = None,
    on_result: Callable[[Compiled, int, int], None] | None = None,
) -> Report:
    """Compile ``sources`` with all optimisations for each of ``architectures``, and judge the code.

    Args:
        sources: default every ``.cu`` of ``kernels/``.
        on_result: as for :func:`gradlint.native.compile.compile_kernels`.

    Raises:
        BuildError: nvcc is missing.
        GradlintError: this nvcc does not know one of the architectures.
    """
    tool = checked_nvcc(architectures)
    files = list(sources) if sources is not None else sorted(kernels_root().glob("*.cu"))
    work = [(file, name) for file in files for name in architectures]
    reader = disassembler(tool.path)
    done: dict[tuple[Path, str], tuple[Compiled, list[Kernel]]] = {}
    with (
        tempfile.TemporaryDirectory(dir=scratch_folder()) as folder,
        ThreadPoolExecutor(_tools.cores()) as pool,
    ):

        def made(number: int, file: Path, name: str) -> tuple[Compiled, list[Kernel]]:
            place = Path(folder, str(number))
            place.mkdir()
            result, ptx, cubin = compiled_for_report(tool, file, name, place)
            if not result.ok:
                return result, []
            sass = disassembled(reader, cubin) if reader else None
            return result, kernels_of(ptx.read_text(), result.output, sass)

        futures = {pool.submit(made, number, *item): item for number, item in enumerate(work)}
        try:
            for count, future in enumerate(as_completed(futures), 1):
                done[futures[future]] = future.result()
                if on_result is not None:
                    on_result(future.result()[0], count, len(work))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    names = tuple(architectures)
    judged = [
        judge(kernel, file.name, name, names)
        for file, name in work
        for kernel in done[file, name][1]
    ]
    return Report([done[item][0] for item in work], judged, reader is not None)


def judge(kernel: Kernel, file: str, architecture: str, compiled: tuple[str, ...]) -> Judged:
    """What is to be said of ``kernel``."""
    name = plain_name(kernel.name)
    element = _element(name)
    size = _SIZES.get(element, 0)
    budget = budget_of(name, size)
    shape = budget.shape if budget else None
    gpus = gpus_for(architecture, compiled)
    instructions = allowed = None
    shares: dict[str, float] = {}
    path = None if shape is None else kernel.wide if shape.packs else kernel.single
    if shape is not None and path is not None and size:
        costs = slots_per_element(path, shape, size)
        if costs is not None:
            moved = size * (shape.inputs + shape.outputs)
            instructions = sum(costs.values())
            shares = {gpu.name: share(gpu, kernel, path, costs, moved) for gpu in gpus}
            allowed = next((gpu.slots(moved) for gpu in gpus), None)
    faults = [*_faults(kernel, name, budget), *_slowness(kernel, budget, gpus, shares)]
    return Judged(
        file,
        name,
        _DTYPES.get(element, ""),
        architecture,
        kernel.registers,
        kernel.spilled,
        kernel.threads,
        dict(sorted(kernel.loads.items())),
        dict(sorted(kernel.stores.items())),
        instructions,
        allowed,
        shares,
        budget.goal if budget else None,
        budget.exempt if budget else "",
        tuple(faults),
    )


def _slowness(
    kernel: Kernel, budget: Budget | None, gpus: Sequence[Gpu], shares: dict[str, float]
) -> Iterator[str]:
    """What is wrong with the predicted shares of a reference kernel."""
    if budget is None:
        if "gradlint::" in kernel.name:
            yield "has no budget: gradlint/native/kernel_budgets.py names neither it nor a reason"
        return
    if budget.goal is None or not gpus or not kernel.disassembled:
        return
    found = shares.get(gpus[0].name)
    if found is None:
        yield "moves no elements on any way through its machine code: no share could be predicted"
    elif found < budget.goal:
        yield (
            f"{found:.1%} of a copy's bandwidth predicted on {gpus[0].name}, "
            f"less than its goal of {budget.goal:.0%}"
        )


def plain_name(name: str) -> str:
    """The name of a kernel's body, without namespaces and without the launcher around it."""
    name = re.sub(r"gradlint::|cuda::|device::|\(anonymous namespace\)::", "", name)
    found = re.match(r"void run_body<Block, (.*)>\(", name)
    return re.sub(r" (?=>)", "", found[1].strip() if found else name)


def _element(name: str) -> str:
    found = re.search(r"\b(double|Half|Bfloat16|float)\b", name)
    # Sums of 16-bit elements are of float: the narrowest type that is named is the tensors'.
    for narrow in ("Half", "Bfloat16"):
        if re.search(rf"\b{narrow}\b", name):
            return narrow
    if re.search(r"\bfloat\b", name):
        return "float"
    return found[1] if found else ""


def _faults(kernel: Kernel, name: str, budget: Budget | None) -> Iterator[str]:
    shape = budget.shape if budget else None
    for verb, widths in (("reads", kernel.loads), ("writes", kernel.stores)):
        if widths[1] and not (verb == "reads" and _BYTES.match(name)):
            yield f"{verb} single bytes, in {widths[1]} places"
    if shape is not None and shape.packs:
        if shape.inputs and not kernel.loads[16] and not _walks(name):
            yield "reads no 16 bytes at once"
        if shape.outputs and not kernel.stores[16]:
            yield "writes no 16 bytes at once"
    # Where there is neither a goal nor a bound by something else, speed is no matter.
    if kernel.spilled and (budget is None or budget.goal is not None or shape is None):
        yield f"spills {kernel.spilled} bytes of registers"
    needed = -(-kernel.registers // 8) * 8 * kernel.threads  # in eights for each thread
    if needed > REGISTERS:
        bound = "its launch bounds allow" if kernel.bounded else "a block without launch bounds has"
        yield (
            f"{kernel.registers} registers for each of the {kernel.threads} threads that {bound}: "
            f"{needed} of {REGISTERS}"
        )


def _walks(name: str) -> bool:
    """Whether it reads rows that may lie in the memory that a block shares."""
    return re.match(r"(LayerNorm|GumbelSoftmax)\w*<\w+, false", name) is not None


def slots_per_element(path: HotPath, shape: Shape, size: int) -> Counter[str] | None:
    """Instructions of each opcode for one element; None where no element is moved as it should."""
    whole, loop = path.whole, path.loop or path.whole
    more = shape.repeats - 1
    elements = _elements(whole, shape, size) + more * _elements(loop, shape, size)
    if elements <= 0:
        return None
    costs: Counter[str] = Counter()
    for section, times in ((whole, 1), (loop, more)):
        for opcode, count in section.instructions.items():
            costs[opcode] += times * count / elements  # type: ignore[assignment]
    return costs


def _elements(section: Section, shape: Shape, size: int) -> float:
    if shape.outputs:
        return section.stored / (size * shape.outputs)
    return section.loaded / (size * shape.inputs)


def share(gpu: Gpu, kernel: Kernel, path: HotPath, costs: Counter[str], moved: float) -> float:
    """The predicted share of a copy's bandwidth. ``moved``: bytes for each element."""
    slots = gpu.slots(moved)
    busiest = max(time for _, time in _times(costs, gpu.rates)) / slots
    under_way = _resident(kernel, gpu.rates) * path.in_flight
    needed = gpu.copied / gpu.processors * LATENCY_S / 2  # half of what is moved is read
    memory = max(1.0, needed / under_way) if under_way else 1.0
    return float((memory**OVERLAP + busiest**OVERLAP) ** (-1 / OVERLAP))


def _times(costs: Counter[str], rates: Rates) -> Iterator[tuple[str, float]]:
    """What each unit takes for an element, in slots of the schedulers."""
    yield "issue", float(sum(costs.values()))
    for unit in rates.of:
        total = sum(
            count * _weight(opcode) for opcode, count in costs.items() if _unit(opcode) == unit
        )
        yield unit, total * ISSUED / rates.of[unit]


def _unit(opcode: str) -> str:
    for unit, pattern in _UNITS.items():
        if pattern.match(opcode):
            return unit
    return "alu"


def _weight(opcode: str) -> int:
    return 4 if ".128" in opcode else 2 if ".64" in opcode and opcode[:2] in ("LD", "ST") else 1


def _resident(kernel: Kernel, rates: Rates) -> int:
    """Threads of a multiprocessor at once."""
    used = max(1, -(-kernel.registers // 8) * 8)
    blocks = min(rates.threads // kernel.threads, REGISTERS // (used * kernel.threads), MOST_BLOCKS)
    return max(1, blocks) * kernel.threads


def worst(kernels: Sequence[Judged]) -> dict[str, dict[float, float]]:
    """The lowest share for each GPU and each goal, of the kernels that have one."""
    found: dict[str, dict[float, float]] = {}
    for kernel in kernels:
        if kernel.goal is None:
            continue
        for name, value in kernel.share.items():
            of_gpu = found.setdefault(name, {})
            of_gpu[kernel.goal] = min(value, of_gpu.get(kernel.goal, 1.0))
    return {gpu.name: found[gpu.name] for gpu in GPUS if gpu.name in found}

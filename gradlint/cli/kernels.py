"""``gradlint kernels``: the reference operators, listed, built, compiled, checked and timed."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import Debug, Output, Seed, TextOrJson, Texts, option
from gradlint.native.compile import Compiled
from gradlint.native.kernel_report import Report
from gradlint.report.text import Page

#: More elements than any machine has memory for: a typing mistake.
_MOST = 2**40


def parse_size(text: str) -> int:
    """The number in ``text``: ``65536``, ``2^16`` or ``2**16``.

    Raises:
        GradlintError: it is not a number of elements, or too large.
    """
    found = re.fullmatch(r"\s*(\d{1,13})(?:(?:\^|\*\*)(\d{1,2}))?\s*", text)
    size = int(found[1]) ** int(found[2] or 1) if found else 0
    if not 0 < size <= _MOST:
        raise GradlintError(
            f"{text!r} is not a number of elements",
            place="--elements",
            hint="write 2^20, for example",
        )
    return size


def add_table(page: Page, found: dict[str, Any]) -> None:
    """Add what :func:`gradlint.native.bench.bench` returned to ``page``."""
    from gradlint.report.table import table

    rows = [
        [
            row["operator"],
            row["pass"],
            row["size"],
            _milliseconds(row["seconds"]),
            _milliseconds(row["eager_seconds"]),
            _ratio(row["eager_seconds"], row["seconds"]),
            f"{row['of_floor']:.0%}",
            "copy" if row["floor"] == "memory" else "matmul",
        ]
        for row in found["rows"]
    ]
    headers = ["operator", "pass", "size", "ms", "eager ms", "speedup", "floor", "of"]
    table(page, headers, rows, right=["ms", "eager ms", "speedup", "floor"])
    versions = [f"{name} {value}" for name, value in found["versions"].items() if value]
    threads = f", {found['threads']} threads" if found["threads"] else ""
    page.paragraph("")
    page.paragraph(f"{found['device']}{threads}, {found['dtype']}, {', '.join(versions)}")
    page.paragraph(
        f"copy {found['copy_bytes_per_s'] / 1e9:.1f} GB/s, matmul "
        f"{found['matmul_flops_per_s'] / 1e12:.2f} TFLOP/s, medians of {found['date']}"
    )
    page.paragraph(
        "floor: the time of a copy of as many bytes, or of a matrix product of as many operations, "
        "as a share of the operator's; speedup: eager PyTorch's time divided by the operator's."
    )


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3f}"


def _ratio(eager: float | None, own: float) -> str:
    return "" if eager is None else f"{eager / own:.2f}"


kernels = typer.Typer(
    help="The reference operators in C++ and CUDA: torch.ops.gradlint.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)


@kernels.command("list")
def list_(output_format: TextOrJson = "text") -> None:
    """List the operators: kernel, orders of derivatives, dtypes and schema."""
    from gradlint.cli.reference_operators import catalogue

    found = catalogue()
    if output_format == "json":
        _console.write_json([dataclasses.asdict(item) for item in found])
        return
    rows = [
        [item.name, item.kernel, ",".join(map(str, item.orders)), _short(item.dtypes)]
        for item in found
    ]
    _table(["operator", "kernel", "orders", "dtypes"], rows)
    sys.stdout.write("\n" + "".join(f"  {item.schema}\n" for item in found))
    sys.stdout.write(f"\n{len(found)} operators, torch.ops.gradlint.NAME.\n")


@kernels.command()
def build(
    device: Annotated[
        Texts, option("--device", metavar="LIST", help="cpu,cuda. Default: what can run here.")
    ] = None,
    force: Annotated[bool, option("--force", help="Rebuild everything.")] = False,
    debug: Debug = False,
) -> int:
    """Build the operators for this machine, unless they are cached, and say where they are."""
    sys.stdout.write(f"{_built(_devices(device), force=force)}\n")
    return 0


@kernels.command("compile")
def compile_(
    arch: Annotated[Texts, option("--arch", metavar="LIST", help="Default: sm_80,sm_90.")] = None,
    report: Annotated[
        bool,
        option(
            "--report",
            help="Optimise, and judge the machine code: accesses, registers, instructions, and "
            "the share of a GPU's bandwidth, which has a goal for each kernel.",
        ),
    ] = False,
    output_format: TextOrJson = "text",
    debug: Debug = False,
) -> int:
    """Compile every kernel with nvcc, without torch and without a GPU.

    Exits with 0 if all compile, 1 if one does not or, with --report, has a fault, 2 without nvcc.
    """
    from gradlint.native.compile import compile_kernels, parse_architectures

    architectures = parse_architectures(arch or [])
    if report:
        return _report(architectures, output_format)
    with _line() as show:
        results = compile_kernels(architectures, on_result=show)
    bad = [item for item in results if not item.ok]
    if output_format == "json":
        _console.write_json([dataclasses.asdict(item) for item in results])
        return 1 if bad else 0
    rows = [
        [item.file, item.architecture, f"{item.seconds:.1f}", "ok" if item.ok else "FAILED"]
        for item in results
    ]
    _table(["kernel", "architecture", "seconds", "result"], rows, right=["seconds"])
    for item in results:
        if item.output:
            sys.stdout.write(f"\n{item.file} {item.architecture}\n{item.output}\n")
    counted = f"{len(results) - len(bad)} of {len(results)} compile"
    sys.stdout.write(f"\n{counted} ({', '.join(architectures)}).\n")
    return 1 if bad else 0


def _report(architectures: Sequence[str], output_format: str) -> int:
    """Compile with all optimisations, and print what is to be said of each kernel."""
    from gradlint.native.kernel_report import report_kernels

    with _line() as show:
        found = report_kernels(architectures, on_result=show)
    bad = [item for item in found.compiled if not item.ok]
    faulty = [item for item in found.kernels if item.faults]
    if output_format == "json":
        _console.write_json(dataclasses.asdict(found))
        return 1 if bad or faulty else 0
    _console.write_page(lambda page, _: add_report(page, found))
    for item in bad:
        sys.stdout.write(f"\n{item.file} {item.architecture}\n{item.output}\n")
    return 1 if bad or faulty else 0


def add_report(page: Page, found: Report) -> None:
    """Add what :func:`gradlint.native.kernel_report.report_kernels` returned to ``page``."""
    from gradlint.native.gpus import GPUS
    from gradlint.native.kernel_report import worst
    from gradlint.report.table import table

    names = [gpu.name for gpu in GPUS if any(gpu.name in item.share for item in found.kernels)]
    rows = [
        [
            f"{item.file}: {item.kernel}",
            item.architecture,
            str(item.registers),
            str(item.threads),
            str(item.spilled or ""),
            _widths(item.loads),
            _widths(item.stores),
            "" if item.instructions is None else f"{item.instructions:.1f}",
            "" if item.allowed is None else f"{item.allowed:.0f}",
            *(f"{item.share[name]:.0%}" if name in item.share else "" for name in names),
            "" if item.goal is None else f"{item.goal:.0%}",
        ]
        for item in found.kernels
    ]
    headers = ["kernel", "arch", "registers", "threads", "spilled", "loads", "stores"]
    headers += ["instructions", "time for", *names, "goal"]
    table(page, headers, rows, right=["registers", "threads", "spilled", *headers[7:]])
    page.paragraph("")
    page.paragraph(
        "loads, stores: bytes of an access to global memory × how many there are in the code. "
        "instructions: of a thread for each element, on the path that moves the most; time for: "
        "how many there is time for while the memory moves the element, on the first GPU of the "
        "architecture. Per cent: predicted share of a copy's bandwidth; nothing was run. goal: the "
        "least share on the first GPU of the architecture; less is a fault."
    )
    for reason, count in Counter(item.exempt for item in found.kernels if item.exempt).items():
        page.paragraph(f"No goal for {count} kernels: {reason}.")
    if not found.disassembled:
        page.paragraph(
            "Instructions were not counted and no bandwidth was predicted: nvdisasm is neither "
            "beside nvcc nor on PATH. `pip install nvidia-cuda-nvdisasm` installs it."
        )
    for name, lowest in worst(found.kernels).items():
        shares = ", ".join(f"{lowest[goal]:.0%} where {goal:.0%} is the goal" for goal in lowest)
        page.paragraph(f"Lowest predicted shares on {name}: {shares}.")
    faulty = [item for item in found.kernels if item.faults]
    for item in faulty:
        page.paragraph(
            f"FAULT {item.file} {item.architecture} {item.kernel}: {'; '.join(item.faults)}"
        )
    page.paragraph(f"{len(found.kernels)} kernels, {len(faulty)} with faults.")


def _widths(accesses: dict[int, int]) -> str:
    return " ".join(f"{width}×{count}" for width, count in accesses.items())


@kernels.command()
def bench(
    device: Annotated[
        str | None, option("--device", metavar="NAME", help="Default: cuda where there is one.")
    ] = None,
    dtype: Annotated[str, option("--dtype", metavar="NAME", help="Default: float32.")] = "float32",
    elements: Annotated[
        str | None,
        option(
            "--elements",
            metavar="N",
            help="Size of elementwise and row-wise inputs. Default: 2^26 on cuda, 2^20 on cpu.",
        ),
    ] = None,
    matrix: Annotated[
        int | None,
        option(
            "--matrix",
            min=1,
            metavar="N",
            help="Side of matrices. Default: 4096 on cuda, 512 on cpu.",
        ),
    ] = None,
    operators: Annotated[
        Texts, option("--op", metavar="LIST", help="Only these operators.")
    ] = None,
    output_format: TextOrJson = "text",
    debug: Debug = False,
) -> int:
    """Time forward and backward against eager PyTorch, and against the bandwidth of a copy or the
    rate of a matrix product."""
    from gradlint.cli import progress as _progress
    from gradlint.running.call import call_in_worker
    from gradlint.running.job import BenchWork

    wanted = (_devices([device]) or ()) if device else ()
    size = parse_size(elements) if elements else None
    names = [part for text in operators or [] for part in text.replace(",", " ").split()]
    with _progress.watching():
        found = call_in_worker(
            BenchWork(wanted[0] if wanted else None, dtype, size, matrix, tuple(names))
        )
    if output_format == "json":
        _console.write_json(found)
        return 0
    _console.write_page(lambda page, _: add_table(page, found))
    return 0


@kernels.command()
def check(
    device: Annotated[
        Texts, option("--device", metavar="LIST", help="cpu,cuda. Default: all that are present.")
    ] = None,
    require_device: Annotated[
        bool | None, option("--require-device", help="Exit with 2 if a device is absent.")
    ] = None,
    dtype: Annotated[
        Texts, option("--dtype", metavar="LIST", help="Default: those that the specs name.")
    ] = None,
    select: Annotated[Texts, option("--select", metavar="CODES", help="Rules to run.")] = None,
    ignore: Annotated[
        Texts, option("--ignore", metavar="CODES", help="Rules to leave out.")
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None, option("--timeout", metavar="S", help="As for gradlint check.")
    ] = None,
    jobs: Annotated[
        int | None, option("-j", "--jobs", metavar="N", help="Number of workers.")
    ] = None,
    output_format: Annotated[
        str, option("--output-format", metavar="FORMAT", help="As for gradlint check.")
    ] = "full",
    output: Output = None,
    verbose: Annotated[int, option("-v", "--verbose", count=True, help="Show all checks.")] = 0,
    quiet: Annotated[bool, option("-q", "--quiet", help="One line per finding.")] = False,
    debug: Debug = False,
) -> int:
    """Run gradlint over the specs of all operators, on every device that is present."""
    from gradlint.cli.check import check as run
    from gradlint.cli.reference_operators import reference_specs
    from gradlint.model.resolve import resolve_settings
    from gradlint.rules.catalogue import rule_names
    from gradlint.targets.source_file import shown_path

    # The check refuses what can't be used; before that, the build may take minutes.
    given = {"dtype": dtype, "select": select, "ignore": ignore, "timeout": timeout, "jobs": jobs}
    resolve_settings(given, rules=rule_names(), warn=lambda _text: None)
    devices = _devices(device) or _present()
    _built(devices if "cuda" in devices and device else None)
    return run(
        [shown_path(str(path)) for path in reference_specs()],
        device=[",".join(devices)],
        require_device=require_device,
        dtype=dtype,
        select=select,
        ignore=ignore,
        seed=seed,
        timeout=timeout,
        jobs=jobs,
        output_format=output_format,
        output=output,
        verbose=verbose,
        quiet=quiet,
        debug=debug,
    )


def _devices(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    """The devices in comma-separated ``texts``; None where there are none."""
    from gradlint.model.settings import DEVICES

    found = [part.strip() for text in texts or [] for part in text.split(",") if part.strip()]
    for name in found:
        if name not in DEVICES:
            raise GradlintError(
                f"{name!r} is not a device",
                place="--device",
                hint=f"choose from {', '.join(DEVICES)}",
            )
    return tuple(dict.fromkeys(found)) or None


def _present() -> tuple[str, ...]:
    from gradlint.running.call import call_in_worker
    from gradlint.running.job import DevicesWork

    found = call_in_worker(DevicesWork())
    return tuple(name for name, there in found.items() if there)


def _built(devices: tuple[str, ...] | None, *, force: bool = False) -> str:
    """Build in a worker, so that this process need not import torch."""
    from gradlint.cli import progress as _progress
    from gradlint.running.call import call_in_worker
    from gradlint.running.job import BuildWork

    with _progress.watching():
        return call_in_worker(BuildWork(devices, force))


@contextmanager
def _line() -> Iterator[Callable[[Compiled, int, int], None]]:
    """Shows on a terminal how far the compile-only check is."""
    from gradlint.native.progress import Progress, progress_sink

    with progress_sink(None) as sink:
        yield lambda item, done, total: sink(
            Progress("compiling", done, total, f"{item.file} {item.architecture}", 0.0)
        )


def _short(dtypes: Sequence[str]) -> str:
    return " ".join(name.replace("bfloat", "bf").replace("float", "f") for name in dtypes)


def _table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()
) -> None:
    from gradlint.report.table import table

    _console.write_page(lambda page, _: table(page, headers, rows, right=right))

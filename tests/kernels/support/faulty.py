"""The faulty twins in ``examples/faulty_kernels``: what each does wrong shows, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "examples" / "faulty_kernels"


@dataclass(frozen=True)
class Twin:
    """One faulty kernel.

    Args:
        name: of its file, its spec and its operators ``faulty::name`` and ``mended::name``.
        codes: of the rule that finds it; where a race decides, of any of them.
        shows: "host" (on every device), "cuda", "two GPUs", or under a tool of compute-sanitizer.
        dtype: in which it is checked.
        tool: of compute-sanitizer, under which it shows as GL805 too.
        crashes: codes by which it may show on a GPU instead, where the kernel is ended.
    """

    name: str
    codes: tuple[str, ...]
    shows: str
    dtype: str = "float64"
    tool: str = ""
    crashes: tuple[str, ...] = ()

    @property
    def spec(self) -> Path:
        """The specification of the faulty operator."""
        return FOLDER / f"{self.name}.yaml"

    def where(self) -> tuple[str, ...]:
        """All places where it shows."""
        return (self.shows, self.tool) if self.tool else (self.shows,)

    def mended(self, folder: Path) -> Path:
        """A specification of the mended operator, written into ``folder``."""
        text = self.spec.read_text(encoding="utf-8").replace("ops.faulty.", "ops.mended.")
        for source in ("bindings.cpp", "host.cpp", "device.cu", "../../kernels"):
            text = text.replace(source, str((FOLDER / source).resolve()))
        path = folder / self.spec.name
        path.write_text(text, encoding="utf-8")
        return path


#: Sorted by name. What shows under a sanitizer may show elsewhere too, by luck.
TWINS = (
    Twin("atomic_winner", ("GL606", "GL401", "GL404"), "cuda"),
    Twin("contiguous_grad", ("GL701",), "host"),
    Twin("divergent_barrier", ("GL805",), "synccheck"),
    Twin("half_accumulation", ("GL801",), "host", "float16"),
    Twin("missing_guard", ("GL804",), "two GPUs"),
    Twin("missing_sync", ("GL805",), "racecheck"),
    Twin(
        "out_of_bounds",
        ("GL704",),
        "host",
        tool="memcheck",
        crashes=("GL002", "GL003", "GL004", "GL005"),
    ),
    Twin("overflow", ("GL806",), "cuda"),
    Twin("racing_reduction", ("GL606", "GL401", "GL404"), "cuda"),
    Twin("stale_workspace", ("GL608",), "host"),
    Twin("tail", ("GL706",), "host"),
    Twin("unaligned", ("GL704",), "host"),
    Twin("uninitialised", ("GL607",), "host"),
    Twin("wrong_stream", ("GL803",), "cuda"),
)

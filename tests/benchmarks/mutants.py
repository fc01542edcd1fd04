"""Right operators with one slip in backward, made by rule: how many of them are found.

Run it with ``python -m tests.benchmarks.mutants [--sets SETS] [--each N] [--seed N] [--inputs
given|inferred] [--markdown]``. The right operators of the sets of ``support/user_operators/`` are
changed in one place of their backward (``support/mutations.py``), a few times each at random. A
mutant counts where its gradient at the inputs that the author gave differs from that of the
original; the others, most of which are right as well, are left out, and so is what raises there,
which nobody would miss. With inferred inputs the fault may not be there to see: another branch is
taken, or an argument for which None is returned is taken for a constant, and said to be.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import io
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gradlint.model.sample import map_tensors
from tests.benchmarks import user_operators
from tests.benchmarks.support.measure import heading, markdown, table
from tests.benchmarks.support.mutations import mutations
from tests.benchmarks.user_operators import HERE, Case, Told, answers, misfits

#: The sets whose operators are changed: the newest ones, which were written in one form.
SETS = "aj,ak,al,am,an,ao"
#: Relative difference from which a gradient is another one, and the absolute one beside it.
RELATIVE, ABSOLUTE = 1e-3, 1e-9
#: Codes that fit a slip: values, shapes, gradients that are missing or not finite, and what is
#: raised.
CODES = ("GL401", "GL402", "GL201", "GL103", "GL110", "GL302", "GL004", "GL706")
#: The list of a set of mutants: the rows of the originals under the names of the mutants.
_LIST = """\
from tests.benchmarks.mutants import original_row

CASES = [dict(original_row(*one[:2]), name=one[2]) for one in {mutants!r}]
"""


@functools.cache
def _rows(letters: str) -> dict[str, dict[str, Any]]:
    """The operators of a set by the names of their files."""
    return {row["name"]: row for row in user_operators._module(HERE / letters / "written.py").CASES}


def original_row(letters: str, name: str) -> dict[str, Any]:
    """What the author wrote of one operator."""
    return _rows(letters)[name]


def _usable(letters: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Operators that can be loaded several times, and whose gradient is a derivative."""
    for name, row in _rows(letters).items():
        source = (HERE / letters / "right" / f"{name}.py").read_text()
        if "torch.library" not in source and "custom_op" not in source and "surrogate" not in row:
            yield name, row, source


def plant(letters: list[str], each: int, seed: int, folder: Path) -> tuple[list[Case], int]:
    """Write mutants into ``folder`` as a set of its own: the cases, and how many mutants had the
    gradient of their original and were left out."""
    draw = random.Random(seed)
    for which in ("right", "wrong"):
        (folder / which).mkdir(parents=True)
    cases, planted, same = [], [], 0
    for of in letters:
        for name, row, source in _usable(of):
            known = _gradients(_loaded(HERE / of / "right" / f"{name}.py"), row)
            found = list(mutations(source))
            draw.shuffle(found)
            count = 0
            for number, one in enumerate(found):
                if count == each:
                    break
                # A name of its own: Python takes what it compiled of a file of that age and size.
                mutant = f"{of}_{name}_{number}"
                path = folder / "wrong" / f"{mutant}.py"
                path.write_text(one.text)
                differs = _differs(known, path, row)
                same += differs is False
                if not differs:
                    path.unlink()
                    continue
                count += 1
                (folder / "right" / f"{mutant}.py").write_text(source)
                planted.append((of, name, mutant))
                fault = f"line {one.line}: {one.words}"
                cases.append(Case(folder, mutant, row["object"], fault, "first", None, CODES))
    (folder / "written.py").write_text(_LIST.format(mutants=planted))
    return cases, same


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"mutant_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _gradients(module: ModuleType, row: dict[str, Any]) -> list[torch.Tensor | None]:
    """Gradients at the inputs that the author gave, for one random cotangent."""
    op = getattr(module, row["object"])
    torch.manual_seed(0)
    values = row["inputs"]()
    leaves = [leaf for leaf in _tensors(values) if leaf.requires_grad]
    if row["kind"] == "module":
        op = row["make"](op)
        leaves += [parameter for parameter in op.parameters() if parameter.requires_grad]
    passed = map_tensors(values, torch.clone)  # no leaf may be changed in place
    outputs = _tensors((op.apply if row["kind"] == "function" else op)(*passed))
    chosen = [output for output in outputs if output.requires_grad]
    vs = [torch.randn_like(output) for output in chosen]
    return list(torch.autograd.grad(chosen, leaves, vs, allow_unused=True))


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value if isinstance(value, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _differs(known: list[torch.Tensor | None], path: Path, row: dict[str, Any]) -> bool | None:
    """Whether a mutant has other gradients than its original; None where it raises."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = _gradients(_loaded(path), row)
    except Exception:  # of a mutant: anything
        return None
    return not all(map(_alike, known, found))


def _alike(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        left = one if other is None else other
        return left is None or not bool(left.any())
    close = torch.allclose(one, other, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    return one.shape == other.shape and close


def rows_of(found: list[Told], same: int) -> Iterator[tuple[str, str]]:
    """The rows of the table."""
    judged = [told for told in found if not told.not_run]
    red = [told for told in judged if told.red(1)]
    yield "mutants", str(len(found))
    yield "left out: the gradient of the original", str(same)
    yield "not judged", str(len(found) - len(judged))
    yield "found", user_operators._share(len(red), len(judged))
    fitting = sum(told.fitting for told in judged)
    yield "with a fitting code and line first", user_operators._share(fitting, len(judged))
    yield "no usable inputs", str(sum(told.without_inputs for told in judged))
    missed = Counter(
        told.case.fault.partition(": ")[2] for told in judged if told not in red
    ).most_common()
    yield "missed", "; ".join(f"{count} x {words}" for words, count in missed) or "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sets", default=SETS, help="letters of the sets, separated by commas")
    parser.add_argument("--each", type=int, default=3, help="mutants of one operator, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--inputs", choices=("inferred", "given"), default="given")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    options.order, options.dtype = 1, ""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        letters = options.sets.split(",")
        cases, same = plant(letters, options.each, options.seed, Path(scratch) / "mutants")
        asked = [(case, "wrong") for case in cases]
        found = [told for _, told in answers(asked, options, [0])]
        for line in misfits(found):
            print(line)
    shown = [("", f"inputs {options.inputs}"), *rows_of(found, same)]
    print()
    if options.markdown:
        print(markdown(shown))
    else:
        print(heading("Right operators with one slip in backward"))
        print(table(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())

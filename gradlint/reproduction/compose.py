"""Puts a script together from the source of ``torch_alone``, the operator and its arguments."""

from __future__ import annotations

import ast
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gradlint.expressions import vocabulary
from gradlint.reproduction.literal import Literals, comment

_FOLDER = Path(__file__).resolve().parent / "torch_alone"

#: By what a script is known as one.
SIGN = "Shows a defect of an operator with PyTorch and the operator's own module alone."

_HEAD = '''\
"""{sign}

    python {name}

It exits with 1 while the defect is there, with 0 once it is mended, and with 2 if the operator
can't be loaded or called.
"""

from __future__ import annotations

{imports}
'''

_LOAD = '''

def load() -> Any:
    """The operator, from the user's own module."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [os.path.join(here, folder) for folder in FOLDERS]
    for name in IMPORTS:
        importlib.import_module(name)
    if FILE is None:
        found = importlib.import_module(MODULE)
    else:
        place = importlib.util.spec_from_file_location(MODULE, os.path.join(here, FILE))
        found = importlib.util.module_from_spec(place)
        sys.modules[MODULE] = found
        place.loader.exec_module(found)
    for part in NAME.split("."):
        found = getattr(found, part)
    return found

'''

_MAKE = '''

def load() -> Any:
    """The operator, from the formulas of its specification."""
    here = os.path.dirname(os.path.abspath(__file__))
    return with_formulas(present(FORMULAS, os.path.join(here, FILE), DIGEST), WORDS)

'''

_MAIN = '''

def main() -> int:
    """Look for the defect, and say what was found."""
    try:
        case = made(load())
        found = {check}
    except Exception:
        traceback.print_exc()
        print("the operator could not be loaded or called")
        return 2
    if found is None:
        print("the defect is not there any more")
        return 0
    print(found.what)
    if found.index is not None:
        print(f"  index     {{list(found.index)}}")
    print(f"  expected  {{found.expected}}")
    print(f"  got       {{found.got}}")
    print(f"  expected comes from: {{found.source}}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
'''

#: What a formula may use, in lines.
_WORDS = textwrap.fill(
    " ".join(
        sorted(
            {*vocabulary.FUNCTIONS, *vocabulary.METHODS, *vocabulary.ATTRIBUTES}
            | {*vocabulary.CONSTANTS, *vocabulary.DTYPES}
        )
    ),
    width=96,
    initial_indent="    ",
    subsequent_indent="    ",
)

#: What every script imports; others are added where they are used.
_ALWAYS = ("importlib", "importlib.util", "os", "sys", "traceback")


@dataclass(frozen=True)
class _Piece:
    """A function, class or constant of ``torch_alone``."""

    text: str
    uses: frozenset[str]
    order: tuple[int, int]


@dataclass(frozen=True)
class Operator:
    """How a script finds the operator and calls it.

    Args:
        folders: what must be importable, as seen from the script's folder or absolute.
        module, name: the module and the dotted name in it; file: where it is, if it can't be
            imported by its name.
        imports: modules to import before.
        call: source of a function of ``operator`` that makes what is called.
        formulas: what makes the operator, where no module does; ``file`` is the specification then,
            and ``digest`` that of its bytes.
    """

    folders: tuple[str, ...]
    module: str
    name: str
    call: str
    file: str | None = None
    imports: tuple[str, ...] = ()
    formulas: dict[str, Any] | None = None
    digest: str = ""


@cache
def _pieces() -> tuple[dict[str, _Piece], dict[str, str]]:
    """The pieces by name, and the import that binds each name."""
    pieces: dict[str, _Piece] = {}
    imports: dict[str, str] = {}
    order = (
        "case",
        "raised",
        "values",
        "returned",
        "effects",
        "layouts",
        "transforms",
        "isolated",
        "formulas",
    )
    for number, name in enumerate(order):
        text = (_FOLDER / f"{name}.py").read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.update(_bound(node))
                continue
            names = _defined(node)
            if not names:
                continue
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(item.lineno for item in decorators)])
            while lines[first - 2].startswith("#:"):
                first -= 1
            source = "\n".join(lines[first - 1 : node.end_lineno])
            uses = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            for known in names:
                pieces[known] = _Piece(source, frozenset(uses), (number, node.lineno))
    return pieces, imports


def _bound(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(node, ast.Import):
        return {alias.name: f"import {alias.name}" for alias in node.names}
    if node.module is None or node.module.startswith(("gradlint", "__future__")):
        return {}
    return {alias.name: f"from {node.module} import {alias.name}" for alias in node.names}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def composed(
    title: str,
    check: str,
    operator: Operator,
    given: str,
    literals: Literals,
    names: Sequence[str],
    seed: int,
    file: str,
) -> str:
    """The text of a script.

    Args:
        title: what it shows, in words; may hold anything.
        check: an expression in ``case`` and the names of ``torch_alone``.
        operator: how it is found.
        given: an expression of the arguments, which uses the names that ``literals`` defines.
        names: of the differentiable inputs.
        file: the name of the script.
    """
    pieces, imports = _pieces()
    wanted = {"Case"} | {n.id for n in ast.walk(ast.parse(check)) if isinstance(n, ast.Name)}
    wanted |= {"with_formulas", "present"} if operator.formulas is not None else set()
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in pieces and name not in found:
            found.add(name)
            wanted |= pieces[name].uses
    chosen = sorted({pieces[name].order: pieces[name] for name in found}.values(), key=_order)
    used = set().union(*(piece.uses for piece in chosen), {"Any"})
    lines = {imports[name] for name in used if name in imports and name != "torch"}
    lines |= {f"import {name}" for name in _ALWAYS}
    head = sorted(line for line in lines if line.startswith("import"))
    head += sorted(_merged([line for line in lines if line.startswith("from")]))
    extra = ["import torch"]
    extra += ["import torch.utils.checkpoint"] if "fails_with_hooks" in found else []
    kept = f"{os.path.splitext(file)[0]}.pt"
    values = "\n    ".join(literals.lines)
    parts = [
        comment(title),
        _HEAD.format(sign=SIGN, name=file, imports="\n".join([*head, "", *extra])),
        *_found(operator),
        f"SEED = {int(seed)}\n",
    ]
    if literals.kept:
        parts.append(
            "KEPT = torch.load(\n"
            f"    os.path.join(os.path.dirname(os.path.abspath(__file__)), {kept!a}),\n"
            "    weights_only=True,\n)\n"
        )
    parts += [
        _MAKE if operator.formulas is not None else _LOAD,
        *(f"\n{piece.text}\n\n" for piece in chosen),
    ]
    parts.append(
        "\ndef made(operator: Any) -> Case:\n"
        '    """The operator with the arguments that show the defect."""\n'
        f"    {values}\n"
        f"    given = {given}\n"
        f"    call = {operator.call}\n"
        f"    case = Case(call, given, {list(names)!a}, SEED)\n"
        "    case.operator = operator\n"
        "    return case\n"
    )
    parts.append(_MAIN.format(check=check))
    return "".join(parts)


def _found(operator: Operator) -> list[str]:
    """Lines that say where the operator is, or what makes it."""
    if operator.formulas is not None:
        return [
            f"\n#: The formulas of the operator, and the file that they come from.\n"
            f"FORMULAS = {operator.formulas!a}\n",
            f"FILE = {operator.file!a}\n",
            f"DIGEST = {operator.digest!a}\n",
            "#: What a formula may use.\n",
            f'WORDS = frozenset(\n    """\n{_WORDS}\n    """.split()\n)\n',
        ]
    return [
        f"\nFOLDERS = {list(operator.folders)!a}\n",
        f"IMPORTS = {list(operator.imports)!a}\n",
        f"MODULE = {operator.module!a}\n",
        f"FILE = {operator.file!a}\n",
        f"NAME = {operator.name!a}\n",
    ]


def _order(piece: _Piece) -> tuple[int, int]:
    return piece.order


def _merged(lines: Sequence[str]) -> list[str]:
    """Imports from one module in one line."""
    by_module: dict[str, set[str]] = {}
    for line in lines:
        module, _, name = line.removeprefix("from ").partition(" import ")
        by_module.setdefault(module, set()).add(name)
    return [f"from {module} import {', '.join(sorted(n))}" for module, n in by_module.items()]

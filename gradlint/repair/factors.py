"""Candidates for a gradient that is off by its sign or by a factor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_left, factors, is_product
from gradlint.repair.scene import Scene

#: How the diagnosis says by what the returned gradient must be multiplied.
_TIMES = re.compile(r"the returned gradient times (.+?) agrees")
_TANGENT = re.compile(r"the tangent is (\S+?) times the derivative")

#: How the diagnosis writes constants → how Python does.
_CONSTANTS = (
    (re.compile(r"\b2 pi\b"), "2 * math.pi"),
    (re.compile(r"\bln (\d+)\b"), r"math.log(\1)"),
    (re.compile(r"(?<![\w.])pi\b"), "math.pi"),
    (re.compile(r"(?<![\w.])e\b"), "math.e"),
    (re.compile(r"(?<![\w.])sqrt\("), "math.sqrt("),
)

#: Largest number by which a literal in the source is replaced by its multiple (heuristic: what
#: formulas of people hold).
_MOST = 1000


def sign(scene: Scene) -> Iterator[Candidate]:
    """The negative (cause ``sign``, or a factor that begins with a minus)."""
    if scene.fault.cause == "sign" or "opposite sign" in scene.fault.cause_text:
        for node in scene.sources(scene.fault.input):
            for text in _negatives(scene, node):
                yield Candidate(
                    f"change the sign of the gradient of `{scene.fault.input}`",
                    (scene.tree.replaced(node, text),),
                    Fit.NAMED,
                )


def _negatives(scene: Scene, node: libcst.BaseExpression) -> Iterator[str]:
    tree = scene.tree
    if isinstance(node, libcst.UnaryOperation) and isinstance(node.operator, libcst.Minus):
        yield tree.code(node.expression)
        return
    for product in factors(node):
        for side in (product.left, product.right):
            if isinstance(side, libcst.UnaryOperation) and isinstance(side.operator, libcst.Minus):
                start, end = tree.outer(node)
                first, last = tree.outer(side)
                inner = tree.code(side.expression)
                yield tree.text[start:first] + inner + tree.text[last:end]
    if isinstance(node, libcst.BinaryOperation) and isinstance(node.operator, libcst.Subtract):
        yield f"{as_left(tree, node.right)} - {as_left(tree, node.left)}"
    else:
        tight = is_product(node) or not isinstance(node, libcst.BinaryOperation)
        yield f"-{tree.code(node)}" if tight or node.lpar else f"-({tree.code(node)})"


def scaled(scene: Scene) -> Iterator[Candidate]:
    """The factor that the diagnosis names, as an expression of what backward has in hand."""
    for wanted in dict.fromkeys(_TIMES.findall(scene.fault.cause_text)):
        found = _written(scene, wanted)
        for node in scene.sources(scene.fault.input):
            yield from _in_the_formula(scene, node, wanted)
            if found is not None and not wanted.startswith("-"):
                text, edits = found
                yield Candidate(
                    f"multiply the gradient of `{scene.fault.input}` by `{wanted}`",
                    (scene.tree.replaced(node, _multiplied(scene, node, text)), *edits),
                    Fit.NAMED if _number(wanted) is None else Fit.LIKELY,
                )
            yield from _by_sizes(scene, node, wanted)
            yield from _by_arguments(scene, node, wanted)


def negative(scene: Scene) -> Iterator[Candidate]:
    """A factor that begins with a minus: the sign and the rest of it."""
    for wanted in dict.fromkeys(_TIMES.findall(scene.fault.cause_text)):
        found = _written(scene, wanted[1:]) if wanted.startswith("-") else None
        for node in scene.sources(scene.fault.input) if found is not None else ():
            text, edits = found or ("", ())
            for opposite in _negatives(scene, node):
                whole = is_product(node) and not opposite.startswith("-(")
                left = opposite if whole or opposite.isidentifier() else f"({opposite})"
                yield Candidate(
                    f"multiply the gradient of `{scene.fault.input}` by `{wanted}`",
                    (scene.tree.replaced(node, _times(left, text)), *edits),
                    Fit.NAMED,
                )


def tangent(scene: Scene) -> Iterator[Candidate]:
    """The same for ``jvp``: the inverse of what the tangent is too large by (GL403)."""
    method = scene.method("jvp")
    for found in _TANGENT.findall(scene.fault.cause_text) if method else ():
        try:
            inverse = str(1 / Fraction(found))
        except (ValueError, ZeroDivisionError):
            continue
        for statement in scene.returns_of(method):
            if statement.value is not None and not isinstance(statement.value, libcst.Tuple):
                text = _multiplied(scene, statement.value, inverse)
                yield Candidate(
                    f"multiply the tangent that jvp returns by {inverse}",
                    (scene.tree.replaced(statement.value, text),),
                    Fit.NAMED,
                )


def _written(scene: Scene, wanted: str) -> tuple[str, tuple[Edit, ...]] | None:
    """``wanted`` as backward can write it, and what must be added for it."""
    text = wanted
    for pattern, python in _CONSTANTS:
        text = pattern.sub(python, text)
    text = re.sub(r"\bgrad_outputs?\[(\d+)\]", lambda m: _incoming(scene, int(m[1])), text)
    text = re.sub(r"\bgrad_output\b", _incoming(scene, 0), text)
    try:
        names = _names_in(text)
    except SyntaxError:
        return None
    for known, held in scene.attributes.items():
        if not known.isidentifier() and re.search(rf"(?<![\w.]){re.escape(known)}", text):
            text = text.replace(known, held)
            names = _names_in(text) - ({scene.backward.ctx} if scene.backward else set())
    edits: list[Edit] = []
    for name in sorted(names - {"math", *scene.incoming}):
        found = scene.reach(name)
        if found is None:
            return None
        text = re.sub(rf"(?<![\w.]){name}\b", found[0].replace("\\", r"\\"), text)
        edits += found[1]
    if "math." in text:
        edits += _import_math(scene)
    return text, tuple(edits)


def _names_in(text: str) -> set[str]:
    found = ast.walk(ast.parse(text, mode="eval"))
    return {node.id for node in found if isinstance(node, ast.Name)}


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _by_arguments(scene: Scene, node: libcst.BaseExpression, wanted: str) -> Iterator[Candidate]:
    """Where the factor is a number that an argument may have as well, of which only its place on
    the context is known: one that the gradient does not use."""
    if _number(wanted) is None:
        return
    for held in scene.numbers:
        if held in scene.tree.code(node):
            continue
        for text in (held, f"1/{held}"):
            yield Candidate(
                f"multiply the gradient of `{scene.fault.input}` by `{text}`",
                (scene.tree.replaced(node, _multiplied(scene, node, text)),),
                Fit.NAMED,
            )


def _incoming(scene: Scene, place: int) -> str:
    names = scene.incoming
    return names[place] if place < len(names) else "grad_output"


def _import_math(scene: Scene) -> list[Edit]:
    if re.search(r"^import math\b", scene.tree.text, re.MULTILINE):
        return []
    for node in scene.tree.module.body:
        imports = isinstance(node, libcst.SimpleStatementLine) and isinstance(
            node.body[0], (libcst.Import, libcst.ImportFrom)
        )
        if imports and "__future__" not in scene.tree.code(node):
            return [scene.tree.line_before(node, "import math")]
    return []


def _multiplied(scene: Scene, node: libcst.BaseExpression, factor: str) -> str:
    return _times(as_left(scene.tree, node), factor)


def _times(left: str, factor: str) -> str:
    """``left``, which binds as a product does, times ``factor``."""
    tight = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
    tree = ast.parse(factor, mode="eval").body
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div) and factor.startswith("1/"):
        divisor = factor.removeprefix("1/")
        if isinstance(tree.right, tight) or divisor.startswith("("):
            return f"{left} / {divisor}"
    return f"{left} * {factor}" if isinstance(tree, tight) else f"{left} * ({factor})"


def _in_the_formula(scene: Scene, node: libcst.BaseExpression, wanted: str) -> Iterator[Candidate]:
    """Where the factor is a number: another number in the place of one that is there already, or
    no such number; where it is the inverse of a factor that is there: without that."""
    tree, factor = scene.tree, _number(wanted)
    start, end = tree.outer(node)
    # A number in the source that happens to be an argument's would be right for that one alone.
    spare = [held for held in scene.numbers if held not in tree.code(node)]
    fit = Fit.LIKELY if spare else Fit.NAMED
    for product in factors(node):
        for side, other in ((product.left, product.right), (product.right, product.left)):
            if side is product.left and is_product(side):
                continue
            first, last = tree.outer(side)
            if factor is not None and isinstance(side, (libcst.Integer, libcst.Float)):
                number = Fraction(tree.code(side))
                divides = side is product.right and isinstance(product.operator, libcst.Divide)
                new = number / factor if divides else number * factor
                if new.denominator == 1 and 0 < abs(new) <= _MOST and new != 1:
                    text = str(int(new)) if isinstance(side, libcst.Integer) else str(float(new))
                    yield Candidate(
                        f"write {text} in place of {tree.code(side)} in the gradient of "
                        f"`{scene.fault.input}`",
                        (Edit(first, last, text),),
                        fit,
                    )
            code = tree.code(side)
            inverse = wanted in (f"1/{code}", f"1/{code.rpartition('.')[2]}")
            if not isinstance(product.operator, libcst.Multiply):
                inverse = side is product.right and wanted in (code, code.rpartition(".")[2])
            elif isinstance(side, (libcst.Integer, libcst.Float)) and factor is not None:
                inverse = Fraction(code) * factor == 1
            if inverse:
                p, q = tree.outer(product)
                yield Candidate(
                    f"leave the factor {code} out of the gradient of `{scene.fault.input}`",
                    (Edit(start, end, tree.text[start:p] + tree.code(other) + tree.text[q:end]),),
                    fit if factor is not None else Fit.NAMED,
                )


def _by_sizes(scene: Scene, node: libcst.BaseExpression, wanted: str) -> Iterator[Candidate]:
    """Where the factor is a number that a size, or another argument, has as well."""
    factor = _number(wanted)
    if factor is None:
        return
    if factor.numerator != 1 and factor.denominator != 1:
        return
    divides = factor.numerator == 1 and factor.denominator != 1
    count = factor.denominator if divides else factor.numerator
    for one in scene.fault.known:
        for axis, size in enumerate(one.shape or ()):
            if size != count or size < 2:
                continue
            found = scene.reach(one.name)
            if found is not None:
                text = f"{found[0]}.shape[{axis}]"
                factor_text = f"1/{text}" if divides else text
                yield Candidate(
                    f"multiply the gradient of `{scene.fault.input}` by `{factor_text}`",
                    (
                        scene.tree.replaced(node, _multiplied(scene, node, factor_text)),
                        *found[1],
                    ),
                    Fit.NAMED,
                )


FAMILY = (sign, scaled, negative, tangent)

"""Findings of GL601 about what is no argument of the op itself: intermediates, and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.rules.state._writes import write_place

if TYPE_CHECKING:
    from gradlint.report import Finding
    from gradlint.rules._rule import Rule
    from gradlint.rules._subject import Subject
    from gradlint.rules.state._guarded import Written


def inside(subject: Subject, rule: Rule, item: Written) -> Finding:
    """A finding that a Function inside of the op writes to what the op itself computed."""
    found, name = item.difference, item.name
    return subject.finding(
        rule,
        f"forward of {item.function.__name__} writes to `{name}` undeclared: {found.count} of "
        f"{found.total} elements changed",
        severity="warning",
        cause_text="an intermediate tensor of the op: what else uses it computes with another",
        index=found.index,
        place=write_place(item.function, "forward", name, "written to here"),
        evidence=found.evidence(),
        help=f"work on a copy ({name}.clone()), or declare it: ctx.mark_dirty({name}), and return "
        f"{name} itself",
    )


def aliases(subject: Subject, rule: Rule) -> list[Finding]:
    """Outputs that are an argument's memory, where changing them does harm."""
    aliases = subject.guarded.aliases
    if not aliases:
        return []
    output, name = aliases[0]
    tail = subject.tail
    share = f"`{output}` shares memory with `{name}`, undeclared"
    if tail.changed:
        wrong = f", and the gradient for `{tail.wrong[0].name}` is wrong" if tail.wrong else ""
        return [
            subject.finding(
                rule,
                f"{share}: an in-place operation on it changes `{tail.changed[0]}`{wrong}",
                input=name,
                output=output,
                evidence=tail.wrong[0].evidence() if tail.wrong else None,
                help=f"return a copy (.clone()), or `{name}` itself, which PyTorch makes a view of",
            )
        ]
    if tail.refused:
        return [
            subject.finding(
                rule,
                f"`{output}` is a view of `{name}`: an in-place operation on it is refused",
                severity="info",
                input=name,
                output=output,
                evidence={"original": tail.refused},
                help="return a copy (.clone()) if users may change the output in place",
            )
        ]
    return []

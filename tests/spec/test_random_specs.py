"""Any text either loads or is refused with places, whatever it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gradlint.base.errors import SpecError
from gradlint.spec._model import Case, Input, OpSpec
from gradlint.spec.load import loads
from gradlint.spec.plan import sample_labels

FORMULAS = Path(__file__).parents[2] / "examples/formulas"
TEXTS = [path.read_text() for path in sorted(FORMULAS.glob("*.yaml"))]
KEYS = sorted(
    {
        field.alias or name
        for model in (OpSpec, Input, Case)
        for name, field in model.model_fields.items()
    }
)


def load_or_refuse(text: str) -> None:
    try:
        spec = loads(text)
    except SpecError as error:
        problems = error.problems
    else:
        assert len(set(sample_labels(spec))) == len(sample_labels(spec))
        return
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + 2
    assert problems
    for problem in problems:
        assert problem.line is None or 1 <= problem.line <= lines + text.count("\u2028")
        assert problem.column is None or problem.column >= 1
        assert problem.message


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A spec of the repository with a few characters cut, doubled or replaced."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        put = draw(
            st.sampled_from(
                [
                    *("", "\n", "  ", "\t", ":", "- ", "{", "}", "[", "]", '"', "'", "&a ", "*a"),
                    *("!!x ", "#", "1e-6", "yes", "N", "x", "@", "null", "**9**9", "_x", "\x00"),
                    *("é", "---\n"),
                ]
            )
        )
        text = text[:start] + put + text[end:]
    return text


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_mutated_specs(text: str) -> None:
    load_or_refuse(text)


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        ["N", "x", "-1", "2", "2.5", "true", "null", "'2*N'", "relu(x)", "float32", "GL503", "''"]
    ),
    lambda parts: (
        st.lists(parts, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from([*KEYS, "x", "N"]), parts, max_size=4).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), _VALUES, max_size=5))
def test_specs_of_random_shape(entries: dict[str, str]) -> None:
    load_or_refuse("".join(f"{key}: {value}\n" for key, value in entries.items()))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_random_texts(text: str) -> None:
    load_or_refuse(text)

"""The cases of this set, from what its author wrote (``written.py``), for the benchmark."""

import importlib.util
from pathlib import Path

#: What the benchmark calls kinds of fault that the author named by a word.
KINDS = {"modified": "mutated", "nan": "NaN", "none": "None for", "state": "cache"}


def _kind(row):
    words = " ".join(KINDS.get(word, word) for fit in row["fits"] for word in fit.split())
    return f"second derivative {words}" if row["order"] == "second" else words


def _second(row):
    """True where verify.py proves the right twin's second derivative, None where it has none."""
    text = Path(__file__).with_name("right").joinpath(row["name"] + ".py").read_text()
    return None if "once_differentiable" in text else True


def _written():
    path = Path(__file__).with_name("written.py")
    spec = importlib.util.spec_from_file_location(f"written_{path.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


CASES = [
    {
        "group": row["name"],
        "name": row["object"],
        "fault": row["bug"],
        "kind": _kind(row),
        "shows": row["order"],
        "second_order_right": _second(row),
        "inputs": row["inputs"],
        **({"make": row["make"]} if "make" in row else {}),
    }
    for row in _written()
]

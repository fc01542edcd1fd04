"""The page of HTML: what it holds, and how it behaves in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.model.report import Excerpt, Finding, Location, Report, TargetReport
from gradlint.model.sweep import InputSweep, SweepReport, SweepStep, SweepTarget
from gradlint.report import _page
from gradlint.report._excerpt import MarkedLine, marked_lines
from gradlint.report.render import render
from gradlint.rules.catalogue import CATALOGUE
from tests.benchmarks.report_load import report_of
from tests.report.test_formats import HOSTILE, Balanced


def parse(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    return parser


def sweep_of(target: str) -> SweepReport:
    steps = [
        SweepStep(2.0**-n, "ok", 1.0, 1.0, 4.0**-n, 2 * 4.0**-n, 1e-16 * 2.0**n, chosen=n == 9)
        for n in range(1, 24)
    ]
    return SweepReport(
        [SweepTarget(target, inputs=[InputSweep("x", verdict="agrees", steps=steps)])]
    )


def test_it_needs_nothing_else(every_verdict: Report) -> None:
    text = render(every_verdict, "html", rules=CATALOGUE)
    for tag, attributes in parse(text).seen:
        assert tag not in ("link", "img", "iframe", "object", "base")
        assert {"src", "href", "srcset", "action"} & set(attributes) == set()
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text


def test_no_script_runs_but_its_own(report: Report, hostile: Callable[[str], Report]) -> None:
    for case in (report, hostile(HOSTILE)):
        text = render(case, "html")
        (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src &#39;sha256-{digest}&#39;" in text or f"'sha256-{digest}'" in text
        assert "default-src 'none'" in text


def test_what_a_page_shows(every_verdict: Report, failing_target: TargetReport) -> None:
    text = render(every_verdict, "html", rules=CATALOGUE, sweeps=[sweep_of("pkg.ops:Crash")])
    words = " ".join("".join(parse(text).text).split())
    for shown in (
        "2 of 6 operators fail, 1 could not be judged",  # the summary
        "transposed: taken as .mT it agrees to 2e-10",  # a finding
        "GL005 process crashed",
        "NaN+Inf",  # anatomy
        "cuda is not available here",  # what was skipped
        "examples/empty.py: holds no operator",
        "GL401 wrong gradient: too noisy; next: use float64",  # what could not be judged
        "gradient of weight (4×4): 2 of 16 elements are shown",  # the map
        "x: agrees. Error of the slope by step size.",  # the curve
        "seed 8315",
    ):
        assert shown in words
    assert "<mark>grad_output.mT @ x</mark>" in text
    assert text.count("<article") == len(every_verdict.findings)


def test_the_worst_findings_are_kept_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_page, "MOST_FINDINGS", 5)
    report = report_of(20, 2)
    report.targets[1].findings[3].severity = "info"
    text = render(report, "html")
    assert text.count("<article") == 5
    words = " ".join("".join(parse(text).text).split())
    assert "The 5 worst of 20 findings are shown. The JSON report has all of them." in words
    assert "5 more findings of this operator are left out of this page." in words


def test_expressions_are_marked_by_characters() -> None:
    excerpt = Excerpt(((8, "\treturn é(g,"), (9, "    h)  # \u202e"), (12, "end")), "returned")
    place = Location("a.py", 8, 9, 9, 7)
    assert marked_lines(excerpt, place, [Location("a.py", 8, 2, 8, 8)]) == [
        MarkedLine(8, [("    ", ""), ("return", "related"), (" ", ""), ("é(g,", "mark")]),
        MarkedLine(9, [("    ", ""), ("h)", "mark"), ("  # \\u202e", "")], "returned"),
        MarkedLine(12, [("end", "")], "", True),
    ]
    assert marked_lines(excerpt, None)[-1] == MarkedLine(12, [("end", "")], "returned", True)
    assert marked_lines(Excerpt(()), place) == []


# -- in a browser ----------------------------------------------------------------------------------

#: Loads a page in a frame of a given width, does things to it, and says what is to be seen.
HARNESS = """<!doctype html><meta charset="utf-8"><body><script>
const frame = document.createElement("iframe");
frame.style = "border: 0; height: 900px; width: WIDTHpx";
frame.src = "report.html";
frame.onload = () => {
  const page = frame.contentDocument, said = {};
  const form = page.getElementById("filter");
  const count = () => [...page.querySelectorAll("article")].filter((a) => !a.hidden).length;
  const change = () => form.dispatchEvent(new Event("input"));
  said.width = page.scrollingElement.scrollWidth;
  said.room = page.scrollingElement.clientWidth;
  said.wide = [...page.querySelectorAll("body *")].filter((element) => {
    const scrolls = element.closest("pre, .scroll, svg, legend");
    return !scrolls && element.getBoundingClientRect().right > said.room + 1;
  }).map((element) => element.outerHTML.slice(0, 80));
  said.ground = frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  said.ink = frame.contentWindow.getComputedStyle(page.body).color;
  said.form = !form.hidden;
  said.all = count();
  form.elements.text.value = "NaN sinc";
  change();
  said.text = count();
  said.targets = [...page.querySelectorAll("details.target")].filter((d) => !d.hidden).length;
  form.elements.text.value = "";
  form.elements.code.value = "GL401";
  change();
  said.code = count();
  form.elements.code.value = "";
  page.querySelector("[name=severity][value=error]").checked = false;
  change();
  said.severity = count();
  said.output = form.elements.shown.value;
  said.requests = frame.contentWindow.performance.getEntriesByType("resource").map((e) => e.name);
  document.body.textContent = "SAID" + JSON.stringify(said) + "DIAS";
};
document.body.append(frame);
</script>"""


def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("needs Chromium: none of chromium, google-chrome and chrome is on the PATH")


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Opens a page in headless Chromium; what :data:`HARNESS` says of it."""

    def opened(text: str, width: int, dark: bool) -> dict[str, Any]:
        (tmp_path / "report.html").write_text(text, encoding="utf-8")
        harness = tmp_path / "harness.html"
        harness.write_text(HARNESS.replace("WIDTH", str(width)), encoding="utf-8")
        done = subprocess.run(
            [
                browser(),
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"),
                f"--user-data-dir={tmp_path / 'profile'}",
                "--allow-file-access-from-files",
                "--window-size=1600,1000",
                "--virtual-time-budget=5000",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                harness.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said = re.search(r"SAID(.*)DIAS", done.stdout, re.DOTALL)
        assert said, done.stderr[-2000:]
        return json.loads(said[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))

    return opened


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser(
    look: Callable[..., dict[str, Any]], every_verdict: Report, width: int, dark: bool
) -> None:
    finding = every_verdict.targets[1].findings[0]
    finding.reproduce += " --inputs " + "x" * 300
    finding.message += " in " + "a_long_name" * 30
    every_verdict.targets[0].target = "examples/" + "deep/" * 60 + "square.py:Square"
    sweeps = [sweep_of("pkg.ops:Crash")]
    text = render(every_verdict, "html", rules=CATALOGUE, sweeps=sweeps)
    said = look(text, width, dark)
    assert said["wide"] == []
    assert said["width"] <= said["room"] <= width
    light = [sum(map(int, re.findall(r"\d+", said[key]))) for key in ("ground", "ink")]
    assert (light[0] < light[1]) is dark
    assert said["form"] is True
    assert said["all"] == len(every_verdict.findings) == 5
    assert said["text"] == 2  # the NaN, and what follows from it
    assert said["targets"] == 1
    assert said["code"] == 1
    assert said["severity"] == 2
    assert said["output"] == "2 of 5 findings"
    assert said["requests"] == []


def test_hostile_text_in_a_browser(
    look: Callable[..., dict[str, Any]], hostile: Callable[[str], Report]
) -> None:
    report = hostile(HOSTILE + "<img src=x onerror=alert(1)>")
    report.targets[1].findings.append(Finding("GL401", "n", "info", "wrong"))
    said = look(render(report, "html"), 390, False)
    assert said["wide"] == []
    assert said["requests"] == []
    assert said["all"] == 2

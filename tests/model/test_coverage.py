"""Counts and words of coverage."""

from __future__ import annotations

from gradlint.model.coverage import (
    FunctionCoverage,
    PhaseCoverage,
    WayCoverage,
    by_phase,
    merged,
    not_reached,
)


def backward(ran: list[int], *ways: WayCoverage, file: str = "a.py") -> FunctionCoverage:
    return FunctionCoverage(file, "backward", "backward", [3, 4, 5, 8], ran, list(ways))


def test_lines_that_follow_each_other_are_one_range() -> None:
    assert not_reached([backward([8])], "a.py") == ["lines 3-5"]
    assert not_reached([backward([4])], "a.py") == ["line 3", "line 5", "line 8"]
    assert not_reached([backward([3, 4, 5, 8])], "a.py") == []


def test_lines_of_another_file_have_its_name() -> None:
    assert not_reached([backward([3, 8])], "b.py") == ["a.py:4"]
    assert by_phase([backward([3, 8])], "b.py") == {
        "backward": PhaseCoverage(2, 4, [], ["a.py:4", "a.py:5"])
    }


def test_a_way_through_a_line_that_never_ran_is_not_said_again() -> None:
    way = WayCoverage(4, "`a` true", ran=False, computes=True)
    assert not_reached([backward([3, 5, 8], way)], "a.py") == ["line 4"]
    assert not_reached([backward([3, 4, 5, 8], way)], "a.py") == ["line 4: `a` true"]


def test_only_what_computes_something_makes_coverage_incomplete() -> None:
    everything = [3, 4, 5, 8]
    computes = WayCoverage(4, "`a` true", ran=False, computes=True)
    skips = WayCoverage(4, "`a` false", ran=False, computes=False)
    assert not by_phase([backward(everything, computes)], "a.py")["backward"].full
    assert by_phase([backward(everything, skips)], "a.py")["backward"].full
    assert not by_phase([backward([3, 4, 5])], "a.py")["backward"].full


def test_two_runs_together() -> None:
    first = backward([3], WayCoverage(4, "`a` true", ran=True), WayCoverage(4, "`a` false"))
    second = backward([4], WayCoverage(4, "`a` true"), WayCoverage(4, "`a` false", ran=True))
    (both,) = merged([first], [second])
    assert both.ran == [3, 4]
    assert [way.ran for way in both.ways] == [True, True]
    other = backward([3], file="b.py")
    assert merged([first], [other]) == [first, other]

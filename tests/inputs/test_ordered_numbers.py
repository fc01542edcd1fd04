"""Numbers of which one is less than another, by what the code does."""

from __future__ import annotations

from torch.autograd import Function

from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.inputs._ordered_numbers import is_number, keeps_order, ordered_numbers
from gradlint.targets.build import from_object


class Softening(Function):
    """temp (N,)"""

    @staticmethod
    def forward(ctx, temp, t_room, t_melt):
        ctx.save_for_backward(temp)
        ctx.range = t_room, t_melt
        return ((temp - t_room) / (t_melt - t_room)).clamp(0, 1)

    @staticmethod
    def backward(ctx, g):
        (temp,) = ctx.saved_tensors
        t_room, t_melt = ctx.range
        inside = (temp > t_room) & (temp < t_melt)
        return g * inside / (t_melt - t_room), None, None


class Ratio(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        return (x - low) / (high + low)


def test_what_a_range_is_mapped_from_is_ordered():
    names = ["temp", "t_room", "t_melt"]
    assert list(ordered_numbers(Softening, names)) == [("t_room", "t_melt")]
    assert list(ordered_numbers(Ratio, ["x", "low", "high"])) == []
    assert list(ordered_numbers(Softening, ["temp", "t_melt"])) == []


def test_inferred_numbers_and_others_keep_the_order():
    op = from_object(Softening)
    _, low, high = infer(op)[0].args
    assert low < high
    known = {item.name: item for item in gather(op)}
    given = {"t_room": 0.7, "t_melt": 1.3}
    assert keeps_order("t_room", 1.2, given, known)
    assert not keeps_order("t_room", 1.4, given, known)
    assert not keeps_order("t_melt", 0.5, given, known)
    assert keeps_order("t_melt", None, given, known)


def test_flags_are_no_numbers():
    assert is_number(1)
    assert is_number(0.5)
    assert not is_number(True)
    assert not is_number("1")

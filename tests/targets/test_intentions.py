"""What is read from the words of an author, and what is not."""

from __future__ import annotations

import pytest

from gradlint.targets.intentions import (
    asks_for_in_place,
    names_in_place,
    names_surrogate,
    tells_of_in_place,
    tells_of_surrogate,
)

SURROGATES = (
    "Rounds, with a straight-through estimator.",
    "Straight-through rounding",
    "Sign, straight through.",
    "Binarize (STE).",
    "A spike with a surrogate gradient.",
    "Heaviside step; fast sigmoid surrogate",
    "Heaviside step with a surrogate function (arctan) in the backward pass.",
    "Clamps. Gradients pass straight through.",
    "Forward clamps to the bounds.\nThe derivative is passed straight through.",
    "Not differentiable anywhere. Straight-through in the backward pass.",
    "uses straight_through_estimator",
    "The sign is passed straight through where |w| <= 1.",
    "Learned steps. The rounding is passed straight through.",
    "Heaviside spike with the derivative of a fast sigmoid (SuperSpike).",
    "Rounding, with the gradient of the identity",
    "hard=True: one-hot forward, the soft sample's gradient",
    "Learned step size quantisation (Esser et al. 2020)",
    "LSQ weights, per channel",
    "PACT activation with a learnt bound",
)
#: Texts that speak of forward, of something else, or deny it.
OTHERS = (
    "Values within the bounds pass straight through, others are clipped.",
    "What is small goes straight through.",
    "Two convolutions and a straight-through path.",
    "The clipped surrogate objective of PPO.",
    "Rounds to levels, not LSQ.",
    "Solves min |Ax - b| (LSQR), a pact between speed and accuracy.",
    "Gradient of the surrogate loss for a hinge.",
    "Surrogate log-likelihood of the model.",
    "Rounds softly, with its true gradient in place of a straight-through one.",
    "This is not a surrogate: the exact derivative is returned.",
    "Unlike the straight-through estimator, this is exact.",
    "Steps of a stepwise function.",
    "best step, first step, steady",
    "The signal passes straight through; its steps are counted.",
    "Footsteps and designs go straight through.",
    "Softplus with the derivative of the sigmoid in closed form.",
    "Heaviside steps, smoothed, with the derivative of the function.",
    "A binary search forward in time, then a soft gradient descent.",
)


@pytest.mark.parametrize("text", SURROGATES)
def test_a_surrogate_that_is_told(text: str) -> None:
    assert tells_of_surrogate(text)


@pytest.mark.parametrize("text", OTHERS)
def test_words_that_tell_of_no_surrogate(text: str) -> None:
    assert not tells_of_surrogate(text)


def test_in_backward_it_is_a_gradient_that_goes_straight_through() -> None:
    assert not tells_of_surrogate("goes straight through")
    assert tells_of_surrogate("goes straight through", of_backward=True)
    assert not tells_of_surrogate("of the surrogate loss", of_backward=True)


@pytest.mark.parametrize(
    "name",
    ["RoundSTE", "ClampSteFn", "ste_round", "StraightThroughEstimator", "SurrogateSpike"],
)
def test_a_name_that_tells_of_a_surrogate(name: str) -> None:
    assert names_surrogate(name)


@pytest.mark.parametrize("name", ["Steps", "STEP", "SurrogateLoss", "surrogate_objective", "Paste"])
def test_a_name_that_tells_of_no_surrogate(name: str) -> None:
    assert not names_surrogate(name)


def test_in_place() -> None:
    told = ("In-place relu.", "works in place", "Inplace ABN", "changes x in place, to save memory")
    others = (
        "not in place",
        "Never works in place.",
        "a sum in place of a mean",
        "replaces",
        "out of place",
    )
    assert all(map(tells_of_in_place, told))
    assert not any(map(tells_of_in_place, others))
    assert all(map(names_in_place, ("Relu_", "_Relu_", "InplaceABN", "InPlaceAdd")))
    assert not any(map(names_in_place, ("Relu", "__", "Replace", "Placed")))
    assert all(map(asks_for_in_place, ("inplace", "in_place")))
    assert not any(map(asks_for_in_place, ("lambda_", "type_")))

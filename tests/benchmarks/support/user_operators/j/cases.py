import math

import torch

F64 = torch.float64


def _gen(seed):
    return torch.Generator().manual_seed(seed)


def _randn(*shape, seed=0, grad=True, scale=1.0, dtype=F64):
    out = torch.randn(*shape, generator=_gen(seed), dtype=dtype) * scale
    return out.requires_grad_(grad)


def _rand(*shape, seed=0, grad=True, low=0.0, high=1.0):
    out = torch.rand(*shape, generator=_gen(seed), dtype=F64) * (high - low) + low
    return out.requires_grad_(grad)


def _soft(*shape, seed=0, grad=True):
    return torch.randn(*shape, generator=_gen(seed), dtype=F64).softmax(-1).requires_grad_(grad)


def _leaf(x):
    return x.detach().clone().requires_grad_()


def _spd(n, seed=0, lift=1.0):
    a = _randn(n, n, seed=seed, grad=False)
    return _leaf(a @ a.T / n + lift * torch.eye(n, dtype=F64))


def _module(cls, seed, *args, **kwargs):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    module = cls(*args, **kwargs).double()
    torch.set_rng_state(state)
    return module


# bioinformatics


def inputs_SmoothGlobalAlign():
    return _randn(2, 4, 3, seed=1), _rand(2, seed=2, low=0.2), 0.7, torch.tensor([[4, 3], [3, 2]])


def inputs_PruningLikelihood():
    leaves = torch.tensor(
        [
            [[1.0, 0, 0], [0, 1, 0], [1, 0, 0]],
            [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
            [[0.0, 1, 0], [0, 1, 0], [1, 0, 0]],
        ],
        dtype=F64,
    )
    trans = _soft(4, 3, 3, seed=3, grad=False)
    trans[0] = torch.eye(3, dtype=F64)
    parent = torch.tensor([3, 3, 4, 4])
    return _leaf(leaves), _leaf(trans), _soft(3, seed=4), parent


def inputs_HmmForwardLogLik():
    obs = torch.tensor([[0, 1, 1, 3], [2, 2, 0, 0]])
    logs = (_soft(3, seed=5), _soft(3, 3, seed=6), _soft(3, 4, seed=7))
    return *(_leaf(p.log()) for p in logs), obs, torch.tensor([4, 2])


def inputs_KmerSpectrum():
    return _soft(2, 8, 3, seed=8), 2, 2, True


def inputs_MotifScan():
    return _randn(2, 7, 4, seed=9), _randn(3, 3, 4, seed=10), True


def inputs_HillDiversity():
    return _rand(3, 5, seed=11, low=0.3, high=4.0), 1.0


def inputs_ZeroInflatedNB():
    counts = torch.tensor([[0, 2, 5], [0, 0, 1]])
    mean = _rand(2, 3, seed=12, low=0.5, high=4.0)
    return counts, mean, _rand(3, seed=13, low=0.5, high=3.0), _randn(2, 3, seed=14), "mean"


def inputs_WeightedUniFrac():
    leaf = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
    edge = torch.tensor([0, 1, 2, 3, 4, 4, 5, 5])
    abundance = _rand(3, 4, seed=15, low=0.1, high=2.0)
    return abundance, _rand(6, seed=16, low=0.2), leaf, edge, True


def inputs_ReversibleTransition():
    exchange = torch.ones(6, dtype=F64, requires_grad=True)
    freq = torch.full((4,), 0.25, dtype=F64, requires_grad=True)
    return exchange, freq, torch.tensor([0.1, 0.8], dtype=F64, requires_grad=True)


def inputs_ApcContactHead():
    return (_rand(2, 2, 4, 4, seed=17, low=0.1),)


def make_ApcContactHead(cls):
    return _module(cls, 1, 2)


# control


def inputs_DiscreteLyapunov():
    return _randn(3, 3, seed=20, scale=0.3), _randn(3, 3, seed=21)


def inputs_RiccatiGain():
    a = _randn(3, 3, seed=22, scale=0.4)
    return a, _randn(3, 2, seed=23), _spd(3, seed=24), _spd(2, seed=25)


def inputs_KalmanUpdate():
    mean, obs = _randn(2, 3, seed=26), _randn(2, 3, seed=27)
    return mean, _spd(3, seed=28), obs, _spd(2, seed=29), _randn(2, 2, seed=30)


def inputs_LinearRollout():
    a, b = _randn(3, 3, seed=31, scale=0.4), _randn(3, 2, seed=32)
    return a, b, _randn(2, 3, seed=33), _randn(4, 2, 2, seed=34), _randn(3, seed=35)


def inputs_BoxQp():
    lin = torch.tensor([-3.0, 0.2, 2.5, 0.3], dtype=F64, requires_grad=True)
    lower = torch.full((4,), -0.8, dtype=F64, requires_grad=True)
    upper = torch.full((4,), 0.7, dtype=F64, requires_grad=True)
    return _spd(4, seed=36), lin, lower, upper


def inputs_ZohDiscretize():
    dt = torch.tensor(0.3, dtype=F64, requires_grad=True)
    return _randn(3, 3, seed=37), _randn(3, 2, seed=38), dt


def inputs_AntiWindupPid():
    return (_randn(2, 5, seed=39),)


def make_AntiWindupPid(cls):
    return _module(cls, 2, 0.8)


def inputs_RelaxedBarrier():
    slack = torch.tensor([[-0.2, 0.1, 0.25], [0.4, 1.3, 0.02]], dtype=F64, requires_grad=True)
    return slack, _rand(3, seed=40, low=0.5), 0.3, "sum"


def inputs_AttitudeStep():
    omega = torch.tensor([[0.0, 0.0, 0.0], [0.4, -1.0, 0.3]], dtype=F64, requires_grad=True)
    return _randn(2, 4, seed=41), omega, 0.5


def inputs_FrequencyResponse():
    a = _leaf(_randn(3, 3, seed=42, grad=False) * 0.3 - torch.eye(3, dtype=F64))
    b, c = _randn(3, 2, seed=43), _randn(2, 3, seed=44)
    return a, b, c, _randn(2, 2, seed=45), _rand(3, seed=46, low=0.2, high=3.0)


# speech


def inputs_DeEmphasis():
    coef = torch.tensor(0.9, dtype=F64, requires_grad=True)
    return _randn(2, 5, seed=50), coef, _randn(2, seed=51)


def inputs_OverlapAdd():
    return _randn(2, 4, 5, seed=52), _rand(5, seed=53, low=0.2), 2


def inputs_LevinsonLpc():
    x = _randn(2, 40, seed=54, grad=False)
    r = torch.stack([(x[:, k:] * x[:, : 40 - k]).mean(1) for k in range(4)], 1)
    return _leaf(r), 0.05


def inputs_LogMel():
    spec = _randn(2, 4, 3, seed=55, scale=0.3, dtype=torch.complex128)
    return spec, _rand(2, 4, seed=56), 2.0, 0.1


def inputs_MaskedCmvn():
    return _randn(2, 5, 3, seed=57), torch.tensor([5, 3])


def inputs_BoundedRatioMask():
    mix = _randn(2, 3, 2, seed=58, dtype=torch.complex128)
    return mix, _randn(3, 2, seed=59, dtype=torch.complex128), 2.0, 0.8


def inputs_ScaleInvariantSdr():
    return _randn(2, 8, seed=60), _randn(2, 8, seed=61)


def inputs_SincBank():
    return _randn(2, 12, seed=62), _rand(3, seed=63, low=0.5)


def make_SincBank(cls):
    return _module(cls, 3, 3, kernel=9)


def inputs_AttentiveStats():
    return (_randn(2, 3, 5, seed=64),)


def make_AttentiveStats(cls):
    return _module(cls, 4, 3, hidden=4)


def inputs_LagCorrelation():
    return _randn(2, 9, seed=65), torch.tensor([0, 1, 3, 3]), True


# tabular


def inputs_ObliviousTree():
    rows, select = _randn(4, 3, seed=70), _randn(2, 3, seed=71)
    return rows, select, _randn(2, seed=72), _randn(4, 2, seed=73), 0.5


def inputs_ScaledSimplex():
    return _randn(4, 3, seed=74), torch.tensor(1.5, dtype=F64, requires_grad=True), 0


def inputs_TargetEncode():
    prior = torch.tensor(0.4, dtype=F64, requires_grad=True)
    return _randn(6, seed=75), torch.tensor([0, 1, 0, 2, 1, 0]), prior, 2.0, True


def inputs_SparseFmInteraction():
    indices = torch.tensor([0, 2, 1, 2, 4, 0])
    offsets = torch.tensor([0, 3, 3])
    return _randn(6, seed=76), indices, offsets, _randn(5, 3, seed=77)


def inputs_PinballHuber():
    taus = torch.tensor([0.1, 0.5, 0.8], dtype=F64)
    pred, target = _randn(4, 3, seed=78), _randn(4, seed=79)
    return pred, target, taus, 0.4, _rand(4, seed=80, low=0.3, high=3.0), "mean"


def inputs_WeightedIsotonic():
    y = torch.tensor([0.3, 1.2, 0.1, 0.9, 2.0, 1.4, 3.0], dtype=F64, requires_grad=True)
    return y, _rand(7, seed=81, low=0.3, high=3.0)


def inputs_GhostNorm():
    return (_randn(7, 3, seed=82),)


def make_GhostNorm(cls):
    return _module(cls, 5, 3, ghost=4)


def inputs_RidgeReadout():
    return _randn(4, 2, seed=83), _randn(4, 2, seed=84), _randn(3, 2, seed=85)


def make_RidgeReadout(cls):
    return _module(cls, 6, 2, ridge=0.1)


def inputs_DecayImpute():
    nan = math.nan
    series = [[nan, 0.3], [1.2, nan], [nan, nan], [nan, -0.7], [0.4, 0.9]]
    series = torch.tensor(series, dtype=F64, requires_grad=True)
    return series, _rand(2, seed=86, low=0.1), _randn(2, seed=87)


def inputs_CoxLoss():
    time = torch.tensor([2.0, 1.0, 2.0, 3.0, 2.0, 4.0], dtype=F64)
    event = torch.tensor([True, True, True, False, False, True])
    return _randn(6, seed=88), time, event


# compression


def inputs_BlockDctScale():
    return _randn(2, 6, 9, seed=90), _rand(3, 3, seed=91, low=0.5, high=2.0)


def inputs_LowRankProject():
    return _randn(4, 5, seed=92), 2


def inputs_LiftingWavelet():
    return _randn(2, 8, seed=93), _randn(2, seed=94), _randn(2, seed=95), 2


def inputs_SoftCodebook():
    return _randn(4, 3, seed=96, grad=False), _randn(5, 3, seed=97), 0.8


def inputs_DeltaRunDecode():
    return _randn(2, seed=98), _randn(4, 2, seed=99), torch.tensor([2, 0, 3, 1])


def inputs_SoftHistogramEntropy():
    centers = torch.linspace(-1, 1, 4, dtype=F64).requires_grad_()
    return _randn(2, 6, seed=100), centers, 0.4, 2.0


def inputs_TrainEntry():
    index = torch.tensor([[0, 1, 2], [0, 2, 2], [1, 1, 0], [0, 1, 2]])
    return index, _randn(1, 2, 2, seed=101), _randn(2, 3, 3, seed=102), _randn(3, 3, 1, seed=103)


def inputs_PackedSymSolve():
    full = _spd(4, seed=104).detach()
    i, j = torch.triu_indices(4, 4)
    return _leaf(full[i, j]), _randn(4, 2, seed=105)


def inputs_GroupShrinkage():
    return (_randn(3, 6, seed=106),)


def make_GroupShrinkage(cls):
    return _module(cls, 7, 2, init=0.6)


def inputs_MuLawCompand():
    x = _randn(2, 2, 3, seed=107, grad=False)
    x[0, 0, 1] = 0.0
    x[1, 1, 0] = 0.0
    return (_leaf(x),)


def make_MuLawCompand(cls):
    return _module(cls, 8, 2, mu=5.0, peak=2.0)


def _case(group, name, kind, fault, shows="first", second=True, module=False):
    out = {
        "group": group,
        "name": name,
        "kind": kind,
        "fault": fault,
        "shows": shows,
        "second_order_right": second,
        "inputs": f"inputs_{name}",
    }
    if module:
        out["make"] = f"make_{name}"
    return out


def _bio(*args, **kwargs):
    return _case("bioinformatics", *args, **kwargs)


def _ctl(*args, **kwargs):
    return _case("control", *args, **kwargs)


def _sp(*args, **kwargs):
    return _case("speech", *args, **kwargs)


def _tab(*args, **kwargs):
    return _case("tabular", *args, **kwargs)


def _com(*args, **kwargs):
    return _case("compression", *args, **kwargs)


CASES = [
    _bio(
        "SmoothGlobalAlign",
        "lost term at the border",
        "the gap cost of the border row and column is left out of the gradient of gap",
        second=None,
    ),
    _bio(
        "PruningLikelihood",
        "NaN from a division",
        "sibling products are formed by dividing by the own message, 0/0 where a message is zero",
        "both",
    ),
    _bio(
        "HmmForwardLogLik",
        "number of gradients",
        "backward returns four gradients for five inputs, which raises",
        second=None,
    ),
    _bio(
        "KmerSpectrum",
        "option ignored (window step)",
        "backward puts the windows at consecutive positions; shows only with step > 1",
    ),
    _bio(
        "MotifScan",
        "missing flip",
        "hits on the reverse strand enter the gradient of pwm without being flipped back; shows "
        "only with both_strands",
    ),
    _bio(
        "HillDiversity",
        "lost normalisation for one option value",
        "for order 1 the derivative of the normalisation by the total is wrong (1 for entropy)",
    ),
    _bio(
        "ZeroInflatedNB",
        "lost factor in one branch",
        "the gradient of dispersion at zero counts lacks the probability that the zero is not "
        "inflated",
    ),
    _bio(
        "WeightedUniFrac",
        "symmetry assumed",
        "doubles the incoming gradient in place of adding its transpose; shows only for an "
        "asymmetric incoming gradient",
        second=None,
    ),
    _bio(
        "ReversibleTransition",
        "NaN at repeated eigenvalues",
        "plain divided differences give NaN or noise where eigenvalues coincide",
        second=None,
    ),
    _bio(
        "ApcContactHead",
        "second derivative lost",
        "row, column and total sums are kept from forward as constants, so the second order lacks "
        "their share (the fault is in the private Function of the module)",
        "second",
        module=True,
    ),
    _ctl(
        "DiscreteLyapunov",
        "transposition forgotten (symmetry assumed)",
        "the gradient of a is taken as 2 S A X, which needs symmetric X and S",
        "both",
    ),
    _ctl(
        "RiccatiGain",
        "lost term of the chain rule",
        "the gradient that reaches p through the gain k is left out",
        second=None,
    ),
    _ctl(
        "KalmanUpdate",
        "gradient of an unused output taken as given",
        "backward fails (None) when the log-likelihood is not used",
    ),
    _ctl(
        "LinearRollout",
        "off by one in a recursion",
        "the gradient of a pairs the adjoint with the state after the step",
        "both",
    ),
    _ctl(
        "BoxQp",
        "lost cross term",
        "the gradients of active bounds ignore how the free coordinates react to them",
        second=None,
    ),
    _ctl(
        "ZohDiscretize",
        "lost term",
        "the gradient of dt counts only a, not b",
    ),
    _ctl(
        "AntiWindupPid",
        "state kept between calls",
        "the fault is in forward: integral and last error are kept from the previous call of the "
        "same batch size",
        "both",
        module=True,
    ),
    _ctl(
        "RelaxedBarrier",
        "threshold off",
        "backward switches branch at zero in place of delta",
    ),
    _ctl(
        "AttitudeStep",
        "NaN at a smooth point",
        "the slope of the half-angle sinc is 0/0 at zero rate",
        "both",
    ),
    _ctl(
        "FrequencyResponse",
        "conj missing for complex",
        "the gradient of omega lacks the conjugate of the incoming gradient",
    ),
    _sp(
        "DeEmphasis",
        "gradient of an output ignored",
        "the gradient of the returned last state is not used (jvp is right)",
    ),
    _sp(
        "OverlapAdd",
        "layout assumed contiguous",
        "frames of the incoming gradient are cut by as_strided with the strides of a contiguous "
        "tensor; shows only for other gradient layouts and normalize=False",
    ),
    _sp(
        "LevinsonLpc",
        "option ignored (ridge)",
        "the gradient of the zero lag lacks the part through ridge * r[0]; shows with ridge > 0",
        "both",
    ),
    _sp(
        "LogMel",
        "eps forgotten",
        "the derivative of the logarithm leaves out the floor; shows where energies are not far "
        "above it",
    ),
    _sp(
        "MaskedCmvn",
        "masked part left",
        "incoming gradients of padded frames enter the means of backward; shows only with lengths "
        "below the padded length",
    ),
    _sp(
        "BoundedRatioMask",
        "conj missing for complex",
        "the gradient of mix is multiplied by the mask, not its conjugate",
        second=None,
    ),
    _sp(
        "ScaleInvariantSdr",
        "None for an input that has a gradient",
        "backward returns None for the reference",
    ),
    _sp(
        "SincBank",
        "gradients swapped",
        "the gradients of the lower and the upper cut-off are exchanged (in the private Function); "
        "shows in stretch and in the parameter band",
        "both",
        module=True,
    ),
    _sp(
        "AttentiveStats",
        "second derivative lost",
        "the mean is detached inside the variance, which is harmless at first order only",
        "second",
        module=True,
    ),
    _sp(
        "LagCorrelation",
        "mutates its input (in place)",
        "the fault is in forward: centring is done in place on x; shows only with center=True",
        second=None,
    ),
    _tab(
        "ObliviousTree",
        "option ignored (temperature)",
        "backward lacks the division by the temperature; shows where it is not one",
    ),
    _tab(
        "ScaledSimplex",
        "wrong axis (dim ignored)",
        "backward averages over the last axis whatever dim is",
        "both",
    ),
    _tab(
        "TargetEncode",
        "lost term for one option value",
        "backward forgets that the own target is taken out; shows only with leave_one_out",
    ),
    _tab(
        "SparseFmInteraction",
        "lost self term",
        "backward keeps the product of an entry with itself",
    ),
    _tab(
        "PinballHuber",
        "reduction scale",
        'for "mean" the gradients of pred and target are divided by the number of rows in place '
        "of the sum of the weights; shows only with weights",
    ),
    _tab(
        "WeightedIsotonic",
        "weights ignored",
        "the gradient of y is averaged over a block without its weights",
    ),
    _tab(
        "GhostNorm",
        "scale of the last chunk",
        "backward divides by the ghost size in a last chunk that is shorter (private Function)",
        "both",
        module=True,
    ),
    _tab(
        "RidgeReadout",
        "second derivative lost",
        "backward solves with the Cholesky factor kept from forward, a constant at second order "
        "(private Function)",
        "second",
        module=True,
    ),
    _tab(
        "DecayImpute",
        "lost part of a gradient",
        "the gradient of mean leaves out entries before the first observation",
        "first",
    ),
    _tab(
        "CoxLoss",
        "wrong at ties",
        "with Efron ties the members of a tie do not get the reduced share; shows only with ties",
    ),
    _com(
        "BlockDctScale",
        "dtype lost (float32 inside)",
        "backward builds the cosine basis in float32, so gradients have single precision",
        "both",
    ),
    _com(
        "LowRankProject",
        "lost term of the chain rule",
        "backward projects on the kept subspaces and ignores the discarded singular values",
        second=None,
    ),
    _com(
        "LiftingWavelet",
        "in place, mutates its input",
        "the fault is in forward: the predict step overwrites the odd samples of the signal",
        second=None,
    ),
    _com(
        "SoftCodebook",
        "needs_input_grad of another input",
        "the gradient of the codebook is returned only if z needs one",
    ),
    _com(
        "DeltaRunDecode",
        "wrong index for empty runs",
        "run numbers are compacted in backward, so that gradients go to the wrong run after a run "
        "of length zero",
    ),
    _com(
        "SoftHistogramEntropy",
        "option ignored (base of the logarithm)",
        "backward lacks the factor 1 / log(base); shows for another base than e",
    ),
    _com(
        "TrainEntry",
        "repeated index",
        "gradients of a core slice are assigned, not accumulated; shows with repeated indices",
        "both",
    ),
    _com(
        "PackedSymSolve",
        "factor of packed storage",
        "entries off the diagonal lack the mirrored half of their gradient",
        "both",
    ),
    _com(
        "GroupShrinkage",
        "saved output used as input",
        "the private Function saves its output and uses its norm as that of the input",
        "both",
        module=True,
    ),
    _com(
        "MuLawCompand",
        "wrong at zero",
        "autograd through sign and abs gives a zero gradient at x = 0, where the curve is steepest",
        module=True,
    ),
]

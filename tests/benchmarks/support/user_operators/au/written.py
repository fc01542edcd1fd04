from types import SimpleNamespace

import torch


def r(*shape, seed=0, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale + shift).requires_grad_(grad)


def u(*shape, lo=0.0, hi=1.0, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_(grad)


def c(*shape, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.complex128).requires_grad_(grad)


def t(values, grad=True):
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def ints(*shape, hi=4, seed=0):
    return torch.randint(0, hi, shape, generator=torch.Generator().manual_seed(seed))


def fill(m, keep=(), seed=5, scale=0.5):
    m = m.double()
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in m.named_parameters():
            noise = torch.randn(p.shape, generator=g, dtype=torch.float64)
            if name in keep:
                p.add_(0.1 * noise.abs())
            else:
                p.copy_(scale * noise)
    return m


CASES = []
CASES.append(dict(
    name="nfw_mass", object="nfw_enclosed_mass", kind="callable",
    inputs=lambda: (u(5, lo=0.2, hi=3.0), u(2, 1, lo=0.1, hi=0.4, seed=1), u(2, 1, lo=0.5, hi=1.5, seed=2)),
    more=[lambda: (u(2, 3, lo=0.2, hi=3.0), t(0.3), t(0.8)),
          lambda: (t(1.7), u(4, lo=0.1, hi=0.4), u(4, lo=0.5, hi=1.5, seed=2))],
    bug="sign of the shape term in the derivative for the scale radius", fits=["value"], order="first"))
CASES.append(dict(
    name="limb_darkening", object="Power2LimbDarkening", kind="function",
    inputs=lambda: (t([0.1, 0.45, 0.8, 1.2, 0.6, 1.05]), t(0.6), t(0.7)),
    more=[lambda: (t([0.0, 0.3, 0.93]), t(0.4), t(1.3))],
    bug="root of a negative number for points off the disc, zero times NaN", fits=["NaN"], order="first"))
CASES.append(dict(
    name="comoving_distance", object="comoving_distance", kind="callable",
    inputs=lambda: (u(4, lo=0.1, hi=1.5), t(70.0), t(0.31)),
    more=[lambda: (u(2, 2, lo=0.0, hi=0.6), t(67.4), t(0.2))],
    bug="the quadrature's grid is taken from the latest call of the same shape", fits=["cache"], order="first"))
CASES.append(dict(
    name="ccm_extinction", object="DustScreen", kind="module",
    make=lambda cls: cls([0.44, 0.55, 0.8, 1.6]).double(),
    inputs=lambda: (u(3, 4, lo=0.5, hi=2.0),),
    more=[lambda: (u(4, lo=0.5, hi=2.0),)],
    bug="R_V not squared in its derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="bubble_pressure", object="BubblePressure", kind="function",
    inputs=lambda: (u(3, 2, lo=0.1, hi=0.9), u(3, lo=0.2, hi=0.9, seed=1), t([[0.7, 1.2, 2.3], [0.9, 1.6, 2.0]])),
    more=[lambda: (u(1, 3, lo=0.0, hi=0.5), t([0.4]), u(3, 3, lo=1.0, hi=1.4, seed=1))],
    bug="no gradient for the Antoine table", fits=["none"], order="first"))
CASES.append(dict(
    name="lmtd", object="lmtd", kind="callable",
    inputs=lambda: (t([20.0, 8.0, 15.0]), t([11.0, 30.0, 14.0])),
    more=[lambda: (t([20.0, 8.0, 3.0]), t([20.0, 30.0, 3.0])),
          lambda: (u(2, 1, lo=5.0, hi=9.0), u(3, lo=1.0, hi=4.0, seed=1))],
    bug="0/0 where the two approaches are equal", fits=["NaN"], order="first"))
CASES.append(dict(
    name="ergun", object="ergun_gradient", kind="callable",
    inputs=lambda: (u(4, lo=0.2, hi=1.5), u(4, lo=0.35, hi=0.6, seed=1), t(0.7), 0.01, 0.3),
    more=[lambda: (t([-0.6, 0.4, -1.1]), t(0.4), u(2, 1, lo=0.5, hi=0.9), 0.02, 0.5)],
    bug="the inertial slope takes v for |v|, wrong for reversed flow", fits=["value"], order="first"))
CASES.append(dict(
    name="thiele", object="effectiveness_factor", kind="callable",
    inputs=lambda: (t([0.0, 0.2, 0.7, 2.5, 8.0]),),
    more=[lambda: (t([[0.1, 0.9], [1.7, 4.0]]), 'slab'),
          lambda: (t(1.2),)],
    bug="p not squared in the slope of the slab", fits=["value"], order="first"))
CASES.append(dict(
    name="wilson", object="WilsonLnGamma", kind="function",
    inputs=lambda: (u(2, 3, lo=0.1, hi=0.6), u(3, 3, lo=0.3, hi=1.4, seed=1)),
    more=[lambda: (u(4, 2, lo=0.1, hi=0.6), u(2, 2, lo=0.3, hi=1.4, seed=1))],
    bug="the interaction matrix is transposed in one term", fits=["value"], order="first"))
CASES.append(dict(
    name="gompertz_makeham", object="GompertzMakeham", kind="module",
    make=lambda cls: cls().double(),
    inputs=lambda: (u(5, lo=0.3, hi=2.5), u(5, lo=0.1, hi=1.5, seed=1), torch.tensor([True, False, True, True, False])),
    more=[lambda: (u(3, lo=0.3, hi=2.5, grad=False), u(3, lo=0.1, hi=1.5, seed=1, grad=False), torch.tensor([False, False, True]))],
    bug="the death term's derivative for gamma takes the exposure instead of the age at exit", fits=["value"], order="first"))
CASES.append(dict(
    name="chain_ladder", object="ChainLadder", kind="function",
    inputs=lambda: (u(4, 4, lo=1.0, hi=3.0),),
    more=[lambda: (u(2, 2, lo=1.0, hi=3.0),),
          lambda: (u(3, 3, lo=1.0, hi=2.0, seed=4),)],
    bug="the denominators' share overwrites the numerators' share", fits=["value"], order="first"))
CASES.append(dict(
    name="life_annuity", object="life_annuity", kind="callable",
    inputs=lambda: (u(2, 5, lo=0.02, hi=0.4), t(0.04)),
    more=[lambda: (t([0.1, 0.3, 1.0, 1.0]), t(0.03)),
          lambda: (u(1, lo=0.02, hi=0.4), t(0.04))],
    bug="the product's derivative by division, 0/0 where q is one", fits=["NaN"], order="first"))
CASES.append(dict(
    name="excess_of_loss", object="ExcessOfLoss", kind="function",
    inputs=lambda: (t([0.5, 2.0, 5.0, 1.4, 3.0, 7.0]), torch.tensor([0, 0, 1, 2, 2, 2]), 3, t(1.0), t(2.5), None),
    more=[lambda: (t([0.5, 2.0, 5.0, 1.4, 3.0, 7.0]), torch.tensor([0, 0, 1, 2, 2, 2]), 4, t(1.0), t(2.5), 3.0)],
    bug="in years capped by the aggregate the limit still gets a gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="manning_trapezoid", object="manning_trapezoid", kind="callable",
    inputs=lambda: (u(4, lo=0.5, hi=2.0), u(4, lo=1.0, hi=3.0, seed=1), u(4, lo=0.0, hi=2.0, seed=2), u(4, lo=0.2, hi=0.5, seed=3), u(4, lo=0.1, hi=0.4, seed=4)),
    more=[lambda: (u(3, 1, lo=0.5, hi=2.0), u(2, lo=1.0, hi=3.0, seed=1), t(0.0), t(0.3), t(0.2))],
    bug="the incoming gradient is scaled in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="scs_runoff", object="scs_runoff", kind="callable",
    inputs=lambda: (t([[0.0, 30.0, 55.0], [80.0, 5.0, 21.0]]), t([70.0, 85.0, 78.0]), 0.2),
    more=[lambda: (t([[40.0, 12.0], [0.0, 33.0]]), t([75.0, 90.0]), 0.05)],
    bug="abstraction ratio fixed at 0.2 in the derivative for the curve number", fits=["value"], order="first"))
CASES.append(dict(
    name="budyko_fu", object="FuBalance", kind="module",
    make=lambda cls: cls().double(),
    inputs=lambda: (u(5, lo=0.4, hi=2.0), u(5, lo=0.4, hi=2.0, seed=1)),
    more=[lambda: (u(2, 2, lo=0.4, hi=2.0), u(2, 2, lo=0.4, hi=2.0, seed=1))],
    bug="inputs are kept on the class, so a later call overwrites them", fits=["cache"], order="first"))
CASES.append(dict(
    name="bicycle_step", object="BicycleStep", kind="function",
    inputs=lambda: (r(3, 4), r(3, 2, seed=1, scale=0.4), 1.2, 1.4, 0.3),
    more=[lambda: (r(4), r(2, seed=1, scale=0.4), 0.5, 0.5, 0.5)],
    bug="the yaw rate's share is missing in the gradient of the speed", fits=["value"], order="first"))
CASES.append(dict(
    name="beam_range_nll", object="beam_range_nll", kind="callable",
    inputs=lambda: (t([[1.0, 3.2, 9.0], [2.0, 0.4, 5.0]]), t([[1.2, 3.0, 7.0], [1.5, 2.0, 5.3]]), t([0.6, 0.2, 0.1, 0.1]), t(0.4)),
    more=[lambda: (u(4, lo=0.5, hi=5.0), u(4, lo=0.5, hi=5.0, seed=1), t([0.6, 0.2, 0.1, 0.1]), t(0.7), 1.0, 5.5)],
    bug="the gradients of the weights for maximal and random readings are swapped", fits=["value"], order="first"))
CASES.append(dict(
    name="min_jerk", object="min_jerk", kind="callable",
    inputs=lambda: (r(2, 3), r(2, 3, seed=1), t([2.0, 3.0]), t([0.2, 0.9, 1.4, 1.8])),
    more=[lambda: (r(2, 1), r(2, 1, seed=1), t([0.7, 1.6]), t([0.3, 0.8, 1.0]))],
    bug="time not clamped in the velocity profile, wrong after the motion's end", fits=["value"], order="first"))
CASES.append(dict(
    name="stribeck", object="StribeckFriction", kind="module",
    make=lambda cls: cls(3, 0.25).double(),
    inputs=lambda: (r(4, 3, scale=0.4),),
    more=[lambda: (r(4, 3, scale=0.4, seed=2, grad=False),),
          lambda: (r(2, 2, 3, scale=0.3, seed=2),)],
    bug="no gradient for the parameters when the speed itself needs none", fits=["none"], order="first"))
CASES.append(dict(
    name="ghk_current", object="ghk_current", kind="callable",
    inputs=lambda: (t([-65.0, 0.0, 30.0, -12.0, 0.3]), t(0.02), t(1.4), t(0.5), 1, 310.0),
    more=[lambda: (t([-40.0, 0.0, 18.0]), t(0.03), t(0.1), t(1.2), 2, 295.0)],
    bug="valence and temperature are fixed in the voltage's chain factor", fits=["value"], order="first"))
CASES.append(dict(
    name="nmda_current", object="NMDACurrent", kind="function",
    inputs=lambda: (t([-70.0, -20.0, 15.0]), u(3, 4), u(4, lo=0.1, hi=0.5, seed=1), t(1.1), -3.0),
    more=[lambda: (t([0.0, -5.0]), u(2, 1), u(1), t(0.0), 2.0)],
    bug="no gradient for the magnesium concentration", fits=["none"], order="first"))
CASES.append(dict(
    name="adex_step", object="adex_step", kind="callable",
    inputs=lambda: (u(5, hi=1.1), r(5, seed=1, scale=0.2), u(5, seed=2), 0.1),
    more=[lambda: (t([0.3, 1.55, 1.2, 1.59]), r(4, seed=1, scale=0.2), t([0.2, 3.0, 0.1, 2.0]), 0.2)],
    bug="the reset mask also cuts the adaptation variable's gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="psychometric_nll", object="psychometric_nll", kind="callable",
    inputs=lambda: (t([-1.0, -0.2, 0.4, 1.1]), torch.tensor([5, 7, 8, 10]), torch.tensor([10, 10, 10, 10]), t(0.1), t(0.8), t(0.04)),
    more=[lambda: (t([-0.5, 0.6]), torch.tensor([0, 4]), torch.tensor([3, 4]), t(0.1), t(0.8), t(0.02), 0.25)],
    bug="the probability is detached in backward", fits=["value"], order="second"))
CASES.append(dict(
    name="ces_output", object="ces_output", kind="callable",
    inputs=lambda: (u(5, lo=0.5, hi=2.0), u(5, lo=0.5, hi=2.0, seed=1), t(0.35), -0.6, 0.9),
    more=[lambda: (u(4, lo=0.5, hi=2.0), u(4, lo=0.5, hi=2.0, seed=1), t(0.35), 0.0, 0.8),
          lambda: (t(0.7), t(1.2), t(0.5), 0.4, 1.0)],
    bug="labour's log is forgotten in the share's gradient of the Cobb-Douglas case", fits=["value"], order="first"))
CASES.append(dict(
    name="nested_logit", object="NestedLogit", kind="function",
    inputs=lambda: (r(3, 5), torch.tensor([0, 1, 0, 1, 2]), t([0.5, 0.8, 1.0])),
    more=[lambda: (r(2, 3), torch.tensor([1, 0, 1]), t([0.9, 0.4]))],
    bug="the incoming gradient is taken to sum to one over the alternatives", fits=["value"], order="first"))
CASES.append(dict(
    name="sar_loglik", object="sar_loglik", kind="callable",
    inputs=lambda: (r(4), r(4, seed=1), t(0.4), u(4, 4, hi=0.4, seed=2)),
    more=[lambda: (r(3), r(3, seed=1), t(-0.3), u(3, 3, hi=0.5, seed=2, grad=False))],
    bug="the filter is not transposed in the gradient of y", fits=["value"], order="first"))
CASES.append(dict(
    name="almon_midas", object="AlmonMidas", kind="module",
    make=lambda cls: cls().double(),
    inputs=lambda: (r(3, 6),),
    more=[lambda: (r(4),),
          lambda: (r(2, 2, 3),)],
    bug="the incoming gradient is scaled in place by the slope", fits=["modified"], order="first"))
CASES.append(dict(
    name="pwm_logodds", object="PWMLogOdds", kind="function",
    inputs=lambda: (u(3, 4, hi=9.0), t([0.3, 0.2, 0.2, 0.3]), t(1.0)),
    more=[lambda: (torch.zeros(2, 2, 4, dtype=torch.float64, requires_grad=True), t([0.25, 0.25, 0.25, 0.25]), t(0.5))],
    bug="the depth's gradient is summed over positions instead of letters", fits=["value"], order="first"))
CASES.append(dict(
    name="f81_loglik", object="f81_loglik", kind="callable",
    inputs=lambda: (t([0.3, 0.2, 0.15, 0.35]), u(2, lo=0.1, hi=0.8), ints(2, 4, 4, hi=6)),
    more=[lambda: (t([0.1, 0.4, 0.25, 0.25]), t([1.5]), ints(1, 4, 4, hi=3, seed=1))],
    bug="the rate normalisation's dependence on the base frequencies is dropped", fits=["value"], order="first"))
CASES.append(dict(
    name="tpm", object="tpm", kind="callable",
    inputs=lambda: (t([[3.0, 0.0, 5.0], [1.0, 7.0, 2.0]]), u(3, lo=0.5, hi=2.0), 100.0, False),
    more=[lambda: (t([[3.0, 0.0, 5.0], [1.0, 7.0, 2.0]]), u(3, lo=0.5, hi=2.0), 10.0, True),
          lambda: (u(4, lo=0.1, hi=3.0), u(4, lo=0.5, hi=2.0, seed=1), 1.0, True)],
    bug="the scale is missing in the derivative of the logarithm", fits=["value"], order="first"))
CASES.append(dict(
    name="mwc_saturation", object="mwc_saturation", kind="callable",
    inputs=lambda: (u(5, hi=3.0), t(40.0), t(0.05), 4),
    more=[lambda: (u(2, 1, hi=3.0), t([5.0, 20.0]), t(0.1), 2),
          lambda: (t([0.0, 1.5]), t(9.0), t(0.3), 3)],
    bug="four sites are assumed in one term", fits=["value"], order="first"))
CASES.append(dict(
    name="truss_forces", object="truss_forces", kind="callable",
    inputs=lambda: (t([[0.0, 0.0], [2.0, 0.1], [1.1, 1.5]]), u(3, lo=0.5, hi=2.0), r(3, 2, scale=0.3), torch.tensor([[0, 1], [1, 2], [2, 0]])),
    more=[lambda: (r(4, 2), u(2, lo=0.5, hi=2.0), r(4, 2, seed=1), torch.tensor([[3, 1], [1, 0]]))],
    bug="the accumulator is float32 whatever the inputs are", fits=["dtype"], order="first"))
CASES.append(dict(
    name="menegotto_pinto", object="MenegottoPinto", kind="function",
    inputs=lambda: (t([-0.013, 0.0, 0.57, 1.31, -2.17]), t(0.9), t(1.37), t(0.03), 4.0),
    more=[lambda: (t([[0.3, -0.7], [1.9, 3.3]]), t(1.2), t(2.1), t(0.01), 18.5)],
    bug="the strain is kept in bfloat16", fits=["dtype"], order="first"))
CASES.append(dict(
    name="newmark_sdof", object="newmark_sdof", kind="callable",
    inputs=lambda: (r(2, 6), u(2, lo=1.0, hi=3.0), u(2, lo=0.05, hi=0.3, seed=1), 0.5),
    more=[lambda: (r(1, 3, seed=3), t([2.0]), t([0.0]), 0.4)],
    bug="the damping's gradient leaves out the denominator", fits=["value"], order="first"))
CASES.append(dict(
    name="ec3_buckling", object="BucklingResistance", kind="function",
    inputs=lambda: (t([0.4, 0.9, 1.3, 2.1]), u(4, lo=1.0, hi=3.0), 'b'),
    more=[lambda: (t([0.0, 0.12, 0.7]), u(3, lo=1.0, hi=3.0), 'd')],
    bug="stocky columns get the slope of the curve they are cut from", fits=["value"], order="first"))
CASES.append(dict(
    name="sellmeier", object="sellmeier_index", kind="callable",
    inputs=lambda: (t([0.5, 0.6, 0.9, 1.2]), u(3, 2, lo=0.3, hi=1.1), u(3, 2, lo=0.005, hi=0.05, seed=1), torch.tensor([2, 0, 2, 2])),
    more=[lambda: (t([0.7]), u(1, 3, lo=0.3, hi=1.1), u(1, 3, lo=0.005, hi=0.05, seed=1), torch.tensor([0]))],
    bug="rows of a glass used more than once are overwritten", fits=["value"], order="first"))
CASES.append(dict(
    name="mode_coupling", object="mode_coupling", kind="callable",
    inputs=lambda: (u(3, lo=0.8, hi=1.6), u(3, lo=0.8, hi=1.6, seed=1), t([0.3, 0.0, -0.5]), t([0.1, 0.0, -0.3])),
    more=[lambda: (t(1.1), u(2, 1, lo=0.8, hi=1.6, seed=1), t([0.3, 0.1, -0.5]), t(0.2), 1.06)],
    bug="divides by the tilt, 0/0 for aligned fibres", fits=["NaN"], order="first"))
CASES.append(dict(
    name="grating_orders", object="GratingOrders", kind="function",
    inputs=lambda: (t([0.1, 0.5, -0.2]), t([0.4, 0.55, 0.7]), t(1.1), torch.tensor([-1, 0, 1, 2])),
    more=[lambda: (t([0.3, 0.2]), t([0.5, 0.8]), t(0.9), torch.tensor([1, -1]))],
    bug="the wavelengths' gradient is summed over the wavelengths instead of the incidence angles", fits=["value"], order="first"))
CASES.append(dict(
    name="zernike_opd", object="ZernikeOPD", kind="function",
    inputs=lambda: (r(2, 6), u(5, lo=0.0, hi=0.95), u(5, hi=6.0, seed=1)),
    more=[lambda: (r(1, 6), t([0.2, 1.3, 0.8, 1.01]), u(4, hi=6.0, seed=1))],
    bug="points outside the pupil get a gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="perlin2d", object="perlin2d", kind="callable",
    inputs=lambda: (r(6, 2, scale=2.0), r(7, 2, seed=1)),
    more=[lambda: (u(2, 2, lo=-3.0, hi=-1.0), r(3, 2, seed=1))],
    bug="derivative of the old cubic fade curve", fits=["value"], order="first"))
CASES.append(dict(
    name="smooth_damp", object="smooth_damp", kind="callable",
    inputs=lambda: (r(3, 2), r(3, 2, seed=1), r(3, 2, seed=2), u(3, 1, lo=0.3, hi=0.9), 0.2),
    more=[lambda: (r(4), r(4, seed=1), r(4, seed=2), t(0.5), 0.1)],
    bug="the decay kept from forward has no graph, so the second derivative for the half-life is wrong", fits=["value"], order="second"))
CASES.append(dict(
    name="rational_bezier", object="rational_bezier", kind="callable",
    inputs=lambda: (r(2, 4, 3), torch.ones(2, 4, dtype=torch.float64, requires_grad=True), t([0.1, 0.5, 0.8])),
    more=[lambda: (r(1, 3, 2), u(1, 3, lo=0.5, hi=2.0), t([0.25, 0.7])),
          lambda: (r(2, 2, 2), u(2, 2, lo=0.5, hi=2.0), t([0.4]))],
    bug="the denominator's change along the curve is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="gerstner_waves", object="GerstnerWaves", kind="module",
    make=lambda cls: cls(3).double(),
    inputs=lambda: (r(4, 2),),
    more=[lambda: (r(3, 2), 1.3),
          lambda: (r(2, 2, 2), 0.4)],
    bug="the dispersion's share of the wave number's gradient is missing, seen when time is not zero", fits=["value"], order="first"))
CASES.append(dict(
    name="avrami", object="avrami", kind="callable",
    inputs=lambda: (t([0.0, 0.3, 0.8, 1.5], grad=False), t(0.9), t(2.4)),
    more=[lambda: (t([0.2, 0.7, 1.9]), t(0.7), t(1.3))],
    bug="0 times log 0 at the start", fits=["NaN"], order="first"))
CASES.append(dict(
    name="johnson_cook", object="JohnsonCook", kind="function",
    inputs=lambda: (u(4, lo=0.1, hi=0.9), t([0.5, 2.0, 30.0, 4.0]), t([1.4, 0.7, 2.2, 3.5]), t([0.8, 1.1, 0.4, 0.1, 1.2]), 1.0, 1.0, 3.0),
    more=[lambda: (u(2, lo=0.1, hi=0.9), t([2.0, 5.0]), t([0.4, 0.9]), t([0.8, 1.1, 0.4, 0.1, 0.8]), 0.5, 0.3, 1.6)],
    bug="one gradient too few is returned", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="caglioti_pattern", object="caglioti_pattern", kind="callable",
    inputs=lambda: (t([39.0, 40.0, 41.5, 61.0, 62.5]), t([40.3, 61.8]), t([3.0, 2.0]), t([0.6, -0.2, 0.9]), t(0.4)),
    more=[lambda: (t([100.0, 104.0, 107.0]), t([103.0]), t([5.0]), t([0.9, 0.3, 0.4]), t(0.0))],
    bug="derivative of the width taken for that of its square", fits=["value"], order="first"))
CASES.append(dict(
    name="debye_cv", object="debye_heat_capacity", kind="callable",
    inputs=lambda: (t([0.6, 1.1, 2.0]), t([1.5, 2.5, 4.0])),
    more=[lambda: (t([0.5, 1.0, 3.0]), t([[2.0], [3.1]]), 2),
          lambda: (t(0.4), t(1.2))],
    bug="the integral saved in forward is an intermediate without a graph", fits=["value"], order="second"))
CASES.append(dict(
    name="bssfp_signal", object="bssfp_signal", kind="callable",
    inputs=lambda: (u(2, 3, lo=0.5, hi=1.5), u(2, 3, lo=1.0, hi=2.0, seed=1), u(2, 3, lo=0.3, hi=0.9, seed=2), t([0.3, 0.7, 1.1]), 0.5, 0.2),
    more=[lambda: (t([1.0, 0.8]), t([1.3, 0.9]), t([0.4, 0.5]), t([0.0, 0.6]), 0.4, 0.0)],
    bug="view of an incoming gradient that need not be contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="dti_signal", object="DTISignal", kind="module",
    make=lambda cls: cls([0.0, 1.0, 1.0, 0.8], [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, -0.8], [0.6, 0.0, 0.8]]).double(),
    inputs=lambda: (u(3, lo=0.5, hi=1.5), u(3, 6, lo=0.1, hi=0.9, seed=1)),
    more=[lambda: (u(2, 2, lo=0.5, hi=1.5), u(2, 2, 6, lo=0.0, hi=0.6, seed=2))],
    bug="a buffer kept from forward is overwritten by the first backward", fits=["cache"], order="first"))
CASES.append(dict(
    name="dixon_signal", object="DixonSignal", kind="function",
    inputs=lambda: (c(3), c(3, seed=1), r(3, seed=2, scale=5.0), u(3, hi=8.0), t([0.0012, 0.0023, 0.0035, 0.06], grad=False)),
    more=[lambda: (c(1), c(1, seed=1), t([0.4]), t([0.0]), t([0.1, 0.21], grad=False))],
    bug="the fat spectrum is not conjugated", fits=["value"], order="first"))
CASES.append(dict(
    name="pcasl_kinetics", object="pcasl_kinetics", kind="callable",
    inputs=lambda: (u(3, lo=0.5, hi=1.0), t([0.7, 1.1, 0.9]), u(3, lo=0.5, hi=1.0, seed=1), t([0.5, 1.5, 2.2])),
    more=[lambda: (u(2, lo=0.5, hi=1.0), t([0.4, 1.2]), u(2, lo=0.5, hi=1.0, seed=1), t([0.3, 1.1, 2.6, 3.4]), 1.0)],
    bug="after the bolus the arrival time's own decay term is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="geostrophic_wind", object="GeostrophicWind", kind="module",
    make=lambda cls: cls([30.0, 35.0, 40.0], 5).double(),
    inputs=lambda: (r(2, 3, 5),),
    more=[lambda: (r(3, 4),)],
    bug="the eastward difference is not transposed", fits=["value"], order="first"))
CASES.append(dict(
    name="mixing_ratio", object="mixing_ratio", kind="callable",
    inputs=lambda: (t([3.0, 15.0, 28.0]), t([900.0, 1000.0, 1010.0]), t([0.4, 0.0, 0.9])),
    more=[lambda: (t([[-20.0], [-3.0], [6.0]]), t([850.0, 980.0]), t(0.7))],
    bug="the constant for water is used over ice", fits=["value"], order="first"))
CASES.append(dict(
    name="semi_lagrangian", object="semi_lagrangian", kind="callable",
    inputs=lambda: (r(3, 5), r(3, 5, seed=1, scale=1.5)),
    more=[lambda: (r(1, 4), r(1, 4, seed=1, scale=3.0))],
    bug="for a field that is not contiguous the sums go into a copy", fits=["layout"], order="first"))
CASES.append(dict(
    name="hypsometric", object="Hypsometric", kind="function",
    inputs=lambda: (u(2, 3, lo=2.0, hi=3.0), u(2, 3, hi=0.2, seed=1), t([[0.2, 0.5, 0.8, 1.0], [0.1, 0.4, 0.7, 1.1]]), t([0.3, 0.1])),
    more=[lambda: (t([[2.5]]), t([[0.0]]), t([[0.6, 0.9]]), t([0.0]))],
    bug="off by one in the levels above a layer", fits=["value"], order="first"))
CASES.append(dict(
    name="adsr", object="adsr", kind="callable",
    inputs=lambda: (t([0.0, 0.1, 0.3, 0.45, 0.8, 1.1, 1.3, 2.0]), t(1.0), t(0.2), t(0.4), t(0.6), t(0.5)),
    more=[lambda: (t([0.05, 0.9, 1.2]), t(0.8), t(0.1), t(0.2), t(0.3), t(1.0))],
    bug="the decay stage starts when the attack ends, but this share is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="roughness", object="roughness", kind="callable",
    inputs=lambda: (t([[220.0, 246.0, 233.0, 440.0], [110.0, 130.0, 165.0, 150.0]]), u(2, 4, lo=0.5, hi=1.5)),
    more=[lambda: (t([[60.0, 75.0]]), u(1, 2, lo=0.5, hi=1.5))],
    bug="the later partials' shares overwrite instead of adding up", fits=["value"], order="first"))
CASES.append(dict(
    name="karplus_strong", object="karplus_strong", kind="callable",
    inputs=lambda: (r(2, 9), u(2, lo=0.7, hi=0.95), u(2, lo=0.3, hi=0.7, seed=1), 3),
    more=[lambda: (r(1, 3), t([0.9]), t([0.4]), 3),
          lambda: (r(2, 4), t([0.9, 0.8]), t([0.0, 1.0]), 1)],
    bug="the second tap's last sample is left out of the reversed loop", fits=["value"], order="first"))
CASES.append(dict(
    name="chroma_fold", object="ChromaFold", kind="function",
    inputs=lambda: (u(2, 5, 3), torch.tensor([0, 4, 11, 4, 7]), 0.01),
    more=[lambda: (u(1, 4, 2), torch.tensor([-1, 9, 2, -1]), 0.1),
          lambda: (u(1, 3, 2), torch.tensor([11, -1, 5]), 1e-3)],
    bug="bins that are left out are given the gradient of the last pitch class", fits=["value"], order="first"))

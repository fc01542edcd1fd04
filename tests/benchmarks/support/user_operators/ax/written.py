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
    name="barrier_box_solve", object="barrier_box_solve", kind="callable",
    inputs=lambda: (r(2, 3), u(3, lo=-2.0, hi=-1.0, seed=1), u(3, lo=0.5, hi=1.5, seed=2), t(0.4)),
    more=[lambda: (t([0.0, 3.0, -2.0]), t(-1.0), t([1.0, 2.0, 0.5]), t([0.1, 0.5, 2.0])),
          lambda: (r(3, 2, seed=4), r(2, scale=0.1, shift=-1.0, seed=5), t(1.0), u(3, 1, lo=0.2, hi=1.0))],
    bug="the sign of one barrier is wrong in the gradient of mu", fits=["value"], order="first"))
CASES.append(dict(
    name="log_penalty_prox", object="LogPenaltyProx", kind="function",
    inputs=lambda: (t([-2.0, -0.9, 0.1, 0.6, 1.7]), t(0.3), 0.8),
    more=[lambda: (t([[0.0, 0.2], [-3.0, 4.0]]), t([0.5, 0.7]), 1.5), lambda: (r(3, 2), u(3, 1, lo=0.1, hi=0.9), 1.0)],
    bug="the gradient of lam lacks the sign of x", fits=["value"], order="first"))
CASES.append(dict(
    name="trust_region_diag", object="trust_region_diag", kind="callable",
    inputs=lambda: (r(3, 4), u(3, 4, lo=0.5, hi=2.0, seed=1), t([0.3, 9.0, 0.8])),
    more=[lambda: (r(2, seed=3), u(2, lo=0.5, hi=2.0, seed=4), t(0.2)), lambda: (r(2, 3, seed=3), u(2, 3, lo=0.5, hi=2.0, seed=4), t([8.0, 20.0]))],
    bug="no gradient for the radius", fits=["none"], order="first"))
CASES.append(dict(
    name="svd_shrink", object="SVDShrink", kind="function",
    inputs=lambda: (r(4, 3), t(0.4)),
    more=[lambda: (r(2, 3, 5, seed=2), t(0.7)), lambda: (r(3, 3, seed=3), t(1.1)), lambda: (t([[2.0, 0.0], [0.0, 2.0]]), t(0.5))],
    bug="the antisymmetric part is divided by differences of singular values, not sums", fits=["value"], order="first"))
CASES.append(dict(
    name="geometric_median", object="geometric_median", kind="callable",
    inputs=lambda: (r(6, 2), u(6, lo=0.8, hi=1.2, seed=1)),
    more=[lambda: (r(7, 3, seed=2), u(7, lo=0.8, hi=1.2, seed=3))],
    bug="the solution is read from the warm-start store, which a later call overwrites", fits=["cache"], order="first"))
CASES.append(dict(
    name="mirror_step", object="mirror_step", kind="callable",
    inputs=lambda: (u(3, 4, lo=0.2, hi=1.0).detach().softmax(-1).requires_grad_(), r(3, 4, seed=1), 0.7),
    more=[lambda: (t([0.2, 0.3, 0.5]), r(3, seed=2), 1.3), lambda: (t([[0.5, 0.5]]), r(1, 2, seed=2), 0.1)],
    bug="the mean of the gradient is taken over the whole batch", fits=["value"], order="first"))
CASES.append(dict(
    name="rq_kernel", object="RQKernel", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(4, 3), r(2, 3, seed=1)), more=[lambda: (r(1, 3), r(3, 3, seed=1)), lambda: (t([[0.0, 1.0, 0.0]]), t([[0.0, 1.0, 0.0], [1.0, 1.0, 0.5]]))],
    bug="alpha inside the base is taken as constant", fits=["value"], order="first"))
CASES.append(dict(
    name="periodic_gram", object="periodic_covariance", kind="callable",
    inputs=lambda: (r(4), None, t(1.7), t(0.9)), more=[lambda: (r(3), r(2, seed=1), t(2.3), t(1.2)), lambda: (r(3, seed=4), None, t(0.8), t(1.5), 0.1)],
    bug="with t2 None only the rows pass on a gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="gibbs_kernel", object="GibbsKernel", kind="function",
    inputs=lambda: (r(3), r(2, seed=1), u(3, lo=0.5, hi=1.5, seed=2), u(2, lo=0.5, hi=1.5, seed=3)),
    more=[lambda: (t([0.0, 1.0]), t([0.0, 1.0, 2.0]), t([1.0, 0.4]), t([1.0, 0.4, 2.0]))],
    bug="distances and sums of squares are saved, so the second derivative takes them as constants", fits=["value"], order="second"))
CASES.append(dict(
    name="wendland_kernel", object="WendlandKernel", kind="function",
    inputs=lambda: (t([[0.0, 0.0], [1.0, 0.5], [3.0, 3.0]]), t([[0.0, 0.0], [0.4, 0.9]]), t(2.0)),
    more=[lambda: (r(2, 3, 2), r(2, 2, 2, seed=1), t(2.5)), lambda: (r(2, 1), r(3, 1, seed=1), t(0.9))],
    bug="divided by the distance, NaN for coincident points", fits=["NaN"], order="first"))
CASES.append(dict(
    name="hsgp_features", object="hsgp_features", kind="callable",
    inputs=lambda: (u(4, lo=-1.0, hi=1.0), t(0.6), t(1.3), 1.5, 5, "matern32"),
    more=[lambda: (u(3, lo=-1.0, hi=1.0), t(0.8), t(0.7), 2.0, 4, "rbf"), lambda: (t([0.0]), t(0.8), t(0.7), 1.2, 3)],
    bug="the lengthscale is not squared in the gradient of the Matern branch", fits=["value"], order="first"))
CASES.append(dict(
    name="titsias_trace", object="TitsiasTrace", kind="function",
    inputs=lambda: (u(4, lo=1.0, hi=2.0), r(3, 4, scale=0.3, seed=1), t([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]]), t(0.4)),
    more=[lambda: (u(2, lo=1.0, hi=2.0), r(1, 2, seed=1), t([[1.3]]), t(2.0))],
    bug="the incoming gradient is divided in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="nn_arcsin_kernel", object="nn_arcsin_kernel", kind="callable",
    inputs=lambda: (r(3, 2), r(2, 2, seed=1), t(0.5), t(0.8)), more=[lambda: (r(1, 3), r(3, 3, seed=1), t(1.5), t(0.3)), lambda: (t([[0.0, 0.0]]), r(2, 2), t(0.4), t(0.4))],
    bug="a factor 2 lacks in the gradient of x2 through its own variance", fits=["value"], order="first"))
CASES.append(dict(
    name="wigner_ville", object="WignerVille", kind="function",
    inputs=lambda: (c(5),), more=[lambda: (c(4, seed=1),), lambda: (c(1, seed=2),)],
    bug="a conjugate lacks in the gradient of the delayed factor", fits=["value"], order="first"))
CASES.append(dict(
    name="lsf_poly", object="LSFToLPC", kind="function",
    inputs=lambda: (t([[0.3, 0.8, 1.4, 2.5], [0.5, 1.0, 2.0, 2.9]]),), more=[lambda: (t([0.7, 1.9]),), lambda: (t([0.2, 0.5, 0.9, 1.5, 2.0, 2.8]),)],
    bug="the antisymmetric polynomial starts from 1 + 1/z in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="volterra_filter", object="VolterraFilter", kind="module",
    make=lambda cls: fill(cls(3)), inputs=lambda: (r(2, 5),), more=[lambda: (r(4, seed=1),), lambda: (r(2, 2, 2, seed=2),)],
    bug="the quadratic kernel is taken to be symmetric in the gradient of the signal", fits=["value"], order="first"))
CASES.append(dict(
    name="lms_filter", object="AdaptiveLMS", kind="function",
    inputs=lambda: (r(5), r(5, seed=1), t(0.5), 2, True, 0.1),
    more=[lambda: (r(4, seed=3), r(4, seed=4), t(0.2), 3, False, 1e-6), lambda: (r(2, seed=3), r(2, seed=4), t(0.2), 3, True, 0.5)],
    bug="a factor 2 lacks in the derivative of the power with normalized=True", fits=["value"], order="first"))
CASES.append(dict(
    name="cyclic_autocorr", object="CyclicAutocorrelation", kind="function",
    inputs=lambda: (r(6), t(0.17), 2), more=[lambda: (r(4, seed=1), t(0.0), 3), lambda: (r(3, seed=2), t(0.25), 0)],
    bug="no entry for max_lag", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="double_layer2d", object="DoubleLayer2D", kind="function",
    inputs=lambda: (t([[0.1, 0.2], [2.0, -1.0]]), t([[-1.0, -1.1], [1.0, -0.9], [1.2, 1.0], [-0.8, 1.1]]), r(4), True),
    more=[lambda: (t([[0.1, 0.2]]), t([[-1.0, -1.1], [1.0, -0.9], [1.2, 1.0]]), r(2), False)],
    bug="the ends' gradient is rolled the wrong way", fits=["value"], order="first"))
CASES.append(dict(
    name="arap_energy", object="arap_energy", kind="callable",
    inputs=lambda: (r(4, 3), r(4, 3, seed=1), r(4, 3, 3, seed=2), u(5, lo=0.5, hi=1.5), torch.tensor([[0, 1], [0, 2], [1, 2], [2, 3], [0, 3]])),
    more=[lambda: (r(2, 3), r(2, 3, seed=1), r(2, 3, 3, seed=2), t([0.7, -0.2]), torch.tensor([[0, 1], [1, 0]]))],
    bug="of several edges of one vertex only the last reaches the rotation", fits=["value"], order="first"))
CASES.append(dict(
    name="angle_defect", object="AngleDefect", kind="function",
    inputs=lambda: (r(5, 3), torch.tensor([[0, 1, 2], [0, 2, 3], [0, 3, 4]])),
    more=[lambda: (r(4, 3, seed=1), torch.tensor([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])),
          lambda: (r(3, 3, seed=2), torch.tensor([[2, 0, 1]]), torch.tensor([True, True, True]))],
    bug="zeros_like keeps the strides of a transposed input, then reshape copies and the sums are lost", fits=["layout"], order="first"))
CASES.append(dict(
    name="torus_sdf", object="TorusSDF", kind="function",
    inputs=lambda: (r(4, 3), t(1.5), t(0.4), "x"), more=[lambda: (r(2, 2, 3, seed=2), t(1.1), t(0.3)), lambda: (r(3, seed=2), t(1.1), t(0.3), "y")],
    bug="backward always turns around z", fits=["value"], order="first"))
CASES.append(dict(
    name="rv_keplerian", object="RadialVelocity", kind="function",
    inputs=lambda: (u(5, hi=9.0), t(4.2), t(0.7), t(0.3), t(1.1), t(12.0), t(-3.0)),
    more=[lambda: (u(3, hi=9.0, seed=1), t(2.5), t(0.1), t(0.8), t(4.0), t(1.0), t(0.0)), lambda: (u(3, hi=9.0, seed=1), t(5.0), t(0.1), t(0.05), t(-1.0), t(2.0), t(0.0))],
    bug="no gradient for the time of periastron", fits=["none"], order="first"))
CASES.append(dict(
    name="paczynski_curve", object="PaczynskiCurve", kind="function",
    inputs=lambda: (r(5), t(0.2), t(0.4), t(1.3), t([1.0, 2.5]), t([0.3, 0.0])),
    more=[lambda: (r(3, seed=1, scale=3.0), t(0.2), t(-0.6), t(0.8), t([1.5]), t([0.3]))],
    bug="the incoming gradient is multiplied in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="miyamoto_nagai", object="MiyamotoNagai", kind="module", make=lambda cls: cls(1.1, 0.5, 2.0).double(),
    inputs=lambda: (r(3, 3),), more=[lambda: (t([0.0, 0.0, 0.0]),), lambda: (r(2, 2, 3, seed=1),)],
    bug="intermediate lengths are saved, so the second derivative takes them as constants", fits=["value"], order="second"))
CASES.append(dict(
    name="gnomonic_project", object="Gnomonic", kind="function",
    inputs=lambda: (u(4, lo=30.0, hi=50.0), u(4, lo=-20.0, hi=10.0, seed=1), t(41.0), t(-6.0), True),
    more=[lambda: (u(3, lo=-0.5, hi=0.5), u(3, lo=0.2, hi=0.9, seed=1), t(0.1), t(0.5))],
    bug="with degrees the unit lacks in the gradient through eta", fits=["value"], order="first"))
CASES.append(dict(
    name="trapezoid_transit", object="TrapezoidTransit", kind="function",
    inputs=lambda: (t([-2.0, -0.9, -0.3, 0.2, 0.8, 1.05]), t(0.05), t(0.3), t(1.8), t(0.5)),
    more=[lambda: (t([-1.0, 0.1, 0.9]), t(0.0), t(0.01), t(1.9), t(0.4))],
    bug="the flat bottom is counted as sloped", fits=["value"], order="first"))
CASES.append(dict(
    name="troe_falloff", object="troe_falloff", kind="callable",
    inputs=lambda: (u(3, lo=0.5, hi=2.0), u(3, lo=1.0, hi=3.0, seed=1), u(3, lo=0.5, hi=2.0, seed=2), 0.35),
    more=[lambda: (u(2, 1, lo=0.5, hi=2.0), t(1.7), u(3, lo=0.5, hi=4.0, seed=2), 0.7, "troe"), lambda: (t(0.8), u(2, lo=1.0, hi=2.0), t(0.4), 0.5, "lindemann")],
    bug="log10 is differentiated like the natural logarithm", fits=["value"], order="first"))
CASES.append(dict(
    name="flory_huggins", object="FloryHuggins", kind="function",
    inputs=lambda: (t([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]), t([10.0, 1.0, 4.0]), t([[0.0, 1.2, 0.4], [1.2, 0.0, -0.3], [0.4, -0.3, 0.0]])),
    more=[lambda: (t([0.35, 0.65]), t([2.0, 50.0]), t([[0.0, 0.8], [0.8, 0.0]]))],
    bug="the derivative of x log x lacks its 1", fits=["value"], order="first"))
CASES.append(dict(
    name="coulomb_matrix", object="CoulombMatrix", kind="function",
    inputs=lambda: (t([8.0, 1.0, 1.0]), r(3, 3)), more=[lambda: (t([6.0]), r(1, 3)), lambda: (t([3.0, 1.0, 2.0, 1.5]), r(4, 3, seed=1))],
    bug="the diagonal of the inverse distances is infinite times zero", fits=["NaN"], order="first"))
CASES.append(dict(
    name="softcore_lj", object="SoftCoreLJ", kind="function",
    inputs=lambda: (u(3, lo=0.8, hi=1.6), u(3, lo=0.9, hi=1.1, seed=1), u(3, lo=0.2, hi=1.0, seed=2), t([0.0, 0.4, 1.0]), 0.5, 1),
    more=[lambda: (u(2, lo=0.9, hi=1.6), t([1.0, 1.2]), t([0.3, 0.0]), t([0.0, 0.7]), 0.3, 2), lambda: (t([1.1]), t([1.0]), t([0.3]), t([0.2]))],
    bug="divided by the coupling, NaN in the window where it is zero", fits=["NaN"], order="first"))
CASES.append(dict(
    name="qeq_charges", object="QEqCharges", kind="function",
    inputs=lambda: (r(3), u(3, lo=2.0, hi=3.0), t([[0.0, 0.6, 0.3], [0.6, 0.0, 0.5], [0.3, 0.5, 0.0]]), t(1.0)),
    more=[lambda: (r(2, seed=2), u(2, lo=1.5, hi=3.0), t([[0.0, 0.4], [0.4, 0.0]]), t(0.0))],
    bug="the outer product for the matrix is transposed", fits=["value"], order="first"))
CASES.append(dict(
    name="boys_function", object="Boys", kind="function",
    inputs=lambda: (t([0.0, 0.3, 2.0, 11.0]), 0), more=[lambda: (t([[0.5, 40.0], [28.0, 1e-4]]), 2), lambda: (t(3.0),)],
    bug="downward recurrence divides by zero at x = 0", fits=["NaN"], order="first"))
CASES.append(dict(
    name="metad_bias", object="metad_bias", kind="callable",
    inputs=lambda: (t([[3.0, 0.2], [-2.8, 0.5]]), t([[-2.9, 0.0], [2.5, 0.4], [0.3, 1.0]]), t([1.0, 0.6, 0.8]), t([0.7, 0.5]), (6.283185307179586, 0.0)),
    more=[lambda: (r(3, 1), r(2, 1, seed=1), t([0.5, -0.2]), t([0.9]), [0.0])],
    bug="the difference in the gradient is not wrapped to the period", fits=["value"], order="first"))
CASES.append(dict(
    name="hh_steady_state", object="HHSteadyState", kind="function",
    inputs=lambda: (t([-75.0, -52.0, -35.0, 10.0]), "h"), more=[lambda: (t([[-40.0, -39.5], [-70.0, 5.0]]), "m"), lambda: (t([-55.0, -20.0]), "n")],
    bug="the slope of h's closing rate lacks the scale of 10 mV", fits=["value"], order="first"))
CASES.append(dict(
    name="balloon_step", object="BalloonStep", kind="module",
    make=lambda cls: cls(0.5).double(), inputs=lambda: (u(3, 4, lo=0.7, hi=1.4), r(3, seed=1)),
    more=[lambda: (t([0.0, 1.0, 1.0, 1.0]), t(0.5)), lambda: (u(2, 2, 4, lo=0.8, hi=1.3, seed=3), r(2, 2, seed=4))],
    bug="alpha's gradient through the deoxyhaemoglobin is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="oja_update", object="OjaUpdate", kind="function",
    inputs=lambda: (r(3, 4), r(2, 4, seed=1), 0.4, "sanger"), more=[lambda: (r(2, 3), r(4, 3, seed=1), 0.3), lambda: (r(1, 2), r(1, 2, seed=1), 1.0, "sanger")],
    bug="the triangular part is not taken in backward for Sanger's rule", fits=["value"], order="first"))
CASES.append(dict(
    name="glm_spike_nll", object="GLMSpikeNLL", kind="function",
    inputs=lambda: (r(6), torch.tensor([0, 1, 0, 2, 0, 1]), r(3, seed=1), r(2, seed=2), t(0.5), 0.4),
    more=[lambda: (r(3), torch.tensor([1, 0, 3]), r(1, seed=1), r(4, seed=2, scale=0.2), t(-0.5), 0.1)],
    bug="the expected counts are cut to the integer dtype of the spikes", fits=["dtype"], order="first"))
CASES.append(dict(
    name="cds_par_spread", object="CDSParSpread", kind="function",
    inputs=lambda: (u(4, lo=0.05, hi=0.4), t([0.97, 0.93, 0.88, 0.8]), t(0.4), (0.5, 1.0, 2.0, 3.5)),
    more=[lambda: (t([0.0, 0.2]), t([0.98, 0.9]), t(0.0), [1.0, 2.0]), lambda: (t([0.1]), t([0.9]), t(0.25), (5.0,))],
    bug="a cumulative sum in backward is not reversed", fits=["value"], order="first"))
CASES.append(dict(
    name="sortino_ratio", object="SortinoRatio", kind="function",
    inputs=lambda: (r(4, 4), t(0.1), 0, 12.0), more=[lambda: (r(5, seed=1), t(0.0)), lambda: (r(2, 5, 3, seed=3), t(1.0), 1, 252.0)],
    bug="the gradient is spread along the last axis whatever dim is", fits=["value"], order="first"))
CASES.append(dict(
    name="merton_jump_call", object="MertonJumpCall", kind="function",
    inputs=lambda: (t([0.8, 1.0, 1.3]), t(0.25), t(0.9), t(-0.1), t(0.3), 1.0, 1.5, 0.03, 12),
    more=[lambda: (t([1.1]), t(0.4), t(0.0), t(0.1), t(0.2), 1.0, 0.5, 0.0), lambda: (t([0.9, 1.2]), t(0.2), t(0.5), t(0.0), t(0.1), 1.1, 2.0, 0.01, 8)],
    bug="the compensator of the drift is not differentiated by the mean jump", fits=["value"], order="first"))
CASES.append(dict(
    name="cbf_filter", object="CBFFilter", kind="function",
    inputs=lambda: (r(4, 2), r(4, 2, seed=1), t([-1.5, 3.0, -0.7, -2.0])), more=[lambda: (r(2, 3), r(2, 3, seed=1), t([5.0, 6.0])), lambda: (r(1, 1), t([[0.7]]), t([-2.0]))],
    bug="the norm of Lg is taken as constant", fits=["value"], order="first"))
CASES.append(dict(
    name="ctrb_gramian", object="ControllabilityGramian", kind="function",
    inputs=lambda: (r(3, 3, scale=0.5), r(3, 2, seed=1), 4), more=[lambda: (r(2, 2), r(2, 1, seed=1), 1), lambda: (r(2, 2), r(2, 3, seed=1), 2)],
    bug="the gradient of A is assigned in the loop, not added", fits=["value"], order="first"))
CASES.append(dict(
    name="stanley_steer", object="stanley_steer", kind="callable",
    inputs=lambda: (t([0.1, -0.8, 0.9, -0.05]), t([0.2, -0.4, 0.3, -0.3]), t([3.0, 2.0, 5.0, 0.0]), 1.2, 0.8, 0.7),
    more=[lambda: (r(2, 2, scale=0.2), r(2, 2, scale=0.2, seed=1), u(2, 2, hi=4.0))],
    bug="the gradient is not cut at the lower limit", fits=["value"], order="first"))
CASES.append(dict(
    name="luenberger_rollout", object="LuenbergerObserver", kind="module", make=lambda cls: fill(cls(3, 1, 2)),
    inputs=lambda: (r(3), r(4, 1, seed=1), r(4, 2, seed=2)), more=[lambda: (r(3, seed=4), r(1, 1, seed=1), r(1, 2, seed=2))],
    bug="states are read from the module, where a later call has overwritten them", fits=["cache"], order="first"))
CASES.append(dict(
    name="describing_saturation", object="SaturationDF", kind="function",
    inputs=lambda: (t([0.2, 0.7, 1.5, 4.0]), t(2.0), t(0.9)), more=[lambda: (t([[1.1, 0.0]]), t(0.5), t(0.4)), lambda: (t(3.0), t(1.5), t(1.0))],
    bug="root of a negative number times a zero mask below the limit", fits=["NaN"], order="first"))
CASES.append(dict(
    name="lkj_cholesky_logp", object="LKJCholeskyLogProb", kind="function",
    inputs=lambda: (t([[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, 0.6, 0.64]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]]]), t(1.6)),
    more=[lambda: (t([[1.0, 0.0], [0.6, 0.8]]), t(0.7))],
    bug="the exponents of the diagonal are shifted by one in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="corr_cholesky", object="CorrCholesky", kind="function",
    inputs=lambda: (r(2, 3),), more=[lambda: (r(6, seed=1),), lambda: (t([0.4]),), lambda: (t([0.0, 0.5, -0.3]),)],
    bug="the sum over later columns includes the column itself", fits=["value"], order="first"))
CASES.append(dict(
    name="gpd_nll", object="gpd_nll", kind="callable",
    inputs=lambda: (u(4, hi=3.0), t(0.0), t(1.2)),
    more=[lambda: (u(3, hi=2.0), t(0.4), t([0.8, 1.0, 1.5]), "none"), lambda: (u(2, 3, hi=1.0), u(3, lo=-0.4, hi=0.3), u(2, 1, lo=0.9, hi=1.5), "sum"), lambda: (t([0.0, 1.0]), t(-0.2), t(1.0))],
    bug="at the exponential limit the slope in the shape is taken as zero", fits=["value"], order="first"))
CASES.append(dict(
    name="exgauss_logp", object="ExGaussLogProb", kind="function",
    inputs=lambda: (r(4), t(0.1), t(0.6), t(0.9)), more=[lambda: (r(2, 3), r(3, seed=1), u(2, 1, lo=0.5, hi=1.0), t(1.4)), lambda: (t(0.3), t([0.0, 1.0]), t(0.4), t(0.5))],
    bug="sigma over tau is left out of the gradient of sigma", fits=["value"], order="first"))
CASES.append(dict(
    name="split_normal", object="SplitNormal", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(4, 3),), more=[lambda: (r(3, seed=1),), lambda: (r(2, 2, 3, seed=2),)],
    bug="the normaliser reaches each scale only from points on its own side", fits=["value"], order="first"))
CASES.append(dict(
    name="beam_hardening", object="PolychromaticProjection", kind="function",
    inputs=lambda: (u(2, 3, 2, hi=2.0), u(4, 2, lo=0.1, hi=1.0, seed=1), t([0.1, 0.4, 0.3, 0.2])),
    more=[lambda: (u(2, hi=2.0), u(3, 2, lo=0.1, hi=1.0, seed=1), t([0.0, 0.4, 0.6])), lambda: (u(3, 1, hi=2.0), u(2, 1, lo=0.1, hi=1.0, seed=1), t([0.5, 0.5]))],
    bug="view of a sinogram that is not contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="kaczmarz_sweep", object="KaczmarzSweep", kind="function",
    inputs=lambda: (r(3), r(4, 3, seed=1), r(4, seed=2), 0.8, 2), more=[lambda: (r(2), r(1, 2, seed=1), r(1, seed=2)), lambda: (r(2), r(3, 2, seed=1), r(3, seed=2), 1.5, 1)],
    bug="the adjoint is updated in place and so the incoming gradient is changed", fits=["modified"], order="first"))
CASES.append(dict(
    name="paganin_phase", object="PaganinPhase", kind="function",
    inputs=lambda: (u(3, 4, lo=0.5, hi=1.0), t(0.7), t(1.3), 0.8), more=[lambda: (u(2, 2, 3, lo=0.5, hi=1.0), t(0.2), t(0.6)), lambda: (u(3, 3, lo=0.5, hi=1.0), t(0.0), t(1.0))],
    bug="the filter of the last call is kept in the store of the module", fits=["cache"], order="first"))
CASES.append(dict(
    name="theta_e_bolton", object="ThetaEBolton", kind="function",
    inputs=lambda: (u(3, lo=270.0, hi=300.0), u(3, lo=600.0, hi=1000.0, seed=1), u(3, lo=0.006, hi=0.02, seed=2)),
    more=[lambda: (u(2, 2, lo=280.0, hi=300.0), u(2, 2, lo=800.0, hi=1000.0, seed=1), u(2, 2, lo=0.01, hi=0.02, seed=2))],
    bug="the condensation level is not differentiated by the pressure", fits=["value"], order="first"))
CASES.append(dict(
    name="energy_score", object="energy_score", kind="callable",
    inputs=lambda: (r(2, 3, 2), r(2, 2, seed=1), True), more=[lambda: (r(4, 3), r(3, seed=1)), lambda: (r(1, 2), r(2, seed=1), False), lambda: (r(2, 2), r(2, seed=3), True)],
    bug="the number of pairs of the fair score is not used in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="fss_loss", object="FSSLoss", kind="module", make=lambda cls: cls(3),
    inputs=lambda: (u(2, 4, 3), u(2, 4, 3, seed=1)), more=[lambda: (u(3, 3), u(3, 3, seed=1)), lambda: (u(1, 2, 3, 3), t([[[[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]]))],
    bug="no gradient for the observed field", fits=["none"], order="first"))
CASES.append(dict(
    name="logp_interp", object="LogPressureInterp", kind="function",
    inputs=lambda: (r(4, 2), t([200.0, 500.0, 700.0, 1000.0]), t([600.0, 250.0, 950.0])),
    more=[lambda: (r(2, 1), t([1.0, 3.0]), t([2.0])), lambda: (r(3, 3, seed=1), t([100.0, 300.0, 900.0]), t([150.0, 200.0, 850.0, 400.0]))],
    bug="the gradient of the field is gathered in the default dtype", fits=["dtype"], order="first"))
CASES.append(dict(
    name="businger_dyer", object="SurfaceLayer", kind="function",
    inputs=lambda: (t([2.0, 5.0, 10.0]), t(0.3), t(0.4), t(-0.05), "heat"), more=[lambda: (t([2.0, 5.0]), t(0.1), t(0.3), t(-0.1)), lambda: (t([1.0, 8.0]), t(0.1), t(-0.3), t(0.02), "heat")],
    bug="the slope of momentum is used for heat", fits=["value"], order="first"))
CASES.append(dict(
    name="lambert_conformal", object="LambertConformal", kind="function",
    inputs=lambda: (u(3, lo=35.0, hi=80.0), u(3, lo=-60.0, hi=60.0, seed=1), 30.0, 60.0, 45.0, 5.0),
    more=[lambda: (u(2, 2, lo=20.0, hi=60.0), u(2, 2, lo=-30.0, hi=10.0, seed=1), 45.0, 45.0, 40.0, 0.0)],
    bug="polar coordinates are saved, so the second derivative takes them as constants", fits=["value"], order="second"))

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
    name="dielectric_reflectance", object="FresnelDielectric", kind="function",
    inputs=lambda: (u(5, lo=0.2, hi=0.95), u(5, lo=1.2, hi=2.0, seed=1)),
    more=[lambda: (u(3, 4, lo=0.2, hi=0.95, seed=2), t(1.5))],
    bug="the derivative of eta^2 cos by eta misses a factor 2", fits=["value"], order="first"))
CASES.append(dict(
    name="charlie_sheen", object="CharlieD", kind="function",
    inputs=lambda: (u(6, lo=0.2, hi=0.9), u(6, lo=0.3, hi=1.0, seed=1)),
    more=[lambda: (u(2, 3, lo=0.2, hi=0.9, seed=3), u(2, 3, lo=0.3, hi=1.0, seed=4))],
    bug="log of sin^2 instead of log of sin in the gradient of alpha", fits=["value"], order="first"))
CASES.append(dict(
    name="schroeder_allpass", object="SchroederAllpass", kind="function",
    inputs=lambda: (r(2, 10), t(0.6), 3),
    more=[lambda: (r(8, seed=4), t(-0.4), 2), lambda: (r(2, 2, 5, seed=3), t(0.7), 1)],
    bug="gradient of g correlates with y undelayed", fits=["value"], order="first"))
CASES.append(dict(
    name="fm_operator", object="FMOperator", kind="function",
    inputs=lambda: (u(2, 6, lo=50, hi=200), u(2, 6, lo=20, hi=90, seed=1), u(2, 6, lo=0.5, hi=2, seed=2), u(2, 6, seed=3), 1000.0),
    more=[lambda: (u(7, lo=5, hi=20, seed=5), u(7, lo=2, hi=9, seed=1), u(7, seed=2), u(7, seed=3), 100.0)],
    bug="cumsum instead of reversed cumsum for the modulator frequency", fits=["value"], order="first"))
CASES.append(dict(
    name="tsodyks_markram", object="TsodyksMarkram", kind="function",
    inputs=lambda: (u(2, 8, lo=0.1, hi=2), t(0.4), t(1.5), t(0.8), 0.1),
    more=[lambda: (u(1, 5, lo=0.1, hi=2, seed=3), t(0.2), t(0.7), t(2.0), 0.05)],
    bug="the initial value u0 = U is left out of the gradient of U", fits=["value"], order="first"))
CASES.append(dict(
    name="mtlr_nll", object="MTLR", kind="function",
    inputs=lambda: (r(4, 5), torch.tensor([0, 3, 5, 2]), torch.tensor([True, False, True, False])),
    more=[lambda: (r(3, 2, seed=2), torch.tensor([1, 0, 2]), torch.tensor([True, False, True]))],
    bug="drops the first instead of the last entry of the cumulated gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="gamma_frailty", object="GammaFrailtyLL", kind="function",
    inputs=lambda: (r(7), u(7, lo=0.2, hi=1.5, seed=1), t(0.7), torch.tensor([1, 0, 1, 1, 0, 1, 0]).bool(), torch.tensor([0, 1, 2, 0, 1, 2, 2]), 3),
    more=[lambda: (r(4, seed=3), u(4, lo=0.2, hi=1.5, seed=4), t(1.4), torch.tensor([1, 1, 0, 1]).bool(), torch.tensor([1, 0, 1, 1]), 3)],
    bug="term D/theta missing in the gradient of theta", fits=["value"], order="first"))
CASES.append(dict(
    name="dkm_palettize", object="DKM", kind="function",
    inputs=lambda: (r(3, 4), t([-1.0, -0.2, 0.5, 1.3]), 0.4),
    more=[lambda: (r(5, seed=3), t([-0.5, 0.6]), 1.0)],
    bug="gradient of centroids misses the path through the assignment", fits=["value"], order="first"))
CASES.append(dict(
    name="adaround", object="AdaRound", kind="function",
    inputs=lambda: (torch.tensor([[0.33, -0.71, 1.95, -0.05], [0.41, 2.7, -3.3, 0.12]], dtype=torch.float64), r(2, 4, seed=1), t([[0.2], [0.3]]), -4, 3),
    more=[lambda: (r(3, 2, grad=False, seed=8), r(3, 2, seed=1, scale=2.0), t([[0.21], [0.33], [0.17]]), -8, 7)],
    bug="gradient of the scale uses the unclamped integer", fits=["value"], order="first"))
CASES.append(dict(
    name="thin_film", object="ThinFilmReflectance", kind="function",
    inputs=lambda: (t([1.38, 2.3, 1.46]), t([0.09, 0.06, 0.12]), u(5, lo=0.4, hi=0.7, grad=False), 1.52),
    more=[lambda: (t([2.0]), t([0.1]), u(3, lo=0.4, hi=0.7, grad=False, seed=1), 3.5)],
    bug="wrong sign of the derivative of 1/n", fits=["value"], order="first"))
CASES.append(dict(
    name="jones_retarder", object="Retarder", kind="function",
    inputs=lambda: (c(3, 2), r(3, seed=1), r(3, seed=2)),
    more=[lambda: (c(2, 2, 2, seed=4), r(2, 2, seed=5), r(2, 2, seed=6)), lambda: (c(2, seed=7), t(0.7), t(0.3))],
    bug="Jones matrix not conjugated for the gradient of the field", fits=["value"], order="first"))
CASES.append(dict(
    name="abcd_beam", object="ABCDBeam", kind="function",
    inputs=lambda: (c(4), r(4, 2, 2, seed=2)),
    more=[lambda: (c(1, seed=4), r(1, 2, 2, seed=5))],
    bug="assumes a ray matrix of determinant one", fits=["value"], order="first"))
CASES.append(dict(
    name="croston", object="Croston", kind="function",
    inputs=lambda: (t([[0, 3.0, 0, 0, 2.0, 1.0, 0], [1.5, 0, 0, 4.0, 0, 0, 2.5]], grad=False), t(0.3), t([2.0, 1.0]), t([2.5, 1.5]), True),
    more=[lambda: (u(2, 5, lo=0.5, hi=3), t(0.6), t([1.0, 2.0]), t([1.2, 3.0]), False), lambda: (u(1, 4, lo=0.5, hi=3, seed=3), t(0.2), t([1.0]), t([1.7]))],
    bug="derivative of the bias correction by alpha is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="yule_walker", object="YuleWalker", kind="function",
    inputs=lambda: (t([[2.0, 0.9, 0.3, -0.2], [1.5, -0.4, 0.5, 0.1]]),),
    more=[lambda: (t([[1.3, 0.6]]),), lambda: (t([[3.0, 0.5, 0.7, 0.2, -0.4]]),)],
    bug="only the lower triangle of the Toeplitz gradient is gathered", fits=["value"], order="first"))
CASES.append(dict(
    name="vn_relu", object="VNLeakyReLU", kind="function",
    inputs=lambda: (r(2, 4, 3), r(2, 4, 3, seed=1), 0.2),
    more=[lambda: (r(1, 3, 3, seed=5), r(1, 3, 3, seed=6), 0.0)],
    bug="factor 2 missing in the derivative of 1/|k|^2", fits=["value"], order="first"))
CASES.append(dict(
    name="midpoint_triangulate", object="MidpointTriangulate", kind="function",
    inputs=lambda: (r(3, 3), r(3, 3, seed=1), r(3, 3, seed=2), r(3, 3, seed=3)),
    more=[lambda: (r(1, 3, seed=4), r(1, 3, seed=5), r(1, 3, seed=6), r(1, 3, seed=7))],
    bug="derivative of b^2 misses its factor 2", fits=["value"], order="first"))
CASES.append(dict(
    name="pca_normals", object="PCANormals", kind="function",
    inputs=lambda: (r(3, 6, 3), t([0.5, 1.0, 9.0], grad=False)),
    more=[lambda: (r(2, 5, 3, seed=3), t([-4.0, 1.0, 2.0], grad=False))],
    bug="gradient of the covariance is not symmetrized", fits=["value"], order="first"))
CASES.append(dict(
    name="superquadric_io", object="SuperquadricIO", kind="function",
    inputs=lambda: (t([[0.5, -0.7, 0.4], [-1.1, 0.3, 0.8], [0.6, 1.2, -0.9]]), t([1.0, 0.8, 1.3]), t([0.7, 1.4])),
    more=[lambda: (t([[0.4, 0.6, -0.5]]), t([0.7, 1.8, 0.9]), t([1.2, 0.5]))],
    bug="log A / e1 left out of the gradient of e2", fits=["value"], order="first"))
CASES.append(dict(
    name="circumradius", object="Circumradius", kind="function",
    inputs=lambda: (r(3, 3, 3),), more=[lambda: (r(2, 3, 2, seed=3),)],
    bug="derivative of the squared area has -2q instead of -4q", fits=["value"], order="first"))
CASES.append(dict(
    name="smooth_ap", object="SmoothAveragePrecision", kind="function",
    inputs=lambda: (r(2, 5), torch.tensor([[1, 0, 1, 0, 0], [0, 1, 1, 0, 1]]).bool(), 0.5),
    more=[lambda: (r(1, 4, seed=3), torch.tensor([[0, 0, 1, 1]]).bool(), 1.0)],
    bug="gradient of the score itself (row sum) left out", fits=["value"], order="first"))
CASES.append(dict(
    name="frank_fidelity", object="FidelityLoss", kind="function",
    inputs=lambda: (r(5), r(5, seed=1), t([0.0, 1.0, 0.5, 0.2, 0.9], grad=False)),
    more=[lambda: (r(2, 3, seed=2), r(2, 3, seed=3), u(2, 3, seed=4, grad=False))],
    bug="the probability is saved as an intermediate: constant at second order", fits=["value"], order="second"))
CASES.append(dict(
    name="err_cascade", object="ExpectedReciprocalRank", kind="function",
    inputs=lambda: (t([[0.3, 0.6, 1.0, 0.2], [0.1, 0.5, 0.4, 0.8]]),),
    more=[lambda: (u(3, 5, lo=0.1, hi=0.9),), lambda: (t([[1.0, 0.0, 0.4]]),)],
    bug="divides by 1 - stop: 0/0 where a stop probability is 1", fits=["nan"], order="first"))
CASES.append(dict(
    name="dpp_loglik", object="DPPLogLik", kind="function",
    inputs=lambda: (r(6, 3), torch.tensor([4, 1])),
    more=[lambda: (r(4, 5, seed=3), torch.tensor([0, 3, 2]))],
    bug="identity left out of the normalizer's matrix", fits=["value"], order="first"))
CASES.append(dict(
    name="mos_logprob", object="MixtureOfSoftmaxes", kind="function",
    inputs=lambda: (r(3, 2), r(3, 2, 5, seed=1), torch.tensor([1, -100, 4]), -100),
    more=[lambda: (r(2, 3, seed=4), r(2, 3, 4, seed=5), torch.tensor([0, 3]), 3)],
    bug="three gradients for four inputs", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="cope_bias", object="CoPEBias", kind="function",
    inputs=lambda: (r(2, 4, 4), r(2, 4, 3, seed=1)),
    more=[lambda: (r(1, 5, 5, seed=2), r(1, 5, 6, seed=3))],
    bug="the incoming gradient is masked in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="forget_bias", object="ForgetGateBias", kind="function",
    inputs=lambda: (r(2, 2, 4),), more=[lambda: (r(1, 3, 6, seed=2),)],
    bug="gradient above the diagonal is not masked", fits=["value"], order="first"))
CASES.append(dict(
    name="notears", object="AcyclicityPenalty", kind="function",
    inputs=lambda: (r(4, 4, scale=0.6),), more=[lambda: (r(2, 3, 3, seed=2, scale=0.6),)],
    bug="matrix exponential not transposed", fits=["value"], order="first"))
CASES.append(dict(
    name="hypergraph_conv", object="HypergraphPropagate", kind="function",
    inputs=lambda: (r(4, 3), u(3, lo=0.5, hi=2, seed=1), torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1]])),
    more=[lambda: (r(3, 2, seed=3), u(2, lo=0.5, hi=2, seed=4), torch.tensor([[1, 1], [1, 0], [0, 1]]))],
    bug="node degrees are taken as constants in the gradient of w", fits=["value"], order="first"))
CASES.append(dict(
    name="sheaf_laplacian", object="SheafLaplacian", kind="function",
    inputs=lambda: (r(4, 3), r(5, 2, 3, seed=1), r(5, 2, 3, seed=2), torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])),
    more=[lambda: (r(3, 2, seed=4), r(2, 4, 2, seed=5), r(2, 4, 2, seed=6), torch.tensor([[0, 1], [1, 2]]))],
    bug="gradient of Fv comes transposed", fits=["shape"], order="first"))
CASES.append(dict(
    name="effective_resistance", object="EffectiveResistance", kind="function",
    inputs=lambda: (u(5, lo=0.5, hi=2), torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]]), torch.tensor([[0, 1, 1], [3, 3, 2]]), 4),
    more=[lambda: (u(2, lo=0.5, hi=2, seed=2), torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [2]]), 3)],
    bug="gradient multiplied by the conductance", fits=["value"], order="first"))
CASES.append(dict(
    name="real_cepstrum", object="RealCepstrum", kind="function",
    inputs=lambda: (r(2, 8),), more=[lambda: (r(7, seed=2),), lambda: (r(2, 2, 6, seed=5),)],
    bug="spectrum not conjugated", fits=["value"], order="first"))
CASES.append(dict(
    name="sos_response", object="SOSResponse", kind="function",
    inputs=lambda: (t([[1.0, 0.4, 0.2, 1.1, -0.5, 0.3], [0.8, -0.3, 0.5, 0.9, 0.2, 0.4]]), u(6, lo=0.1, hi=3, seed=2, grad=False)),
    more=[lambda: (t([[1.0, 0.1, 0.6, 1.0, -0.2, 0.5]]), u(3, lo=0.1, hi=3, seed=3, grad=False))],
    bug="gradient of a0 set to zero", fits=["value"], order="first"))
CASES.append(dict(
    name="graph_norm_scale", object="GraphNorm", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(7, 3), torch.tensor([0, 0, 1, 1, 1, 2, 2])),
    more=[lambda: (r(5, 3, seed=2), torch.tensor([1, 0, 1, 0, 1]))],
    bug="gradient of the mean is not scaled by mean_scale", fits=["value"], order="first"))
CASES.append(dict(
    name="gine_aggregate", object="GINEAggregate", kind="module", make=lambda cls: fill(cls()),
    inputs=lambda: (r(4, 3), r(6, 3, seed=1), torch.tensor([[0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 2, 1]])),
    more=[lambda: (r(3, 2, seed=2), r(2, 2, seed=3), torch.tensor([[0, 0], [1, 1]]))],
    bug="message gradients are added at the target instead of the source", fits=["value"], order="first"))
CASES.append(dict(
    name="nalu_cell", object="NALU", kind="module", make=lambda cls: fill(cls(3, 2)),
    inputs=lambda: (t([[0.7, -1.2, 0.5], [-0.6, 0.9, 1.4]]),),
    more=[lambda: (t([[1.7, 0.3, -0.5], [2.0, -0.9, -1.4], [0.4, 0.8, 1.1]]),)],
    bug="sign of x left out of the derivative of log|x|", fits=["value"], order="first"))
CASES.append(dict(
    name="oblivious_tree", object="ObliviousTree", kind="module", make=lambda cls: fill(cls(3, 3, 2)),
    inputs=lambda: (r(4, 3),), more=[lambda: (r(1, 3, seed=2),)],
    bug="left branches have derivative 0 instead of -1", fits=["value"], order="first"))
CASES.append(dict(
    name="radial_flow", object="RadialFlow", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(4, 3),), more=[lambda: (r(1, 3, seed=2),)],
    bug="h saved as an intermediate: constant at second order", fits=["value"], order="second"))
CASES.append(dict(
    name="hyper_connection", object="HyperConnection", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 2, 3, 4), r(2, 2, 4, seed=1)), more=[lambda: (r(1, 3, 3, 2, seed=2), r(1, 3, 2, seed=3))],
    bug="mixing matrix not transposed", fits=["value"], order="first"))
CASES.append(dict(
    name="ngpt_residual", object="NGPTResidual", kind="module", make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(2, 3, 4), r(2, 3, 4, seed=1)), more=[lambda: (r(3, 4, seed=2), r(3, 4, seed=3)), lambda: (r(4, seed=2), r(4, seed=3))],
    bug="view of an incoming gradient that need not be contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="wilson_cowan", object="WilsonCowan", kind="module", make=lambda cls: fill(cls(0.3), scale=1.0),
    inputs=lambda: (r(2, 5),), more=[lambda: (r(1, 8, seed=2),)],
    bug="weight gradient takes the state after instead of before the step", fits=["value"], order="first"))
CASES.append(dict(
    name="hrf_conv", object="HRFConv", kind="module", make=lambda cls: fill(cls(6, 1.5), keep=("peak", "under", "ratio")),
    inputs=lambda: (r(2, 8),), more=[lambda: (r(1, 4, seed=2),)],
    bug="the lagged stimulus is kept on the class: a second call overwrites it", fits=["state"], order="first"))
CASES.append(dict(
    name="stdp_window", object="STDPWindow", kind="module", make=lambda cls: fill(cls(), keep=("a_plus", "a_minus", "tau_plus", "tau_minus")),
    inputs=lambda: (r(2, 5, 3), r(2, 5, 2, seed=1)), more=[lambda: (r(1, 4, 2, seed=2), r(1, 4, 2, seed=3))],
    bug="None for tau_minus", fits=["None for"], order="first"))
CASES.append(dict(
    name="kuramoto", object="Kuramoto", kind="module", make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(3, 4),), more=[lambda: (r(1, 4, seed=2),)],
    bug="coupling not transposed in the gradient of the phases", fits=["value"], order="first"))
CASES.append(dict(
    name="lorenz96", object="Lorenz96", kind="module", make=lambda cls: fill(cls(6)),
    inputs=lambda: (r(2, 6),), more=[lambda: (r(6, seed=2),), lambda: (r(1, 2, 6, seed=4),)],
    bug="one roll in the wrong direction", fits=["value"], order="first"))
CASES.append(dict(
    name="gray_scott", object="GrayScott", kind="module", make=lambda cls: fill(cls(), keep=("du", "dv", "feed", "kill")),
    inputs=lambda: (u(1, 4, 4), u(1, 4, 4, seed=1)), more=[lambda: (u(3, 5, seed=2), u(3, 5, seed=3))],
    bug="feed's effect on v is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="transh_score", object="TransH", kind="module", make=lambda cls: fill(cls(3, 4)),
    inputs=lambda: (r(4, 4), r(4, 4, seed=1), torch.tensor([0, 2, 0, 2])), more=[lambda: (r(2, 4, seed=2), r(2, 4, seed=3), torch.tensor([1, 1]))],
    bug="index_copy instead of index_add: repeated relations overwrite each other", fits=["value"], order="first"))
CASES.append(dict(
    name="concrete_dropout", object="ConcreteDropout", kind="module", make=lambda cls: fill(cls(0.2, 0.5)),
    inputs=lambda: (r(3, 4), u(3, 4, lo=0.05, hi=0.95, seed=1, grad=False)), more=[lambda: (r(5, seed=2), u(5, lo=0.05, hi=0.95, seed=3, grad=False))],
    bug="derivative of the rescaling 1/(1-p) is missing", fits=["value"], order="first"))


def dorefa_surrogate(m, x0):
    def soft():
        th = m.weight.detach().tanh()
        return th / th.abs().max()

    n = 2 ** m.bits - 1
    s0 = soft()
    q0 = 2 * torch.round((s0 / 2 + 0.5) * n) / n - 1
    return lambda x: torch.nn.functional.linear(x, q0, m.bias) + x0 @ (soft() - s0).T


CASES.append(dict(
    name="dorefa_linear", object="DoReFaLinear", kind="module", make=lambda cls: fill(cls(3, 4)), surrogate=dorefa_surrogate,
    inputs=lambda: (r(2, 3),), more=[lambda: (r(4, 3, seed=2),)],
    bug="max|tanh w| is taken as a constant", fits=["value"], order="first"))
CASES.append(dict(
    name="gb_energy", object="gb_energy", kind="callable",
    inputs=lambda: (r(4, 3, scale=1.5), r(4, seed=1), u(4, lo=0.8, hi=2, seed=2), 1.3),
    more=[lambda: (r(2, 3, seed=3), r(2, seed=4), u(2, lo=0.8, hi=2, seed=5), 0.9)],
    bug="the exponential's derivative by the radii is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="axilrod_teller", object="axilrod_teller", kind="callable",
    inputs=lambda: (t([[0.0, 0.0, 0.1], [1.2, 0.1, 0.0], [0.3, 1.4, 0.2], [0.9, 1.0, 1.3]]), torch.tensor([[0, 1, 2], [1, 2, 3]]), 1.5),
    more=[lambda: (t([[0.0, 0.0, 0.1], [1.2, 0.1, 0.0], [0.3, 1.4, 0.2]]), torch.tensor([[2, 0, 1]]))],
    bug="derivative of 1/(abc) in the angular factor is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="dipole_energy", object="dipole_energy", kind="callable",
    inputs=lambda: (t([[0.0, 0.0, 0.1], [1.2, 0.1, 0.0], [0.3, 1.4, 0.2]]), r(3, 3, seed=1), torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2])),
    more=[lambda: (t([[0.0, 0.0, 0.1], [1.1, 0.8, 0.0]]), r(2, 3, seed=2), torch.tensor([1]), torch.tensor([0]))],
    bug="one of the two terms mu (mu' . r) is missing in the force", fits=["value"], order="first"))
CASES.append(dict(
    name="davies_activity", object="davies_activity", kind="callable",
    inputs=lambda: (u(2, 4, lo=0.02, hi=0.2), t([1.0, -1.0, 2.0, -2.0], grad=False), t(0.509)),
    more=[lambda: (u(3, 2, lo=0.05, hi=0.4, seed=1), t([2.0, -1.0], grad=False), t(0.6))],
    bug="factor 1/2 of the ionic strength is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="peaking_coefs", object="peaking_coefs", kind="callable",
    inputs=lambda: (r(3, scale=4.0), u(3, lo=500, hi=6000, seed=1), u(3, lo=0.5, hi=2, seed=2), 16000.0),
    more=[lambda: (r(2, 2, seed=3, scale=4.0), u(2, 2, lo=2, hi=9, seed=4), u(2, 2, lo=0.5, hi=2, seed=5), 30.0)],
    bug="a0 instead of a0^2 in the derivative of the normalization", fits=["value"], order="first"))
CASES.append(dict(
    name="lpc_residual", object="lpc_residual", kind="callable",
    inputs=lambda: (r(2, 8), r(2, 2, 3, seed=1), 4),
    more=[lambda: (r(1, 6, seed=2), r(1, 3, 2, seed=3), 2)],
    bug="coefficients of the sample's own frame instead of those of the later sample", fits=["value"], order="first"))
CASES.append(dict(
    name="spectral_convergence", object="spectral_convergence", kind="callable",
    inputs=lambda: (u(2, 3, 4), u(2, 3, 4, seed=1)), more=[lambda: (u(1, 2, 5, seed=2), u(1, 2, 5, seed=3))],
    bug="None for the reference", fits=["None for"], order="first"))
CASES.append(dict(
    name="rao_kupper", object="rao_kupper_nll", kind="callable",
    inputs=lambda: (r(4), t(0.4), torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, 0, 1]), torch.tensor([True, False, True, False])),
    more=[lambda: (r(3, seed=2), t(0.9), torch.tensor([0, 2]), torch.tensor([1, 0])), lambda: (r(3, seed=4), t(1.2), torch.tensor([0, 2]), torch.tensor([1, 0]), torch.tensor([True, True]), "none")],
    bug="factor 2 of log(exp(2 eta) - 1) is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="simpo_loss", object="simpo_loss", kind="callable",
    inputs=lambda: (r(2, 5), r(2, 4, seed=1), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool(), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool(), 2.0, 0.5),
    more=[lambda: (r(1, 3, seed=2), r(1, 3, seed=3), torch.tensor([[1, 1, 0]]).bool(), torch.tensor([[1, 1, 1]]).bool())],
    bug="rejected tokens are divided by the length of the chosen answer", fits=["value"], order="first"))
CASES.append(dict(
    name="acf_lags", object="acf", kind="callable",
    inputs=lambda: (r(2, 8, scale=0.6), 3), more=[lambda: (r(6, seed=2), 5), lambda: (r(2, 2, 5, seed=3), 1)],
    bug="the kept covariances are divided in place: a second backward is wrong", fits=["modified"], order="first"))
CASES.append(dict(
    name="linear_cka", object="linear_cka", kind="callable",
    inputs=lambda: (r(6, 3), r(6, 2, seed=1)), more=[lambda: (r(4, 5, seed=2), r(4, 3, seed=3))],
    bug="factor 2 missing in the derivative of |X^T X|", fits=["value"], order="first"))
CASES.append(dict(
    name="coding_rate", object="coding_rate", kind="callable",
    inputs=lambda: (r(5, 3), 0.5), more=[lambda: (r(2, 2, 4, seed=2), 0.8), lambda: (r(4, 2, seed=3),)],
    bug="the matrix is saved as an intermediate: constant at second order", fits=["value"], order="second"))

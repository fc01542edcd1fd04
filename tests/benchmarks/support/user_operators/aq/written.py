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
    name="fermi_level",
    object="FermiOccupation", kind="function",
    inputs=lambda: (r(2, 5), t([2.0, 3.2]), 0.4),
    more=[lambda: (r(1, 7, seed=3), t([1.5]), 0.9)],
    bug="the response of the chemical potential to the levels is left out of the gradient of the energies",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="langevin_magnet",
    object="LangevinMagnetisation", kind="function",
    inputs=lambda: (t([-2.0, -0.7, 0.0, 0.04, 1.3, 4.0]), t(1.4)),
    more=[lambda: (r(3, 4, seed=2, scale=2.0), t(0.8))],
    bug="no series around zero in backward: 1/h^2 - 1/sinh^2 is inf - inf at h = 0",
    fits=["nan"], order="first",
))
CASES.append(dict(
    name="dipole_field",
    object="DipoleField", kind="function",
    inputs=lambda: (r(4, 3), r(4, 3, seed=1, shift=1.0)),
    more=[lambda: (r(2, 2, 3, seed=2), r(2, 2, 3, seed=3, shift=-1.2))],
    bug="the derivative of 1/d^3 in the second term is left out of the gradient of the position",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="waveplate_stokes",
    object="Waveplate", kind="function",
    inputs=lambda: (r(3, 4), t(0.4), t(1.1)),
    more=[lambda: (r(2, 2, 4, seed=2), t(-0.9), t(2.0)), lambda: (r(4, seed=3), t(0.2), t(0.3))],
    bug="cos(2 theta) and sin(2 theta) are differentiated without the inner factor 2",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="beam_abcd",
    object="ABCDPropagate", kind="function",
    inputs=lambda: (c(4), t([[1.0, 0.3], [-0.5, 0.85]])),
    more=[lambda: (c(2, 3, seed=4), t([[0.9, 0.0], [0.2, 1.1]]))],
    bug="the gradients of A, B, C and D are projected without the conjugate",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="fresnel_reflectance",
    object="FresnelReflectance", kind="function",
    inputs=lambda: (u(5, lo=0.4, hi=0.95), u(5, lo=0.5, hi=0.8, seed=1)),
    more=[lambda: (u(2, 3, lo=0.3, hi=0.9, seed=2), u(2, 3, lo=0.6, hi=0.9, seed=3))],
    bug="Snell's law is differentiated with eta in place of eta squared in the gradient of cos_i",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="xy_lattice",
    object="XYEnergy", kind="function",
    inputs=lambda: (r(2, 3, 4), t(0.7)),
    more=[lambda: (r(1, 5, 3, seed=6), t(-1.2))],
    bug="only the bonds to the next site are summed, not those from the site before",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="gross_pitaevskii",
    object="GPEnergy", kind="function",
    inputs=lambda: (c(2, 5), r(5, seed=1), 0.8),
    more=[lambda: (c(4, seed=2), r(4, seed=3), 1.7)],
    bug="the interaction term has the Wirtinger derivative g rho psi, half of what PyTorch wants",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="kumaraswamy",
    object="KumaraswamyLogProb", kind="function",
    inputs=lambda: (u(4, 3, lo=0.1, hi=0.9), u(3, lo=0.6, hi=2.5, seed=1), u(4, 1, lo=0.5, hi=3.0, seed=2)),
    more=[lambda: (u(5, lo=0.2, hi=0.8, seed=4), t(1.4), t(2.2))],
    bug="d x^a / d a lacks its factor log x",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="leverage_scores",
    object="Leverage", kind="function",
    inputs=lambda: (r(6, 3),),
    more=[lambda: (r(5, 2, seed=8),)],
    bug="the inverse Gram matrix is held constant",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="seeded_dropout_add",
    object="DropoutAdd", kind="function",
    inputs=lambda: (r(3, 5), r(3, 5, seed=1), r(5, seed=2), 0.4, 11),
    more=[lambda: (r(2, 2, 3, seed=3), r(2, 2, 3, seed=4), r(3, seed=5), 0.2, 5)],
    bug="the factor 1/(1-p) of inverted dropout is left out of backward",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="partial_corr",
    object="PartialCorrelation", kind="function",
    inputs=lambda: (t([[2.0, -0.5, 0.3], [-0.4, 1.5, 0.2], [0.3, 0.1, 1.1]]),),
    more=[lambda: (t([[1.0, 0.2], [0.2, 0.7]]),)],
    bug="the diagonal takes the row sum twice instead of row and column sum: right for a symmetric gradient alone",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="shrunk_covariance",
    object="ShrunkCov", kind="function",
    inputs=lambda: (r(5, 3), t(0.3)),
    more=[lambda: (r(4, 2, seed=2), t(0.8))],
    bug="the gradient of S is taken to be symmetric",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="l_moments",
    object="LMoments", kind="function",
    inputs=lambda: (r(2, 7),),
    more=[lambda: (r(5, seed=5),)],
    bug="sorted order is undone by gather with the sorting permutation, not its inverse",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="truncnorm_mean",
    object="TruncatedMean", kind="function",
    inputs=lambda: (r(5), u(5, lo=0.5, hi=1.5, seed=1), r(5, seed=2)),
    more=[lambda: (r(2, 2, seed=3), u(2, 2, lo=0.5, hi=2.0, seed=4), r(2, 2, seed=5, shift=1.0))],
    bug="the inverse Mills ratio is kept from forward as a constant, so second derivatives miss its slope",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="structure_tensor",
    object="StructureTensor", kind="function",
    inputs=lambda: (r(2, 4, 5),),
    more=[lambda: (r(3, 3, seed=2),)],
    bug="the mixed product reaches the image through the horizontal derivative alone",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="phase_correlation",
    object="PhaseCorrelation", kind="function",
    inputs=lambda: (r(2, 8), r(2, 8, seed=1)),
    more=[lambda: (r(7, seed=2), r(7, seed=3))],
    bug="the doubling of the interior bins of the one-sided spectrum is left out",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="polygon_centroid",
    object="PolygonCentroid", kind="function",
    inputs=lambda: (t([[0.0, 0.0], [2.0, 0.3], [2.4, 1.5], [0.9, 2.2], [-0.5, 1.0]]),),
    more=[lambda: (t([[[0.0, 0.0], [1.0, 0.0], [0.2, 1.0]], [[1.0, 1.0], [3.0, 1.2], [2.0, 2.0]]]),)],
    bug="the centroid's division by the area is not differentiated",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="perona_malik",
    object="PeronaMalikStep", kind="function",
    inputs=lambda: (r(2, 3, 4), t(1.1), 0.2),
    more=[lambda: (r(1, 4, 2, seed=3), t(2.0), 0.1)],
    bug="the edge-stopping coefficient is held constant",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lpc_step_up",
    object="ReflectionToLPC", kind="function",
    inputs=lambda: (u(2, 4, lo=-0.8, hi=0.8),),
    more=[lambda: (u(3, 1, lo=-0.5, hi=0.5, seed=1),), lambda: (u(1, 5, lo=-0.9, hi=0.9, seed=2),)],
    bug="the recursion runs in place on the incoming gradient",
    fits=["modified"], order="first",
))
CASES.append(dict(
    name="autocorr_lags",
    object="AutocorrLags", kind="function",
    inputs=lambda: (r(2, 7), 3),
    more=[lambda: (r(1, 5, seed=2), 5), lambda: (r(3, 4, seed=2), 1)],
    bug="x[t-k] is taken to be x[t+k]: the sample k after counts twice, the one before not at all",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lattice_fir",
    object="LatticeFIR", kind="function",
    inputs=lambda: (r(2, 6), t([0.5, -0.3, 0.2])),
    more=[lambda: (r(1, 4, seed=2), t([0.7]))],
    bug="the unit delay is used again in backward in place of its adjoint, the advance",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="manipulability",
    object="Manipulability", kind="function",
    inputs=lambda: (r(2, 2, 3),),
    more=[lambda: (r(3, 3, seed=1),), lambda: (r(1, 4, seed=4),)],
    bug="the pseudo-inverse is not transposed",
    fits=["shape"], order="first",
))
CASES.append(dict(
    name="dualquat_mul",
    object="DualQuatMul", kind="function",
    inputs=lambda: (r(3, 8), r(3, 8, seed=1)),
    more=[lambda: (r(8, seed=2), r(8, seed=3))],
    bug="one of the quaternion products in the gradient of b has its factors in the wrong order",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="cov_intersection",
    object="CovarianceIntersection", kind="function",
    inputs=lambda: (t([[2.0, 0.3], [0.3, 1.0]]), t([[1.0, -0.2], [-0.2, 1.6]]), t(0.35)),
    more=[lambda: (t([[1.5]]), t([[0.7]]), t(0.6))],
    bug="the inverses of A and B are kept from forward as constants, so second derivatives miss them",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="log_wealth",
    object="LogWealth", kind="function",
    inputs=lambda: (t([0.5, 0.3, 0.9]), r(6, 3, scale=0.25)),
    more=[lambda: (t([0.4, 0.4]), r(3, 2, scale=0.2, seed=1))],
    bug="growth is kept on the class, so a second call before backward overwrites it",
    fits=["state"], order="first",
))
CASES.append(dict(
    name="risk_contributions",
    object="RiskContribution", kind="function",
    inputs=lambda: (t([0.5, 0.3, 0.2]), t([[1.0, 0.2, 0.1], [0.2, 0.8, -0.1], [0.1, -0.1, 0.5]])),
    more=[lambda: (t([0.7, 0.3]), t([[0.3, 0.05], [0.05, 0.2]]))],
    bug="volatility's dependence on cov w is left out",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="bipower_variation",
    object="BipowerVariation", kind="function",
    inputs=lambda: (r(2, 6),),
    more=[lambda: (r(4, seed=2),)],
    bug="roll wraps around, so first and last return see each other",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="fst_hudson",
    object="HudsonFst", kind="function",
    inputs=lambda: (u(5, lo=0.1, hi=0.9), u(5, lo=0.1, hi=0.9, seed=1), 20, 12),
    more=[lambda: (u(3, lo=0.2, hi=0.8, seed=2), u(3, lo=0.2, hi=0.8, seed=3), 8, 6)],
    bug="three gradients for four inputs",
    fits=["number of gradients"], order="first",
))
CASES.append(dict(
    name="leslie_projection",
    object="LeslieProjection", kind="function",
    inputs=lambda: (t([10.0, 6.0, 2.0]), t([0.1, 1.4, 0.8]), t([0.6, 0.4]), 3),
    more=[lambda: (t([5.0, 1.0]), t([0.5, 2.0]), t([0.7]), 1)],
    bug="the states are visited in the order of time, not backwards",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="dssp_hbond",
    object="HBondEnergy", kind="function",
    inputs=lambda: (r(2, 3, shift=2.0), r(2, 3, seed=1, shift=4.0), r(2, 3, seed=2, shift=-2.0), r(2, 3, seed=3, shift=-1.0)),
    more=[lambda: (r(1, 3, seed=4, shift=3.0), r(1, 3, seed=5, shift=5.0), r(1, 3, seed=6, shift=-1.5), r(1, 3, seed=7))],
    bug="the force on N has the wrong sign",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="packed_leaky",
    object="PackedBiasLeaky", kind="function",
    inputs=lambda: (r(3, 5), r(5, seed=1), 0.1),
    more=[lambda: (r(2, 2, 4, seed=2), r(4, seed=3), 0.3)],
    bug="the memory of the incoming gradient is read flat, in whatever order it lies",
    fits=["layout"], order="first",
))
CASES.append(dict(
    name="etalon_bank",
    object="EtalonBank", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (u(5, lo=1.0, hi=3.0),),
    more=[lambda: (u(2, lo=0.5, hi=2.0, seed=2),)],
    bug="the coefficient of finesse is differentiated as if its denominator were constant",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="unsharp1d",
    object="Unsharp1d", kind="module", make=lambda cls: fill(cls(2), keep=("amount",)),
    inputs=lambda: (r(2, 2, 5),),
    more=[lambda: (r(1, 2, 2, seed=3),)],
    bug="the adjoint of reflection padding returns the border to the edge sample, as replication would",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="vignetting",
    object="Vignetting", kind="module", make=lambda cls: fill(cls()),
    inputs=lambda: (r(2, 3, 4),),
    more=[lambda: (r(1, 2, 5, seed=1),)],
    bug="the powers of r^2 lose their exponents in the gradient of the centre",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="gabor_bank",
    object="GaborBank", kind="module", make=lambda cls: fill(cls(2), keep=("theta", "sigma", "lam", "psi"), scale=1.0),
    inputs=lambda: (r(1, 1, 4, 4),),
    more=[lambda: (r(2, 1, 3, 5, seed=1),)],
    bug="the rotated y turns the wrong way with theta",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="joseph_cov",
    object="LearnedGainUpdate", kind="module", make=lambda cls: fill(cls(3, 2)),
    inputs=lambda: (r(3, 3),),
    more=[lambda: (r(2, 3, 3, seed=1),)],
    bug="the noise term K R K' is left out of the gradient of the gain",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="svi_slice",
    object="SVISlice", kind="module", make=lambda cls: fill(cls(), keep=("a", "b", "rho", "m", "sigma")),
    inputs=lambda: (r(6),),
    more=[lambda: (r(2, 3, seed=1, scale=0.5),)],
    bug="the inner derivative of sigma squared is lost",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="michaelis_inhibited",
    object="Enzyme", kind="module", make=lambda cls: fill(cls(), scale=0.8),
    inputs=lambda: (u(5, lo=0.3, hi=2.0), u(5, lo=0.3, hi=2.0, seed=1)),
    more=[lambda: (u(2, 2, lo=0.2, hi=3.0, seed=2), u(2, 2, seed=3))],
    bug="the gradient of ki is returned for log_ki",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="highway_gate",
    object="Highway", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(4, 3, scale=2.0),),
    more=[lambda: (r(2, 2, 3, seed=1),)],
    bug="activations are saved in bfloat16 whatever the dtype of the layer",
    fits=["value", "dtype"], order="first",
))
CASES.append(dict(
    name="nac_cell",
    object="NAC", kind="module", make=lambda cls: fill(cls(4, 3)),
    inputs=lambda: (r(5, 4),),
    more=[lambda: (r(2, 2, 4, seed=3),)],
    bug="the gradient of w_hat is handed back transposed",
    fits=["shape"], order="first",
))
CASES.append(dict(
    name="butterfly_linear",
    object="ButterflyLinear", kind="module", make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(3, 4),),
    more=[lambda: (r(1, 4, seed=2),)],
    bug="activations live in a workspace shared by all calls of the same shape",
    fits=["state"], order="first",
))
CASES.append(dict(
    name="soft_tree",
    object="SoftTree", kind="module", make=lambda cls: fill(cls(3, 3, 2)),
    inputs=lambda: (r(4, 3),),
    more=[lambda: (r(1, 3, seed=2),)],
    bug="the gradient climbs to the parent unweighted by the decision probabilities",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="count_sketch_pool",
    object="MCBPool", kind="module", make=lambda cls: fill(cls(4, 3, 5)),
    inputs=lambda: (r(2, 4), r(2, 3, seed=1)),
    more=[lambda: (r(1, 4, seed=2), r(1, 3, seed=3))],
    bug="convolution in place of correlation in the gradient of y",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="radial_flow",
    object="RadialFlow", kind="module", make=lambda cls: fill(cls(3), scale=1.5),
    inputs=lambda: (r(4, 3),),
    more=[lambda: (r(1, 3, seed=2),)],
    bug="alpha is differentiated through h only, not where it stands in the log-determinant itself",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="grud_decay",
    object="GRUDInput", kind="module", make=lambda cls: fill(cls(4), scale=0.8),
    inputs=lambda: (r(3, 4), r(3, 4, seed=1), ints(3, 4, hi=3, seed=2) == 0, u(3, 4, hi=3.0, seed=3, grad=False)),
    more=[lambda: (r(2, 4, seed=5), r(2, 4, seed=6), ints(2, 4, hi=2, seed=7) == 0, u(2, 4, seed=8))],
    bug="the clamp of the exponent at zero is forgotten",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="hooke_stress",
    object="IsotropicElastic", kind="module", make=lambda cls: fill(cls()),
    inputs=lambda: (r(2, 3, 3),),
    more=[lambda: (r(2, 2, seed=1),)],
    bug="the gradient of the stress is not symmetrised on its way to the displacement gradient",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="hopfield_retrieval",
    object="HopfieldMemory", kind="module", make=lambda cls: fill(cls(4, 3), keep=("beta",), scale=1.0),
    inputs=lambda: (r(2, 3),),
    more=[lambda: (r(5, 3, seed=1),)],
    bug="the softmax is saved as an intermediate, so double backward takes it for a constant",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="dijet_mass",
    object="dijet_mass", kind="callable",
    inputs=lambda: (u(4, lo=1.0, hi=3.0), u(4, lo=0.5, hi=2.0, seed=1), r(4, seed=2, shift=1.5, scale=0.4), r(4, seed=3, shift=1.0)),
    more=[lambda: (u(2, lo=1.0, hi=2.0, seed=4), u(2, lo=1.0, hi=2.0, seed=5), r(2, seed=6, shift=-2.0, scale=0.3), r(2, seed=7))],
    bug="the gradient of pt2 divides by pt1",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lorentz_boost",
    object="lorentz_boost", kind="callable",
    inputs=lambda: (r(3, 4), t([0.6, -0.3, 0.5])),
    more=[lambda: (r(4, seed=1), t([0.0, 0.2, 0.0])), lambda: (r(2, 2, 4, seed=2), t([-0.6, 0.1, 0.1]))],
    bug="gamma^2/(gamma+1) is put where its derivative belongs",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="real_binomial",
    object="binomial_logpmf", kind="callable",
    inputs=lambda: (u(5, lo=0.5, hi=3.0), u(5, lo=4.0, hi=8.0, seed=1), u(5, lo=0.2, hi=0.8, seed=2)),
    more=[lambda: (u(2, 2, lo=1.0, hi=5.0, seed=3), u(2, 2, lo=6.0, hi=9.0, seed=4), u(2, 2, lo=0.3, hi=0.7, seed=5))],
    bug="log(1-p) is left out of the gradient of n",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="adjoint_twist",
    object="adjoint_twist", kind="callable",
    inputs=lambda: (r(3, 3), r(3, seed=1), r(2, 6, seed=2)),
    more=[lambda: (r(3, 3, seed=3), None, r(3, 6, seed=4))],
    bug="cross product in the wrong order on the way to the angular part",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="parallel_axis",
    object="shift_inertia", kind="callable",
    inputs=lambda: (r(2, 3, 3), u(2, lo=0.5, hi=2.0, seed=1), r(2, 3, seed=2)),
    more=[lambda: (r(1, 3, 3, seed=3), u(1, lo=0.5, hi=2.0, seed=4), r(1, 3, seed=5))],
    bug="no gradient for the masses",
    fits=["None for"], order="first",
))
CASES.append(dict(
    name="gaussian_upsampling",
    object="gaussian_upsample", kind="callable",
    inputs=lambda: (r(2, 3, 2), u(2, 3, lo=0.8, hi=2.5, seed=1), 5, torch.tensor([3, 2])),
    more=[lambda: (r(1, 4, 3, seed=2), u(1, 4, lo=0.5, hi=2.0, seed=3), 6)],
    bug="the cumulative sum is not reversed in backward",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="kraus_channel",
    object="kraus_channel", kind="callable",
    inputs=lambda: (c(2, 2), [c(2, 2, seed=1), c(2, 2, seed=2)]),
    more=[lambda: (c(3, 3, seed=3), [c(3, 3, seed=4)])],
    bug="the gradient of rho is sent through the channel itself and not through its adjoint",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="edge_popup",
    object="subnet_linear", kind="callable",
    inputs=lambda: (r(3, 4), r(2, 4, seed=1), r(2, 4, seed=2), 0.5),
    more=[lambda: (r(2, 3, seed=3), r(3, 3, seed=4), r(3, 3, seed=5), 0.4)],
    surrogate=lambda x, w, s, keep: (lambda x_, w_, s_, k_, m=torch.zeros(s.numel(), dtype=s.dtype).index_fill(
        0, s.flatten().topk(max(1, int(keep * s.numel()))).indices, 1.0).view_as(s), s0=s.clone(): x_ @ (w_ * (m + s_ - s0)).t()),
    bug="the score gradient lacks the weight that the mask multiplies",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="segment_unit",
    object="segment_unit_norm", kind="callable",
    inputs=lambda: (r(5, 2), torch.tensor([0, 2, 0, 1, 2])),
    more=[lambda: (r(4, 3, seed=1), torch.tensor([1, 1, 3, 1]), 5)],
    bug="the inner product of gradient and rows is taken per row and not per segment",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="stationary_dist",
    object="stationary_distribution", kind="callable",
    inputs=lambda: (r(4, 4),),
    more=[lambda: (r(2, 2, seed=1),)],
    bug="the adjoint system is solved with the matrix of the forward system",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="frac_laplacian",
    object="fractional_laplacian", kind="callable",
    inputs=lambda: (r(2, 6), t(0.6)),
    more=[lambda: (r(7, seed=1), t(1.3), 0.5)],
    bug="log of the zero wavenumber: 0 times -inf in the gradient of s",
    fits=["nan"], order="first",
))
CASES.append(dict(
    name="kimura_distance",
    object="k2p", kind="callable",
    inputs=lambda: (u(4, lo=0.02, hi=0.2), u(4, lo=0.02, hi=0.2, seed=1)),
    more=[lambda: (u(3, 3, lo=0.01, hi=0.15, seed=2), u(3, 3, lo=0.01, hi=0.2, seed=3))],
    bug="the inner factor 2 of log(1 - 2Q) is lost",
    fits=["value"], order="first",
))

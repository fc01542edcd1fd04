import torch


def r(*shape, seed=0, grad=True, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale).requires_grad_(grad)


def u(*shape, lo=0.0, hi=1.0, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (lo + (hi - lo) * torch.rand(*shape, generator=g, dtype=torch.float64)).requires_grad_(grad)


def c(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.complex128).requires_grad_()


def ix(n, *shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, n, shape, generator=g)


def flags(*shape, seed=0, share=0.5):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=g) < share


def t(x, grad=True):
    return torch.tensor(x, dtype=torch.float64, requires_grad=grad)


def fill(m, lo=0.5, hi=1.5, seed=0):
    m = m.double()
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(lo + (hi - lo) * torch.rand(p.shape, generator=g, dtype=torch.float64))
    return m


CASES = []
CASES.append(dict(
    name="spgr_signal",
    object="SpoiledGradientEcho", kind="function",
    inputs=lambda: (u(2, 3, lo=0.5, hi=2), u(2, 3, lo=0.4, hi=1.6, seed=1), u(2, 3, lo=0.02, hi=0.08, seed=2), t([0.004, 0.012, 0.03], False), 0.3, 30.0),
    more=[lambda: (u(4, lo=0.5, hi=2, seed=3), u(4, lo=0.4, hi=1.6, seed=4), u(4, lo=0.02, hi=0.08, seed=5), t([0.01], False), 0.6, 70.0)],
    bug="the quotient's denominator is not squared in the derivative by T1",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="surface_reflectance",
    object="SurfaceReflectance", kind="function",
    inputs=lambda: (u(2, 3, 2, 3, lo=1, hi=2), u(3, lo=0.1, hi=0.3, seed=1), u(3, lo=2, hi=3, seed=2), u(3, lo=0.1, hi=0.3, seed=3), flags(2, 1, 2, 3, seed=4, share=0.6)),
    more=[lambda: (u(1, 2, 2, 2, lo=1, hi=2, seed=5), u(2, lo=0.1, hi=0.3, seed=6), u(2, lo=2, hi=3, seed=7), u(2, lo=0.1, hi=0.3, seed=8), torch.ones(1, 1, 2, 2, dtype=torch.bool))],
    bug="pixels without data enter the gradient of the spherical albedo",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="power_to_db",
    object="PowerToDB", kind="function",
    inputs=lambda: ((u(2, 4, 3, lo=-4, hi=1).detach().exp() ).requires_grad_(), 1e-10, 10.0),
    more=[lambda: (u(2, 5, lo=0.1, hi=1, seed=1), 1e-10, None)],
    bug="bins lifted to the floor pass nothing to the peak that sets it",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="switched_lj",
    object="SwitchedLennardJones", kind="function",
    inputs=lambda: (t([[0.0, 0, 0], [1.2, 0.1, 0], [0.2, 1.6, 0.3], [1.4, 1.5, -0.4]]), torch.tensor([[0, 0, 1, 1, 2, 0], [1, 2, 2, 3, 3, 3]]), u(6, lo=0.5, hi=1.5), 1.0, 1.3, 2.2),
    more=[lambda: (t([[0.0, 0, 0], [1.1, 0.1, 0], [3.0, 1.6, 0.3]]), torch.tensor([[0, 1, 0], [1, 2, 2]]), u(3, lo=0.5, hi=1.5, seed=2), 0.9, 1.5, 2.5)],
    bug="the slope of the switching function is left out of the force",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="quat_log",
    object="QuatLog", kind="function",
    inputs=lambda: (t([[0.9, 0.1, -0.2, 0.3], [-0.7, 0.4, 0.2, -0.5], [0.2, -0.8, 0.3, 0.4], [-0.99, 0.05, 0.02, 0.03]]),),
    more=[lambda: (t([[1.0, 0.0, 0.0, 0.0], [0.8, 1e-4, 2e-4, -1e-4], [0.6, -0.5, 0.5, 0.1]]),)],
    bug="flips the vector part of the caller's quaternions in place",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="friction_contact",
    object="FrictionContact", kind="function",
    inputs=lambda: (t([-0.2, 0.3, -0.05, -0.4, 0.1]), r(5, 2), t(3.0), t(0.4)),
    more=[lambda: (t([-0.3, 0.2]), r(2, 2, seed=4), t(1.5), t(0.7), 0.3)],
    bug="no gradient for the friction coefficient",
    fits=["None for", "value"],
    order="first",
))
CASES.append(dict(
    name="std_aggr",
    object="ScatterStd", kind="function",
    inputs=lambda: (r(8, 3), torch.tensor([0, 2, 2, 0, 0, 4, 4, 1]), 5, True, 1e-2),
    more=[lambda: (r(6, 2, seed=1), torch.tensor([1, 1, 0, 0, 1, 0]), 3, False)],
    bug="backward divides by the count although the forward was unbiased",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="cox_efron",
    object="CoxEfron", kind="function",
    inputs=lambda: (r(9), t([1.0, 2, 2, 2, 3, 3, 4, 5, 5], False), torch.tensor([1, 1, 1, 0, 1, 1, 0, 1, 1]).bool()),
    more=[lambda: (r(5, seed=2), t([3.0, 1, 4, 2, 5], False), torch.tensor([1, 0, 1, 1, 0]).bool())],
    bug="at tied events the gradient is Breslow's",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="mesh_moments",
    object="MeshMoments", kind="function",
    inputs=lambda: (t([[0.1, 0, 0.2], [1.3, 0.1, 0], [0.2, 1.5, 0.1], [0.3, 0.2, 1.7]]), torch.tensor([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])),
    more=[lambda: (t([[1.1, 1, 0.2], [2.3, 0.1, 0], [0.2, 1.5, 0.1], [0.3, 0.2, 1.7], [2.3, 2.2, 2.7]]), torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 4], [1, 4, 3], [2, 3, 4]]))],
    bug="the centroid's division by the volume is taken as constant",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="angular_spectrum",
    object="AngularSpectrum", kind="function",
    inputs=lambda: (c(4, 5), t(0.8), 1.0, 0.9),
    more=[lambda: (c(2, 3, 4, seed=2), t(1.7), 1.0, 0.6)],
    bug="the field is propagated onwards instead of back: the transfer function is not conjugated",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="pid_antiwindup",
    object="SaturatedPID", kind="function",
    inputs=lambda: (r(6, 3), t(0.9), t(0.5), t(0.1), 0.5, 1.0),
    more=[lambda: (r(4, 2, seed=4), t(0.5), t(0.3), t(0.05), 0.2, 10.0)],
    bug="steps in which the integrator was frozen still receive its gradient",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="lm_zloss",
    object="TokenLossWithZ", kind="function",
    inputs=lambda: (r(5, 6), torch.tensor([1, -100, 4, 0, 4]), 0.0, -100),
    more=[lambda: (r(4, 5, seed=1), torch.tensor([3, 2, 0, 2]), 0.1, 0)],
    bug="with z=0 too few gradients are returned",
    fits=["number of gradients"],
    order="first",
))
CASES.append(dict(
    name="parallel_beam",
    object="ParallelBeam", kind="function",
    inputs=lambda: (r(4, 5), t([0.1, 0.9, 2.0], False), 4, 6),
    more=[lambda: (r(3, 3, seed=1), t([0.4], False), 3, 3)],
    bug="back projection keeps one of the rays that meet a pixel",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="ct_windows",
    object="CTWindows", kind="function",
    inputs=lambda: (r(2, 3, 4), t([-0.3, 0.1, 0.5]), t([1.1, 2.3, 3.1])),
    more=[lambda: (r(2, 2, 2, seed=5), t([0.2]), t([1.9]))],
    bug="the gradient of the widths keeps the summed axes: only a single window works",
    fits=["shape"],
    order="first",
))
CASES.append(dict(
    name="smin",
    object="SMin", kind="function",
    inputs=lambda: (0.7, r(6), r(6, seed=1), r(6, seed=2)),
    more=[lambda: (1.5, r(2, 3, seed=3), r(2, 3, seed=4)), lambda: (0.3, r(4))],
    bug="gradients come back in the reverse order of the shapes",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="perker",
    object="PerKer", kind="function",
    inputs=lambda: (r(4), r(3, seed=1), t(1.7), t(0.9)),
    more=[lambda: (r(2, seed=2), r(5, seed=3), t(0.8), t(1.4))],
    bug="sine and distance kept from forward carry no graph: hyperparameter Hessian is wrong",
    fits=["value"],
    order="second",
))
CASES.append(dict(
    name="hardneg",
    object="HardNeg", kind="function",
    inputs=lambda: (r(5, 3), r(5, 3, seed=1), 0.5, 2, "mean"),
    more=[lambda: (r(4, 2, seed=2), r(4, 2, seed=3), 1.0, 1, "sum")],
    bug="the incoming gradient is divided in place",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="pow2q",
    object="Pow2Q", kind="function",
    inputs=lambda: (t([0.3, -0.02, 0.7, 1.4, -1.8, 0.05, -0.4, 0.11]), -4, 0),
    more=[lambda: (r(3, 4), -1, 1)],
    surrogate=lambda x, lo, hi: (lambda x, lo, hi: torch.where((x.abs() >= 2.0**lo) & (x.abs() <= 2.0**hi), x, 0 * x)),
    bug="passes the gradient below the smallest level, too",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="gdnf",
    object="GDNF", kind="function",
    inputs=lambda: (r(2, 3, 4), u(3, 3, seed=1), u(3, lo=0.5, hi=1, seed=2)),
    more=[lambda: (r(1, 2, 3, seed=3), u(2, 2, seed=4), u(2, lo=0.5, hi=1, seed=5), 1.5, 1.0)],
    bug="the pool matrix is not transposed on the way back",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="chamf",
    object="TrimChamf", kind="function",
    inputs=lambda: (r(6, 3), r(4, 3, seed=1), 4, 1.0, 0.5),
    more=[lambda: (r(3, 2, seed=2), r(5, 2, seed=3), 3, 0.3, 2.0)],
    bug="trimmed side is normalised by all points",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="warp1d",
    object="Warp1d", kind="function",
    inputs=lambda: (r(2, 3, 5), t([[-0.7, 0.3, 2.6, 5.1], [1.2, 1.4, 3.9, 4.4]]), 1),
    more=[lambda: (r(2, 2, 4, seed=1), t([[-0.7, 0.3, 2.6], [1.2, 1.4, 3.4]]), 0)],
    bug="mode 1: positions outside of the signal get a slope although they are clamped",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="emarst",
    object="EMA", kind="function",
    inputs=lambda: (r(6, 2, 3), u(3, lo=0.3, hi=0.9, seed=1), flags(6, 2, 1, seed=2, share=0.4), r(2, 3, seed=3)),
    more=[lambda: (r(4, 1, 2, seed=4), u(2, lo=0.3, hi=0.9, seed=5), flags(4, 1, 1, seed=6, share=0.3), None)],
    bug="gradient runs through the resets into the previous episode",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="allpole",
    object="AllPole", kind="function",
    inputs=lambda: (r(2, 7), r(2, 3, seed=1, scale=0.3)),
    more=[lambda: (r(3, 2, seed=2), r(3, 4, seed=3, scale=0.3))],
    bug="the recursion runs in the incoming gradient itself",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="lut3",
    object="LUT3", kind="function",
    inputs=lambda: (r(3, 3, 3, 3), u(4, 3, lo=-0.1, hi=1.1, seed=1)),
    more=[lambda: (r(3, 2, 2, 2, seed=2), u(5, 3, seed=3))],
    bug="zeros_like of a permuted table is permuted: reshape copies and the gradient is lost",
    fits=["layout"],
    order="first",
))
CASES.append(dict(
    name="gshrink",
    object="GShrink", kind="function",
    inputs=lambda: (t([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [0.2, 0.1, -0.1], [0.9, 0.7, 0.6]]), t([0.7, 0.5, 0.6, 0.3])),
    more=[lambda: (r(5, 2), u(5, lo=0.1, hi=0.9, seed=1))],
    bug="0/0 for groups that are already zero",
    fits=["nan"],
    order="first",
))
CASES.append(dict(
    name="gini",
    object="Gini", kind="function",
    inputs=lambda: (u(3, 6, lo=0.2, hi=2),),
    more=[lambda: (u(1, 4, lo=0.2, hi=2, seed=8),)],
    bug="ranks are gathered by the sorting permutation instead of its inverse",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="logmm",
    object="LogMM", kind="function",
    inputs=lambda: (r(3, 4), r(4, 2, seed=1), 0.5),
    more=[lambda: (r(2, 2, seed=3), r(2, 5, seed=4), 1.0)],
    bug="operands are kept on the class: the next product overwrites them",
    fits=["state"],
    order="first",
))
CASES.append(dict(
    name="modrelu",
    object="ModReLU", kind="function",
    inputs=lambda: (c(4, 3), r(3, scale=0.5)),
    more=[lambda: (c(2, 2, 5, seed=2), r(5, seed=3, scale=0.5))],
    bug="radial part of the gradient without the conjugate",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="expectile",
    object="Expectile", kind="function",
    inputs=lambda: (r(5, 3), r(5, seed=1), t([0.1, 0.5, 0.9], False)),
    more=[lambda: (r(2, 2, 1, seed=2), r(2, 2, seed=3), t([0.7], False))],
    bug="curvature forgets the weight of the side",
    fits=["value"],
    order="second",
))
CASES.append(dict(
    name="great_circle",
    object="GreatCircle", kind="function",
    inputs=lambda: (u(3, 1, lo=0.2, hi=1, grad=False), u(3, 1, lo=-1, hi=1, seed=1, grad=False), u(4, lo=-0.9, hi=0, seed=2), u(4, lo=1.2, hi=2, seed=3), 1.0),
    more=[lambda: (u(3, lo=0.2, hi=1), u(3, lo=-1, hi=1, seed=1), u(3, lo=-0.9, hi=0, seed=2), u(3, lo=1.2, hi=2, seed=3), 2.0)],
    bug="no gradient at all unless the first point needs one",
    fits=["None for", "value"],
    order="first",
))
CASES.append(dict(
    name="fan_unmixing",
    object="FanUnmixing", kind="module",
    make=lambda cls: fill(cls(3, 5)),
    inputs=lambda: (r(4, 3),),
    more=[lambda: (r(2, 3, seed=1),)],
    bug="second material of a pair gets its own spectrum as the factor",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="pcen_layer",
    object="PCEN", kind="module",
    make=lambda cls: fill(cls(3, smooth=0.3), -0.6, 0.3),
    inputs=lambda: (u(2, 3, 5, lo=0.1, hi=3),),
    more=[lambda: (u(1, 3, 2, lo=0.1, hi=3, seed=1),)],
    bug="the subtracted delta**r has no part in the gradient of delta",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="band_filters",
    object="BandFilters", kind="module",
    make=lambda cls: fill(cls(3, 7, stride=2), 0.05, 0.2),
    inputs=lambda: (r(2, 1, 10),),
    more=[lambda: (r(1, 1, 7, seed=1),)],
    bug="lower cut-off moves the upper one, too: that part is missing",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="radial_basis",
    object="RadialBasis", kind="module",
    make=lambda cls: fill(cls(4, 3.0), 0.4, 2.0),
    inputs=lambda: (u(6, lo=0.3, hi=4),),
    more=[lambda: (u(2, 2, lo=0.3, hi=3.5, seed=1),)],
    bug="gradient of gamma without the Gaussian itself",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="planar_arm",
    object="PlanarArm", kind="module",
    make=lambda cls: fill(cls([1.0, 0.8, 0.5])),
    inputs=lambda: (r(4, 3),),
    more=[lambda: (r(2, 2, 3, seed=1),)],
    bug="cumulates from the base instead of from the tip",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="paraxial_train",
    object="ParaxialTrain", kind="module",
    make=lambda cls: fill(cls([1.0, 2.0, 0.7], [0.3, 0.5, 1.0])),
    inputs=lambda: (r(4, 2),),
    more=[lambda: (r(1, 2, seed=1),)],
    bug="the trace is consumed: a second backward through the same graph finds it empty",
    fits=["state"],
    order="first",
))
CASES.append(dict(
    name="weibull_aft",
    object="WeibullAFT", kind="module",
    make=lambda cls: fill(cls(3), -0.4, 0.5),
    inputs=lambda: (r(6, 3), u(6, lo=0.3, hi=3, seed=1, grad=False), torch.tensor([1, 0, 1, 1, 0, 1])),
    more=[lambda: (r(3, 3, seed=2), u(3, lo=0.3, hi=3, seed=3, grad=False), torch.tensor([0, 1, 1]))],
    bug="the cumulative hazard is cast to the integer type of the event flags",
    fits=["dtype", "value"],
    order="first",
))
CASES.append(dict(
    name="heat_rod",
    object="HeatRod", kind="module",
    make=lambda cls: fill(cls(5, steps=3, dt=0.2)),
    inputs=lambda: (r(2, 5),),
    more=[lambda: (r(1, 5, seed=1),)],
    bug="states are visited from first to last while the adjoint runs backwards",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="ppr_prop",
    object="PersonalizedPropagation", kind="module",
    make=lambda cls: fill(cls(3), 0.1, 0.5),
    inputs=lambda: (r(5, 2), torch.tensor([[0, 1, 2, 3, 0, 2, 4], [1, 2, 0, 1, 3, 3, 0]])),
    more=[lambda: (r(3, 2, seed=1), torch.tensor([[0, 1, 2, 0], [0, 0, 1, 2]]))],
    bug="the normalised adjacency is not transposed in the adjoint iteration",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="hash_embed",
    object="HashEmbedding", kind="module",
    make=lambda cls: fill(cls(6, 4, 3), -1, 1),
    inputs=lambda: (torch.tensor([[1, 3, 3, 0], [5, 1, 0, 0]]),),
    more=[lambda: (torch.tensor([4, 4, 2]),)],
    bug="tokens that occur repeatedly keep one contribution to their importance",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="spk",
    object="Spk", kind="module",
    make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(3, 4),),
    more=[lambda: (r(2, 2, 4, seed=1),)],
    surrogate=lambda m, v: (lambda v: (v - m.th) / (1 + m.s * (v - m.th).abs())),
    bug="sign of the threshold's gradient",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="rollmix",
    object="RollMix", kind="module",
    make=lambda cls: fill(cls(3, 2), -1, 1),
    inputs=lambda: (r(2, 3, 7),),
    more=[lambda: (r(5, seed=1),)],
    bug="rolls the gradient in the direction of the forward",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="heunnet",
    object="HeunNet", kind="module",
    make=lambda cls: fill(cls(3, 3, 0.4), -0.8, 0.8),
    inputs=lambda: (r(4, 3),),
    more=[lambda: (r(1, 3, seed=1),)],
    bug="first stage does not hear of the second one",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="chebkan",
    object="ChebKAN", kind="module",
    make=lambda cls: fill(cls(3, 2, 4), -1, 1),
    inputs=lambda: (r(4, 3),),
    more=[lambda: (r(2, 3, seed=1),)],
    bug="T_n' uses U_n instead of U_(n-1)",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="gfilm",
    object="GFiLM", kind="module",
    make=lambda cls: fill(cls(3, 2), -1, 1),
    inputs=lambda: (r(2, 4, 3), r(2, 3, seed=1)),
    more=[lambda: (r(1, 2, 2, 3, seed=2), r(1, 3, seed=3))],
    bug="view of an incoming gradient that may be permuted",
    fits=["layout"],
    order="first",
))
CASES.append(dict(
    name="coslin",
    object="CosLin", kind="module",
    make=lambda cls: fill(cls(3, 4, 2.0), -1, 1),
    inputs=lambda: (r(5, 3),),
    more=[lambda: (r(1, 3, seed=1),)],
    bug="input lives on the layer: shared layers differentiate with the last one",
    fits=["state"],
    order="first",
))
CASES.append(dict(
    name="medblend",
    object="MedBlend", kind="module",
    make=lambda cls: fill(cls(5)),
    inputs=lambda: (r(3, 8),),
    more=[lambda: (r(2, 4, seed=1),)],
    bug="backward takes the border as replicated, forward reflects it",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="pnormch",
    object="PNormCh", kind="module",
    make=lambda cls: fill(cls(3), -1, 1),
    inputs=lambda: (r(2, 3, 5, scale=2.0),),
    more=[lambda: (r(1, 3, 2, seed=1),)],
    bug="p in the outer root is taken as constant",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="savi_index",
    object="savi", kind="callable",
    inputs=lambda: (u(3, 4, lo=0.3, hi=0.8), u(3, 4, lo=0.05, hi=0.4, seed=1)),
    more=[lambda: (u(2, 2, 2, lo=0.3, hi=0.8, seed=2), u(2, 2, 2, lo=0.05, hi=0.4, seed=3), 0.25)],
    bug="soil term missing in the derivative by the red band",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="superposed_rmsd",
    object="superposed_rmsd", kind="callable",
    inputs=lambda: (r(5, 3), r(5, 3, seed=1), u(5, lo=1, hi=3, seed=2, grad=False)),
    more=[lambda: (r(4, 3, seed=3), r(4, 3, seed=4))],
    bug="residuals kept in ctx are scaled in place: a second backward scales them again",
    fits=["modified", "state"],
    order="first",
))
CASES.append(dict(
    name="snakeop",
    object="snake", kind="callable",
    inputs=lambda: (r(2, 3, 4), u(3, lo=0.5, hi=2, seed=1)),
    more=[lambda: (r(1, 2, 5, seed=2), u(2, lo=0.5, hi=2, seed=3))],
    bug="inner factor x is missing in the gradient of a",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="mu_law",
    object="mu_law", kind="callable",
    inputs=lambda: (u(2, 5, lo=-1, hi=1), t(6.0)),
    more=[lambda: (u(3, lo=-1, hi=1, seed=1), t(20.0))],
    bug="normaliser is detached in backward: first derivatives right, second ones by mu wrong",
    fits=["value"],
    order="second",
))
CASES.append(dict(
    name="pwl",
    object="pwl", kind="callable",
    inputs=lambda: (t([-0.4, 0.2, 0.35, 1.1, 1.7, 2.4, 3.6]), t([0.0, 0.5, 1.3, 3.0], False), r(4)),
    more=[lambda: (u(2, 3, lo=0.1, hi=2), t([0.0, 1.0, 2.2], False), r(3, seed=1))],
    bug="inputs beyond the outer knots get the slope of the outer piece",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="cumlogit",
    object="cumlogit", kind="callable",
    inputs=lambda: (r(7), t([-0.8, 0.3, 1.1]), torch.tensor([0, 3, 1, 2, 2, 0, 3])),
    more=[lambda: (r(3, seed=1), t([0.2]), torch.tensor([1, 0, 1]))],
    bug="cut points get their neighbour's gradient: slice off by one",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="ragpool",
    object="ragpool", kind="callable",
    inputs=lambda: (r(7, 2), r(7, seed=1), [3, 0, 1, 3]),
    more=[lambda: (r(4, 3, seed=2), r(4, seed=3), [4])],
    bug="weights are treated as if they were not normalised",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="interval_nll",
    object="log_interval_probability", kind="callable",
    inputs=lambda: (t([0.3, 0.1, 1.2, 0.5]), t([0.4, 2.5, 900.0, 1.1])),
    more=[lambda: (t([[0.0, 0.2], [1.0, 0.7]]), t([[0.01, 0.9], [6.0, 40.0]]))],
    bug="inf / inf where the right end is far away",
    fits=["nan"],
    order="first",
))
CASES.append(dict(
    name="local_ncc",
    object="local_ncc", kind="callable",
    inputs=lambda: (r(2, 1, 8), r(2, 1, 8, seed=1), 3, 0.1),
    more=[lambda: (r(1, 1, 9, seed=2), r(1, 1, 9, seed=3), 5, 0.05)],
    bug="profiles are kept in bfloat16 for backward",
    fits=["dtype", "value"],
    order="first",
))
CASES.append(dict(
    name="min_image",
    object="min_image_distance", kind="callable",
    inputs=lambda: (u(4, 3), t([[3.0, 0.1, 0.0], [0.4, 2.7, 0.2], [0.0, 0.3, 3.4]]), torch.tensor([[0, 0, 1, 2, 3], [1, 2, 3, 3, 0]])),
    more=[lambda: (u(3, 3, lo=0.1, hi=0.3, seed=2), t([[2.0, 0, 0], [0, 2.5, 0], [0.3, 0, 1.8]]), torch.tensor([[0, 2], [1, 0]]))],
    bug="the stress of pairs across the boundary is taken from the unwrapped difference",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="noisyor",
    object="noisyor", kind="callable",
    inputs=lambda: (t([[0.2, 1.0, 0.4], [0.6, 0.3, 0.9]]), t([0.7, 1.0, 0.5])),
    more=[lambda: (u(3, 2, lo=0.1, hi=0.9),)],
    bug="divides the full product by a factor that is zero for certain causes",
    fits=["nan"],
    order="first",
))
CASES.append(dict(
    name="pair_preference",
    object="pair_preference", kind="callable",
    inputs=lambda: (r(2, 3, 4), r(2, 4, 4, seed=1), ix(4, 2, 3), ix(4, 2, 4, seed=2), torch.tensor([3, 1]), torch.tensor([2, 4])),
    more=[lambda: (r(1, 2, 3, seed=3), r(1, 2, 3, seed=4), ix(3, 1, 2, seed=5), ix(3, 1, 2, seed=6), torch.tensor([2]), torch.tensor([2]), 1.0, 0.0)],
    bug="rejected answer is normalised by the length of the chosen one",
    fits=["value"],
    order="first",
))

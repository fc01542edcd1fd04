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
    name="ackermann_wheels", object="ackermann_wheels", kind="callable",
    inputs=lambda: (t([0.0, 0.1, -0.2, 0.35]), 2.7, 1.5),
    more=[lambda: (r(2, 3, scale=0.2), 0.33, 0.2, True)],
    bug="the factor from radians to degrees is left out of backward", fits=["value"], order="first"))
CASES.append(dict(
    name="so3_left_jac", object="SO3LeftJacobian", kind="function",
    inputs=lambda: (r(4, 3), r(4, 3, seed=1)),
    more=[lambda: (t([[0.0, 0.0, 0.0], [0.3, -0.2, 0.9]]), r(2, 3, seed=1)), lambda: (r(3, 3, scale=0.02), r(3, 3, seed=2))],
    bug="0/0 at zero rotation in the derivative of one coefficient", fits=["NaN"], order="first"))
CASES.append(dict(
    name="stewart_legs", object="StewartPlatform", kind="module", make=lambda cls: fill(cls(5)),
    inputs=lambda: (r(2, 3, 3), r(2, 3, seed=1, shift=1.0)),
    more=[lambda: (r(1, 3, 3, seed=4), r(1, 3, seed=5, shift=2.0))],
    bug="the rotation is taken the wrong way round in the gradient of the platform joints", fits=["value"], order="first"))
CASES.append(dict(
    name="arc_tip", object="ArcTip", kind="function",
    inputs=lambda: (r(4), r(4, seed=1), u(4, lo=0.5, hi=1.5, seed=2)),
    more=[lambda: (t([0.0, 1e-3, 1.2]), r(2, 1, seed=1), t(0.8))],
    bug="derivative of the height by the length is the sinc, not the cosine", fits=["value"], order="first"))
CASES.append(dict(
    name="khatib_repulsion", object="KhatibRepulsion", kind="function",
    inputs=lambda: (r(4, 2), r(3, 2, seed=1), 1.5, 0.8),
    more=[lambda: (r(3, 3), r(2, 3, seed=3), 4.0, 1.0)],
    bug="differences are kept on the class, so that a second forward overwrites them", fits=["cache"], order="first"))
CASES.append(dict(
    name="bearing_range", object="BearingRange", kind="function",
    inputs=lambda: (r(3, 3), r(4, 2, seed=1, scale=3.0)),
    more=[lambda: (t([[0.0, 0.0, 0.0], [1.0, -1.0, 3.0]]), t([[2.0, 0.0], [0.0, 1.5], [-1.0, -2.0]]))],
    bug="None for the landmarks", fits=["none"], order="first"))
CASES.append(dict(
    name="min_snap_cost", object="MinSnapCost", kind="function",
    inputs=lambda: (r(2, 2, 6), u(2, lo=0.5, hi=1.2)),
    more=[lambda: (r(3, 1, 8), u(3, lo=0.7, hi=1.1, seed=4)), lambda: (r(1, 2, 4), u(1, lo=0.7, hi=1.1))],
    bug="the incoming gradient is doubled in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="stick_deadzone", object="stick_deadzone", kind="callable",
    inputs=lambda: (u(5, 3, lo=-1, hi=1), t([0.1, 0.3, 0.2])),
    more=[lambda: (t([0.0, 0.6, -0.9, 0.05]), t(0.15))],
    bug="the gradient of the threshold is not masked inside the dead zone", fits=["value"], order="first"))
CASES.append(dict(
    name="quadratic_drag", object="QuadraticDrag", kind="function",
    inputs=lambda: (r(4, 3), r(3, seed=1), u(4, lo=0.2, hi=1.0, seed=2)),
    more=[lambda: (t([[0.0, 0.0, 0.0], [1.0, 0.0, -2.0]]), torch.zeros(3, dtype=torch.float64), t(0.7)), lambda: (r(2, 2, 3), r(2, 1, 3, seed=5), u(2, 2, lo=0.2, seed=2))],
    bug="division by a speed of zero for a body at rest", fits=["NaN"], order="first"))
CASES.append(dict(
    name="float_sphere", object="FloatSphere", kind="function",
    inputs=lambda: (t([0.2, -0.3, 2.0, -1.7]), t([0.5, 0.8, 0.6, 0.7]), 1.0),
    more=[lambda: (t([0.0, 0.1]), t([0.3, 1.0]), 0.5)],
    bug="no gradient to the radius of a sphere wholly under water", fits=["value"], order="first"))
CASES.append(dict(
    name="hunt_crossley", object="contact_force", kind="callable",
    inputs=lambda: (t([0.2, -0.3, 0.5, 0.01, -0.1]), r(5, scale=0.3), t(3.0), t(0.4)),
    more=[lambda: (t([0.2, 0.3, -0.4]), t([-3.0, 0.0, 1.0]), t(2.0), t(0.7)), lambda: (u(3, lo=0.1), r(3, scale=0.2), u(3, lo=1.0, hi=2.0, seed=4), t(0.3))],
    bug="contacts whose force is held at zero while they part still pass gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="curvature_binormal", object="CurvatureBinormal", kind="function",
    inputs=lambda: (r(5, 3),),
    more=[lambda: (t([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.5, 0.2]]),)],
    bug="the last accumulation assigns", fits=["value"], order="first"))
CASES.append(dict(
    name="hydrostatic_recon", object="HydrostaticReconstruction", kind="function",
    inputs=lambda: (u(6, lo=0.1, hi=1.0), r(6, seed=1, scale=0.3)),
    more=[lambda: (u(2, 4, lo=0.0, hi=0.3), r(2, 4, seed=3))],
    bug="the bed at the face is led to the lower cell", fits=["value"], order="first"))
CASES.append(dict(
    name="leray_projection", object="LerayProjection", kind="function",
    inputs=lambda: (r(2, 4, 5), 0.5, 1.25),
    more=[lambda: (r(2, 2, 3, 3), 1.0, 1.0), lambda: (r(1, 2, 4, 4), 1.0, 0.3)],
    bug="the spacings are swapped in the adjoint", fits=["value"], order="first"))
CASES.append(dict(
    name="rigid_gyro", object="RigidBody", kind="module", make=lambda cls: fill(cls(), keep=("inertia",)),
    inputs=lambda: (r(4, 3), r(4, 3, seed=1)),
    more=[lambda: (torch.zeros(1, 3, dtype=torch.float64, requires_grad=True), r(1, 3))],
    bug="the gyroscopic term's share in the inertia gradient is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="muscle_force", object="HillMuscle", kind="module", make=lambda cls: cls(ecc=1.4, curve=0.5).double(),
    inputs=lambda: (u(5), u(5, lo=0.7, hi=1.4, seed=1), u(5, lo=-0.9, hi=-0.1, seed=2)),
    more=[lambda: (u(4, hi=0.6), u(4, lo=0.7, hi=1.4, seed=1), t([0.0, 0.3, -0.2, 0.8])), lambda: (t([0.0, 1.0]), t([1.0, 1.3]), t([-0.5, -0.2]))],
    bug="a factor of the slope in lengthening is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="rosenberg_pulse", object="RosenbergPulse", kind="function",
    inputs=lambda: (u(2, 7, lo=0.0, hi=0.99), t([[0.6], [0.8]]), t([[0.65], [0.7]])),
    more=[lambda: (t([0.0, 0.1, 0.3, 0.55, 0.9]), t([0.6]), t([0.6])), lambda: (u(6), t([[0.5], [0.9], [0.7]]), t([0.7]))],
    bug="sign of the falling phase in the gradient of the asymmetry", fits=["value"], order="first"))
CASES.append(dict(
    name="gammatone_ir", object="gammatone_ir", kind="callable",
    inputs=lambda: (u(3, lo=1.0, hi=3.0), u(3, lo=0.2, hi=0.6, seed=1), 6, 2, 8.0),
    more=[lambda: (u(2, lo=1.0, hi=3.0), u(2, lo=0.2, hi=0.6, seed=1), 5, 3, 8.0, True), lambda: (u(2, lo=1.0, hi=3.0), u(2, lo=0.2, hi=0.6, seed=1), 5, 1, 8.0, True)],
    bug="the bandwidth in the normalising factor is not derived", fits=["value"], order="first"))
CASES.append(dict(
    name="vtln_warp", object="VTLNWarp", kind="function",
    inputs=lambda: (u(6, lo=0.0, hi=4.0), t([[0.9], [1.1]]), 4.0, 3.2),
    more=[lambda: (t([0.0, 1.0, 3.5]), t([1.0]), 4.0, 2.5)],
    bug="one gradient too few is returned", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="spec_subtract", object="spectral_subtraction", kind="callable",
    inputs=lambda: (u(2, 3, 4), u(2, 3, 1, lo=0.1, hi=0.4, seed=1)),
    more=[lambda: (u(1, 4, 3), u(4, 1, lo=0.1, hi=0.6, seed=1), 1.2, 0.1)],
    bug="the incoming gradient is masked in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="yin_cmndf", object="YinCMNDF", kind="function",
    inputs=lambda: (r(2, 8), 3),
    more=[lambda: (r(7), 2, 0.1), lambda: (r(1, 2, 6), 4)],
    bug="the adjoint of the cumulative sum runs forward", fits=["value"], order="first"))
CASES.append(dict(
    name="plda_llr", object="PLDAScorer", kind="module", make=lambda cls: fill(cls(3), keep=("psi",)),
    inputs=lambda: (r(3, 3), r(2, 3, seed=1)),
    more=[lambda: (r(1, 3), torch.zeros(2, 3, dtype=torch.float64, requires_grad=True))],
    bug="a half is missing in the gradient of the between-class variance", fits=["value"], order="first"))
CASES.append(dict(
    name="thresholded_snr", object="ThresholdedSNR", kind="function",
    inputs=lambda: (r(2, 6), r(2, 6, seed=1), 3.0),
    more=[lambda: (t([[0.3, 0.0, 1.0]]), t([[0.3, 0.0, 1.0]]), 20.0)],
    bug="the threshold's own dependence on the reference is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="itakura_saito", object="itakura_saito", kind="callable",
    inputs=lambda: (u(2, 3, 2, lo=0.2, hi=2.0), u(2, 3, 2, lo=0.2, hi=2.0, seed=1)),
    more=[lambda: (u(2, 3, 2, lo=0.2, hi=2.0), u(2, 3, 2, lo=0.2, hi=2.0, seed=1), "mean"),
          lambda: (u(2, 3, lo=0.2, hi=2.0), u(2, 3, lo=0.2, hi=2.0, seed=1), "none", 0.1),
          lambda: (u(2, 3, lo=0.2, hi=2.0), u(2, 3, lo=0.2, hi=2.0, seed=1), "mean", 0.1)],
    bug="reduction mean divides by all elements in backward, not by the batch", fits=["value"], order="first"))
CASES.append(dict(
    name="cos_ipd", object="CosIPD", kind="function",
    inputs=lambda: (c(2, 3, 2, 2),),
    more=[lambda: (c(1, 2, 3, 1, seed=4), 0.05)],
    bug="a conjugate too many", fits=["value"], order="first"))
CASES.append(dict(
    name="intrinsic_angles", object="CornerAngles", kind="function",
    inputs=lambda: (u(4, 3, lo=1.0, hi=1.6),),
    more=[lambda: (t([[3.0, 4.0, 5.0], [1.0, 1.0, 1.0]]),)],
    bug="cosines of the wrong corners", fits=["value"], order="first"))
CASES.append(dict(
    name="imls_field", object="IMLS", kind="function",
    inputs=lambda: (r(3, 3), r(5, 3, seed=1), r(5, 3, seed=2), t(1.3)),
    more=[lambda: (t([[0.0, 0.0, 0.0]]), t([[0.0, 0.0, 0.0], [1.0, 0.5, 0.0]]), r(2, 3, seed=2), t(0.8))],
    bug="the normalisation of the weights is not derived", fits=["value"], order="first"))
CASES.append(dict(
    name="stiefel_tangent", object="StiefelTangent", kind="function",
    inputs=lambda: (r(4, 2), r(4, 2, seed=1)),
    more=[lambda: (r(2, 3, 3), r(2, 3, 3, seed=1))],
    bug="subtraction in place on the incoming gradient", fits=["modified"], order="first"))
CASES.append(dict(
    name="sphere_log", object="SphereLog", kind="function",
    inputs=lambda: (torch.nn.functional.normalize(r(4, 3, grad=False), dim=-1).requires_grad_(), torch.nn.functional.normalize(r(4, 3, seed=1, grad=False), dim=-1).requires_grad_()),
    more=[lambda: (t([[0.6, 0.8, 0.0], [1.0, 0.0, 0.0]]), t([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]))],
    bug="the cosine is missing from the direct term of the base point", fits=["value"], order="first"))
CASES.append(dict(
    name="soft_voronoi", object="power_cells", kind="callable",
    inputs=lambda: (r(4, 2), r(3, 2, seed=1), r(3, seed=2)),
    more=[lambda: (r(4, 2), r(3, 2, seed=1), r(3, seed=2), 0.5), lambda: (r(2, 3), r(2, 3, seed=1), t([0.0, 0.0]), 3.0)],
    bug="the temperature is left out of backward", fits=["value"], order="first"))
CASES.append(dict(
    name="stain_od", object="StainUnmix", kind="function",
    inputs=lambda: (u(2, 3, 2, 2, hi=3.0), t([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]]), 4.0),
    more=[lambda: (torch.zeros(1, 3, 1, 2, dtype=torch.float64, requires_grad=True), t([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]]))],
    bug="the inverse stain matrix is kept on the class", fits=["cache"], order="first"))
CASES.append(dict(
    name="anscombe_gat", object="GAT", kind="function",
    inputs=lambda: (u(2, 2, 2, 2, hi=5.0), t([[[0.8]], [[1.4]]]), 0.5, 0.1),
    more=[lambda: (t([[0.0, -3.0], [2.0, 0.5]]), t([[1.0], [0.7]]), 0.3, 0.2)],
    bug="division by zero below the offset", fits=["NaN"], order="first"))
CASES.append(dict(
    name="flim_phasor", object="FLIMPhasor", kind="function",
    inputs=lambda: (u(2, 2, 5, hi=4.0),),
    more=[lambda: (t([[0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 1.0, 0.0]]), 2), lambda: (u(3, 4), 2)],
    bug="0/0 in pixels without photons", fits=["NaN"], order="first"))
CASES.append(dict(
    name="fret_efficiency", object="fret_efficiency", kind="callable",
    inputs=lambda: (u(2, 3, lo=1.0, hi=2.0), u(2, 3, lo=1.0, hi=2.0, seed=1), u(2, 3, lo=1.5, hi=3.0, seed=2), t(0.9), 0.3, 0.1),
    more=[lambda: (u(3, lo=1.0, hi=2.0), t([0.0, 0.5, 0.2]), u(3, lo=1.5, hi=3.0, seed=2), t(1.2), 0.2, 0.0)],
    bug="the donor's bleed-through is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="dff_baseline", object="DeltaFOverF", kind="function",
    inputs=lambda: (u(2, 7, lo=1.0, hi=3.0), 3),
    more=[lambda: (u(3, 5, lo=0.5, hi=2.0), 2, 0.1), lambda: (u(1, 4, lo=0.5, hi=2.0), 1)],
    bug="frames that share a baseline overwrite each other", fits=["value"], order="first"))
CASES.append(dict(
    name="vesselness2d", object="Frangi2D", kind="function",
    inputs=lambda: (r(3, 3, scale=0.4), r(3, 3, seed=1, shift=-0.3)),
    more=[lambda: (t([0.0, 0.1, -0.1]), t([0.0, -0.9, 0.5]), 0.7, 0.8)],
    bug="0/0 in the flat background", fits=["NaN"], order="first"))
CASES.append(dict(
    name="instance_pull", object="instance_pull", kind="callable",
    inputs=lambda: (r(8, 2, scale=2.0), torch.tensor([0, 1, 0, 2, 1, 0, 2, 1]), 3),
    more=[lambda: (r(4, 3, scale=2.0), torch.tensor([0, 0, 3, 0]), 4, 0.1)],
    bug="the centres are taken as constants", fits=["value"], order="first"))
CASES.append(dict(
    name="ring_corr", object="FourierRingCorrelation", kind="module", make=lambda cls: cls(5, 6, 3).double(),
    inputs=lambda: (r(5, 6), r(5, 6, seed=1)),
    more=[lambda: (u(5, 6), u(5, 6, seed=1))],
    bug="the adjoint of the transform is taken as its inverse", fits=["value"], order="first"))
CASES.append(dict(
    name="astig_width", object="AstigmaticPSFWidth", kind="module", make=lambda cls: fill(cls(), keep=("w0", "c", "d", "A", "B")),
    inputs=lambda: (u(6, lo=-0.3, hi=0.6),),
    more=[lambda: (t([0.0, 0.15, -0.2]),)],
    bug="the depth of focus lacks its own inverse", fits=["value"], order="first"))
CASES.append(dict(
    name="smlm_psf", object="GaussianSpot", kind="function",
    inputs=lambda: (u(3, lo=1.0, hi=3.0), u(3, lo=1.0, hi=3.0, seed=1), u(3, lo=2.0, hi=4.0, seed=2), u(3, seed=3), u(3, lo=0.8, hi=1.3, seed=4), 4),
    more=[lambda: (t([0.0, 1.5]), t([1.0, 0.0]), t([1.0, 2.0]), t([0.0, 0.5]), t([1.0, 0.9]), 3)],
    bug="contraction over the wrong image axis", fits=["value"], order="first"))
CASES.append(dict(
    name="ivim_signal", object="IVIM", kind="function",
    inputs=lambda: (t([0.0, 0.3, 1.0, 2.0]), u(3, lo=0.5, hi=1.5), u(3, lo=0.1, hi=0.4, seed=1), u(3, lo=0.5, hi=1.0, seed=2), u(3, lo=3.0, hi=5.0, seed=3)),
    more=[lambda: (t([0.0, 0.5]), t([1.0]), t([0.0]), t([0.7]), t([4.0]))],
    bug="two gradients are returned in the wrong order", fits=["value"], order="first"))
CASES.append(dict(
    name="bmode_compress", object="BModeCompress", kind="function",
    inputs=lambda: (u(2, 3, 4, lo=0.05), 20.0),
    more=[lambda: (t([[[0.0, 0.4, 1.0], [0.7, 0.001, 0.2]]]), 30.0)],
    bug="the gradient of contiguous data is read with the strides of the input", fits=["layout"], order="first"))
CASES.append(dict(
    name="dispersion_phase", object="compensate_dispersion", kind="callable",
    inputs=lambda: (c(3, 5), t(1.5), t(-0.7)),
    more=[lambda: (c(1, 2, 4), t(0.0), t(0.0)), lambda: (c(6), t(3.0), t(2.0))],
    bug="the phase factor is kept on the class and overwritten by a second call", fits=["cache"], order="first"))
CASES.append(dict(
    name="semidual_ot", object="SemiDual", kind="function",
    inputs=lambda: (r(4), u(3, 4, seed=1), t([0.2, 0.5, 0.3]), t([0.1, 0.4, 0.3, 0.2]), 0.3),
    more=[lambda: (r(3), u(3, 3, seed=1), t([0.0, 0.5, 0.5]), t([0.6, 0.0, 0.4]), 0.5)],
    bug="0/0 for a target weight of zero", fits=["NaN"], order="first"))
CASES.append(dict(
    name="circular_w1", object="CircularW1", kind="function",
    inputs=lambda: (u(2, 5), u(2, 5, seed=1)),
    more=[lambda: (u(2, 6), u(2, 6, seed=1)), lambda: (u(1, 2), u(1, 2, seed=3))],
    bug="the median is taken as constant, which shows for even lengths", fits=["value"], order="first"))
CASES.append(dict(
    name="tree_wasserstein", object="TreeWasserstein", kind="function",
    inputs=lambda: (u(2, 7), u(2, 7, seed=1), u(7, lo=0.5, hi=2.0, seed=2), [0, 0, 0, 1, 1, 3, 5]),
    more=[lambda: (u(1, 3), u(1, 3, seed=1), u(3, seed=2), [0, 0, 1])],
    bug="only the nearest ancestor's edge is added", fits=["value"], order="first"))
CASES.append(dict(
    name="lowrank_coupling", object="coupling_cost", kind="callable",
    inputs=lambda: (u(4, 3), u(4, 2, seed=1), u(3, 2, seed=2), t([0.4, 0.6])),
    more=[lambda: (u(2, 2), t([[0.0, 0.5], [0.3, 0.2]]), u(2, 2, seed=2), t([0.3, 0.7]))],
    bug="the inner weights enter with the wrong power", fits=["value"], order="first"))
CASES.append(dict(
    name="quad_reg_dual", object="QuadRegDual", kind="function",
    inputs=lambda: (r(3), r(4, seed=1), u(3, 4, seed=2), u(3, seed=3), u(4, seed=4), 0.5),
    more=[lambda: (t([0.0, 0.0]), t([0.0, 1.0]), u(2, 2, lo=0.1, seed=2), t([0.0, 1.0]), t([0.5, 0.5]), 0.2)],
    bug="the residual of forward is kept, which has no graph of its own", fits=["value"], order="second"))
CASES.append(dict(
    name="mccann_interp", object="McCann1D", kind="function",
    inputs=lambda: (r(2, 6), r(2, 6, seed=1), t(0.3)),
    more=[lambda: (r(5, seed=3), r(5, seed=4), t(0.0))],
    bug="the permutation is applied, not its inverse", fits=["value"], order="first"))
CASES.append(dict(
    name="geo_bary_step", object="GeometricBarycenter", kind="function",
    inputs=lambda: (u(3, 4, lo=0.3, hi=2.0), t([0.2, 0.5, 0.3])),
    more=[lambda: (u(2, 3, lo=0.3, hi=2.0), t([0.0, 1.0]))],
    bug="logarithms are kept from forward without a graph", fits=["value"], order="second"))
CASES.append(dict(
    name="oren_nayar", object="oren_nayar", kind="callable",
    inputs=lambda: (u(8, lo=0.1, seed=1), u(8, lo=0.1), u(8, lo=0.2, seed=2), t(0.5)),
    more=[lambda: (u(2, 3, lo=0.1), u(2, 3, lo=0.1, seed=1), u(2, 3, lo=-1.0, seed=2), t(0.0))],
    bug="no gradient through the maximum when the view cosine is larger", fits=["value"], order="first"))
CASES.append(dict(
    name="phong_tess", object="PhongTessellation", kind="function",
    inputs=lambda: (u(4, 3), r(4, 3, 3, seed=1), r(4, 3, 3, seed=2), t(0.75)),
    more=[lambda: (t([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]), r(2, 3, 3, seed=1), r(2, 3, 3, seed=2), t(0.0))],
    bug="corners see the flat point's gradient without the projections", fits=["value"], order="first"))
CASES.append(dict(
    name="loop_odd", object="loop_odd_vertices", kind="callable",
    inputs=lambda: (r(4, 3), torch.tensor([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]), torch.tensor([[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]])),
    more=[lambda: (r(4, 3), torch.tensor([[0, 1], [1, 2], [2, 0], [1, 3], [2, 3]]), torch.tensor([[2, -1], [0, 3], [1, -1], [2, -1], [-1, 1]]))],
    bug="boundary edges get the interior weight in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="tbn_normal", object="NormalMap", kind="function",
    inputs=lambda: (r(4, 3), r(4, 3, seed=1), r(4, 3, seed=2)),
    more=[lambda: (r(2, 2, 3), r(2, 2, 3, seed=1), r(2, 2, 3, seed=2), -1.0), lambda: (t([[0.0, 0.0, 1.0]]), t([[0.0, 0.0, 1.0]]), t([[1.0, 0.0, 0.0]]))],
    bug="handedness is not applied in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="cubemap_uv", object="CubemapUV", kind="function",
    inputs=lambda: (t([[2.0, -0.3, 0.6], [0.4, 1.5, -1.0], [-0.2, 0.0, 0.9]]),),
    more=[lambda: (r(5, 3),), lambda: (r(2, 2, 3, seed=4),)],
    bug="sign of the absolute value is missing on the negative faces", fits=["value"], order="first"))
CASES.append(dict(
    name="height_fog", object="HeightFog", kind="module", make=lambda cls: cls().double(),
    inputs=lambda: (u(4), u(4, lo=-0.9, hi=0.9, seed=1), u(4, lo=1.0, hi=4.0, seed=2)),
    more=[lambda: (t([0.0, 1.0, 0.5]), t([0.0, 0.002, -0.5]), t([2.0, 1.0, 3.0]))],
    bug="the distance inside the mean is not derived", fits=["value"], order="first"))
CASES.append(dict(
    name="superformula", object="Superformula", kind="function",
    inputs=lambda: (u(6, lo=0.2, hi=6.0), t(5.0), t(0.8), t(1.7), t(2.2)),
    more=[lambda: (t([0.0, 0.7, 2.0]), t(3.0), t(1.5), t(3.0), t(3.0))],
    bug="0 times -inf at angle zero", fits=["NaN"], order="first"))
CASES.append(dict(
    name="persp_interp", object="PerspectiveInterp", kind="function",
    inputs=lambda: (r(5, 2), torch.tensor([[0, 1, 2], [1, 2, 3], [4, 0, 1], [0, 1, 2]]), u(4, 3, lo=0.1), u(4, 3, lo=0.5, hi=3.0, seed=1)),
    more=[lambda: (r(3, 4), torch.tensor([[0, 1, 2]]), t([[0.0, 0.4, 0.6]]), t([[1.0, 2.0, 0.5]]))],
    bug="the sum is always made in float32", fits=["dtype"], order="first"))
CASES.append(dict(
    name="tri_coverage", object="soft_coverage", kind="callable",
    inputs=lambda: (r(4, 2, scale=0.5), t([[[-1.0, -1.0], [1.0, -0.8], [0.1, 1.2]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]), 2.0),
    more=[lambda: (t([[0.0, 0.0]]), t([[[-1.0, -1.0], [1.0, -0.8], [0.1, 1.2]]]))],
    bug="the gradient of the far end goes to the corner before", fits=["value"], order="first"))
CASES.append(dict(
    name="stvk_energy", object="StVK", kind="function",
    inputs=lambda: (r(2, 3, 3), u(2, lo=0.5, seed=1), u(2, lo=0.5, seed=2)),
    more=[lambda: (t([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]), t([1.0]), t([0.0]))],
    bug="the strain kept from forward has no graph, so the Hessian is wrong", fits=["value"], order="second"))

"""Sixty operators of scientific computing and deep learning, each with a faulty twin."""

import torch

I64, F64, C128 = torch.int64, torch.float64, torch.complex128


def _g(seed):
    return torch.Generator().manual_seed(seed)


def _r(*shape, seed=0, scale=1.0, shift=0.0):
    return (torch.randn(shape, generator=_g(seed), dtype=F64) * scale + shift).requires_grad_()


def _u(*shape, seed=0, lo=0.0, hi=1.0):
    return (torch.rand(shape, generator=_g(seed), dtype=F64) * (hi - lo) + lo).requires_grad_()


def _c(*shape, seed=0, scale=1.0):
    return (torch.randn(shape, generator=_g(seed), dtype=C128) * scale).requires_grad_()


def _f(values):
    return torch.tensor(values, dtype=F64, requires_grad=True)


def _cf(values):
    return torch.tensor(values, dtype=C128, requires_grad=True)


def _i(values):
    return torch.tensor(values, dtype=I64)


def _d(t):
    return t.detach()


def _n(high, *shape, seed=0):
    return torch.randint(0, high, shape, generator=_g(seed))


def _spd(*shape, seed=0, shift=1.0):
    a = _d(_r(*shape, shape[-1], seed=seed))
    return (a @ a.mT / shape[-1] + shift * torch.eye(shape[-1], dtype=F64)).requires_grad_()


def _hpd(*shape, seed=0):
    a = _d(_c(*shape, shape[-1], seed=seed))
    return (a @ a.mH / shape[-1] + torch.eye(shape[-1], dtype=C128)).requires_grad_()


def _diag_more(*shape, seed=0, shift=3.0, scale=0.5):
    n = shape[-1]
    return (_d(_r(*shape, n, seed=seed, scale=scale)) + shift * torch.eye(n, dtype=F64)).requires_grad_()


def _det(sign, batch, seed=0):
    """3x3 matrices whose determinants have the sign"""
    m = _d(_r(batch, 3, 3, seed=seed))
    flip = torch.where(torch.linalg.det(m) * sign < 0, -1.0, 1.0).to(F64)
    m[:, 0] = m[:, 0] * flip[:, None]
    return m.requires_grad_()


def _seeded(m, seed=0, scale=0.4):
    """the module in float64 with parameters drawn anew"""
    m = m.double()
    g = _g(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=F64) * scale)
    return m


def _positive_gain(m):
    m = _seeded(m, scale=0.7)
    with torch.no_grad():
        m.gain.abs_().add_(0.3)
    return m


TETRA = [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]
EDGES = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]
GRAPH = [[0, 1, 2, 3, 1, 0], [1, 0, 1, 2, 3, 2]]
STAMPS = [[1700000003, 1700000040, 1700000101, 1700000119], [1700000500, 1700000507, 1700000590, 1700000688]]
LJ = [[0.1, 0.2, 0.3], [1.3, 0.1, 0.4], [3.7, 0.3, 3.6], [0.3, 3.6, 1.5], [2.0, 2.1, 2.0]]


CASES = [
    {
        "name": "gp_nll", "object": "GPNegLogLik", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the noise's gradient lacks the data-fit term",
        "inputs": lambda: (_spd(2, 4), _r(2, 4, seed=1), _f(0.3)),
        "more": [lambda: (_spd(3), _r(3, seed=1), _f(0.1)), lambda: (_spd(2, 2, 2), _r(2, 2, 2, seed=5), torch.tensor(0.2, dtype=F64))],
    },
    {
        "name": "sylvester", "object": "Sylvester", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the gradient of B is transposed",
        "inputs": lambda: (_diag_more(3), _diag_more(2, seed=1), _r(3, 2, seed=2)),
        "more": [lambda: (_diag_more(2, seed=4), _diag_more(2, seed=1), _r(2, 2, seed=2)), lambda: (_diag_more(1), _diag_more(4, seed=6), _r(1, 4))],
    },
    {
        "name": "expm_block", "object": "MatrixExp", "kind": "function", "order": "second", "fits": ["value"],
        "bug": "the matrix is detached in backward, so the second derivative is lost",
        "inputs": lambda: (_r(2, 3, 3, scale=0.6), 1.0),
        "more": [lambda: (_r(2, 2, seed=1), 0.7), lambda: (_r(4, 4, seed=2, scale=0.4), -1.5)],
    },
    {
        "name": "householder", "object": "HouseholderProduct", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the squared length of the reflector is treated as a constant",
        "inputs": lambda: (_r(4, 3), _r(2, 4, seed=1)),
        "more": [lambda: (_r(3, 1), _r(1, 3, seed=1)), lambda: (_r(3, 3), _r(4, 3, seed=1, scale=2.0))],
    },
    {
        "name": "spd_log", "object": "SPDLog", "kind": "function", "order": "first", "fits": ["nan"],
        "bug": "repeated eigenvalues (an isotropic tensor) give 0/0",
        "inputs": lambda: (torch.stack([_d(_spd(3)), 1.7 * torch.eye(3, dtype=F64)]).requires_grad_(),),
        "more": [lambda: (_spd(2, 2, seed=3),), lambda: (_f([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.5]]),)],
    },
    {
        "name": "tri_solve", "object": "TriSolve", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "with unit=True the unread diagonal gets a gradient",
        "inputs": lambda: (_diag_more(3, shift=1.5), _r(3, 2, seed=1), False, False, True),
        "more": [
            lambda: (_diag_more(2, 3), _r(2, 3, 2, seed=1)),
            lambda: (_diag_more(3), _r(3, 1, seed=1), True, False, False),
            lambda: (_diag_more(3), _r(3, 2, seed=1), False, True, False),
            lambda: (_diag_more(3), _r(3, 2, seed=1), True, True, True),
        ],
    },
    {
        "name": "procrustes", "object": "ProcrustesRotation", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the sign of the last singular value is left out where the determinant is negative",
        "inputs": lambda: (_det(-1, 2),),
        "more": [lambda: (_det(1, 2, seed=1),), lambda: (_r(3, 3, seed=4),)],
    },
    {
        "name": "quat_rotate", "object": "QuatRotate", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the norm of the quaternion is treated as a constant",
        "inputs": lambda: (_r(2, 4), _r(2, 3, 3, seed=1)),
        "more": [lambda: (_r(1, 4, seed=2), _r(1, 1, 3, seed=3)), lambda: (_f([[1.0, 0.0, 0.0, 0.0]]), _r(1, 4, 3, seed=3))],
    },
    {
        "name": "rodrigues", "object": "AxisAngleToMatrix", "kind": "function", "order": "first", "fits": ["nan"],
        "bug": "the slopes of the coefficients are 0/0 at the zero rotation",
        "inputs": lambda: (_f([[0.0, 0.0, 0.0], [0.3, -0.5, 0.8]]),),
        "more": [lambda: (_r(3, seed=1),), lambda: (_f([[1e-2, 0.0, 2e-2], [2.5, -0.5, 0.1]]),), lambda: (_r(2, 2, 3, seed=5),)],
    },
    {
        "name": "face_normals", "object": "FaceNormals", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "a vertex that several faces share keeps one face's share only",
        "inputs": lambda: (_r(4, 3), _i(TETRA)),
        "more": [lambda: (_r(5, 3, seed=2), _i([[0, 1, 2]])), lambda: (_r(6, 3, seed=4), _i([[0, 1, 2], [3, 4, 5], [5, 0, 2]]))],
    },
    {
        "name": "pinhole", "object": "PinholeProject", "kind": "function", "order": "first", "fits": ["none for an input"],
        "bug": "the distortion coefficients get no gradient",
        "inputs": lambda: ((_d(_r(4, 3, scale=0.5)) + _f([0.0, 0.0, 2.5]).detach()).requires_grad_(), _f([1.2, 1.1, 0.3, 0.2]), _f([0.1, -0.03])),
        "more": [
            lambda: ((_d(_r(3, 3, scale=0.5)) + _f([0.0, 0.0, 2.5]).detach()).requires_grad_(), _f([1.2, 1.1, 0.3, 0.2])),
            lambda: ((_d(_r(2, 3, scale=0.4)) + _f([0.0, 0.0, 3.0]).detach()).requires_grad_(), _f([1.2, 1.1, 0.3, 0.2]), None),
        ],
    },
    {
        "name": "ray_sphere", "object": "RaySphere", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "rays that miss are not masked",
        "inputs": lambda: (
            _f([[0.0, 0.1, -3.0], [0.2, -0.3, -2.5], [3.0, 0.0, -3.0]]),
            _f([[0.05, 0.0, 1.0], [0.0, 0.1, 0.9], [0.1, 0.2, 1.0]]), _f([0.1, 0.0, 0.2]), _f(1.0),
        ),
        "more": [lambda: (_f([[0.0, 0.1, -3.0]]), _f([[0.1, 0.0, 2.0]]), _f([0.0, 0.1, 0.0]), _f(0.7), 50.0),
                 lambda: (_f([[0.0, 0.1, 3.0], [0.0, 0.0, -2.0]]), _f([[0.1, 0.0, 2.0], [0.0, 0.1, 1.0]]), _f([0.0, 0.1, 0.0]), _f(0.7), 5.0)],
    },
    {
        "name": "catmull_rom", "object": "CatmullRom", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the curve parameter's gradient lacks the number of segments",
        "inputs": lambda: (_r(5, 2), _f([0.1, 0.37, 0.6, 0.93])),
        "more": [
            lambda: (_r(4, 3, seed=1), _f([0.1, 0.37, 0.6]), 0.3, True),
            lambda: (_r(4, 2, seed=1), _f([-0.2, 0.4, 1.3]), 0.8, False),
            lambda: (_r(2, 1, seed=1), _f([0.4])),
        ],
    },
    {
        "name": "point_segment", "object": "PointSegmentDistance", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the first end's gradient lacks its share 1 - t",
        "inputs": lambda: (_f([[0.5, 1.0, 0.2], [-1.0, 0.4, 0.1], [3.0, 0.5, -0.4]]), _f([[0.0, 0.0, 0.0]] * 3), _f([[1.5, 0.1, 0.3]] * 3)),
        "more": [lambda: (_r(4, 3), _r(4, 3, seed=1), _r(4, 3, seed=2))],
    },
    {
        "name": "spring_energy", "object": "spring_energy", "kind": "callable", "order": "first", "fits": ["value"],
        "bug": "the stiffness's gradient lacks the factor one half",
        "inputs": lambda: (_r(4, 2), _i(EDGES), _u(5, lo=0.5, hi=1.5), _u(5, seed=1, lo=1.0, hi=2.0)),
        "more": [lambda: (_r(4, 3), _i(EDGES), _u(5), _u(5, seed=1, hi=3.0), 9.81)],
    },
    {
        "name": "nbody", "object": "NBodyAcceleration", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "backward softens with eps where the square is meant",
        "inputs": lambda: (_r(4, 3), _u(4, lo=0.5, hi=2.0), 1.0, 0.3),
        "more": [lambda: (_r(3, 3, seed=2), _u(3, lo=0.5, hi=2.0), 0.5, 0.8), lambda: (_r(2, 3, seed=2), _u(2))],
    },
    {
        "name": "heat_bc", "object": "HeatSteps", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "with Neumann ends the operator is not symmetric, and backward applies it untransposed",
        "inputs": lambda: (_r(2, 5), _u(5, lo=0.3, hi=1.0), 0.1, 0.5, 3, "neumann"),
        "more": [
            lambda: (_r(2, 5), _u(5, lo=0.3, hi=1.0), 0.1, 0.5, 3),
            lambda: (_r(1, 6), _u(6, lo=0.3, hi=1.0), 0.1, 0.5, 2, "periodic"),
            lambda: (_r(3, 3), _u(3, lo=0.3, hi=1.0), 0.05, 0.5, 1, "neumann"),
            lambda: (_r(3, 3), _u(3, lo=0.3, hi=1.0), 0.05, 0.5, 0, "neumann"),
        ],
    },
    {
        "name": "phi4_action", "object": "phi4_action", "kind": "callable", "order": "first", "fits": ["value"],
        "bug": "the force takes the forward neighbour twice and the backward one never",
        "inputs": lambda: (_r(2, 3, 4), _f(0.5), _f(1.2)),
        "more": [lambda: (_r(1, 4, 3, seed=1), _f(-0.5), _f(0.7))],
    },
    {
        "name": "peng_robinson", "object": "PengRobinson", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the temperature dependence of the attraction is left out of dP/dT",
        "inputs": lambda: (_f([280.0, 310.0, 350.0]), _f([150.0, 300.0, 900.0]), _f(0.225)),
        "more": [lambda: (_f([[310.0], [400.0]]), _f([200.0, 300.0, 400.0]), _f([0.1, 0.2, 0.3])),
                 lambda: (_f([400.0, 450.0]), _f(500.0), _f([0.01, 0.3]), 190.56, 4.599)],
    },
    {
        "name": "lj_pbc", "object": "LennardJonesPBC", "kind": "function", "order": "first", "fits": ["none for an input"],
        "bug": "the box gets no gradient (no virial)",
        "inputs": lambda: (_f(LJ), _f([4.2, 4.0, 4.4]), 1.9),
        "more": [lambda: (_f(LJ), _f([4.2, 4.0, 4.4]), 1.9, 0.5, 1.1), lambda: (_f(LJ[:2]), _f([4.2, 4.0, 4.4]), 0.4)],
    },
    {
        "name": "student_t", "object": "StudentTLogProb", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the degrees of freedom's gradient lacks the normaliser's 1/df",
        "inputs": lambda: (_r(4), _u(4, lo=2.0, hi=5.0), _r(4, seed=1), _u(4, seed=2, lo=0.5, hi=1.5)),
        "more": [lambda: (_r(3, 2), _f(3.0), _r(2, seed=1), _u(3, 1, seed=2, lo=0.5, hi=1.5))],
    },
    {
        "name": "vonmises", "object": "VonMisesLogProb", "kind": "function", "order": "second", "fits": ["value"],
        "bug": "the Bessel ratio is kept from forward, so the concentration has no second derivative",
        "inputs": lambda: (_r(4), _r(4, seed=1), _u(4, lo=0.5, hi=4.0)),
        "more": [lambda: (_r(2, 2), _r(2, 2, seed=1), _u(2, 2, lo=5.0, hi=60.0))],
    },
    {
        "name": "kl_gamma", "object": "kl_gamma", "kind": "callable", "order": "first", "fits": ["value"],
        "bug": "the trigamma term lacks its factor a1 - a2",
        "inputs": lambda: tuple(_u(4, seed=k, lo=0.6, hi=3.0) for k in range(4)),
        "more": [lambda: tuple(_u(2, 3, seed=k + 5, lo=0.3, hi=5.0) for k in range(4))],
    },
    {
        "name": "planar_flow", "object": "PlanarFlow", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "w lacks the log-determinant's direct term",
        "make": lambda m: _seeded(m(3), scale=0.4),
        "inputs": lambda: (_r(4, 3),),
        "more": [lambda: (_r(1, 3, seed=1),)],
    },
    {
        "name": "stick_breaking", "object": "StickBreaking", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the log-determinant counts one stick too many after each break",
        "inputs": lambda: (_r(2, 4),),
        "more": [lambda: (_r(1, seed=2),), lambda: (_r(2, 3, 2, seed=2),)],
    },
    {
        "name": "garman", "object": "garman_kohlhagen", "kind": "callable", "order": "first", "fits": ["value"],
        "bug": "the foreign rho of a put has the sign of a call's",
        "inputs": lambda: (_u(4, lo=0.9, hi=1.2), _u(4, seed=1, lo=0.9, hi=1.2), _u(4, seed=2, hi=0.1), _u(4, seed=3, hi=0.1),
                           _u(4, seed=4, lo=0.1, hi=0.4), _u(4, seed=5, lo=0.3, hi=2.0), False),
        "more": [lambda: (_u(3, lo=0.9, hi=1.2), _u(3, seed=1, lo=0.9, hi=1.2), _u(3, seed=2, hi=0.1), _u(3, seed=3, hi=0.1),
                          _u(3, seed=4, lo=0.1, hi=0.4), _u(3, seed=5, lo=0.3, hi=2.0))],
    },
    {
        "name": "max_drawdown", "object": "MaxDrawdown", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the peak is treated as a constant",
        "inputs": lambda: (_u(3, 6, lo=0.5, hi=2.0),),
        "more": [lambda: (_u(1, 9, seed=3, lo=0.5, hi=2.0),), lambda: (_f([[1.0, 1.2, 0.7, 1.5, 1.4]]),)],
    },
    {
        "name": "angular_spectrum", "object": "AngularSpectrum", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the transfer function is not conjugated in backward",
        "inputs": lambda: (_c(3, 4), _f(1.3)),
        "more": [lambda: (_c(2, 4, 4), _f(0.6), 0.5, 0.8), lambda: (_c(1, 5, 3), torch.tensor(2.0, dtype=F64), 1.0, 0.5)],
    },
    {
        "name": "one_pole", "object": "OnePole", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "the coefficient's gradient takes y[t] for y[t-1]",
        "make": lambda m: _seeded(m(2)),
        "inputs": lambda: (_r(2, 2, 5),),
        "more": [lambda: (_r(1, 2, 1, seed=1),), lambda: (_r(3, 2, 8, seed=1),)],
    },
    {
        "name": "overlap_add", "object": "OverlapAdd", "kind": "function", "order": "first", "fits": ["layout"],
        "bug": "as_strided on a gradient that may not be contiguous",
        "inputs": lambda: (_r(2, 3, 4), _u(4, lo=0.5, hi=1.5), 2),
        "more": [lambda: (_r(2, 3, 4), _u(4, lo=0.5, hi=1.5), 2, False), lambda: (_r(3, 2, 5), _u(5, lo=0.5, hi=1.5), 2, True),
                 lambda: (_r(1, 2, 3), _u(3, lo=0.5, hi=1.5), 3)],
    },
    {
        "name": "fractional_delay", "object": "FractionalDelay", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the delay's gradient has the wrong sign",
        "inputs": lambda: (_r(2, 3, 6), _f([0.4, 1.7, 2.2])),
        "more": [lambda: (_r(1, 2, 4, seed=1), _f([3.5, 6.3]))],
    },
    {
        "name": "mod_relu", "object": "ModReLU", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "the radial part is taken without the conjugate",
        "make": lambda m: _seeded(m(2)),
        "inputs": lambda: (_c(2, 2, 3),),
        "more": [lambda: (_c(1, 2, 5, seed=1, scale=0.3),)],
    },
    {
        "name": "amplitude_loss", "object": "AmplitudeLoss", "kind": "function", "order": "first", "fits": ["nan", "value"],
        "bug": "backward takes the modulus without eps: NaN where the field is zero",
        "inputs": lambda: (_cf([1 + 0.5j, 0j, -0.3 + 2j]), _u(3)),
        "more": [lambda: (_c(2, 3), _u(2, 3), 1e-2, "none"), lambda: (_c(2, 2), _u(2, 2), 0.1, "sum")],
    },
    {
        "name": "mvdr", "object": "MVDRWeights", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the covariance's gradient lacks a conjugate",
        "inputs": lambda: (_hpd(2, 3), _c(2, 3, seed=1)),
        "more": [lambda: (_hpd(1, 2, seed=2), _c(1, 2, seed=3), 0.1)],
    },
    {
        "name": "tv_loss", "object": "TotalVariation", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the mean over the batch is divided by the number of pixels",
        "inputs": lambda: (_r(2, 1, 3, 4),),
        "more": [lambda: (_r(2, 2, 3, 3), 1e-2, "none"), lambda: (_r(3, 1, 2, 2), 1e-2, "sum"), lambda: (_r(2, 1, 1, 3), 0.1, "mean")],
    },
    {
        "name": "dilation", "object": "Dilation2d", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "the structuring element's gradient is averaged over the batch",
        "make": lambda m: _seeded(m(2, 3), scale=0.3),
        "inputs": lambda: (_r(2, 2, 4, 3),),
        "more": [lambda: (_r(1, 2, 3, 3, seed=1),)],
    },
    {
        "name": "affine_warp", "object": "AffineWarp", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "vertical motion is scaled with the width",
        "inputs": lambda: (_r(2, 2, 3, 5), _f([[[0.9, 0.13, 0.07], [-0.11, 0.87, 0.05]], [[0.7, -0.2, 0.21], [0.15, 0.8, -0.12]]])),
        "more": [lambda: (_r(1, 1, 4, 4, seed=1), _f([[[1.3, 0.17, 0.33], [-0.21, 1.2, 0.11]]]))],
    },
    {
        "name": "volume_render", "object": "VolumeRender", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "a sample shades itself: its own weight is among those behind it",
        "inputs": lambda: (_u(2, 4, hi=2.0), _u(2, 4, 3, seed=1), _u(2, 4, seed=2, lo=0.1, hi=0.5), _u(3, seed=3)),
        "more": [lambda: (_u(3, 2, hi=2.0), _u(3, 2, 3, seed=1), _u(3, 2, seed=2, lo=0.1, hi=0.5)),
                 lambda: (_u(1, 1, hi=2.0), _u(1, 1, 3, seed=1), _d(_u(1, 1, seed=2)), None)],
    },
    {
        "name": "sinkhorn", "object": "SinkhornLog", "kind": "function", "order": "first", "fits": ["state"],
        "bug": "the tape of intermediates is shared by all calls of one shape",
        "inputs": lambda: (_r(2, 3, 3), 0.7, 4),
        "more": [lambda: (_r(1, 3, 4, seed=1), 1.3, 2), lambda: (_r(1, 2, 2, seed=2), 0.8, 0), lambda: (_r(2, 2, 3),)],
    },
    {
        "name": "deq_layer", "object": "DEQLayer", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "the adjoint system is solved with J, not its transpose",
        "make": lambda m: _seeded(m(2, 3), scale=0.35),
        "inputs": lambda: (_r(2, 2),),
        "more": [lambda: (_r(1, 2, seed=1),)],
    },
    {
        "name": "qp_eq", "object": "EqualityQP", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the constraint matrix lacks the multipliers' term",
        "inputs": lambda: (_spd(4), _r(4, seed=1), _r(2, 4, seed=2), _r(2, seed=3)),
        "more": [lambda: (_spd(2, seed=4), _r(2, seed=1), _r(1, 2, seed=2), _r(1, seed=3))],
    },
    {
        "name": "soc_projection", "object": "SOCProjection", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "points in the polar cone count as inside",
        "inputs": lambda: (_f([2.0, -3.0, 0.3, -0.4]), _f([[0.5, 0.7], [1.0, -0.5], [1.2, 0.4], [-0.9, 1.1]])),
        "more": [lambda: (_f([-1.0, 1.0]), _f([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])), lambda: (_r(6, seed=2), _r(6, 3, seed=3))],
    },
    {
        "name": "kepler", "object": "EccentricAnomaly", "kind": "function", "order": "second", "fits": ["value"],
        "bug": "the anomaly is kept detached, so second derivatives lack its change",
        "inputs": lambda: (_r(4), _u(4, lo=0.1, hi=0.7)),
        "more": [lambda: (_r(2, 3, seed=1), _u(2, 3, hi=0.5), 20)],
    },
    {
        "name": "log_ndtr", "object": "LogNormalCDF", "kind": "function", "order": "first", "fits": ["nan"],
        "bug": "density over probability is 0/0 in the far tail",
        "inputs": lambda: (_f([-40.0, -1.0, 0.5, 3.0]),),
        "more": [lambda: (_r(5), torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0], dtype=F64)), lambda: (_f([-12.0, 5.0]), None)],
    },
    {
        "name": "lambert_w", "object": "lambert_w0", "kind": "callable", "order": "first", "fits": ["nan"],
        "bug": "w / (x (1 + w)) is 0/0 at zero",
        "inputs": lambda: (_f([0.0, 0.5, 2.0, 30.0]),),
        "more": [lambda: (_u(2, 3, lo=-0.25, hi=4.0),)],
    },
    {
        "name": "sym_laplacian", "object": "SymLaplacian", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the degrees are treated as constants in the weights' gradient",
        "inputs": lambda: (_r(4, 2), _i(GRAPH), _u(6, lo=0.5, hi=2.0)),
        "more": [lambda: (_r(5, 3, seed=1), _i(GRAPH), _u(6, lo=0.5, hi=2.0), 0.5),
                 lambda: (_r(4, 1, seed=1), _i([[0, 0, 1], [1, 1, 1]]), _u(3, lo=0.5, hi=2.0), 1.0)],
    },
    {
        "name": "irregular_ema", "object": "IrregularEMA", "kind": "function", "order": "first", "fits": ["dtype float32", "value"],
        "bug": "backward takes unix times as float32, which resolves 128 s only",
        "inputs": lambda: (_r(2, 4, 2), _i(STAMPS), _u(2, lo=0.3, hi=1.0)),
        "more": [lambda: (_r(1, 4, 1, seed=1), _i(STAMPS[:1]), _u(1, lo=0.3, hi=1.0), 30.0)],
    },
    {
        "name": "group_norm", "object": "FusedGroupNorm", "kind": "module", "order": "first", "fits": ["layout"],
        "bug": "view of a gradient that may not be contiguous",
        "make": lambda m: _seeded(m(2, 4), scale=0.8),
        "inputs": lambda: (_r(2, 4, 3),),
        "more": [lambda: (_r(2, 4, 2, 2, seed=1),), lambda: (_r(3, 4, seed=1),)],
    },
    {
        "name": "snake", "object": "Snake1d", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "the 1/alpha term of alpha's gradient has the wrong sign",
        "make": lambda m: _seeded(m(2)),
        "inputs": lambda: (_r(2, 2, 3),),
        "more": [lambda: (_r(1, 2, 1, seed=1),)],
    },
    {
        "name": "weight_norm_linear", "object": "WeightNormLinear", "kind": "module", "order": "first", "fits": ["value"],
        "bug": "the norm is treated as a constant in v's gradient",
        "make": lambda m: _positive_gain(m(3, 2)),
        "inputs": lambda: (_r(4, 3),),
        "more": [lambda: (_r(2, 2, 3, seed=1),)],
    },
    {
        "name": "focal_softmax", "object": "FocalSoftmax", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "rows of the ignored index get a gradient",
        "inputs": lambda: (_r(4, 3), _i([2, -100, 0, 1])),
        "more": [
            lambda: (_r(4, 3), _i([2, 0, 0, 1]), 1.5, 0, torch.tensor([0.5, 1.0, 2.0], dtype=F64)),
            lambda: (_r(2, 5), _i([4, 1]), 3.0),
        ],
    },
    {
        "name": "label_smooth_ce", "object": "LabelSmoothingCrossEntropy", "kind": "function", "order": "first", "fits": ["number of gradients"],
        "bug": "backward returns one gradient too few when z_loss is given",
        "inputs": lambda: (_r(3, 4), _i([1, 3, 0]), 0.1, "mean", 1e-2),
        "more": [lambda: (_r(3, 4), _i([1, 3, 0]), 0.2, "sum"), lambda: (_r(2, 2, 3), _i([[1, 2], [0, 0]]), 0.0, "none", 0.1), lambda: (_r(2, 3), _i([1, 2]))],
    },
    {
        "name": "causal_dwconv", "object": "CausalDepthwiseConv", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "overlapping taps overwrite one another in the input's gradient",
        "inputs": lambda: (_r(2, 2, 5), _r(2, 3, seed=1), _r(2, seed=2)),
        "more": [lambda: (_r(2, 2, 6), _r(2, 3, seed=1), _r(2, seed=2), 2, 1), lambda: (_r(1, 3, 7), _r(3, 2, seed=1), None, 1, 2),
                 lambda: (_r(1, 3, 6), _r(3, 2, seed=1), None, 3, 4), lambda: (_r(1, 1, 2), _r(1, 4, seed=1))],
    },
    {
        "name": "softcap_attention", "object": "SoftcapAttention", "kind": "function", "order": "first", "fits": ["modified in place"],
        "bug": "the saved probabilities are changed in place by backward",
        "inputs": lambda: (_r(1, 2, 3, 2), _r(1, 2, 3, 2, seed=1), _r(1, 2, 3, 2, seed=2)),
        "more": [lambda: (_r(1, 1, 3, 2), _r(1, 1, 4, 2, seed=1), _r(1, 1, 4, 3, seed=2), 1.5, True),
                 lambda: (_r(2, 1, 2, 3), _r(2, 1, 4, 3, seed=1), _r(2, 1, 4, 2, seed=2), 20.0, False)],
    },
    {
        "name": "rope", "object": "RotaryEmbedding", "kind": "function", "order": "first", "fits": ["modified in place"],
        "bug": "the incoming gradient is written over",
        "inputs": lambda: (_r(2, 1, 3, 4), _i([0, 1, 5])),
        "more": [lambda: (_r(2, 2, 3, 6), _i([[0, 1, 2], [7, 8, 9]]), 500.0)],
    },
    {
        "name": "embedding_bag", "object": "WeightedEmbeddingBag", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the weights of padding entries get a gradient",
        "inputs": lambda: (_r(5, 3), _i([[1, 2, 0], [4, 4, 1]]), _r(2, 3, seed=1), 0),
        "more": [
            lambda: (_r(5, 3), _i([[1, 2, 0], [4, 4, 1]])),
            lambda: (_r(5, 3), _i([[1, 2, 3], [3, 4, 1]]), _r(2, 3, seed=1), 3, True),
            lambda: (_r(4, 2), _i([[1, 2, 3], [2, 2, 2]]), None, 2, True),
            lambda: (_r(4, 2), _i([[1, 2, 3], [2, 2, 2]]), _r(2, 3), None, True),
        ],
    },
    {
        "name": "lp_pool", "object": "LPPool1d", "kind": "function", "order": "first", "fits": ["nan"],
        "bug": "a window of zeros gives 0/0",
        "inputs": lambda: (_f([[[0.3, -1.2, 0.0, 0.0, 0.7]], [[1.1, 0.4, 0.9, -0.2, 0.5]]]), 2),
        "more": [lambda: (_r(2, 2, 7), 3), lambda: (_r(1, 2, 6, seed=1), 2, 4)],
    },
    {
        "name": "swiglu_packed", "object": "swiglu_packed", "kind": "callable", "order": "first", "fits": ["value"],
        "bug": "with a limit, clamped values still get a gradient",
        "inputs": lambda: (_r(3, 4, scale=1.5), 1.0, 0.8),
        "more": [lambda: (_r(2, 2, 6),), lambda: (_r(5, 2), 1.702), lambda: (_r(4), 1.0, 7.0)],
    },
    {
        "name": "bias_gelu", "object": "bias_gelu", "kind": "callable", "order": "first", "fits": ["modified in place", "value"],
        "bug": "the incoming gradient, which the residual shares, is multiplied in place",
        "inputs": lambda: (_r(3, 4), _r(4, seed=1), _r(3, 4, seed=2)),
        "more": [lambda: (_r(2, 3, 2), _r(2, seed=1)), lambda: (_r(2, 3), _r(2, 1, seed=1), _r(2, 3))],
    },
    {
        "name": "fake_quant", "object": "FakeQuantize", "kind": "function", "order": "first", "fits": ["value"],
        "bug": "the range is compared with the values, not with their codes",
        "inputs": lambda: (_f([0.13, -0.72, 1.31, -2.4, 0.48]), 0.1, 4),
        "more": [lambda: (_r(3, 3), 0.01), lambda: (_r(6, seed=1), 0.5, 2)],
        "surrogate": lambda x, scale, bits=8: lambda x, scale, bits=8: x.clamp(-(2 ** (bits - 1)) * scale, (2 ** (bits - 1) - 1) * scale),
    },
]

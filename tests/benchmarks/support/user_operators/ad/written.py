import math
import torch


def _gen(seed):
    return torch.Generator().manual_seed(seed)


def rn(seed, *shape, grad=True, scale=1.0, shift=0.0):
    t = torch.randn(*shape, generator=_gen(seed), dtype=torch.float64) * scale + shift
    return t.requires_grad_(grad)


def un(seed, lo, hi, *shape, grad=True):
    t = torch.rand(*shape, generator=_gen(seed), dtype=torch.float64) * (hi - lo) + lo
    return t.requires_grad_(grad)


def cn(seed, *shape, grad=True, scale=1.0):
    t = torch.randn(*shape, generator=_gen(seed), dtype=torch.complex128) * scale
    return t.requires_grad_(grad)


def ix(seed, lo, hi, *shape):
    return torch.randint(lo, hi, shape, generator=_gen(seed))


def mk(seed, p, *shape):
    return torch.rand(*shape, generator=_gen(seed), dtype=torch.float64) < p


def tt(values, grad=True):
    return torch.tensor(values, dtype=torch.float64).requires_grad_(grad)


def li(values):
    return torch.tensor(values, dtype=torch.long)


# Of the right ones with order "first", these have a wrong second derivative (or refuse it, once_differentiable):
# only their first derivative is meant:
# lncc ctf_apply siddon_project inversion_recovery van_genuchten sar_coherence spectral_angle river_routing
# lat_weighted_rmse kepler_solver visibility_dft moffat_psf soft_demapper boxplus_check rapp_pa mvdr_spectrum
# pulse_compression delay_and_sum soft_needleman_wunsch soft_lddt hmm_loglik zinb_log_prob torsion_angles hines_solve
# divisive_normalization atan_spike lif_bptt thomas_solve radial_return lj_periodic real_sph_harm_l2 trilinear_lookup
# alpha_composite so3_exp pcen_frontend si_sdr frame_window rnnt_loss preemphasis_inplace

CASES = [
    dict(name="lncc", order="first", object="LocalNCC", kind="function", fits=["missing"], bug="the share of the window mean in the variance of the moving image is left out of the gradient of moving",
inputs=lambda: (rn(1, 1, 1, 5, 6), rn(2, 1, 1, 5, 6), 3, 1e-2), more=[lambda: (rn(3, 2, 1, 6, 5), rn(4, 2, 1, 6, 5), 5, 1e-1), lambda: (rn(3, 1, 1, 4, 5, grad=False), rn(4, 1, 1, 4, 5), 3, 1e-1)]),
    dict(name="ctf_apply", order="first", object="ApplyCTF", kind="function", fits=["value"], bug="the gradient of the defocus forgets the phase shift of the amplitude contrast",
inputs=lambda: (rn(5, 2, 6, 6), un(6, 0.5, 1.5, 2), 4.0, 0.0197, 2.7, 0.1), more=[lambda: (rn(7, 1, 7, 7), un(8, 0.5, 1.5, 1), 3.0, 0.025, 0.0, 0.0), lambda: (rn(7, 1, 5, 5, grad=False), un(8, 0.5, 1.5, 1), 3.0)]),
    dict(name="siddon_project", order="first", object="SiddonForwardProject", kind="function", fits=["dtype"], bug="the backprojection buffer is always float32, so doubles raise in index_add_",
inputs=lambda: (rn(9, 12), ix(10, -1, 12, 5, 4), un(11, 0.2, 1.4, 5, 4, grad=False)), more=[lambda: (rn(12, 4), ix(13, 0, 4, 3, 6), un(14, 0.2, 1.4, 3, 6, grad=False))]),
    dict(name="sense_operator", order="first", object="SenseOperator", kind="module", make=lambda cls: cls((4, 3), accel=2, acs=1).double(), fits=["value"], bug="the image is not conjugated in the gradient of the coil maps",
inputs=lambda: (cn(15, 2, 4, 3), cn(16, 3, 4, 3)), more=[lambda: (cn(17, 1, 4, 3), cn(18, 1, 4, 3, grad=False))]),
    dict(name="inversion_recovery", order="first", object="inversion_recovery", kind="callable", fits=["value"], bug="the inversion efficiency is forgotten in the gradient of m0",
inputs=lambda: (un(19, 0.5, 2, 4), un(20, 0.5, 2, 4), tt([0.1, 0.4, 1.1, 2.9]), 0.9, True), more=[lambda: (un(21, 0.5, 2, 3), un(22, 0.5, 2, 3), tt([0.1, 1.5], False), 1.0, False)]),
    dict(name="kspace_consistency", order="first", object="DataConsistency", kind="module", make=lambda cls: cls(0.7).double(), fits=["value"], bug="the derivative by the noise level has 1 + v to the first power instead of the second",
inputs=lambda: (cn(23, 2, 3, 4), cn(24, 2, 3, 4), mk(25, 0.5, 3, 4).double()), more=[lambda: (cn(26, 1, 5, 2), cn(27, 1, 5, 2, grad=False), torch.zeros(5, 2, dtype=torch.float64))]),
    dict(name="crps_ensemble", order="first", object="EnsembleCRPS", kind="function", fits=["value"], bug="backward ignores the option fair",
inputs=lambda: (rn(28, 4, 3, 2), rn(29, 3, 2), True), more=[lambda: (rn(30, 5, 6), rn(31, 6), False), lambda: (rn(30, 2, 3), rn(31, 3, grad=False), True)]),
    dict(name="van_genuchten", order="first", object="VanGenuchten", kind="function", fits=["nan"], bug="0 * log(0) makes the gradient of n NaN for a layer that is saturated anywhere",
inputs=lambda: (tt([[-1.0, -0.3, 0.4], [-2.0, 0.2, -0.9]]), un(32, 0.5, 2, 3), un(33, 1.3, 2.5, 3), un(34, 0.02, 0.1, 3), un(35, 0.35, 0.5, 3)),
more=[lambda: (un(36, -3, -0.1, 4, 2), un(37, 0.5, 2, 2), un(38, 1.3, 2.5, 2), un(39, 0.02, 0.1, 2), un(40, 0.35, 0.5, 2))]),
    dict(name="sar_coherence", order="first", object="InterferometricCoherence", kind="function", fits=["value"], bug="the phase is not conjugated in the gradient of the second image",
inputs=lambda: (cn(41, 3, 5), cn(42, 3, 5), 1e-6), more=[lambda: (cn(43, 2, 2, 4), cn(44, 2, 2, 4), 0.1), lambda: (cn(43, 4, 3), cn(44, 4, 3, grad=False), 1e-3)]),
    dict(name="spectral_angle", order="first", object="spectral_angle", kind="callable", fits=["nan"], bug="a pixel whose two spectra agree gives 0 times infinity",
inputs=lambda: (tt([[1.0, 0.0, 0.0], [0.2, 0.4, 0.9]]), tt([[2.0, 0.0, 0.0], [0.3, 0.1, 0.8]]), 1e-7, "mean"),
more=[lambda: (un(45, 0.1, 1, 2, 3, 4), un(46, 0.1, 1, 2, 3, 4), 1e-7, "none"), lambda: (un(45, 0.1, 1, 3, 5), un(46, 0.1, 1, 3, 5, grad=False), 1e-6, "sum")]),
    dict(name="river_routing", order="first", object="route_runoff", kind="callable", fits=["value"], bug="the -1 of an outlet picks the last reach in the gradient of keep",
inputs=lambda: (un(47, 0.1, 2, 2, 5), un(48, 0.5, 0.9, 5), li([2, 2, 4, 4, -1]), li([0, 1, 2, 3, 4])),
more=[lambda: (un(49, 0.1, 2, 4), un(50, 0.5, 0.9, 4, grad=False), li([-1, 0, 0, 1]), li([3, 1, 2, 0]))]),
    dict(name="lat_weighted_rmse", order="first", object="LatWeightedRMSE", kind="module", make=lambda cls: cls([-60, -20, 20, 60.0], var_weights=[1.0, 0.3]), fits=["value"], bug="backward lays the latitude weights along the longitudes",
inputs=lambda: (rn(51, 2, 2, 4, 4), rn(52, 2, 2, 4, 4, grad=False)), more=[lambda: (rn(53, 1, 2, 4, 4), rn(54, 1, 2, 4, 4))]),
    dict(name="degree_day_snow", order="first", object="DegreeDaySnow", kind="module", make=lambda cls: cls(2.5, 0.2).double(), fits=["state"], bug="a call without swe0 starts from the snow pack that the call before left",
inputs=lambda: (un(55, 1, 4, 6, 3), rn(56, 6, 3, scale=2.0)), more=[lambda: (un(57, 0.5, 6, 5, 2), rn(58, 5, 2, scale=3.0), un(59, 1, 5, 2)), lambda: (un(57, 0.5, 6, 4, 2), rn(60, 4, 2, scale=3.0, grad=False))]),
    dict(name="kepler_solver", order="first", object="KeplerSolve", kind="function", fits=["value"], bug="the gradient of the eccentricity lacks the division by 1 - e cos E",
inputs=lambda: (rn(61, 2, 5, scale=1.5), un(62, 0.1, 0.6, 2, 1)), more=[lambda: (rn(63, 6, scale=1.5), un(64, 0.1, 0.6, 6)), lambda: (rn(63, 6, scale=1.5), un(64, 0.1, 0.6, 1, grad=False))]),
    dict(name="visibility_dft", order="first", object="PointSourceVis", kind="function", fits=["value"], bug="the w term of the gradient of m takes l",
inputs=lambda: (un(65, 0.5, 2, 3), rn(66, 3, 2, scale=0.1), rn(67, 4, 3, scale=2.0)), more=[lambda: (un(65, 0.5, 2, 2), rn(66, 2, 2, scale=0.1), rn(67, 5, 3, grad=False), False), lambda: (un(65, 0.5, 2, 1), rn(66, 1, 2, scale=0.1), rn(67, 2, 3), False)]),
    dict(name="moffat_psf", order="first", object="MoffatStamp", kind="function", fits=["state"], bug="the cached pixel grid is shifted in place, so each call starts from the grid the call before moved",
inputs=lambda: (tt(3.0), tt([0.4, -0.7]), tt(1.3), 2.5, 5), more=[lambda: (tt(0.5), tt([0.1, 0.2]), tt(2.0), 3.1, 4), lambda: (tt(0.5, False), tt([0.0, 0.0]), tt(0.8, False), 2.1, 3)]),
    dict(name="soft_demapper", order="first", object="AppDemapper", kind="function", fits=["none", "missing"], bug="the noise power gets no gradient unless the constellation asks for one",
inputs=lambda: (cn(68, 2, 3), un(69, 0.3, 1, 2, 1), cn(70, 4, grad=False), torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.bool)),
more=[lambda: (cn(71, 1, 3), un(72, 0.3, 1, 1, 1), cn(73, 4), torch.tensor([[0, 0], [0, 1], [1, 1], [1, 0]], dtype=torch.bool), True), lambda: (cn(71, 2, 2, grad=False), un(72, 0.3, 1, 2, 1), cn(73, 2), torch.tensor([[0], [1]], dtype=torch.bool))]),
    dict(name="boxplus_check", order="first", object="CheckNodeTanh", kind="function", fits=["nan"], bug="the product over the others is got by division, which is 0 / 0 for an erased bit",
inputs=lambda: (tt([[0.7, -1.2, 0.0, 2.1], [1.3, 0.4, -0.6, 0.9]]),), more=[lambda: (rn(74, 3, 5), 8.0), lambda: (rn(75, 2, 3, 3),)]),
    dict(name="rapp_pa", order="first", object="RappAmplifier", kind="function", fits=["missing"], bug="the dependence of the gain on |x| is left out of the gradient of x",
inputs=lambda: (cn(76, 2, 5), tt(0.9), 1.5, 2.0), more=[lambda: (cn(77, 6), tt([1.1]), 1.0, 3.0)]),
    dict(name="memory_polynomial", order="first", object="MemoryPolynomialPD", kind="module", make=lambda cls: cls(3, 3), fits=["value"], bug="backward shifts by torch.roll, so the first outputs leak into the last inputs",
inputs=lambda: (cn(78, 2, 6),), more=[lambda: (cn(79, 8),)]),
    dict(name="mvdr_spectrum", order="first", object="CaponPower", kind="function", fits=["missing"], bug="the loading depends on the trace of R, which backward leaves out",
inputs=lambda: ((lambda z: (z @ z.mH + torch.eye(3)).detach().requires_grad_())(cn(80, 3, 5, grad=False)), cn(81, 4, 3), 0.1),
more=[lambda: ((lambda z: (z @ z.mH + torch.eye(4)).detach().requires_grad_())(cn(82, 4, 6, grad=False)), cn(83, 2, 4), 0.0), lambda: (torch.eye(2, dtype=torch.complex128).requires_grad_(), cn(83, 2, 2, grad=False), 0.3)]),
    dict(name="pulse_compression", order="first", object="PulseCompression", kind="function", fits=["dtype"], bug="backward drops a complex128 gradient to complex64",
inputs=lambda: (cn(84, 2, 7), cn(85, 3)), more=[lambda: (cn(86, 5), cn(87, 4)), lambda: (cn(86, 2, 2, 4, grad=False), cn(87, 2))]),
    dict(name="delay_and_sum", order="first", object="delay_and_sum", kind="callable", fits=["value"], bug="taps outside the record count as zero in forward but still get and give gradient",
inputs=lambda: (rn(88, 3, 8), tt([[0.3, 2.6, -1.4, 5.2], [3.7, 9.5, 6.4, 0.2], [1.5, 1.2, 1.9, 4.4]]), un(89, 0.2, 1, 3)),
more=[lambda: (rn(90, 2, 6), un(91, 0.1, 4.9, 2, 5)), lambda: (rn(90, 2, 6), tt([[0.5, 7.3], [-0.7, 1.6]], False), tt([0.4, 0.0]))]),
    dict(name="soft_needleman_wunsch", order="first", object="SoftNW", kind="function", fits=["missing"], bug="gaps at the two ends (the initial row and column) give no gradient to the gap penalty",
inputs=lambda: (rn(101, 3, 4), tt(0.6), 1.0), more=[lambda: (rn(102, 2, 2), tt(1.1), 0.5), lambda: (rn(103, 4, 3), tt(0.3, False), 2.0)]),
    dict(name="soft_lddt", order="first", object="SoftLDDT", kind="function", fits=["modified"], bug="backward divides the saved differences in place, so it cannot run twice",
inputs=lambda: (rn(104, 5, 3, scale=3.0), rn(105, 5, 3, scale=3.0, grad=False), tt([1, 1, 0, 1, 1.0], False), 9.0), more=[lambda: (rn(106, 4, 3, scale=2.0), rn(107, 4, 3, scale=2.0, grad=False), tt([1, 1, 1, 1.0], False))]),
    dict(name="hmm_loglik", order="first", object="HMMForward", kind="function", fits=["value"], bug="emissions beyond the end of a sequence get gradient",
inputs=lambda: (tt([-1.0, -0.5, -2.0]), rn(108, 3, 3), rn(109, 2, 5, 3), li([5, 3])), more=[lambda: (rn(110, 2), rn(111, 2, 2), rn(112, 3, 3, 2), li([3, 3, 3])), lambda: (rn(110, 2), rn(111, 2, 2, grad=False), rn(112, 1, 1, 2), li([1]))]),
    dict(name="zinb_log_prob", order="first", object="LogZINB", kind="function", fits=["value"], bug="the gradient of theta is not weighted by the share of the count model in the zeros",
inputs=lambda: (ix(113, 0, 4, 4, 3).double(), un(114, 0.5, 3, 4, 3), un(115, 0.5, 2, 3), rn(116, 4, 3)), more=[lambda: (ix(117, 1, 9, 3, 2).double(), un(118, 0.5, 3, 3, 2), un(119, 0.5, 2, 2), rn(120, 3, 2)), lambda: (torch.zeros(2, 2, dtype=torch.float64), un(118, 0.5, 3, 2, 2, grad=False), un(119, 0.5, 2, 2), rn(120, 2, 2))]),
    dict(name="torsion_angles", order="first", object="torsion_angles", kind="callable", fits=["value"], bug="the sign of the H.G term of the two middle atoms is wrong",
inputs=lambda: (rn(121, 6, 3), li([[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]])), more=[lambda: (rn(122, 4, 3), li([[3, 1, 0, 2]]), True)]),
    dict(name="hines_solve", order="first", object="HinesSolve", kind="function", fits=["value"], bug="backward solves with the matrix instead of its transpose",
inputs=lambda: (un(123, 3, 4, 2, 5), un(124, -1, -0.3, 2, 5), un(125, -0.8, -0.1, 2, 5), rn(126, 2, 5), [-1, 0, 1, 1, 3]), more=[lambda: (un(127, 3, 4, 1, 3), un(128, -1, -0.3, 1, 3), un(129, -1, -0.3, 1, 3), rn(130, 1, 3), [-1, 0, 0])]),
    dict(name="divisive_normalization", order="first", object="DivisiveNormalization", kind="module", make=lambda cls: cls(4).double(), fits=["value"], bug="the pool matrix is transposed in the gradient through the denominator",
inputs=lambda: (un(131, 0.2, 2, 3, 4),), more=[lambda: (un(132, 0.2, 2, 1, 4),)]),
    dict(name="atan_spike", order="first", object="SpikeATan", kind="module", make=lambda cls: cls(3, 0.5, 2.0).double(), surrogate=True, fits=["value"], bug="the surrogate gradient of the threshold has the wrong sign",
inputs=lambda: (rn(133, 2, 4, 3),), more=[lambda: (rn(134, 5, 3),)]),
    dict(name="lif_bptt", order="first", object="LIFLayer", kind="function", surrogate=True, fits=["value"], bug="the option detach_reset is ignored in backward",
inputs=lambda: (rn(135, 5, 2, 3, shift=0.6), un(136, 0.5, 0.95, 3), 1.0, 5.0, True), more=[lambda: (rn(137, 4, 1, 2, shift=0.6), un(138, 0.5, 0.95, 2), 0.8)]),
    dict(name="thomas_solve", order="first", object="TridiagonalSolve", kind="function", fits=["modified", "value"], bug="the elimination overwrites the caller's diagonal, which backward then takes for the original",
inputs=lambda: (un(139, -1, -0.2, 2, 4), un(140, 2, 3, 2, 4), un(141, -1, -0.2, 2, 4), rn(142, 2, 4)), more=[lambda: (un(143, -1, -0.2, 1, 6), un(144, 2, 3, 1, 6), un(145, -1, -0.2, 1, 6), rn(146, 1, 6)), lambda: (un(143, -1, -0.2, 3, 2, grad=False), un(144, 2, 3, 3, 2, grad=False), un(145, -1, -0.2, 3, 2, grad=False), rn(146, 3, 2))]),
    dict(name="radial_return", order="first", object="RadialReturn", kind="function", fits=["value"], bug="the continuum tangent is used for the consistent one (theta left at one)",
inputs=lambda: (rn(147, 3, 3, 3, scale=0.5), rn(148, 3, 3, 3, scale=0.1), un(149, 0.3, 0.6, 3)), more=[lambda: (rn(150, 2, 3, 3, scale=0.5), rn(151, 2, 3, 3, scale=0.1, grad=False), tt([9.0, 0.2]), 1.5, 0.8, 0.0)]),
    dict(name="graph_laplacian_cg", order="first", object="LaplacianSolve", kind="function", fits=["missing"], bug="the off-diagonal entries of the edge are left out of the gradient of its weight",
inputs=lambda: (rn(152, 5, 2), un(153, 0.5, 2, 6), li([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]]), 0.3), more=[lambda: (rn(154, 4, 1), un(155, 0.5, 2, 3), li([[0, 1, 2], [1, 2, 3]]), 1.0)]),
    dict(name="screened_poisson", order="first", object="ScreenedPoisson", kind="function", fits=["nan"], bug="without screening the zero mode is 0 / 0 in the gradient of kappa",
inputs=lambda: (rn(156, 1, 4, 4), tt(0.0), 2.0), more=[lambda: (rn(157, 2, 5, 5), tt(1.3), 3.0), lambda: (rn(157, 1, 3, 3, grad=False), tt(0.4))]),
    dict(name="ipc_barrier", object="LogBarrier", kind="function", order="second", fits=["missing"], bug="the slope is built from detached distances, so the Hessian of the barrier is zero",
inputs=lambda: (tt([0.02, 0.05, 0.08, 0.3]), 0.1, 10.0), more=[lambda: (un(158, 0.1, 0.9, 3, 2), 1.0, 1.0)]),
    dict(name="radial_envelope", object="PolynomialEnvelope", kind="function", order="second", fits=["missing"], bug="the saved lengths are detached, so what goes through them is missing from the second derivative",
inputs=lambda: (tt([0.8, 2.1, 3.3, 4.6]), rn(159, 4, 2), 4.0, 6), more=[lambda: (un(160, 0.5, 4.5, 3), rn(161, 3, 1), 5.0, 3), lambda: (un(160, 0.5, 4.5, 3), rn(161, 3, 2, grad=False), 5.0, 5)]),
    dict(name="lj_periodic", order="first", object="LennardJonesPBC", kind="function", fits=["value"], bug="the gradient of the cell is transposed",
inputs=lambda: (tt([[0.1, 0, 0.2], [1.2, 0.3, 0], [0.2, 1.3, 0.9]]), tt([[2.6, 0.1, 0], [0.3, 2.5, 0], [0, 0.2, 2.7]]), li([[0, 1, 0, 2, 1], [1, 0, 2, 0, 0]]), li([[0, 0, 0], [0, 0, 0], [0, 0, -1], [0, 1, 0], [1, 0, 1]]), 0.8, 1.1, 4.0),
more=[lambda: (tt([[0.1, 0, 0.2], [1.2, 0.3, 0]]), tt([[3.0, 0, 0], [0, 3, 0], [0, 0, 3]], False), li([[0, 1], [1, 0]]), li([[0, 0, 0], [0, 0, 0]]))]),
    dict(name="real_sph_harm_l2", order="first", object="SphericalHarmonicsL2", kind="function", fits=["count"], bug="one None too few for the options when normalization is passed",
inputs=lambda: (rn(162, 4, 3), True, "integral"), more=[lambda: (rn(163, 2, 2, 3), False, "component"), lambda: (rn(163, 3, 3), True, "component")]),
    dict(name="morse_bonds", object="MorseBonds", kind="module", make=lambda cls: cls(2).double(), order="second", fits=["missing"], bug="the elongation is detached in backward, so force constants (second derivatives) come out wrong",
inputs=lambda: (un(164, 0.8, 1.8, 5), li([0, 1, 1, 0, 1])), more=[lambda: (un(165, 0.8, 1.8, 2), li([1, 0]))]),
    dict(name="trilinear_lookup", order="first", object="TrilinearLookup", kind="function", fits=["layout"], bug="view of the incoming gradient raises when it is not contiguous, e.g. after a permute",
inputs=lambda: (rn(166, 2, 2, 3, 3), un(167, 0.05, 0.95, 2, 3, 3)), more=[lambda: (rn(168, 1, 3, 2, 3), tt([[-0.4, 0.3, 1.2], [1.6, 0.8, 2.7]])), lambda: (rn(168, 3, 2, 2, 2, grad=False), un(169, 0.05, 0.95, 4, 3))]),
    dict(name="chamfer_sq", order="first", object="ChamferDistance", kind="function", fits=["value", "missing"], bug="a target that is nearest to several points gets the share of only one of them",
inputs=lambda: (rn(170, 6, 3), rn(171, 3, 3)), more=[lambda: (rn(172, 2, 3), rn(173, 5, 3)), lambda: (rn(172, 3, 2), rn(173, 3, 2, grad=False))]),
    dict(name="alpha_composite", order="first", object="composite", kind="callable", fits=["nan"], bug="the suffix sum is divided by 1 - alpha, which is zero for an opaque sample",
inputs=lambda: (tt([[0.3, 1.0, 0.4], [0.2, 0.6, 0.1]]), un(174, 0, 1, 2, 3, 3), tt([0.2, 0.5, 0.9])), more=[lambda: (un(175, 0.1, 0.9, 3, 4), un(176, 0, 1, 3, 4, 3)), lambda: (un(175, 0.1, 0.9, 1, 2), un(176, 0, 1, 1, 2, 3, grad=False), tt([1.0, 1.0, 1.0]))]),
    dict(name="so3_exp", order="first", object="so3_exp", kind="callable", fits=["nan"], bug="no expansion for small angles in the derivative, NaN at the identity where optimisation starts",
inputs=lambda: (tt([[0.0, 0.0, 0.0], [0.3, -0.8, 1.1]]),), more=[lambda: (rn(177, 3, 3), True), lambda: (rn(178, 2, 3, scale=1e-4),)]),
    dict(name="sersic_profile", order="first", object="SersicGalaxy", kind="module", make=lambda cls: cls(1.3, 2.0, 2.5).double(), fits=["missing"], bug="b_n depends on the index n, which the gradient of n leaves out",
inputs=lambda: (un(179, 0.3, 5, 6),), more=[lambda: (un(180, 0.3, 5, 2, 3), tt(0.7))]),
    dict(name="pcen_frontend", order="first", object="PCEN", kind="module", make=lambda cls: cls(2, s=0.2, eps=1e-3).double(), fits=["modified"], bug="the incoming gradient is multiplied in place",
inputs=lambda: (un(181, 0.2, 3, 2, 2, 5),), more=[lambda: (un(182, 0.2, 3, 1, 2, 2),)]),
    dict(name="attentive_stats_pool", order="first", object="AttentiveStatsPool", kind="module", make=lambda cls: cls(3, 2).double(), fits=["missing"], bug="the share of the mean in the variance is left out of the gradient",
inputs=lambda: (rn(183, 2, 3, 4), li([1, 4])), more=[lambda: (rn(184, 1, 3, 5),)]),
    dict(name="snake_vocoder", order="first", object="Snake1d", kind="module", make=lambda cls: cls(3, 0.7).double(), fits=["none"], bug="the gradient of alpha is made only when x wants one, so the first layer on a plain input never learns",
inputs=lambda: (rn(185, 2, 3, 4, grad=False),), more=[lambda: (rn(186, 1, 3, 5),)]),
    dict(name="si_sdr", order="first", object="SISDR", kind="function", fits=["missing"], bug="the scale also depends on the energy of the reference, which its gradient leaves out",
inputs=lambda: (rn(187, 2, 8), rn(188, 2, 8), True, 1e-6), more=[lambda: (rn(189, 3, 6, shift=0.5), rn(190, 3, 6, grad=False), False, 1e-4), lambda: (rn(189, 1, 9, shift=0.5), rn(190, 1, 9), False)]),
    dict(name="frame_window", order="first", object="FrameAndWindow", kind="function", fits=["layout", "value"], bug="the strides of a contiguous signal are assumed, a transposed (samples x channels) one is cut wrongly",
inputs=lambda: (rn(191, 9, 2, grad=False).t().requires_grad_(), un(192, 0.2, 1, 4), 2), more=[lambda: (rn(193, 3, 8), un(194, 0.2, 1, 3, grad=False), 3), lambda: (rn(193, 1, 7), un(194, 0.2, 1, 5), 1)]),
    dict(name="rnnt_loss", order="first", object="RNNTLoss", kind="function", fits=["missing"], bug="the blank that ends the sequence gets no gradient",
inputs=lambda: (rn(195, 2, 3, 3, 4, grad=False).log_softmax(-1).requires_grad_(), li([[1, 2], [3, 0]]), li([3, 2]), li([2, 1])), more=[lambda: (rn(196, 1, 2, 2, 3, grad=False).log_softmax(-1).requires_grad_(), li([[0]]), li([2]), li([1]), 2, "none"), lambda: (rn(197, 2, 2, 2, 3, grad=False).log_softmax(-1).requires_grad_(), li([[1], [1]]), li([2, 2]), li([1, 0]), 0, "sum")]),
    dict(name="mulaw_ste", order="first", object="MuLawQuantize", kind="function", surrogate=True, fits=["value"], bug="mu is missing inside the slope of the companding curve",
inputs=lambda: (un(198, -1.2, 1.2, 3, 4), 15), more=[lambda: (un(199, -1, 1, 5),)]),
    dict(name="preemphasis_inplace", order="first", object="PreEmphasis_", kind="function", fits=["value"], bug="the samples are saved after forward has overwritten them",
inputs=lambda: (rn(200, 2, 6), tt(0.97)), more=[lambda: (rn(201, 5), tt([0.5])), lambda: (rn(201, 2, 2, 3), tt(0.9, False))]),
    dict(name="esat_magnus", order="first", object="esat", kind="custom_op", fits=["value"], bug="backward has the coefficients over water also below freezing",
inputs=lambda: (tt([-25.0, -8.0, 3.0, 21.0]), True), more=[lambda: (tt([[-10.0, 5.0], [1.0, -30.0]]), False)]),
    dict(name="conservative_regrid", order="first", object="regrid", kind="custom_op", fits=["value"], bug="backward does not divide by the valid fraction of the target cell",
inputs=lambda: (rn(202, 2, 5), li([0, 0, 1, 1, 2, 2]), li([0, 1, 1, 2, 3, 4]), tt([0.5, 0.5, 0.3, 0.7, 0.6, 0.4], False), torch.tensor([True, False, True, True, True]), 3),
more=[lambda: (rn(203, 1, 3), li([0, 0, 1]), li([0, 1, 2]), tt([0.2, 0.6, 1.0], False), torch.tensor([True, True, False]), 2)]),
    dict(name="neo_hookean_energy", order="first", object="neo_hookean", kind="custom_op", fits=["value"], bug="the inverse is not transposed in the first Piola-Kirchhoff stress",
inputs=lambda: ((torch.eye(3, dtype=torch.float64) + rn(204, 2, 3, 3, grad=False, scale=0.2)).requires_grad_(), un(205, 0.5, 2, 2), un(206, 0.5, 2, 2)),
more=[lambda: ((torch.eye(3, dtype=torch.float64) * un(207, 0.7, 1.5, 2, 1, 1, grad=False)).requires_grad_(), un(205, 0.5, 2, 2, grad=False), un(206, 0.5, 2, 2))]),
    dict(name="normalized_min_sum", order="first", object="min_sum", kind="custom_op", fits=["value"], bug="the sign of the message that is the minimum itself is forgotten",
inputs=lambda: (tt([[1.2, -0.4, 2.1, -0.9], [0.3, 0.8, -1.5, 2.2], [-0.6, -1.1, -0.2, 0.7]]), tt(0.8)), more=[lambda: (rn(208, 2, 3, 5), tt(0.75)), lambda: (rn(209, 4, 3), tt(1.0, False))]),
    dict(name="birch_murnaghan", order="first", object="birch_murnaghan", kind="custom_op", fits=["missing"], bug="v0 is also a prefactor of the energy, which its gradient leaves out",
inputs=lambda: (un(210, 8, 13, 5), tt(-3.0), tt(10.5), tt(0.6), tt(4.7)), more=[lambda: (un(211, 8, 13, 3), tt(0.0, False), tt(11.0), tt(1.0), tt(4.0))]),
    dict(name="ggx_lobe", order="first", object="ggx", kind="custom_op", fits=["value"], bug="a roughness below the floor still gets gradient",
inputs=lambda: (un(212, 0.3, 0.95, 4, 3), un(213, 0.2, 0.95, 4, 3), tt([0.1, 0.5, 0.8]), 0.2), more=[lambda: (un(214, 0.3, 0.95, 2, 2, 2), un(215, 0.2, 0.95, 2, 2, 2), tt([0.4, 0.7])), lambda: (un(214, 0.3, 0.95, 3, 1, grad=False), un(215, 0.2, 0.95, 3, 1), tt([0.6]), 0.1)]),
]

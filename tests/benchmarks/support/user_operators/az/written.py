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
    name="delayed_feedback_nll", object="delayed_feedback_nll", kind="callable",
    inputs=lambda: (r(5), r(5, seed=1), torch.tensor([True, False, False, True, False]), u(5, seed=2, grad=False), u(5, seed=3, lo=0.2, hi=2.0, grad=False)),
    more=[lambda: (r(3, scale=2.0), r(3, seed=1), torch.tensor([True, True, True]), t([0.0, 0.4, 1.3], grad=False), t([0.0, 0.0, 2.0], grad=False))],
    bug="the derivative by the log of the rate lacks the rate where no conversion was seen", fits=["value"], order="first"))
CASES.append(dict(
    name="first_price_surplus", object="first_price_surplus", kind="callable",
    inputs=lambda: (u(4, 3, lo=1.0, hi=3.0), u(4, 3, lo=0.4, hi=2.0, seed=1), r(3, seed=2), u(3, lo=0.5, hi=1.5, seed=3)),
    more=[lambda: (u(4, 1, lo=1.0, hi=3.0), u(1, 3, lo=0.4, hi=2.0, seed=1), r(1, seed=2), u(4, 1, lo=0.5, hi=1.5, seed=3))],
    bug="the gradient of the scale is averaged over the auctions instead of summed", fits=["value"], order="first"))
CASES.append(dict(
    name="esmm_loss", object="ESMMLoss", kind="module",
    make=lambda cls: cls(0.7, 1.3),
    inputs=lambda: (r(6), r(6, seed=1), torch.tensor([1, 0, 1, 1, 0, 0]), torch.tensor([1, 0, 0, 1, 0, 0])),
    more=[lambda: (r(2, 3), r(2, 3, seed=1), torch.tensor([[1, 0, 1], [0, 0, 1]]), torch.tensor([[0, 0, 1], [0, 0, 0]]))],
    bug="backward returns one value fewer than there are arguments", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="cascade_click_nll", object="CascadeClickNLL", kind="function",
    inputs=lambda: (r(3, 4), torch.tensor([0, 2, 4]), torch.tensor([4, 4, 4])),
    more=[lambda: (r(3, 4), torch.tensor([1, 4, 4]), torch.tensor([3, 2, 4])), lambda: (r(1, 1), torch.tensor([0]), torch.tensor([1]))],
    bug="results beyond the shown length count as skipped in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="normalized_entropy", object="normalized_entropy", kind="callable",
    inputs=lambda: (r(6), torch.tensor([1, 0, 0, 1, 0, 0]), u(6, lo=0.5, hi=2.0, seed=1)),
    more=[lambda: (r(4, scale=2.0), torch.tensor([1, 1, 0, 1]), u(4, lo=0.2, hi=1.0, seed=2)), lambda: (r(3), torch.tensor([1, 0, 0]), t([1.0, 0.0, 2.0], grad=False))],
    bug="the derivative of the base rate by a weight lacks the change of the normaliser", fits=["value"], order="first"))
CASES.append(dict(
    name="downsample_recalibrate", object="DownsampleRecalibrate", kind="function",
    inputs=lambda: (u(5, lo=0.05, hi=0.9), u(5, lo=0.1, hi=0.9, seed=1)),
    more=[lambda: (t([0.0, 0.2, 1.0, 0.7]), t(0.3)), lambda: (u(2, 3), u(2, 1, lo=0.2, seed=1))],
    bug="the derivative is written by p (1 - p) in the denominator, 0/0 at the probabilities 0 and 1", fits=["NaN"], order="first"))
CASES.append(dict(
    name="delayed_adstock", object="DelayedAdstock", kind="module",
    make=lambda cls: fill(cls(2, 3)),
    inputs=lambda: (r(2, 5, 2),),
    more=[lambda: (r(1, 2, 2),), lambda: (r(1, 6, 2, grad=False),)],
    bug="the derivative of the lag weights forgets their normalisation", fits=["value"], order="first"))
CASES.append(dict(
    name="gated_cross", object="GatedCross", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(4, 3), r(4, 3, seed=1)),
    more=[lambda: (r(1, 3), r(1, 3, seed=1)), lambda: (r(2, 3, grad=False), r(2, 3, seed=1))],
    bug="the gate is kept on the class, so a second call replaces that of the first", fits=["cache"], order="first"))
CASES.append(dict(
    name="ffm_pairs", object="FFMPairs", kind="function",
    inputs=lambda: (r(2, 3, 3, 2), r(2, 3, seed=1)),
    more=[lambda: (r(1, 2, 2, 3), t([[0.0, 1.0]])), lambda: (r(1, 4, 4, 2), torch.ones(1, 4, dtype=torch.float64))],
    bug="the derivative by a field's value counts only the fields after it", fits=["value"], order="first"))
CASES.append(dict(
    name="anova_kernel", object="AnovaKernel", kind="function",
    inputs=lambda: (r(2, 4, 3),),
    more=[lambda: (r(2, 4, 3), 3), lambda: (r(1, 2, 2), 3), lambda: (r(2, 1, 2), 2)],
    bug="at order 3 the field's own square is not taken away again", fits=["value"], order="first"))
CASES.append(dict(
    name="transrec_score", object="transrec_score", kind="callable",
    inputs=lambda: (r(2, 3), r(2, 3, seed=1), r(2, 4, 3, seed=2), r(2, 4, seed=3)),
    more=[lambda: (r(2, 3), r(2, 3, seed=1), r(2, 4, 3, seed=2), r(2, 4, seed=3), False, 1e-3), lambda: (r(1, 2), r(1, 2, seed=1, grad=False), r(1, 1, 2, seed=2), r(1, 1, seed=3), True)],
    bug="no gradient for the embedding of the previous item", fits=["none"], order="first"))
CASES.append(dict(
    name="pda_score", object="PDAScore", kind="function",
    inputs=lambda: (r(2, 4), u(2, 4, seed=1, lo=0.1, grad=False), t(0.6)),
    more=[lambda: (r(2, 4), t([0.0, 1.0, 0.3, 0.0], grad=False), t(0.6)), lambda: (r(4), u(3, 4, seed=1, grad=False), t(1.4))],
    bug="0 * log(0) for an item of popularity 0", fits=["NaN"], order="first"))
CASES.append(dict(
    name="lambda_pair_loss", object="lambda_pair_loss", kind="callable",
    inputs=lambda: (r(2, 4), t([[3.0, 0.0, 1.0, 0.0], [0.0, 1.0, 7.0, 1.0]], grad=False)),
    more=[lambda: (r(2, 4), t([[3.0, 0.0, 1.0, 2.0], [0.0, 0.0, 0.0, 1.0]], grad=False), torch.tensor([[True, True, True, False], [True, True, True, False]]))],
    bug="padding is masked on one side of the pairs only", fits=["value"], order="first"))
CASES.append(dict(
    name="cread_restore", object="CreadRestore", kind="function",
    inputs=lambda: (r(3, 4), t([0.0, 1.0, 2.5, 4.0, 9.0])),
    more=[lambda: (r(2, 1), t([0.0, 3.0])), lambda: (r(2, 2), t([0.0, 3.0, 7.0], grad=False))],
    bug="the gradient of the lower edges is assigned over what was accumulated", fits=["value"], order="first"))
CASES.append(dict(
    name="cosine_contrastive", object="CosineContrastive", kind="module",
    make=lambda cls: cls(0.3, 2.0),
    inputs=lambda: (r(3, 4), r(3, 4, seed=1), r(3, 6, 4, seed=2)),
    more=[lambda: (r(1, 2), r(1, 2, seed=1), r(1, 3, 2, seed=2))],
    bug="the hinge opens at cosine 0 instead of the margin", fits=["value"], order="first"))
CASES.append(dict(
    name="obizhaeva_wang_cost", object="obizhaeva_wang_cost", kind="callable",
    inputs=lambda: (r(2, 4), t([0.0, 0.5, 1.5, 2.0], grad=False), t(0.8), t(0.6)),
    more=[lambda: (t([[0.0, 1.0, -1.0]]), t([0.0, 1.0, 2.0], grad=False), t(0.8), t(0.0))],
    bug="the kernel is read from a scratch buffer that the next call overwrites", fits=["cache"], order="first"))
CASES.append(dict(
    name="yang_zhang_var", object="YangZhangVariance", kind="function",
    inputs=lambda: (r(2, 5), r(2, 5, seed=1, shift=1.0), r(2, 5, seed=2, shift=-1.0), r(2, 5, seed=3)),
    more=[lambda: (r(4), r(4, seed=1), r(4, seed=2), r(4, seed=3)), lambda: (t([0.0, 0.0, 0.0]), t([0.0, 0.0, 0.0]), t([0.0, 0.0, 0.0]), t([0.0, 0.0, 0.0]))],
    bug="the overnight return takes the close of its own bar in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="realized_kernel", object="realized_kernel", kind="callable",
    inputs=lambda: (r(2, 6), 3),
    more=[lambda: (r(5), 4), lambda: (r(2, 2, 3), 0), lambda: (r(1, 4), 1)],
    bug="the later return is taken from half the slope, which is already added to", fits=["value"], order="first"))
CASES.append(dict(
    name="fz0_loss", object="FZ0Loss", kind="function",
    inputs=lambda: (u(5, lo=-1.0, hi=0.0), u(5, lo=-3.0, hi=-1.2, seed=1), r(5, seed=2, shift=-0.5), 0.1),
    more=[lambda: (u(3, lo=-1.0, hi=0.0), u(3, lo=-3.0, hi=-1.2, seed=1), t([-2.0, 0.0, 1.0], grad=False), 0.025)],
    bug="no gradient for the realised return", fits=["none"], order="first"))
CASES.append(dict(
    name="diversification_ratio", object="DiversificationRatio", kind="function",
    inputs=lambda: (u(2, 3, lo=0.2), (lambda a: (a @ a.t() + torch.eye(3, dtype=torch.float64)).requires_grad_())(r(3, 3, seed=1, grad=False))),
    more=[lambda: (t([0.4, 0.0]), t([[1.0, 0.2], [0.2, 0.5]]))],
    bug="the portfolio's volatility is a saved intermediate, a constant in the second derivative", fits=["value"], order="second"))
CASES.append(dict(
    name="spectral_risk", object="SpectralRisk", kind="module",
    make=lambda cls: cls(3.0),
    inputs=lambda: (r(2, 5),),
    more=[lambda: (r(6),), lambda: (t([[1.0, 0.0, -2.0]]),), lambda: (r(2, 2, 4, seed=3),)],
    bug="the weights are gathered by the sort order instead of scattered to it", fits=["value"], order="first"))
CASES.append(dict(
    name="cva_charge", object="cva_charge", kind="callable",
    inputs=lambda: (r(4, 3), u(3, lo=0.1, hi=0.5, seed=1), u(3, lo=0.7, hi=1.0, seed=2), t([0.5, 0.5, 1.0], grad=False)),
    more=[lambda: (r(2, 1), t([0.0]), t([0.9]), t([1.0], grad=False), 0.25)],
    bug="the effect of a hazard on later survivals is summed from the wrong end", fits=["value"], order="first"))
CASES.append(dict(
    name="irb_capital", object="IRBCapital", kind="function",
    inputs=lambda: (t([0.01, 0.03, 0.1]), t([0.45, 0.3, 0.6])),
    more=[lambda: (t([[0.02], [0.2]]), t([0.45, 0.0]), 0.99)],
    bug="the correlation in the denominator counts as constant", fits=["value"], order="first"))
CASES.append(dict(
    name="kirk_spread", object="kirk_spread", kind="callable",
    inputs=lambda: (u(3, lo=4.0, hi=6.0), u(3, lo=3.0, hi=4.0, seed=1), u(3, lo=0.2, hi=0.4, seed=2), u(3, lo=0.2, hi=0.4, seed=3), 0.4, 0.0, 1.5),
    more=[lambda: (u(2, 2, lo=4.0, hi=6.0), u(2, 2, lo=3.0, hi=4.0, seed=1), u(2, 2, lo=0.2, hi=0.4, seed=2), u(2, 2, lo=0.2, hi=0.4, seed=3), -0.4, 2.0, 2.0)],
    bug="the volatility's dependence on the second price is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="ssvi_total_var", object="ssvi_total_var", kind="callable",
    inputs=lambda: (r(1, 3), u(2, 1, lo=0.1, hi=0.5), t(-0.4), t(0.9)),
    more=[lambda: (t([0.0, 0.3]), t([0.2, 0.3]), t([0.1, 0.0]), t([0.5, 0.7]), 0.3)],
    bug="phi is saved as an intermediate, so second derivatives do not pass through it", fits=["value"], order="second"))
CASES.append(dict(
    name="par_swap_rate", object="ParSwapRate", kind="function",
    inputs=lambda: (u(2, 4, hi=0.08), t([0.5, 1.0, 2.0, 3.0], grad=False)),
    more=[lambda: (u(2, 3, hi=0.08), t([0.5, 1.0, 2.0])), lambda: (t([0.0, 0.02]), t([1.0, 2.0], grad=False)), lambda: (t([0.03]), t([1.0], grad=False))],
    bug="the last discount factor's share of the annuity is overwritten", fits=["value"], order="first"))
CASES.append(dict(
    name="hayashi_yoshida", object="hayashi_yoshida", kind="callable",
    inputs=lambda: (r(3), r(2, seed=1), t([[0.0, 1.0], [1.0, 2.5], [2.5, 4.0]], grad=False), t([[0.2, 1.7], [1.7, 3.9]], grad=False)),
    more=[lambda: (r(3), r(3, seed=1), t([[0.0, 1.0], [1.0, 2.0], [2.0, 4.0]], grad=False), t([[0.0, 1.0], [1.0, 3.0], [3.0, 4.0]], grad=False))],
    bug="intervals that only touch overlap in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="black_litterman", object="black_litterman", kind="callable",
    inputs=lambda: (r(3), (lambda a: (a @ a.t() + torch.eye(3, dtype=torch.float64)).requires_grad_())(r(3, 3, seed=1, grad=False)), r(2, 3, seed=2), r(2, seed=3), u(2, lo=0.3, seed=4), 0.5),
    more=[lambda: (r(2), t([[1.0, 0.2], [0.2, 0.5]], grad=False), t([[1.0, -1.0]], grad=False), t([0.02])), lambda: (r(2), t([[1.0, 0.2], [0.2, 0.5]]), t([[1.0, 0.0]]), t([0.0]), t([0.4]), 1.0)],
    bug="y and h are exchanged in one of the terms of the view portfolios", fits=["value"], order="first"))
CASES.append(dict(
    name="wasserstein_dice", object="WassersteinDice", kind="function",
    inputs=lambda: (u(2, 3, 4), ints(2, 4, hi=3), t([[0.0, 1.0, 1.0], [1.0, 0.0, 0.4], [1.0, 0.4, 0.0]], grad=False)),
    more=[lambda: (u(2, 3, 4), ints(2, 4, hi=3), t([[0.0, 1.0, 1.0], [0.7, 0.0, 0.3], [0.9, 0.5, 0.0]], grad=False)), lambda: (u(1, 2, 3), torch.zeros(1, 3, dtype=torch.long), t([[0.0, 1.0], [1.0, 0.0]], grad=False), 0.1)],
    bug="the distance to the background is read along the other axis of an asymmetric matrix", fits=["value"], order="first"))
CASES.append(dict(
    name="ivim_signal", object="ivim_signal", kind="callable",
    inputs=lambda: (u(3, lo=0.5, hi=2.0), u(3, lo=0.1, hi=0.4, seed=1), u(3, lo=1.0, hi=3.0, seed=2), u(3, lo=0.1, hi=0.5, seed=3), t([0.0, 0.4, 1.0, 2.0], grad=False)),
    more=[lambda: (u(2, 2, lo=0.5), t([[0.0, 0.2], [1.0, 0.1]]), u(2, 2, lo=1.0, seed=2), u(2, 2, seed=3), t([0.0, 1.0], grad=False))],
    bug="the incoming gradient is scaled in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="spect_attenuated_line", object="spect_attenuated_line", kind="callable",
    inputs=lambda: (u(2, 4), u(2, 4, seed=1), 0.5),
    more=[lambda: (t([[0.0, 1.0, 0.0]]), t([[0.0, 0.0, 0.3]]), 1.0), lambda: (u(3), u(3, seed=1), 2.0)],
    bug="a voxel's own activity is counted among those behind it", fits=["value"], order="first"))
CASES.append(dict(
    name="mind_descriptor", object="MINDDescriptor", kind="function",
    inputs=lambda: (r(1, 4, 5), 0, 0.1),
    more=[lambda: (r(2, 4, 4), 1, 0.1)],
    bug="the difference is shifted in the same direction again instead of back", fits=["value"], order="first"))
CASES.append(dict(
    name="tcp_poisson", object="TCPPoisson", kind="function",
    inputs=lambda: (u(2, 3, hi=3.0), u(3, lo=0.5, hi=2.0, seed=1), t(0.3), t(0.05)),
    more=[lambda: (u(2, 3, hi=3.0), u(3, lo=0.5, hi=2.0, seed=1), t(0.3), t(0.05), 5), lambda: (t([[0.0, 2.0]]), t([0.0, 1.0]), t(0.0), t(0.0), 2)],
    bug="the derivative by beta lacks the number of fractions", fits=["value"], order="first"))
CASES.append(dict(
    name="correlation_ratio", object="CorrelationRatio", kind="module",
    make=lambda cls: cls(4),
    inputs=lambda: (t([[0.0, 0.2, 0.45, 0.6, 0.9, 1.0], [0.1, 0.3, 0.5, 0.7, 0.8, 0.95]], grad=False), r(2, 6)),
    more=[lambda: (t([[0.0, 0.1, 0.2, 0.0, 1.0, 0.3]], grad=False), r(1, 6)), lambda: (t([[0.0, 1.0, 0.0, 0.0]], grad=False), r(1, 4))],
    bug="an empty bin's mass is not clamped in backward, 0/0", fits=["NaN"], order="first"))
CASES.append(dict(
    name="bias_field", object="BiasField", kind="module",
    make=lambda cls: fill(cls(3, 4, 1)),
    inputs=lambda: (r(2, 3, 4),),
    more=[lambda: (u(1, 3, 4, grad=False),)],
    bug="the corrected image is read from the module, where the next call replaces it", fits=["cache"], order="first"))
CASES.append(dict(
    name="us_log_compress", object="us_log_compress", kind="callable",
    inputs=lambda: (u(2, 5, lo=0.05), 20.0),
    more=[lambda: (t([[0.0, 0.2, 1.0, 0.0003]]),), lambda: (t([[0.0, 0.2, 1.0, 0.03]]), 40.0)],
    bug="the maximum's share is written over that sample's own gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="idm_acceleration", object="idm_acceleration", kind="callable",
    inputs=lambda: (u(4, lo=0.5, hi=2.0), u(4, seed=1), u(4, lo=2.0, hi=5.0, seed=2), t([3.0, 1.2, 1.1, 1.6]), 1.0),
    more=[lambda: (t([2.0, 1.0]), t([-6.0, 0.0]), t([4.0, 3.0]), t([3.0, 1.2, 1.1, 1.6]))],
    bug="the clamp of the dynamic gap is not masked in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="wta_trajectory", object="WTATrajectory", kind="function",
    inputs=lambda: (r(2, 3, 4, 2), r(2, 3, seed=1), r(2, 4, 2, seed=2)),
    more=[lambda: (r(2, 3, 4, 2), r(2, 3, seed=1), r(2, 4, 2, seed=2), torch.tensor([[True, True, False, True], [True, False, False, False]])), lambda: (r(1, 2, 2, 2), r(1, 2, seed=1), r(1, 2, 2, seed=2, grad=False), torch.zeros(1, 2, dtype=torch.bool))],
    bug="divided by all steps instead of the valid ones", fits=["value"], order="first"))
CASES.append(dict(
    name="bivariate_nll", object="bivariate_nll", kind="callable",
    inputs=lambda: (r(2, 3, 5, scale=0.7), r(2, 3, 2, seed=1)),
    more=[lambda: (t([0.0, 0.0, 0.0, 0.0, 0.0]), t([1.0, 0.0]))],
    bug="the determinant's derivative by the correlation is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="ctrv_predict", object="ctrv_predict", kind="callable",
    inputs=lambda: (r(3, 5), 0.5),
    more=[lambda: (t([[1.0, 2.0, 0.3, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.2, 2.0, 0.001]]), 0.1)],
    bug="0/0 at a yaw rate of zero", fits=["NaN"], order="first"))
CASES.append(dict(
    name="pacejka_tire", object="PacejkaTire", kind="module",
    make=lambda cls: fill(cls(3), scale=0.8),
    inputs=lambda: (r(2, 3),),
    more=[lambda: (t([[0.0, 0.1, -0.2]]),), lambda: (r(2, 2, 3, grad=False),)],
    bug="the derivative of bx - atan(bx) is taken for that of atan(bx)", fits=["value"], order="first"))
CASES.append(dict(
    name="rss_gap", object="RSSGap", kind="function",
    inputs=lambda: (t([8.0, 2.0, 0.0, 5.0]), t([5.0, 9.0, 0.0, 4.0]), t(1.5), t(4.0), t(6.0), 0.5),
    more=[lambda: (t([3.0]), t([1.0]), t(1.0), t(3.0), t(6.0), 0.0), lambda: (t([[8.0], [6.0]]), t([5.0, 4.0]), t([1.0, 2.0]), t(4.0), t(6.0), 0.5)],
    bug="the incoming gradient is masked in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="dempster_combine", object="dempster_combine", kind="callable",
    inputs=lambda: (u(3, 3, hi=0.5), u(3, 3, hi=0.5, seed=1)),
    more=[lambda: (t([0.0, 0.0, 1.0]), t([0.3, 0.2, 0.5]))],
    bug="the conflict of an occupied mass is with the other's free mass, not its occupied one", fits=["value"], order="first"))
CASES.append(dict(
    name="doppler_residual", object="DopplerResidual", kind="function",
    inputs=lambda: (r(4, 3, shift=0.5), r(4, seed=1), r(3, seed=2)),
    more=[lambda: (r(2, 3, shift=0.5), r(2, seed=1), t([0.0, 0.0, 0.0])), lambda: (r(3, 3, grad=False), r(3, seed=1, grad=False), r(3, seed=2))],
    bug="no gradient for the ego velocity where the measured speeds need none", fits=["none"], order="first"))
CASES.append(dict(
    name="sine_yaw_loss", object="sine_yaw_loss", kind="callable",
    inputs=lambda: (r(5), r(5, seed=1), u(5, seed=2, grad=False), 0.4),
    more=[lambda: (r(5), r(5, seed=1, grad=False), torch.tensor([1, 0, 1, 1, 0])), lambda: (r(2, 2), r(2, 2, seed=1))],
    bug="the scale is cast to the type of the weights, which may be integer", fits=["dtype"], order="first"))
CASES.append(dict(
    name="lane_lsq_fit", object="lane_lsq_fit", kind="callable",
    inputs=lambda: (u(2, 5, lo=0.3), r(2, 5, seed=1), t([-1.0, -0.4, 0.0, 0.5, 1.0], grad=False), 1, 0.1),
    more=[lambda: (t([[0.0, 1.0, 0.5]]), r(1, 3), t([0.0, 0.5, 1.0], grad=False), 2, 0.1)],
    bug="the normal matrix is a saved intermediate, a constant in the second derivative", fits=["value"], order="second"))
CASES.append(dict(
    name="attack_release_env", object="AttackRelease", kind="module",
    make=lambda cls: cls(0.6, 0.2).double(),
    inputs=lambda: (r(2, 5),),
    more=[lambda: (t([0.3, 1.0, -0.5, 0.2, -0.1, 2.0]),), lambda: (r(1, 4, grad=False),)],
    bug="the level before the first sample is taken from the end of the signal", fits=["value"], order="first"))
CASES.append(dict(
    name="pan_law", object="PanLaw", kind="function",
    inputs=lambda: (r(2, 4), u(2, lo=-1.0, seed=1)),
    more=[lambda: (r(3, 2), t([-1.0, 0.0, 1.0])), lambda: (r(2, 3), t([0.2, 0.4], grad=False))],
    bug="the incoming gradient is multiplied by the gains in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="yin_cmnd", object="yin_cmnd", kind="callable",
    inputs=lambda: (r(2, 7), 3),
    more=[lambda: (t([[0.0, 0.0, 1.0, 0.0, 2.0]]), 2, 1e-2), lambda: (r(3, 4), 1)],
    bug="the frames are taken with the strides of a contiguous input", fits=["layout"], order="first"))
CASES.append(dict(
    name="spectral_flux", object="spectral_flux", kind="callable",
    inputs=lambda: (u(2, 5, 3), 1, 2.0),
    more=[lambda: (u(1, 5, 2), 2), lambda: (t([[[0.0, 0.3], [1.0, 0.0], [0.2, 0.6]]]),)],
    bug="the earlier frames' gradient is assigned over what was accumulated", fits=["value"], order="first"))
CASES.append(dict(
    name="deep_filter", object="DeepFilter", kind="function",
    inputs=lambda: (c(1, 4, 2), c(1, 2, 4, 2, seed=1)),
    more=[lambda: (c(2, 3, 2), c(2, 3, 3, 2, seed=1), 1), lambda: (c(1, 2, 2, grad=False), c(1, 3, 2, 2, seed=1), 2)],
    bug="the filter coefficients are not conjugated", fits=["value"], order="first"))
CASES.append(dict(
    name="soft_knee_expander", object="soft_knee_expander", kind="callable",
    inputs=lambda: (r(6, scale=4.0, shift=-10.0), t(-9.0), t(2.0)),
    more=[lambda: (r(2, 4, scale=4.0, shift=-10.0), t(-9.0), t(2.0), 6.0), lambda: (t([0.0, -1.0, -20.0]), t(-10.3), t(1.0), 3.0)],
    bug="with a soft knee its part is missing in the ratio's derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="mid_side_width", object="mid_side_width", kind="callable",
    inputs=lambda: (r(2, 2, 5, scale=2.0), u(2, hi=2.0, seed=1)),
    more=[lambda: (r(1, 2, 3), t([0.0]))],
    bug="the signal is kept in bfloat16 for backward", fits=["dtype"], order="first"))
CASES.append(dict(
    name="k3_kl_penalty", object="k3_kl_penalty", kind="callable",
    inputs=lambda: (u(2, 3, lo=-2.0), u(2, 3, lo=-2.0, seed=1), torch.tensor([[True, True, False], [True, True, True]])),
    more=[lambda: (t([[-0.5, -1.2, -2000.0], [-0.3, -2.0, -1.0]]), t([[-0.7, -1.0, 0.0], [-0.4, -1.5, -1.0]]), torch.tensor([[True, True, False], [True, True, True]])), lambda: (r(2, 2), r(2, 2, seed=1), torch.zeros(2, 2, dtype=torch.bool)), lambda: (r(2, 2), r(2, 2, seed=1, grad=False), torch.ones(2, 2, dtype=torch.bool))],
    bug="masked by multiplication after an exponential that may overflow at padding", fits=["NaN"], order="first"))
CASES.append(dict(
    name="fire_bias", object="FIREBias", kind="module",
    make=lambda cls: fill(cls(2, 3, 2.5), keep=("c", "threshold")),
    inputs=lambda: (2,),
    more=[lambda: (5,), lambda: (1,)],
    bug="the threshold's derivative counts the rows beyond it too", fits=["value"], order="first"))
CASES.append(dict(
    name="altup_mix", object="AltUpMix", kind="function",
    inputs=lambda: (r(1, 3, 2, 3), r(1, 3, 3, seed=1), r(2, 2, seed=2), r(2, seed=3), 1),
    more=[lambda: (r(2, 1, 3, 2), r(2, 1, 2, seed=1), torch.eye(3, dtype=torch.float64, requires_grad=True), t([0.0, 1.0, 0.0]), 0)],
    bug="the prediction weights miss the way through the innovation", fits=["value"], order="first"))
CASES.append(dict(
    name="laurel_residual", object="LaurelResidual", kind="module",
    make=lambda cls: fill(cls(4, 2)),
    inputs=lambda: (r(2, 3, 4), r(2, 3, 4, seed=1)),
    more=[lambda: (r(3, 4), r(3, 4, seed=1)), lambda: (r(1, 2, 4, grad=False), r(1, 2, 4, seed=1))],
    bug="view of an input that may be non-contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="depth_router", object="DepthRouter", kind="function",
    inputs=lambda: (r(2, 4, 3), r(2, 2, 3, seed=1), r(2, 4, seed=2), torch.tensor([[0, 3], [2, 1]])),
    more=[lambda: (r(1, 3, 2), r(1, 1, 2, seed=1), t([[0.0, 0.0, 0.0]]), torch.tensor([[2]]))],
    bug="zeros_like keeps the strides of the scores, so reshape copies and the sums are lost", fits=["layout"], order="first"))
CASES.append(dict(
    name="packed_sequence_loss", object="packed_sequence_loss", kind="callable",
    inputs=lambda: (r(6), torch.tensor([0, 2, 5, 6])),
    more=[lambda: (r(5), torch.tensor([0, 0, 3, 5, 5])), lambda: (r(3), torch.tensor([0, 3]))],
    bug="backward divides by the number of all sequences, the empty ones too", fits=["value"], order="first"))
CASES.append(dict(
    name="grad_shrink_embedding", object="GradShrinkEmbedding", kind="module",
    make=lambda cls: fill(cls(5, 2, 0.25)),
    surrogate=lambda m, tokens: lambda tokens: m.shrink * m.weight[tokens],
    inputs=lambda: (torch.tensor([[0, 3], [1, 4]]),),
    more=[lambda: (torch.tensor([[0, 3, 3], [1, 4, 3]]),), lambda: (torch.tensor([2]),)],
    bug="a token that occurs twice counts once", fits=["value"], order="first"))

import torch


class BreitWigner(torch.autograd.Function):
    # relativistic p-wave lineshape with running width, m (N,), m0 () and gamma0 ()
    @staticmethod
    def _width(m, m0, gamma0, md):
        q2, q02 = m * m / 4 - md * md, m0 * m0 / 4 - md * md
        return q2, q02, gamma0 * (q2 / q02) ** 1.5 * m0 / m

    @staticmethod
    def forward(ctx, m, m0, gamma0, m_daughter=0.13957):
        ctx.save_for_backward(m, m0, gamma0)
        ctx.md = m_daughter
        width = BreitWigner._width(m, m0, gamma0, m_daughter)[2]
        return m0 * width / ((m * m - m0 * m0) ** 2 + (m0 * width) ** 2)

    @staticmethod
    def backward(ctx, g):
        m, m0, gamma0 = ctx.saved_tensors
        q2, q02, width = BreitWigner._width(m, m0, gamma0, ctx.md)
        off, mw2 = m * m - m0 * m0, (m0 * width) ** 2
        den = off ** 2 + mw2
        gl = g * m0 * width / den
        log_m = 0.75 * m / q2 - 1 / m
        log_m0 = 1 / m0 - 0.75 * m0 / q02
        gm = gl * (log_m - (4 * m * off + 2 * mw2 * log_m) / den)
        gm0 = (gl * (1 / m0 + log_m0 - (2 * mw2 * (1 / m0 + log_m0) - 4 * m0 * off) / den)).sum()
        ggamma = (gl * (1 - 2 * mw2 / den) / gamma0).sum()
        return gm, gm0, ggamma, None

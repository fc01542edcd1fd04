import torch


class _ADSR(torch.autograd.Function):
    @staticmethod
    def stages(t, off, attack, decay):
        held = t < off
        return held & (t < attack), held & (t >= attack) & (t < attack + decay), held & (t >= attack + decay), ~held

    @staticmethod
    def forward(ctx, t, off, attack, decay, sustain, release):
        ctx.save_for_backward(t, off, attack, decay, sustain, release)
        a, d, s, r = _ADSR.stages(t, off, attack, decay)
        return (a * t / attack + d * (1 - (1 - sustain) * (t - attack) / decay) + s * sustain
                + r * sustain * (1 - (t - off) / release).clamp(min=0))

    @staticmethod
    def backward(ctx, g):
        t, off, attack, decay, sustain, release = ctx.saved_tensors
        a, d, s, r = _ADSR.stages(t, off, attack, decay)
        r = r & (t < off + release)
        ga, gd, gs, gr = g * a, g * d, g * s, g * r
        fall = (1 - sustain) / decay
        slope = gr * sustain / release
        g_t = ga / attack - gd * fall - slope
        g_attack = -(ga * t).sum() / attack**2
        g_decay = (gd * (t - attack)).sum() * fall / decay
        g_sustain = (gd * (t - attack)).sum() / decay + gs.sum() + (gr * (1 - (t - off) / release)).sum()
        g_release = (slope * (t - off)).sum() / release
        return g_t, slope.sum(), g_attack, g_decay, g_sustain, g_release


def adsr(t, off, attack, decay, sustain, release):
    """Piecewise-linear envelope at times t (N,) [s]; note off after attack + decay; the others scalars"""
    return _ADSR.apply(t, off, attack, decay, sustain, release)

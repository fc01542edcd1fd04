import torch


class CompetitiveRate(torch.autograd.Function):

    @staticmethod
    def forward(ctx, S, I, log_vmax, log_km, log_ki):
        vmax, km, ki = log_vmax.exp(), log_km.exp(), log_ki.exp()
        ctx.save_for_backward(S, I, log_vmax, log_km, log_ki)
        return vmax * S / (km * (1 + I / ki) + S)

    @staticmethod
    def backward(ctx, g):
        S, I, log_vmax, log_km, log_ki = ctx.saved_tensors
        vmax, km, ki = log_vmax.exp(), log_km.exp(), log_ki.exp()
        app = km * (1 + I / ki)
        D = app + S
        v = vmax * S / D
        return (g * vmax * app / D ** 2,
                -g * v * km / ki / D,
                (g * v).sum(),
                -(g * v * app / D).sum(),
                (g * v * km * I / ki ** 2 / D).sum())


class Enzyme(torch.nn.Module):
    """Michaelis-Menten rate with a competitive inhibitor; substrate and inhibitor of equal shape, >= 0.
    Parameters are logs, so all constants stay positive."""

    def __init__(self):
        super().__init__()
        self.log_vmax = torch.nn.Parameter(torch.tensor(0.0))
        self.log_km = torch.nn.Parameter(torch.tensor(0.0))
        self.log_ki = torch.nn.Parameter(torch.tensor(0.0))

    def forward(self, substrate, inhibitor):
        return CompetitiveRate.apply(substrate, inhibitor, self.log_vmax, self.log_km, self.log_ki)

import torch
from torch import Tensor


@torch.library.custom_op("tpp::poisson_loglik", mutates_args=())
def poisson_loglik(log_lam_events: Tensor, mask: Tensor, log_lam_grid: Tensor, grid: Tensor) -> Tensor:
    events = (log_lam_events * mask).sum(1)
    return events - torch.trapezoid(log_lam_grid.exp(), grid, dim=1)


@poisson_loglik.register_fake
def _(log_lam_events, mask, log_lam_grid, grid):
    return log_lam_events.new_empty(log_lam_events.shape[0])


def setup_context(ctx, inputs, output):
    _, mask, log_lam_grid, grid = inputs
    ctx.save_for_backward(mask, log_lam_grid, grid)


def backward(ctx, g):
    mask, log_lam_grid, grid = ctx.saved_tensors
    dt = grid[1:] - grid[:-1]
    zero = dt.new_zeros(1)
    weights = 0.5 * (torch.cat([dt, zero]) + torch.cat([zero, dt]))
    return g[:, None] * mask, None, -g[:, None] * weights * log_lam_grid.exp(), None


poisson_loglik.register_autograd(backward, setup_context=setup_context)

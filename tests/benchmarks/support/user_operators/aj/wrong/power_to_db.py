import math
import torch


class _PowerToDb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, S, ref, amin, top_db):
        ctx.save_for_backward(S)
        ctx.amin, ctx.top_db = amin, top_db
        db = 10 * torch.log10(S.clamp(min=amin)) - 10 * math.log10(max(ref, amin))
        if top_db is not None:
            db = torch.maximum(db, db.max() - top_db)
        return db

    @staticmethod
    def backward(ctx, g):
        S, = ctx.saved_tensors
        db = 10 * torch.log10(S.clamp(min=ctx.amin))
        if ctx.top_db is not None:
            floor = db < db.max() - ctx.top_db
            peak = torch.zeros_like(db)
            peak.view(-1)[db.reshape(-1).argmax()] = 1
            g = g * ~floor
        return g * (S > ctx.amin) * 10 / (math.log(10) * S.clamp(min=ctx.amin)), None, None, None


def power_to_db(S, ref=1.0, amin=1e-10, top_db=80.0):
    """Like librosa.power_to_db"""
    return _PowerToDb.apply(S.contiguous(), ref, amin, top_db)

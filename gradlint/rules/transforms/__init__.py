"""GL9: program transforms that meet an op: vmap, torch.func, torch.compile, export, autocast."""

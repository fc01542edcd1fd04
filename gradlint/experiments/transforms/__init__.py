"""An op under vmap, torch.func, torch.compile, export and autocast."""

"""Audits of classes that define ``__torch_function__``."""

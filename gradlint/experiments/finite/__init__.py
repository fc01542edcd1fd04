"""Special and extreme values."""

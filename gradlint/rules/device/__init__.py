"""GL8: devices, streams and sizes that only a GPU has."""

"""GL5: higher order."""

"""Find the likely cause of what was measured, or of an exception that was raised."""

"""What everything else may use: errors and texts."""

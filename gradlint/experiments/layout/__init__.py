"""Other memory layouts and other sizes."""

"""From calls that a user's program made to specs: what watches them, and what is made of them."""

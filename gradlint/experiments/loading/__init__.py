"""How findings about a process are made, and what an op does to its process."""

"""From the name a user typed to operators.

``resolve`` runs in the process that reports: it reads source, imports neither torch nor the
user's code. ``expand``, ``load`` and ``from_object`` run in workers.
"""

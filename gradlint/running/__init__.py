"""Runs: targets in isolated workers, time-outs, crashes that become findings.

Names are loaded when they are first used: the command line starts the fork server before it
loads anything else.
"""

"""Verdicts that are kept from run to run, and what each of them depends on."""

"""Rules: one defect, one file; and the table of them all."""

"""What the experimenter trusts: figures of load runs, their statistics, A/B validity, sweeps.

Pure; what is drawn by chance is drawn from a seed that the caller gives (`chance`).
"""

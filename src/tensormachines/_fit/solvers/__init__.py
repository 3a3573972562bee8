"""The solvers, one algorithm per file: they know vectors and nothing else."""

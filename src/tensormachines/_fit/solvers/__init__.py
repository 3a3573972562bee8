"""The solvers, one algorithm a file: they know vectors, nothing else."""

"""How a model is fitted: problem, start, monitors, checkpoint and solvers."""

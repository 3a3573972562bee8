"""Searches with few candidates, for tests."""

FEW = {
    "degrees": (1, 2),
    "ranks": (2,),
    "alphas": (1e-4, 1e-1),
    "relevances": (0,),
    "trends": (False,),
    "roughnesses": (3.0,),
    "max_iters": (30,),
    "n_members": 1,
    "random_state": 0,
}
BY_LBFGS = {**FEW, "bases": ("standard",), "solver": "lbfgs", "max_iters": (100,)}

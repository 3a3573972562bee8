"""Lines of a run, as the harness records them."""


def line(**fields):
    found = {
        "experiment": "compare",
        "set": "indoor",
        "method": "tm-batch",
        "faithful": True,
        "task": "regression",
        "degree": 3,
        "columns": 520,
    }
    found |= {
        "rows": 19_937,
        "test_rows": 11_114,
        "major_name": "max_iter",
        "major": 10,
        "trial": 0,
        "status": "ok",
        "reason": "",
    }
    found |= {"error": 0.5, "seconds": 1.0, "profile": "quick"} | fields
    found.setdefault(
        "key",
        "/".join(
            str(found.get(name))
            for name in ("experiment", "set", "method", "major", "rows", "param_rank", "trial")
        ),
    )
    return found

"""How much longer does the default fit take without the compiled kernel?

    python benchmarks/without_kernel.py [california adult ...]

Each table is fitted in two processes, with `TENSORMACHINES_EXTENSION` on and off, on one thread; shown are
seconds of CPU time."""

from __future__ import annotations

import os
import subprocess
import sys
import time

TABLES = ("letter", "california", "kin40k", "spambase", "adult")
MOST_ROWS = 10_000


def fit_seconds(name: str) -> float:
    from timing import one_thread

    one_thread()
    import tables
    from tensormachines import TensorMachineClassifier, TensorMachineRegressor

    table = tables.load(name, 0, MOST_ROWS, 1)
    model = (TensorMachineClassifier if table.n_classes else TensorMachineRegressor)(random_state=0)
    began = time.process_time()
    model.fit(table.X, table.y)
    return time.process_time() - began


def seconds_with(extension: str, name: str) -> float:
    environment = os.environ | {"TENSORMACHINES_EXTENSION": extension}
    command = [sys.executable, __file__, "--fit", name]
    return float(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def main(names: list[str]) -> None:
    if names[:1] == ["--fit"]:
        print(fit_seconds(names[1]))
        return
    print("| table | with the kernel | without | factor |\n|---|---|---|---|")
    for name in names or TABLES:
        compiled, plain = seconds_with("on", name), seconds_with("off", name)
        print(f"| {name} | {compiled:.2f} | {plain:.2f} | {plain / compiled:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

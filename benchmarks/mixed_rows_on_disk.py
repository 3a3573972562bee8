"""Does a table larger than memory take one command each to fit, predict and evaluate, in time that grows with
its rows alone?

    python benchmarks/mixed_rows_on_disk.py run --folder FOLDER [--rows 100000 200000] [--methods ours]
    python benchmarks/mixed_rows_on_disk.py report

`run` writes the table of mixed_rows.py to FOLDER (20 million rows: 6.2 GB, and more than that for the scratch
file), and runs what is not yet in mixed_rows_on_disk.jsonl; `report` prints Markdown and runs nothing. Every
step is a command in a process of its own, whose private memory (RLIMIT_DATA) is limited to 4 GB:

- ours: `tensormachines fit`, with default settings and two threads, `predict` of all rows to Parquet,
  `evaluate` on all rows, and `evaluate` on 200,000 rows that no fit has seen, for the error;
- lightgbm: mixed_rows_lightgbm.py, from the same files, with the same limit, and as many seconds for
  its fit as ours took;
- cluster: `tensormachines fit --cluster` on a LocalCluster of two workers with one thread each, without a
  limit: its rows stay in memory. Reading is a part of it.

Seconds are wall-clock and CPU seconds from the start of the process to its end; the peak of memory is that of
resident memory, the disk what the step took at its peak, files that it wrote included. Needs Linux and
`pip install tensormachines[accuracy,dask]`."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from mixed_rows import NOISE, TARGET, TEST_ROWS, write_rows, write_test_rows
from records import Line, append, facts, print_facts, read, table

RECORDS = Path(__file__).with_name("mixed_rows_on_disk.jsonl")
ROWS = (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)
OURS, LIGHTGBM, CLUSTER = METHODS = ("ours", "lightgbm", "cluster")
LIMIT, THREADS, WORKERS = 4 << 30, 2, 2
PACKAGES = ("pyarrow", "lightgbm", "dask")
TENSORMACHINES = (sys.executable, "-m", "tensormachines")
RIVAL = (sys.executable, str(Path(__file__).with_name("mixed_rows_lightgbm.py")))
Step = tuple[str, list[str]]  # its name and its command


def steps(method: str, folder: Path, rows: int, seconds: float) -> list[Step]:
    """Return the commands of a method; ``seconds`` are those of our fit."""
    table_, test = f"{folder}/rows-{rows}/*.parquet", str(write_test_rows(folder))
    model, threads = f"{folder}/{method}-{rows}.model", ["--n-jobs", str(THREADS)]
    if method == LIGHTGBM:
        limits = ["--seconds", str(seconds), "--threads", str(THREADS)]
        return [
            ("fit", [*RIVAL, "fit", table_, model, *limits]),
            ("test", [*RIVAL, "test", test, model]),
        ]
    fit = [*TENSORMACHINES, "fit", table_, "--target", TARGET, "-o", model]
    of_test = ("test", [*TENSORMACHINES, "evaluate", model, test, "--json"])
    if method == CLUSTER:
        return [("fit", [*fit, *threads]), of_test]
    predictions = f"{folder}/{method}-{rows}.predicted.parquet"
    return [
        ("fit", [*fit, "--stream", *threads]),
        ("predict", [*TENSORMACHINES, "predict", model, table_, "-o", predictions]),
        ("evaluate", [*TENSORMACHINES, "evaluate", model, table_]),
        of_test,
    ]


def run_step(name: str, command: list[str], folder: Path, limit: int | None) -> Line:
    """Run a command to its end, and return what it took; "status" is "ok", or the end of its messages."""
    limited = None if limit is None else partial(resource.setrlimit, resource.RLIMIT_DATA, (limit, limit))
    environment = {**os.environ, "TMPDIR": str(folder)}
    free = least = _free(folder)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        began = time.perf_counter()
        # Nothing but a limit is set between fork and exec, where threads of this process are of no account.
        process = subprocess.Popen(
            command, stdout=output, stderr=messages, env=environment, preexec_fn=limited
        )
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            least = min(least, _free(folder))
            time.sleep(0.1)
        seconds, (_, status, used) = time.perf_counter() - began, ended
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        messages.seek(0)
        printed, told = output.read().decode(), messages.read().decode()
    failed = process.returncode != 0
    return {
        "step": name,
        "status": f"exit code {process.returncode}: {told[-300:]}" if failed else "ok",
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(used.ru_maxrss / 1024),
        "disk_mb": round((free - least) / 2**20),
        "rmse": _error(printed) if name == "test" and not failed else None,
        "said": printed.strip().splitlines()[-1][:200] if name == "fit" and printed.strip() else None,
    }


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _error(printed: str) -> float:
    found = json.loads(printed)
    return float(found["rmse"] if "rmse" in found else found["errors"][TARGET]["RMSE"]["value"])


def run_on_cluster(name: str, command: list[str], folder: Path) -> Line:
    """Run a command on two workers; CPU seconds and memory are those of the command and the workers."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        line = run_step(name, [*command, "--cluster", cluster.scheduler_address], folder, limit=None)
        used = client.run(resource.getrusage, resource.RUSAGE_SELF).values()
    line["cpu_seconds"] += round(sum(each.ru_utime + each.ru_stime for each in used), 2)
    line["peak_mb"] += round(sum(each.ru_maxrss for each in used) / 1024)
    return line


def last_lines(lines: list[Line]) -> dict[tuple[str, int, str], Line]:
    return {(line["method"], line["rows"], line["step"]): line for line in lines}


def run(arguments: argparse.Namespace) -> None:
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    for rows in arguments.rows:
        write_rows(folder, rows)
        for method in METHODS:
            if method not in arguments.methods:
                continue
            run_method(method, rows, arguments)
        for left in folder.glob(f"*-{rows}.predicted.parquet"):
            left.unlink()


def run_method(method: str, rows: int, arguments: argparse.Namespace) -> None:
    """Run the steps of a method that are not recorded yet, up to the first that fails."""
    known = last_lines(read(arguments.records))
    ours = known.get((OURS, rows, "fit"))
    if ours is None and method == LIGHTGBM:
        raise SystemExit(f"lightgbm gets the seconds of our fit: run ours on {rows:,} rows first.")
    commands = steps(method, arguments.folder, rows, 0.0 if ours is None else ours["seconds"])
    done = [known.get((method, rows, name), {}).get("status") == "ok" for name, _ in commands]
    if all(done) and not arguments.again:
        return
    for name, command in commands:
        if name == "fit" and method == CLUSTER:
            line = run_on_cluster(name, command, arguments.folder)
        else:
            line = run_step(name, command, arguments.folder, LIMIT)
        line = {"method": method, "rows": rows, "threads": THREADS, **line, **facts(PACKAGES)}
        print({key: line[key] for key in ("method", "rows", "step", "seconds", "peak_mb", "status")})
        append(arguments.records, line)
        if line["status"] != "ok":
            return


# ---- report


def slope(lines: dict[tuple[str, int, str], Line], method: str, step: str) -> float | None:
    """Return the slope of log seconds against log rows; None if fewer than two sizes are there."""
    found = [
        (rows, line["seconds"])
        for (of, rows, name), line in lines.items()
        if (of, name) == (method, step) and line["status"] == "ok"
    ]
    if len(found) < 2:
        return None
    logs = np.log(found)
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def report(lines: list[Line]) -> str:
    """Return the tables of what is recorded."""
    known = last_lines(lines)
    rows = [cells(key, line, known) for key, line in sorted(known.items(), key=_place) if key[2] != "test"]
    names = [
        "rows",
        "method",
        "step",
        "s",
        "CPU s",
        "rows a second",
        "peak MB",
        "disk MB",
        "RMSE of test rows",
    ]
    text = [table(names, rows), "", f"The noise alone has an RMSE of {NOISE}; {TEST_ROWS:,} test rows."]
    for method, step in [(OURS, "fit"), (OURS, "predict"), (OURS, "evaluate"), (LIGHTGBM, "fit")]:
        found = slope(known, method, step)
        if found is not None:
            asked = " (asked: 0.9 to 1.1)" if method == OURS else ""
            text.append(f"slope of log seconds against log rows, {method} {step}: {found:.2f}{asked}")
    for (method, n_rows, step), line in known.items():
        ours = known.get((OURS, n_rows, "fit"))
        if (method, step) == (CLUSTER, "fit") and ours is not None and line["status"] == "ok":
            ratio = line["seconds"] / ours["seconds"]
            text.append(f"{n_rows:,} rows, cluster / one process: {ratio:.2f} (asked: 1.3 at most)")
    return "\n".join(text)


def _place(item: tuple[tuple[str, int, str], Line]) -> tuple[int, int, str]:
    method, rows, step = item[0]
    return rows, METHODS.index(method), step


def cells(key: tuple[str, int, str], line: Line, known: dict[tuple[str, int, str], Line]) -> list[str]:
    method, rows, step = key
    if line["status"] != "ok":
        return [f"{rows:,}", method, step, line["status"].replace("\n", " ")[:60], *[""] * 5]
    tested = known.get((method, rows, "test"), {}) if step == "fit" else {}
    error = tested.get("rmse")
    figures = [f"{line['seconds']:.0f}", f"{line['cpu_seconds']:.0f}", f"{rows / line['seconds']:,.0f}"]
    sizes = [f"{line['peak_mb']:,}", f"{line['disk_mb']:,}", "" if error is None else f"{error:.4f}"]
    return [f"{rows:,}", method, step, *figures, *sizes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run what is not recorded yet")
    reporting = commands.add_parser("report", help="print the tables of what is recorded")
    for each in (running, reporting):
        each.add_argument("--records", type=Path, default=RECORDS)
    running.add_argument("--folder", type=Path, required=True, help="for the table, kept; 20 GB at most")
    running.add_argument("--rows", type=int, nargs="+", default=ROWS)
    running.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    running.add_argument("--again", action="store_true", help="repeat what is recorded")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        print(report(read(arguments.records)))
        print_facts([0], PACKAGES)


if __name__ == "__main__":
    main()

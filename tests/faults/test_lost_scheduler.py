"""A Dask scheduler that is killed during a fit: one error, the estimator as it was, and no worker left."""

import signal
import time

import numpy as np
import pytest

from injected_faults import finish, start

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
BlocksOnDask = pytest.importorskip("tensormachines._data.dask_blocks").BlocksOnDask

pytestmark = pytest.mark.cluster

SCHEDULER = """
import asyncio
from distributed import Scheduler

async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(serve())
"""


@pytest.fixture
def scheduler(folder, monkeypatch):
    """A process; Dask's own files go to a folder of theirs, as our scratch files must be gone."""
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(folder))
    process = start(SCHEDULER)
    with dask.config.set(temporary_directory=str(folder)):
        yield process
    finish(process)


@pytest.fixture
def client(scheduler):
    address = scheduler.stdout.readline().strip()
    with distributed.Client(address, timeout=300) as client:
        yield client


async def join(address):
    return await distributed.Worker(address, nthreads=1, dashboard=False)


def test_one_error_and_nothing_left(scheduler, client, model, data, folder, monkeypatch):
    worker = client.sync(join, client.scheduler.address)
    X, y = (da.from_array(array, chunks=(50, -1)[: array.ndim]) for array in data)
    before = model.predict(data[0])
    evaluated, total = [], BlocksOnDask.total

    def kill_after_some(self, *arguments, **options):
        evaluated.append(1)
        if len(evaluated) == 5:
            scheduler.send_signal(signal.SIGKILL)
            scheduler.wait()
        return total(self, *arguments, **options)

    monkeypatch.setattr(BlocksOnDask, "total", kill_after_some)
    model.set_params(solver="lbfgs", basis="standard", alpha=1e-4, max_iter=1000, tol=0)
    with pytest.raises(ConnectionError, match=r"Dask scheduler was lost.* connect a new Client"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(data[0]), before)
    while worker.status is not distributed.Status.closed:
        time.sleep(0.05)
    assert list(folder.glob("*/worker-*")) == []

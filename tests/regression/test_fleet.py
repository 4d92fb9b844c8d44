"""Streams, many files, many processes and a Dask cluster give the triangle of one piece."""

import functools
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import arm_parameters, gram, relative, simulate
from robots import read_arm

import feasid
from feasid.cli import main
from feasid.core.errors import InputError, LogError, NotEnoughDataError
from feasid.identification.regression import parallel as fleet
from feasid.identification.regression.parallel import reduce_motions
from feasid.identification.regression.triangle import Reduced
from feasid.logs.recording import Recording
from feasid.logs.stream import stream_log

pytest.importorskip("pyarrow")

EXACT = 1e-12  # sums of some thousand products in another order
FILTERED = 1e-10  # the filter has forgotten a cut after ten periods: exp(-10 pi)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def robot(folder):
    return read_arm(folder).with_joint_terms()


@pytest.fixture(scope="module")
def log(robot):
    return simulate(robot, arm_parameters(robot), 1, samples=6000, noise=0.02)


def distance(a, b):
    return relative(gram(a), gram(b))


def bare(log):
    return log[[c for c in log if not c.startswith(("dq_", "ddq_"))]]


def streamed(path, robot, rows, **options):
    columns = [int(c) for c in feasid.base_parameters(robot).independent]
    return reduce_motions(stream_log(path, robot, options, rows=rows), robot, columns)


@pytest.mark.parametrize("rows", [700, 1999, 6000, 10**6])
@pytest.mark.parametrize("filtering", ["signals", "equations"])
@pytest.mark.parametrize(("derived", "tolerance"), [(False, EXACT), (True, FILTERED)])
def test_streamed_parquet_is_one_piece(folder, robot, log, rows, derived, tolerance, filtering):
    log = bare(log) if derived else log
    path = folder / f"log_{derived}_{rows}_{filtering}.parquet"
    log.to_parquet(path, row_group_size=500)
    base = feasid.base_parameters(robot)
    options = {"cutoff": 6.0 if derived else None, "filtering": filtering}
    whole = feasid.reduce(log, base=base, **options)
    piecewise = streamed(path, robot, rows, **options)
    assert piecewise.samples == whole.samples
    assert piecewise.rows == whole.rows
    assert distance(piecewise, whole) < tolerance
    for a, b in zip(piecewise.strata, whole.strata, strict=True):
        np.testing.assert_allclose(a.counts.sum(axis=0), b.counts.sum(axis=0))


def test_stream_keeps_runs_and_gaps_apart(folder, robot, log):
    log = bare(log).drop(index=range(2000, 2100)).reset_index(drop=True)
    log["run"] = np.where(np.arange(len(log)) < 4000, "a", "b")
    path = folder / "gaps.parquet"
    log.to_parquet(path)
    piecewise = streamed(path, robot, 900, cutoff=6.0, filtering="signals")
    whole = feasid.reduce(log, robot, cutoff=6.0, filtering="signals")
    assert piecewise.samples == whole.samples
    assert distance(piecewise, whole) < FILTERED
    assert any("rows are not used" in n for n in piecewise.notes)


def test_stream_errors_name_the_file_and_where_rows_are_counted(folder, robot, log):
    log = log.copy()
    log.loc[4321, "q_slide"] = np.nan
    path = folder / "holes.parquet"
    log.to_parquet(path)
    with pytest.raises(LogError, match=r"q_slide.*from row 3984 of the file"):
        streamed(path, robot, 1000)
    log.iloc[:0].to_parquet(folder / "empty.parquet")
    with pytest.raises(NotEnoughDataError, match="no rows"):
        streamed(folder / "empty.parquet", robot, 1000)


@pytest.fixture(scope="module")
def files(folder, log):
    paths = []
    for k in range(4):
        paths.append(folder / f"part_{k}.csv")
        log.iloc[1500 * k : 1500 * (k + 1)].to_csv(paths[-1], index=False)
    return paths


@pytest.mark.slow
def test_processes_give_what_one_gives(robot, files):
    alone = feasid.reduce(files, robot)
    shared = feasid.reduce(files, robot, workers=2)
    for a, b in zip(alone.triangles, shared.triangles, strict=True):
        np.testing.assert_array_equal(a, b)
    assert shared.sources == tuple(p.name for p in files)


def test_one_bad_file_does_not_lose_the_rest(robot, files, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("t,q_shoulder\n0,1\n")
    worse = tmp_path / "worse.csv"
    worse.write_text("t\n0\n")
    good = feasid.reduce([*files[:2], *files[2:]], robot)
    with pytest.raises(LogError, match=r"1 log\(s\) failed .*bad\.csv") as caught:
        feasid.reduce([*files[:2], bad, *files[2:]], robot)
    assert caught.value.partial.samples == good.samples
    skipped = feasid.reduce([*files[:2], bad, *files[2:]], robot, on_error="skip")
    assert skipped.samples == good.samples
    assert any("bad.csv" in note for note in skipped.notes)
    with pytest.raises(LogError, match="failed"):
        feasid.reduce([bad, worse], robot, on_error="skip")
    with pytest.raises(InputError, match="on_error"):
        feasid.reduce(files, robot, on_error="ignore")


def test_all_logs_get_one_cutoff(robot, log, tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, part in zip(paths, (log.iloc[:3000], log.iloc[3000:]), strict=True):
        bare(part).to_csv(path, index=False)
    total = feasid.reduce(paths, robot)
    assert total.cutoff is not None
    assert total.cutoff == feasid.reduce(paths[0], robot).cutoff


@functools.cache
def numbered():
    return [small(k) for k in range(11)]


@given(st.permutations(range(11)), st.sets(st.integers(0, 10), max_size=3))
def test_addition_is_a_tree_in_the_order_given(order, failed):
    """The same bits whatever arrives first; what comes in turn waits once per level at most."""
    parts = [None if k in failed else numbered()[k] for k in range(len(order))]
    tree, turn = fleet._Tree(len(order)), fleet._Tree(len(order))
    for k, p in enumerate(parts):
        tree.add(order[k], parts[order[k]])
        turn.add(k, p)
        assert len(turn.waiting) <= 4  # levels of eleven logs
    added = functools.reduce(Reduced.__add__, [p for p in parts if p is not None])
    assert distance(tree.total, added) < EXACT
    for a, b in zip(tree.total.triangles, turn.total.triangles, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not tree.waiting


def test_reduce_command_resumes_and_reports_what_failed(folder, files, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "bad.csv").write_text("t,q_shoulder\n0,1\n")
    names = [f.name for f in files]
    arguments = ["--robot", "arm.urdf", "--out", "all.reduced"]
    assert main(["reduce", *names[:2], "bad.csv", *arguments]) == 4
    assert "left out bad.csv" in capsys.readouterr().err
    assert main(["reduce", *names, *arguments]) == 2
    assert "exists" in capsys.readouterr().err
    assert main(["reduce", *names, *arguments, "--resume"]) == 0
    resumed = Reduced.load("all.reduced")
    assert sorted(resumed.sources) == names
    assert resumed.samples == 6000
    assert main(["fit", "all.reduced", "--robot", "arm.urdf", "--out", "from_reduced.urdf"]) == 0
    assert "from_reduced.urdf" in capsys.readouterr().out


def small(log):
    """A job for logs that are numbers, or functions that make them."""
    seed = log() if callable(log) else log
    if seed < 0:
        raise InputError(f"no log {seed}")
    robot = feasid.Robot.from_dh([(0, 0.3, 0, 0)])
    return Reduced.from_samples(robot, *np.random.default_rng(seed).normal(size=(4, 3, 1)))


class Backwards(Executor):
    """An executor of two workers that ends the last job first, and loses the worker of log 13."""

    _max_workers = 2

    def __init__(self):
        self.waiting, self.most = [], 0

    def submit(self, function, packed, block):
        future = Future()
        self.waiting.append((future, function, packed, block))
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == 2 * fleet.AHEAD or block[0][1] == 6:
            while self.waiting:
                self.finish(*self.waiting.pop())
        return future

    def finish(self, future, function, packed, block):
        if block[0][1] == 13:
            future.set_exception(OSError("killed"))
        else:
            future.set_result(function(packed, block))


def test_an_executor_says_which_logs_failed_in_the_order_given():
    backwards = Backwards()
    found = fleet.reduce_all(small, [5, 13, 5, -2, 6], executor=backwards)
    assert backwards.most == 2 * fleet.AHEAD  # so many may be lost with the workers
    assert [f.log for f in found.failed] == ["log 2", "log 4"]
    assert [f.message for f in found.failed] == ["its worker died: killed", "no log -2"]
    assert distance(found.total, small(5) + small(5) + small(6)) < EXACT
    skipped = found.require_total("skip")
    note = skipped.notes[-1]
    assert (note.code, note.values) == ("failed", {"logs": ["log 2", "log 4"]})
    with pytest.raises(LogError, match=r"^2 log.s. failed .error.partial holds .*log 4: no") as one:
        found.require_total("raise")
    assert (one.value.failed, one.value.partial) == (found.failed, found.total)
    with pytest.raises(LogError, match=r"^1 log.s. failed: log 1: no log -3$") as none:
        fleet.reduce_all(small, [-3]).require_total("skip")
    assert none.value.partial is None
    whole = fleet.reduce_all(small, [5])
    assert whole.require_total("raise") is whole.total


@pytest.mark.parametrize(("logs", "workers", "sent"), [(1, 2, False), (2, 1, False), (2, 2, True)])
def test_processes_are_used_where_there_is_something_to_share(logs, workers, sent):
    """What cannot be pickled is no matter where nothing is sent."""
    found = fleet.reduce_all(small, [lambda: 3] * logs, workers=workers)
    assert len(found.failed) == (logs if sent else 0)
    assert all("cannot be given to a worker process" in f.message for f in found.failed)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_threads_and_processes_give_the_bits_of_one_process(robot, files, kind):
    executor = kind(
        2, **({} if kind is ThreadPoolExecutor else {"mp_context": get_context("spawn")})
    )
    with executor:
        shared = feasid.reduce(files, robot, executor=executor)
    assert shared.to_bytes() == feasid.reduce(files, robot).to_bytes()


def test_a_folder_a_pattern_and_a_generator_are_logs(robot, log, files, tmp_path):
    (tmp_path / "day 1").mkdir()
    (tmp_path / ".hidden").write_text("")
    for k, path in enumerate([tmp_path / "a.csv", tmp_path / "day 1" / "b.csv"]):
        log.iloc[k : k + 1500].to_csv(path, index=False)
    listed = feasid.reduce([tmp_path / "a.csv", tmp_path / "day 1" / "b.csv"], robot)
    for logs in (tmp_path, f"{tmp_path}/**/*.csv", (p for p in sorted(tmp_path.rglob("*.csv")))):
        assert feasid.reduce(logs, robot).to_bytes() == listed.to_bytes()
    pytest.importorskip("fsspec").filesystem("memory").put(str(tmp_path), "/all", recursive=True)
    remote = feasid.reduce("memory://all/**/*.csv", robot)
    assert remote.triangles[0].tobytes() == listed.triangles[0].tobytes()
    for nothing in (f"{tmp_path}/x*", "memory://all/x*", "memory://all/x.csv", "nowhere://x.csv"):
        with pytest.raises(InputError, match=r"x\*|no such file|cannot be read|not known"):
            feasid.reduce(nothing, robot)


def test_logs_that_are_reduced_from_files_do_not_stay_in_memory(files, robot):
    logs = [Recording(path) for path in files]
    feasid.reduce(logs, robot)
    # The first one was read for the cut-off of all.
    assert not any(log._raws or log._motions or log.derived for log in logs[1:])


@pytest.mark.slow
def test_dask_cluster_gives_what_one_process_gives_when_a_worker_dies(
    robot, log, files, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    dask_frame = pytest.importorskip("dask.dataframe")
    alone = feasid.reduce(files, robot)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        distributed.Client(c) as client,
    ):
        shared = feasid.reduce(files, robot, client=client)
        assert distance(shared, alone) < EXACT
        table = dask_frame.from_pandas(log, npartitions=4, sort=False)
        assert distance(feasid.reduce(table, robot, client=client), alone) < EXACT
        killed = []

        def kill(*_):
            if not killed:
                killed.append(next(iter(c.workers.values())))
                client.run(lambda: __import__("os")._exit(1), workers=[killed[0].worker_address],
                           on_error="ignore")  # fmt: skip

        many = [files[0].with_name(f"many_{k}.csv") for k in range(40)]
        for k, path in enumerate(many):
            log.iloc[k : k + 1500].to_csv(path, index=False)
        monkeypatch.setattr(fleet, "step", lambda _: nullcontext(kill))  # it says each result
        again = feasid.reduce(many, robot, client=client)
        assert killed
        assert again.samples == 40 * 1500


def test_fit_takes_a_dask_frame(robot, log):
    dask_frame = pytest.importorskip("dask.dataframe")
    # Each partition is prepared by itself, and equations' windows end where it ends.
    frame = dask_frame.from_pandas(log, npartitions=3, sort=False)
    fit = feasid.fit(frame, robot, filtering="signals")
    whole = feasid.fit(log, robot, filtering="signals")
    np.testing.assert_allclose(fit.beta, whole.beta, rtol=1e-5, atol=1e-8)


def test_fit_takes_pandas_with_runs(robot, log):
    runs = pd.concat([log.assign(run="a"), log.assign(run="b")])
    assert feasid.fit(runs, robot).reduced.samples == 2 * len(log)

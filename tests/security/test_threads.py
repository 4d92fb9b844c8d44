"""One online fit that several threads use at once."""

import copy
import pickle
import threading
import time

import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid


@pytest.mark.parametrize(
    "seconds", [3.0, pytest.param(60.0, marks=pytest.mark.slow)], ids=["moment", "minute"]
)
@pytest.mark.parametrize("worker", [False, True])
def test_threads_may_save_copy_and_ask_while_others_update(tmp_path, worker, seconds):
    robot = feasid.load_robot(ARM)
    terms = robot.with_joint_terms()
    log = simulate(terms, arm_parameters(terms), 0, samples=2000)
    q, tau = (log[[f"{kind}_{j}" for j in robot.joints]].to_numpy() for kind in ("q", "tau"))
    online = feasid.OnlineFit(robot, 1 / log["t"].diff().median(), worker=worker)
    ends, errors = time.monotonic() + seconds, []

    def repeat(use):
        k = 0
        while time.monotonic() < ends and not errors:
            try:
                use(k)
            except Exception as error:
                errors.append(error)
            k += 1

    def update(k):
        online.update(q[k % len(q)], tau[k % len(tau)])

    def save(k):
        online.save(tmp_path / "online.feasid", overwrite=True)

    uses = [update, update, save, lambda _: pickle.dumps(online), lambda _: copy.deepcopy(online)]
    threads = [threading.Thread(target=repeat, args=[use]) for use in uses]
    threads.append(threading.Thread(target=repeat, args=[lambda _: online.estimate()]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
        assert not thread.is_alive()
    assert errors == []
    online.close()
    feasid.load(tmp_path / "online.feasid").estimate()

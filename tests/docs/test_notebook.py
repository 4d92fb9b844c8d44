"""From a spreadsheet's CSV to MuJoCo in a notebook, as somebody new to it would go."""

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import read_arm

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("mujoco")

CELLS = [
    "import feasid\nrobot = feasid.load_robot('arm.urdf')\nrobot",
    "log = feasid.read_log('log.csv')\nlog.attrs['notes']",
    "feasid.diagnose(log, robot)",
    "fit = feasid.fit(log, robot)\nfit",
    "fit.errors(feasid.read_log('other.csv'))",
    "fit.write('arm.xml', test='other.csv')",
    "import mujoco\nmodel = mujoco.MjModel.from_xml_path('arm.xml')\n"
    "data = mujoco.MjData(model)\nmujoco.mj_step(model, data)\n"
    "print(model.nv, float(data.time), fit.verify('arm.xml', 'mujoco')['mujoco']['all'])",
    "fit.save('arm.feasid')\nfeasid.load('arm.feasid')",
    "feasid.base_parameters(robot)",
    "feasid.check(robot)",
    "fit.report('report.html')",
    "fit.summary()",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Logs as a German spreadsheet writes a pandas frame: an index, semicolons, degrees."""
    folder = tmp_path_factory.mktemp("notebook")
    robot = read_arm(folder).with_joint_terms()
    for seed, name in ((1, "log.csv"), (2, "other.csv")):
        log = simulate(robot, arm_parameters(robot), seed, samples=3000, noise=0.02)
        log = log[["t", *(c for c in log if c.startswith(("q_", "tau_")))]]
        turning = [f"q_{b.joint}" for b in robot.bodies if b.motion[:3].any()]
        log[turning] = np.rad2deg(log[turning])
        log = log.rename(columns={q: f"{q} [deg]" for q in turning})
        log.to_csv(folder / name, sep=";", decimal=",")
    return folder


def shown(cell, kind="text/plain"):
    """What a cell displays."""
    parts = [o["data"].get(kind, "") for o in cell["outputs"] if "data" in o]
    return "".join(parts)


@pytest.mark.slow
def test_a_notebook_from_a_spreadsheet_to_mujoco(folder):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    place = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(book, timeout=300, resources=place, kernel_name="python3").execute()
    robot, notes, diagnosis, fit, errors, written, *later = book.cells
    simulated, saved, base, verdict, page, summary = later
    assert "3 bodies" in shown(robot)
    assert '<a href="report.html"' in shown(page, "text/html")
    assert (folder / "report.html").exists()
    assert "<td>data</td>" in shown(summary, "text/html")
    assert "decimal commas" in shown(notes)
    assert "deg to SI" in shown(notes)
    assert shown(diagnosis, "text/html")
    assert "physically consistent" in shown(fit)
    assert "<" in shown(fit, "text/html")
    assert float(shown(errors).split("all")[1].split()[0]) < 0.05
    assert "wrote arm.xml" in shown(written)
    dof, time, error = simulated["outputs"][0]["text"].split()
    assert dof == "3"
    assert float(time) > 0
    assert float(error) < 0.1
    assert "saved" in shown(saved)
    assert "base parameters" in shown(base)
    assert shown(verdict)
    warnings = [o for c in book.cells for o in c["outputs"] if o.get("name") == "stderr"]
    assert not warnings, warnings

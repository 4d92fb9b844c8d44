"""Logs as other programs record them: bags of ROS 2, controls of MuJoCo's actuators."""

import struct

import numpy as np
import pandas as pd
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
START = 1_700_000_000_123_456_789


def message(stamp, names, position, velocity=(), effort=()):
    types = STORE.types
    header = types["std_msgs/msg/Header"](
        stamp=types["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9),
        frame_id="",
    )
    arrays = [np.array(a, dtype=np.float64) for a in (position, velocity, effort)]
    return types[JOINT_STATE](header, list(names), *arrays)


def write(path, batches, plugin=StoragePlugin.MCAP, topic="/joint_states", stamped=True):
    """Batches of (ns, names, position, velocity, effort)."""
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection(topic, JOINT_STATE, typestore=STORE)
        for when, *content in batches:
            raw = STORE.serialize_cdr(message(when if stamped else 0, *content), JOINT_STATE)
            writer.write(connection, when, raw)
    return path


def batches(log, joints, rng=None, effort=True):
    """A message per row; with `rng`, names in another order each time."""
    for _, row in log.iterrows():
        names = list(joints) if rng is None else list(rng.permutation(joints))
        signals = [[row[f"{w}_{n}"] for n in names] for w in ("q", "dq", "tau")]
        yield (START + round(row["t"] * 1e9), names, *signals[: 3 if effort else 2])


MAGIC = b"\x89MCAP0\r\n"


def record(kind, body):
    """A record of an MCAP file."""
    return struct.pack("<BQ", kind, len(body)) + body


def chunk(data, unpacked, compression=b"zstd"):
    """A chunk that says how many bytes it unpacks to."""
    head = struct.pack("<QQQI", 0, 2**62, unpacked, 0) + struct.pack("<I", len(compression))
    return record(6, head + compression + struct.pack("<Q", len(data)) + data)


ACTUATED = """<mujoco><option timestep="0.001" integrator="implicitfast"/><default>
<joint armature="0.02" damping="0.1" frictionloss="0.05"/></default><worldbody>
<body><joint name="a" axis="0 1 0"/><inertial pos="0.1 0 0.02" mass="1" diaginertia=".02 .03 .01"/>
<body pos="0.3 0 0"><joint name="b" axis="0 1 0"/>
<inertial pos="0.1 0.01 0" mass="0.5" diaginertia=".01 .01 .01"/></body></body></worldbody>
<actuator><position name="A" joint="a" kp="30" kv="2" forcerange="-12 12"/>
<general name="B" joint="b" gear="3" gainprm="4" biastype="affine" biasprm="0.1 -3.5 -0.2"/>
</actuator></mujoco>"""


def simulated(text=ACTUATED, seconds=5.0):
    """A log of controls, with the forces that MuJoCo found."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    phase, every = rng.uniform(0, 6, (3, model.nu)), 5
    rows = []
    for k in range(int(seconds * 1000)):
        if k % every == 0:
            data.ctrl[:] = sum(
                np.sin(w * data.time + p) for w, p in zip((1.3, 4.0, 7.0), phase, strict=True)
            )
            mujoco.mj_forward(model, data)
            rows.append([data.time, *data.qpos, *data.qvel, *data.ctrl, *data.qfrc_actuator])
        mujoco.mj_step(model, data)
    names = ("q_a", "q_b", "dq_a", "dq_b", "ctrl_A", "ctrl_B", "tau_a", "tau_b")
    return model, pd.DataFrame(rows, columns=["t", *names])

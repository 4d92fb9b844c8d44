"""Random MJCF mechanisms: several joints per body, welded bodies, joint equalities, one loop."""

import numpy as np

KINDS = ("hinge", "hinge", "slide")


def numbers(values):
    return " ".join(f"{v:.4f}" for v in values)


def inertial(rng):
    mass = rng.uniform(0.3, 2.0)
    moments = mass * 0.02 * (1 + rng.uniform(0, 0.9, 3))
    return (
        f'<inertial pos="{numbers(rng.uniform(-0.2, 0.2, 3))}" mass="{mass:.4f}" '
        f'diaginertia="{numbers(moments)}" euler="{numbers(rng.uniform(-1, 1, 3))}"/>'
    )


def joint(rng, name, axis=None, kind=None):
    kind = rng.choice(KINDS) if kind is None else kind
    axis = rng.standard_normal(3) if axis is None else axis
    extra = f' pos="{numbers(rng.uniform(-0.1, 0.1, 3))}"' if rng.random() < 0.3 else ""
    return f'<joint name="{name}" type="{kind}" axis="{numbers(axis)}"{extra}/>'


def tree_with_couplings(seed):
    """A tree of two to four bodies with one to three joints each, some of them coupled."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    text, names = {}, []
    axes = np.eye(3)
    for k in range(count):
        own = []
        for j in range(int(rng.choice([1, 1, 2, 3]))):
            names.append(f"j{k}{j}")
            axis = axes[rng.integers(3)] if rng.random() < 0.5 else None
            own.append(joint(rng, names[-1], axis))
        body = f'<body name="b{k}" pos="{numbers(rng.uniform(-0.4, 0.4, 3))}">'
        welded = f'<body name="w{k}" pos="0.1 0 0">{inertial(rng)}</body>'
        text[k] = [body + "".join(own) + inertial(rng) + (welded if rng.random() < 0.3 else "")]
    for k in range(count - 1, 0, -1):
        parent = int(rng.integers(max(0, k - 2), k))
        text[parent].append("".join(text[k]) + "</body>")
    pairs = rng.permutation(len(names))
    couplings = ""
    for k in range(int(rng.integers(0, max(1, len(names) // 3)) + (seed % 2))):
        if 2 * k + 1 >= len(names) - 1:
            break
        a, b = names[pairs[2 * k]], names[pairs[2 * k + 1]]
        factor = rng.choice([-1.0, 1.0, 2.0, -0.5, float(np.round(rng.normal(), 3)) or 1.0])
        couplings += (
            f'<joint joint1="{a}" joint2="{b}" polycoef="{rng.choice([0, 0.3])} {factor}"/>'
        )
    return (
        '<mujoco><compiler angle="radian"/><worldbody>' + "".join(text[0]) + "</body>"
        f"</worldbody><equality>{couplings}</equality></mujoco>"
    )


def one_loop(seed):
    """A planar or spatial chain whose end is tied to the base or to a body of its own."""
    rng = np.random.default_rng(seed)
    planar = seed % 2 == 0
    kind = rng.choice(["connect", "weld"], p=[0.7, 0.3])
    needed = {(True, "connect"): 2, (True, "weld"): 3, (False, "connect"): 3, (False, "weld"): 6}
    count = needed[planar, kind] + int(rng.choice([1, 1, 2]))
    bodies = ""
    for k in range(count):
        slides = rng.random() < 0.2
        if planar:
            axis = np.append(rng.standard_normal(2), 0.0) if slides else [0, 0, 1.0]
            place = np.append(rng.uniform(-0.3, 0.3, 2), 0.0)
        else:
            axis, place = rng.standard_normal(3), rng.uniform(-0.3, 0.3, 3)
        text = (
            f'<joint name="j{k}" type="{"slide" if slides else "hinge"}" axis="{numbers(axis)}"/>'
        )
        bodies += f'<body name="b{k}" pos="{numbers(place)}">{text}{inertial(rng)}'
    other = "world" if rng.random() < 0.6 else "b0"
    if other == "b0":
        bodies = f'<body name="base"><joint name="first" axis="0 0 1"/>{inertial(rng)}' + bodies
        other, count = "base", count + 1
    anchor = rng.uniform(-0.3, 0.3, 3) * ([1, 1, 0] if planar else [1, 1, 1])
    last = f"b{count - 1 - (other == 'base')}"
    tie = f'<{kind} body1="{last}" body2="{other}" anchor="{numbers(anchor)}"/>'
    gravity = rng.choice(["0 0 -9.81", "0 -9.81 0"])
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{gravity}"/><worldbody>{bodies}'
        f"{'</body>' * count}</worldbody><equality>{tie}</equality></mujoco>"
    )


def parallelogram_arm(seed):
    """A palletizer's arm: both motors at the shoulder, its hand kept level or not, with limits.

    Every second one has no limits, so that its parallelograms could lie flat.
    """
    rng = np.random.default_rng(seed)

    def joint(name, low=None, high=None):
        limits = f' limited="true" range="{low!r} {high!r}"' if low is not None and seed % 2 else ""
        return f'<joint name="{name}" axis="0 1 0"{limits}/>'

    def flat(low, high):
        return np.array([rng.uniform(low, high), 0.0, rng.uniform(low, high)])

    shoulder, upper, crank = flat(0.0, 0.3), flat(0.1, 0.5), -flat(0.05, 0.3)
    while abs(np.cross(upper, crank)[1]) < 0.3 * np.linalg.norm(upper) * np.linalg.norm(crank):
        crank = crank[[2, 1, 0]] * rng.uniform(-1.5, 1.5, 3)
    hand = (
        f'<body name="hand" pos="{numbers(flat(0.2, 0.5))}">{joint("tilt")}{inertial(rng)}</body>'
    )
    turns = '<joint name="m0" axis="0 0 1"/>' if rng.random() < 0.6 else ""
    fore = f'<body name="fore" pos="{numbers(upper)}">{joint("elbow", -0.6, 0.6)}{inertial(rng)}'
    fore += hand if rng.random() < 0.5 else ""
    bodies = (
        f'<body name="upper" pos="{numbers(shoulder)}">{joint("m1", -0.5, 0.7)}{inertial(rng)}'
        f"{fore}</body></body>"
        f'<body name="crank" pos="{numbers(shoulder)}">{joint("m2", -0.7, 0.4)}{inertial(rng)}'
        f'<body name="rod" pos="{numbers(crank)}">{joint("rod")}{inertial(rng)}</body></body>'
    )
    if turns:
        bodies = f'<body name="column">{turns}{inertial(rng)}{bodies}</body>'
    tie = f'<connect body1="rod" body2="fore" anchor="{numbers(upper)}"/>'
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>{bodies}'
        f"</worldbody><equality>{tie}</equality></mujoco>"
    )

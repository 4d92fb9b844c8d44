"""SDF for tests: one arm, the same as `robots.ARM`, in three ways of writing poses."""

INERTIALS = {
    "base": ("0 0 0.05 0 0 0", 2.5, (0.01, 0, 0, 0.01, 0, 0.015)),
    "upper": ("0.01 -0.02 0.15 0.3 -0.2 0.1", 1.25,
              (0.011, 0.0002, -0.0003, 0.012, 0.0001, 0.003)),
    "plate": ("0 0 0 0 0 0", 0.2, (0.0002, 0, 0, 0.0002, 0, 0.0003)),
    "rod": ("0 0 0.1 0 0 0", 0.3, (0.001, 0, 0, 0.001, 0, 0.0001)),
}  # fmt: skip


def inertial(name):
    if name not in INERTIALS:
        return ""
    pose, mass, moments = INERTIALS[name]
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    given = "".join(f"<{k}>{v}</{k}>" for k, v in zip(names, moments, strict=True))
    return (
        f"<inertial>\n  <pose>{pose}</pose>\n  <mass>{mass}</mass>\n"
        f"  <inertia>{given}</inertia>\n</inertial>"
    )


def link(name, pose=""):
    return f'<link name="{name}">{pose}\n{inertial(name)}</link>\n'


def joint(name, kind, parent, child, inner=""):
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{inner}</joint>\n'


def sdf(*parts, version="1.9", model="arm"):
    inner = "".join(parts)
    return f'<sdf version="{version}"><model name="{model}">\n{inner}</model></sdf>\n'


def axis(xyz, rest="", **attributes):
    given = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return f"<axis><xyz{given}>{xyz}</xyz>{rest}</axis>"


TURN = "0 0 1.5707963267948966"

TERMS = (
    "<limit><lower>-1.5</lower><upper>1.5</upper><velocity>2</velocity><effort>40</effort></limit>"
    "<dynamics><damping>0.7</damping><friction>0.2</friction></dynamics>"
)

SIN, COS = 0.3894183423086505, 0.9210609940028851

SLIDE = "<limit><lower>0</lower><upper>0.2</upper><velocity>1</velocity><effort>10</effort></limit>"

LOCAL = sdf(
    link("base"),
    link("upper", f'<pose relative_to="base">0 0 0.1 {TURN}</pose>'),
    joint("shoulder", "revolute", "base", "upper", axis("0 1 0", TERMS)),
    link("plate", '<pose relative_to="upper">0 0 0.3 0 0.4 0</pose>'),
    joint("plate_joint", "fixed", "upper", "plate"),
    link("rod", '<pose relative_to="plate">0 0 0 0 0 0</pose>'),
    joint("slide", "prismatic", "plate", "rod", axis("0 0 1", SLIDE)),
    link("wheel", '<pose relative_to="rod"/>'.replace("/>", ">0 0 0 0 0 0</pose>")),
    joint("wheel_joint", "continuous", "rod", "wheel", axis("1 0 0")),
)
"""Every pose in the parent link."""

FRAMES = sdf(
    '<frame name="mount" attached_to="base"><pose>0 0 0.1 0 0 0</pose></frame>',
    link("base"),
    link("upper", f'<pose relative_to="mount">0 0 0 {TURN}</pose>'),
    joint("shoulder", "revolute", "mount", "upper",
          axis("-1 0 0", TERMS, expressed_in="__model__")),
    link("plate", '<pose relative_to="plate_joint">0 0 0 0 0 0</pose>'),
    joint("plate_joint", "fixed", "upper", "plate",
          '<pose relative_to="upper">0 0 0.3 0 0.4 0</pose>'),
    link("rod", "<pose>0 0 0.4 0 0.4 1.5707963267948966</pose>"),
    joint("slide", "prismatic", "plate", "rod", axis("0 0 1", SLIDE)),
    link("wheel", '<pose relative_to="rod" degrees="true">0 0 0 0 90 0</pose>'),
    joint("wheel_joint", "continuous", "rod", "wheel",
          "<pose>0 0 0 0.3 -1.5707963267948966 0</pose>" + axis("1 0 0")),
)  # fmt: skip
"""The same arm by frames, poses of joints, poses in the model, degrees and axes in the model."""

OLD = sdf(
    link("base"),
    link("upper", f"<pose>0 0 0.1 {TURN}</pose>"),
    joint("shoulder", "revolute", "base", "upper", axis("-1 0 0", TERMS)),
    link("plate", "<pose>0 0 0.4 0 0.4 1.5707963267948966</pose>"),
    joint("plate_joint", "fixed", "upper", "plate"),
    link("rod", "<pose>0 0 0.4 0 0.4 1.5707963267948966</pose>"),
    joint("slide", "prismatic", "plate", "rod", axis(f"0 {SIN} {COS}", SLIDE)),
    link("wheel", "<pose>0 0 0.4 0 0.4 1.5707963267948966</pose>"),
    joint("wheel_joint", "continuous", "rod", "wheel",
          axis(f"0 {COS} -{SIN}")),
    version="1.4",
)  # fmt: skip
"""The same arm in SDF 1.4, where poses and axes are in the model's frame."""


def deep_frames(count):
    """Two links, one of them placed by a chain of so many frames."""
    frames = "".join(
        f'<frame name="f{k}"><pose relative_to="f{k + 1}">0 0 0.1 0.1 0 0</pose></frame>'
        for k in range(count)
    )
    return sdf(
        frames,
        f'<frame name="f{count}"/>',
        link("base", '<pose relative_to="f0">0 0 0 0 0 0</pose>'),
        link("rod"),
        joint("j", "revolute", "base", "rod", axis("0 0 1")),
    )

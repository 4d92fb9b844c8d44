"""feasid: physically feasible identification of robot dynamics, with proofs.

>>> import feasid
>>> robot = feasid.Robot.from_dh([(0, 1.0, 0, 0), (0, 1.0, 0, 0)], gravity=(0, -9.81, 0))
>>> robot.dof, robot.size
(2, 20)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feasid import datasets as datasets
    from feasid.dynamics.regressor import inverse_dynamics as inverse_dynamics
    from feasid.dynamics.regressor import regressor as regressor
    from feasid.errors import FeasidError as FeasidError
    from feasid.feasibility.correction import correct as correct
    from feasid.feasibility.sets import feasible_set as feasible_set
    from feasid.feasibility.verdict import check as check
    from feasid.gather import reduce as reduce
    from feasid.identifiability.base import BaseParameters as BaseParameters
    from feasid.identifiability.base import base_parameters as base_parameters
    from feasid.identify import fit as fit
    from feasid.logs.diagnosis import diagnose as diagnose
    from feasid.logs.readers import read_log as read_log
    from feasid.logs.reduction import Reduced as Reduced
    from feasid.robot.description import Robot as Robot
    from feasid.robot.load import load_robot as load_robot
    from feasid.robot.mjcf_write import write_mjcf as write_mjcf
    from feasid.robot.parts import Body as Body
    from feasid.robot.parts import Drive as Drive
    from feasid.robot.parts import Rotor as Rotor
    from feasid.robot.urdf_write import write_urdf as write_urdf

__version__ = "0.1.0"

# Public name -> module that defines it, imported when first used (PEP 562): solvers, pandas and
# plots stay unloaded until something needs them.
_HOME = {
    "BaseParameters": "identifiability.base",
    "base_parameters": "identifiability.base",
    "Body": "robot.parts",
    "Drive": "robot.parts",
    "diagnose": "logs.diagnosis",
    "FeasidError": "errors",
    "check": "feasibility.verdict",
    "correct": "feasibility.correction",
    "feasible_set": "feasibility.sets",
    "fit": "identify",
    "reduce": "gather",
    "Reduced": "logs.reduction",
    "inverse_dynamics": "dynamics.regressor",
    "regressor": "dynamics.regressor",
    "Robot": "robot.description",
    "Rotor": "robot.parts",
    "load_robot": "robot.load",
    "read_log": "logs.readers",
    "write_mjcf": "robot.mjcf_write",
    "write_urdf": "robot.urdf_write",
}

_MODULES = ("datasets",)

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"feasid.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'feasid' has no attribute {name!r}")
    value = getattr(import_module(f"feasid.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

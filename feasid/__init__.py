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
    from feasid import errors as errors
    from feasid import floating as floating
    from feasid.archive.load import load as load
    from feasid.assessment.simulation import Simulation as Simulation
    from feasid.assessment.simulation import simulate as simulate
    from feasid.codegen.c import export_c as export_c
    from feasid.codegen.compiled import CompiledDynamics as CompiledDynamics
    from feasid.control.computed_torque import ComputedTorque as ComputedTorque
    from feasid.control.external_torque import ContactEstimate as ContactEstimate
    from feasid.control.external_torque import ExternalTorque as ExternalTorque
    from feasid.core.notes import Note as Note
    from feasid.diagnosis.advice import diagnose as diagnose
    from feasid.dynamics.regressor import inverse_dynamics as inverse_dynamics
    from feasid.dynamics.regressor import regressor as regressor
    from feasid.errors import FeasidError as FeasidError
    from feasid.estimation.priors import GaussianPrior as GaussianPrior
    from feasid.estimation.priors import Prior as Prior
    from feasid.excitation.constraint_check import ExcitationProblem as ExcitationProblem
    from feasid.excitation.excite import excite as excite
    from feasid.excitation.trajectory import Trajectory as Trajectory
    from feasid.export.samples import Samples as Samples
    from feasid.export.samples import sample as sample
    from feasid.feasibility import problems as problems
    from feasid.feasibility.check import Verdict as Verdict
    from feasid.feasibility.constraints.sets import feasible_set as feasible_set
    from feasid.feasibility.correct import Correction as Correction
    from feasid.feasibility.least_squares import feasible_least_squares as feasible_least_squares
    from feasid.feasibility.proof.claim import Certificate as Certificate
    from feasid.fleet.fleet import Fleet as Fleet
    from feasid.fleet.fleet import fit_fleet as fit_fleet
    from feasid.formats.load import load_robot as load_robot
    from feasid.formats.write import write as write
    from feasid.identifiability.base import BaseParameters as BaseParameters
    from feasid.identifiability.base import base_parameters as base_parameters
    from feasid.identifiability.base import servo_scale_groups as servo_scale_groups
    from feasid.identification.fit import fit as fit
    from feasid.identification.result import Fit as Fit
    from feasid.inspection.check_and_correct import check as check
    from feasid.inspection.check_and_correct import correct as correct
    from feasid.inspection.comparison import Comparison as Comparison
    from feasid.inspection.comparison import compare as compare
    from feasid.inspection.file_check import FileCheck as FileCheck
    from feasid.inspection.file_correction import FileCorrection as FileCorrection
    from feasid.loads.controllers import ControllerPayload as ControllerPayload
    from feasid.loads.payload import Payload as Payload
    from feasid.loads.payload import payload as payload
    from feasid.loads.payload import payload_from_wrench as payload_from_wrench
    from feasid.loads.torque_constants import TorqueConstants as TorqueConstants
    from feasid.loads.torque_constants import torque_constants as torque_constants
    from feasid.logs.checks.findings import Diagnosis as Diagnosis
    from feasid.logs.checks.findings import Finding as Finding
    from feasid.logs.read.formats import read_log as read_log
    from feasid.logs.recording import Recording as Recording
    from feasid.online.acceptance import AcceptanceRules as AcceptanceRules
    from feasid.online.acceptance import OnlineEstimate as OnlineEstimate
    from feasid.online.online_fit import OnlineFit as OnlineFit
    from feasid.online.replay import Replay as Replay
    from feasid.online.replay import replay as replay
    from feasid.options.tables import SOUSA_2014 as SOUSA_2014
    from feasid.regression.reduce import reduce as reduce
    from feasid.regression.triangle import Reduced as Reduced
    from feasid.robot.bodies import Body as Body
    from feasid.robot.bodies import Rotor as Rotor
    from feasid.robot.couplings import Coupling as Coupling
    from feasid.robot.couplings import Loop as Loop
    from feasid.robot.description import Robot as Robot
    from feasid.robot.drives import CustomJointTerm as CustomJointTerm
    from feasid.robot.drives import Drive as Drive
    from feasid.robot.variants import parallelogram as parallelogram
    from feasid.uncertainty.ranges import ParameterRanges as ParameterRanges
    from feasid.uncertainty.ranges import Range as Range

__version__ = "0.1.0"

# Public name -> module that defines it, imported when first used (PEP 562): solvers, pandas and
# plots stay unloaded until something needs them.
_HOME = {
    "Fit": "identification.result",
    "Verdict": "feasibility.check",
    "load": "archive.load",
    "Correction": "feasibility.correct",
    "Certificate": "feasibility.proof.claim",
    "Diagnosis": "logs.checks.findings",
    "Finding": "logs.checks.findings",
    "Note": "core.notes",
    "Recording": "logs.recording",
    "compare": "inspection.comparison",
    "Comparison": "inspection.comparison",
    "FileCheck": "inspection.file_check",
    "FileCorrection": "inspection.file_correction",
    "BaseParameters": "identifiability.base",
    "base_parameters": "identifiability.base",
    "servo_scale_groups": "identifiability.base",
    "Body": "robot.bodies",
    "Drive": "robot.drives",
    "diagnose": "diagnosis.advice",
    "FeasidError": "errors",
    "excite": "excitation.excite",
    "ExcitationProblem": "excitation.constraint_check",
    "Trajectory": "excitation.trajectory",
    "check": "inspection.check_and_correct",
    "correct": "inspection.check_and_correct",
    "feasible_least_squares": "feasibility.least_squares",
    "feasible_set": "feasibility.constraints.sets",
    "fit": "identification.fit",
    "Fleet": "fleet.fleet",
    "fit_fleet": "fleet.fleet",
    "ControllerPayload": "loads.controllers",
    "Payload": "loads.payload",
    "Prior": "estimation.priors",
    "GaussianPrior": "estimation.priors",
    "payload": "loads.payload",
    "Samples": "export.samples",
    "sample": "export.samples",
    "payload_from_wrench": "loads.payload",
    "simulate": "assessment.simulation",
    "Simulation": "assessment.simulation",
    "TorqueConstants": "loads.torque_constants",
    "torque_constants": "loads.torque_constants",
    "CustomJointTerm": "robot.drives",
    "Range": "uncertainty.ranges",
    "ParameterRanges": "uncertainty.ranges",
    "AcceptanceRules": "online.acceptance",
    "OnlineEstimate": "online.acceptance",
    "Replay": "online.replay",
    "replay": "online.replay",
    "OnlineFit": "online.online_fit",
    "reduce": "regression.reduce",
    "Reduced": "regression.triangle",
    "CompiledDynamics": "codegen.compiled",
    "ComputedTorque": "control.computed_torque",
    "ContactEstimate": "control.external_torque",
    "ExternalTorque": "control.external_torque",
    "SOUSA_2014": "options.tables",
    "inverse_dynamics": "dynamics.regressor",
    "regressor": "dynamics.regressor",
    "Coupling": "robot.couplings",
    "Loop": "robot.couplings",
    "parallelogram": "robot.variants",
    "Robot": "robot.description",
    "Rotor": "robot.bodies",
    "load_robot": "formats.load",
    "read_log": "logs.read.formats",
    "write": "formats.write",
    "export_c": "codegen.c",
}

_MODULES = {
    "datasets": "datasets",
    "errors": "errors",
    "floating": "floating",
    "problems": "feasibility.problems",
}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


if not TYPE_CHECKING:  # a checker knows the names above and refuses all others

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"feasid.{_MODULES[name]}")
        if name not in _HOME:
            hint = import_module("feasid.errors").did_you_mean(name, __all__)
            raise AttributeError(f"module 'feasid' has no attribute {name!r}{hint}")
        value = getattr(import_module(f"feasid.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__

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
    from feasid.applications import floating as floating
    from feasid.applications.control.computed_torque import ComputedTorque as ComputedTorque
    from feasid.applications.control.external_torque import ContactEstimate as ContactEstimate
    from feasid.applications.control.external_torque import ExternalTorque as ExternalTorque
    from feasid.applications.diagnosis.advice import diagnose as diagnose
    from feasid.applications.excitation.constraint_check import (
        ExcitationProblem as ExcitationProblem,
    )
    from feasid.applications.excitation.excite import excite as excite
    from feasid.applications.excitation.trajectory import Trajectory as Trajectory
    from feasid.applications.fleet.fleet import Fleet as Fleet
    from feasid.applications.fleet.fleet import fit_fleet as fit_fleet
    from feasid.applications.fleet.store import LogStore as LogStore
    from feasid.applications.inspection.check_and_correct import check as check
    from feasid.applications.inspection.check_and_correct import correct as correct
    from feasid.applications.inspection.comparison import Comparison as Comparison
    from feasid.applications.inspection.comparison import compare as compare
    from feasid.applications.inspection.file_check import FileCheck as FileCheck
    from feasid.applications.inspection.file_correction import FileCorrection as FileCorrection
    from feasid.applications.load import load as load
    from feasid.applications.loads.controllers import ControllerPayload as ControllerPayload
    from feasid.applications.loads.payload import Payload as Payload
    from feasid.applications.loads.payload import WristSensor as WristSensor
    from feasid.applications.loads.payload import payload as payload
    from feasid.applications.loads.torque_constants import TorqueConstants as TorqueConstants
    from feasid.applications.loads.torque_constants import torque_constants as torque_constants
    from feasid.applications.loads.wrist import payload_from_wrench as payload_from_wrench
    from feasid.applications.online.acceptance import AcceptanceRules as AcceptanceRules
    from feasid.applications.online.acceptance import OnlineEstimate as OnlineEstimate
    from feasid.applications.online.online_fit import OnlineFit as OnlineFit
    from feasid.applications.online.replay import Replay as Replay
    from feasid.applications.online.replay import replay as replay
    from feasid.core import errors as errors
    from feasid.core.errors import FeasidError as FeasidError
    from feasid.core.notes import Note as Note
    from feasid.core.progress import set_progress as set_progress
    from feasid.identification.assessment.simulation import Simulation as Simulation
    from feasid.identification.assessment.simulation import simulate as simulate
    from feasid.identification.estimation.priors import GaussianPrior as GaussianPrior
    from feasid.identification.estimation.priors import Prior as Prior
    from feasid.identification.regression.reduce import reduce as reduce
    from feasid.identification.regression.triangle import Reduced as Reduced
    from feasid.identification.uncertainty.ranges import ParameterRanges as ParameterRanges
    from feasid.identification.uncertainty.ranges import Range as Range
    from feasid.logs.checks.findings import Diagnosis as Diagnosis
    from feasid.logs.checks.findings import Finding as Finding
    from feasid.logs.read.formats import read_log as read_log
    from feasid.logs.recording import Recording as Recording
    from feasid.options.tables import SOUSA_2014 as SOUSA_2014
    from feasid.parameters import problems as problems
    from feasid.parameters.feasibility.check import Verdict as Verdict
    from feasid.parameters.feasibility.constraints.sets import feasible_set as feasible_set
    from feasid.parameters.feasibility.correct import Correction as Correction
    from feasid.parameters.feasibility.least_squares import (
        feasible_least_squares as feasible_least_squares,
    )
    from feasid.parameters.feasibility.proof.claim import Certificate as Certificate
    from feasid.parameters.identifiability.base import BaseParameters as BaseParameters
    from feasid.parameters.identifiability.base import base_parameters as base_parameters
    from feasid.parameters.identifiability.base import servo_scale_groups as servo_scale_groups
    from feasid.results.codegen.c import export_c as export_c
    from feasid.results.codegen.compiled import CompiledDynamics as CompiledDynamics
    from feasid.results.export.samples import Samples as Samples
    from feasid.results.export.samples import sample as sample
    from feasid.results.fit import Fit as Fit
    from feasid.results.fit import fit as fit
    from feasid.robot.bodies import Body as Body
    from feasid.robot.bodies import Rotor as Rotor
    from feasid.robot.couplings import Coupling as Coupling
    from feasid.robot.couplings import Loop as Loop
    from feasid.robot.description import Robot as Robot
    from feasid.robot.drives import CustomJointTerm as CustomJointTerm
    from feasid.robot.drives import Drive as Drive
    from feasid.robot.dynamics.regressor import inverse_dynamics as inverse_dynamics
    from feasid.robot.dynamics.regressor import regressor as regressor
    from feasid.robot.formats.load import load_robot as load_robot
    from feasid.robot.formats.write import write as write
    from feasid.robot.variants import parallelogram as parallelogram

__version__ = "0.1.0"

# Public names by the module that defines them, imported when first used (PEP 562): solvers, pandas
# and plots stay unloaded until something needs them.
_NAMES = {
    "applications.control.computed_torque": "ComputedTorque",
    "applications.control.external_torque": "ContactEstimate ExternalTorque",
    "applications.diagnosis.advice": "diagnose",
    "applications.excitation.constraint_check": "ExcitationProblem",
    "applications.excitation.excite": "excite",
    "applications.excitation.trajectory": "Trajectory",
    "applications.fleet.fleet": "Fleet fit_fleet",
    "applications.fleet.store": "LogStore",
    "applications.inspection.check_and_correct": "check correct",
    "applications.inspection.comparison": "Comparison compare",
    "applications.inspection.file_check": "FileCheck",
    "applications.inspection.file_correction": "FileCorrection",
    "applications.load": "load",
    "applications.loads.controllers": "ControllerPayload",
    "applications.loads.payload": "Payload WristSensor payload",
    "applications.loads.torque_constants": "TorqueConstants torque_constants",
    "applications.loads.wrist": "payload_from_wrench",
    "applications.online.acceptance": "AcceptanceRules OnlineEstimate",
    "applications.online.online_fit": "OnlineFit",
    "applications.online.replay": "Replay replay",
    "core.errors": "FeasidError",
    "core.notes": "Note",
    "core.progress": "set_progress",
    "identification.assessment.simulation": "Simulation simulate",
    "identification.estimation.priors": "GaussianPrior Prior",
    "identification.regression.reduce": "reduce",
    "identification.regression.triangle": "Reduced",
    "identification.uncertainty.ranges": "ParameterRanges Range",
    "logs.checks.findings": "Diagnosis Finding",
    "logs.read.formats": "read_log",
    "logs.recording": "Recording",
    "options.tables": "SOUSA_2014",
    "parameters.feasibility.check": "Verdict",
    "parameters.feasibility.constraints.sets": "feasible_set",
    "parameters.feasibility.correct": "Correction",
    "parameters.feasibility.least_squares": "feasible_least_squares",
    "parameters.feasibility.proof.claim": "Certificate",
    "parameters.identifiability.base": "BaseParameters base_parameters servo_scale_groups",
    "results.codegen.c": "export_c",
    "results.codegen.compiled": "CompiledDynamics",
    "results.export.samples": "Samples sample",
    "results.fit": "Fit fit",
    "robot.bodies": "Body Rotor",
    "robot.couplings": "Coupling Loop",
    "robot.description": "Robot",
    "robot.drives": "CustomJointTerm Drive",
    "robot.dynamics.regressor": "inverse_dynamics regressor",
    "robot.formats.load": "load_robot",
    "robot.formats.write": "write",
    "robot.variants": "parallelogram",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

_MODULES = {
    "datasets": "datasets",
    "errors": "core.errors",
    "floating": "applications.floating",
    "problems": "parameters.problems",
}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


if not TYPE_CHECKING:  # a checker knows the names above and refuses all others

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"feasid.{_MODULES[name]}")
        if name not in _HOME:
            hint = import_module("feasid.core.errors").did_you_mean(name, __all__)
            raise AttributeError(f"module 'feasid' has no attribute {name!r}{hint}")
        value = getattr(import_module(f"feasid.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__

"""Descriptions that first have to be found or made: xacro files, and names of robots."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from feasid.errors import DescriptionError, InputError, did_you_mean, missing_extra
from feasid.formats.xml import LIMITS, ReadLimits, XmlText, parse_xml, read_bytes


def is_xacro(path: str | os.PathLike[str]) -> bool:
    """Whether a file is named as xacro."""
    return os.fspath(path).endswith(".xacro")


def expanded(path: str | os.PathLike[str], limits: ReadLimits = LIMITS) -> XmlText:
    """The URDF that xacro makes of a file. Xacro evaluates what the file says: trust it first.

    Raises
    ------
    MissingExtraError
        Xacro is not installed.
    DescriptionError
        Xacro refuses the file.
    """
    name = os.fspath(path)
    read_bytes(name, limits)
    try:
        import xacro  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise missing_extra("reading xacro", "xacro", "xacro") from error
    try:
        text = xacro.process_file(name).toxml()
    except Exception as error:  # whatever the file's own expressions raise
        raise DescriptionError(f"{name}: xacro refuses the file: {error}", path=name) from error
    return parse_xml(text.encode(), name, limits)


def described(name: Any) -> Any:
    """The file of a robot that ``robot_descriptions`` knows by this name; else `name` itself.

    Only a bare name such as ``"panda_description"`` that is no file is looked up. The package
    downloads descriptions when they are first asked for.
    """
    if not isinstance(name, str) or not name.isidentifier() or os.path.exists(name):
        return name
    if find_spec("robot_descriptions") is None:
        return name
    known = [m for m in _names() if m.endswith(("_description", "_mj_description"))]
    if name not in known:
        hint = did_you_mean(name, known)
        raise InputError(f"{name} is no file, and no robot of robot_descriptions{hint}", name=name)
    module = import_module(f"robot_descriptions.{name}")
    return getattr(module, "URDF_PATH", None) or module.MJCF_PATH


def _names() -> list[str]:
    """Modules of ``robot_descriptions``."""
    spec = find_spec("robot_descriptions")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [p.stem for folder in folders for p in Path(folder).glob("*_description.py")]

"""One door for files to be inspected; the root element decides their format."""

from __future__ import annotations

import os

from feasid.formats.mjcf.model import ROOTS
from feasid.formats.xml import LIMITS, ReadLimits, XmlText, parse_xml, read_bytes
from feasid.inspection.from_mjcf import model_of_mjcf
from feasid.inspection.from_urdf import model_of_urdf
from feasid.inspection.model import Model


def read_model(path: str | os.PathLike[str], limits: ReadLimits = LIMITS) -> Model:
    """Read a URDF or MJCF file for inspection."""
    return model_of(parse_xml(read_bytes(path, limits), os.fspath(path), limits), limits)


def model_of(text: XmlText, limits: ReadLimits = LIMITS) -> Model:
    """Read a parsed file for inspection."""
    if text.root.tag == "robot":
        return model_of_urdf(text)
    if text.root.tag in ROOTS:
        return model_of_mjcf(text, limits)
    text.fail(f"root is <{text.root.tag}>, expected <robot> (URDF) or <mujoco> (MJCF)", text.root)

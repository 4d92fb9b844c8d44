"""The site: ``sphinx-build -W docs docs/_build/html``; needs the extra "docs"."""

import os
import sys
import tomllib

sys.path.insert(0, os.path.dirname(__file__))

import feasid

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tutorials: small matrices, busy machines

project = "feasid"
author = "The feasid developers"
copyright = "The feasid developers, BSD-3-Clause"
version = release = feasid.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "_listing",
    "_gallery",
    "_cheatsheet",
]
exclude_patterns = ["_build", "pictures/*.py"]
suppress_warnings = ["mystnb.unknown_mime_type"]
nitpicky = False

autodoc_default_options = {"members": True, "inherited-members": True, "show-inheritance": False}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_merge_streams = True

with open(os.path.join(os.path.dirname(__file__), "..", "pyproject.toml"), "rb") as file:
    PROJECT = tomllib.load(file)["project"]
SOURCE = "" if "OWNER" in PROJECT["urls"]["Source"] else PROJECT["urls"]["Source"]

html_theme = "pydata_sphinx_theme"
html_title = "feasid"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "logo": {"text": "feasid", "alt_text": "Home"},
    "icon_links": [
        {"name": "PyPI", "url": "https://pypi.org/project/feasid", "icon": "fa-brands fa-python"},
        *([{"name": "Source", "url": SOURCE, "icon": "fa-brands fa-github"}] if SOURCE else []),
    ],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_logo = "_static/logo.svg"
html_math_renderer = "mathml"
ALONE = ("start", "choose", "faq", "comparison", "troubleshooting", "changelog", "citing", "more")
ALONE += ("gallery", "cheatsheet", "codes")
html_sidebars = {page: [] for page in ALONE}
"""Pages without neighbours; a bar without entries would take a quarter of the width."""

# Pages run in folders of their own and find the example files' maker here.
nb_execution_in_temp = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
paths = [HERE, os.path.join(ROOT, "examples"), ROOT, os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

templates_path = ["_templates"]
html_context = {
    "default_mode": "auto",
    # What a link to a page shows elsewhere; docs/pictures/make.py makes the picture.
    "description": PROJECT["description"],
    "address": f"{PROJECT['urls']['Documentation']}/en/latest",
    "preview": "A WAM arm loses control with the least-squares model, and follows with feasid's",
}

"""Tables of the cheat sheet: each is made of the table that the package itself uses."""

import inspect
from operator import attrgetter

from docutils import nodes
from docutils.parsers.rst import Directive

import feasid
from feasid.cli import GROUPS
from feasid.options.complete import option_groups
from feasid.options.tables import FitOptions
from feasid.robot.formats.registry import FORMATS
from feasid.robot.joint_terms import TERMS


def first_sentence(value):
    """The first line of a docstring, without its dot and marks."""
    return (inspect.getdoc(value) or "").split("\n")[0].rstrip(".").replace("`", "")


def commands():
    """By group, every command and what it does."""
    for title, lines in GROUPS.items():
        yield title, [(f"feasid {name}", line) for name, line in lines.items()]


def terms():
    """Every joint term: symbol, torque per unit, name."""
    yield "joint terms", [(f"{k} · {t.formula}", t.name) for k, t in TERMS.items()]


def formats():
    """Every format of description files."""
    yield "files", [(" ".join(form.suffixes), form.title) for form in FORMATS.values()]


def options(*names):
    """Options of a fit, with their line of documentation and default."""
    every = {k: o for group in option_groups(FitOptions).values() for k, o in group.items()}
    yield "options of a fit", [(f"{k}=", every[k].doc) for k in names]


def calls(*names):
    """Public names with the first line of their documentation."""
    values = ((name, attrgetter(name)(feasid)) for name in names)
    yield (
        "calls",
        [
            (
                name.replace("Fit.", "fit.") if "." in name else f"feasid.{name}",
                first_sentence(value.func if hasattr(value, "func") else value),
            )
            for name, value in values
        ],
    )


TABLES = {t.__name__: t for t in (commands, terms, formats, options, calls)}


class CheatTable(Directive):
    """A table of `TABLES`; the content names its rows, where there is a choice."""

    has_content = True
    required_arguments = 1

    def run(self):
        """A titled list of pairs for each part of the table."""
        names = " ".join(self.content).split()
        return [
            card(title, rows) for title, rows in TABLES[self.arguments[0]](*names) if len(rows) > 0
        ]


def card(title, rows):
    """A part of the sheet that stays on one column."""
    out = nodes.container(classes=["cheat"])
    out += nodes.rubric(text=title.capitalize())
    items = nodes.definition_list()
    for name, said in rows:
        term = nodes.term("", "", nodes.literal(text=name))
        items += nodes.definition_list_item(
            "", term, nodes.definition("", nodes.paragraph(text=said))
        )
    out += items
    return out


def setup(app):
    """Tell Sphinx."""
    app.add_directive("cheat-table", CheatTable)
    return {"version": feasid.__version__, "parallel_read_safe": True, "parallel_write_safe": True}

"""Directives that list public names and commands, so that no list is kept by hand."""

import importlib

from docutils import nodes
from docutils.parsers.rst import Directive

import feasid
from feasid.cli import COMMANDS


def first_sentence(text):
    """The first line of a docstring."""
    return (text or "").strip().split("\n")[0]


class NameList(Directive):
    """Every public name with the first line of its docstring and a link to it."""

    def run(self):
        """A definition list."""
        text = []
        for name in (n for n in feasid.__all__ if not n.startswith("_")):
            value = getattr(feasid, name)
            said = first_sentence(getattr(value, "__doc__", ""))
            role = "any"
            target = f":{role}:`feasid.{name}`"
            text.append(f"{target}\n   {said if not isinstance(value, dict) else 'Options.'}\n")
        return parsed(self, "\n".join(text))


class CommandList(Directive):
    """Every command with its first line and its arguments."""

    def run(self):
        """A section of literal help per command."""
        from feasid.cli.options import Parser

        out = []
        for name, line in COMMANDS.items():
            module = importlib.import_module(f"feasid.cli.{name}")
            parser = Parser(prog=f"feasid {name}", description=module.__doc__)
            module.add_arguments(parser)
            section = nodes.section(ids=[f"command-{name}"])
            section += nodes.title(text=f"feasid {name}")
            section += nodes.paragraph(text=f"{line[0].upper()}{line[1:]}.")
            section += nodes.literal_block(text=parser.format_help(), language="none")
            out.append(section)
        return out


def parsed(directive, text):
    """Nodes of reStructuredText."""
    from docutils.statemachine import StringList

    node = nodes.container()
    directive.state.nested_parse(StringList(text.splitlines(), "names"), 0, node)
    return node.children


def setup(app):
    """Tell Sphinx."""
    app.add_directive("name-list", NameList)
    app.add_directive("command-list", CommandList)
    return {"parallel_read_safe": True}

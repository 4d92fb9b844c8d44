"""Directives that list public names and commands, so that no list is kept by hand."""

import ast
import inspect
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from operator import attrgetter
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math import latex2mathml
from sphinx import addnodes

import feasid
from feasid.cli import COMMANDS, load_command
from feasid.options.complete import option_groups
from feasid.options.tables import FitOptions


def first_sentence(text):
    """The first line of a docstring."""
    return (text or "").strip().split("\n")[0]


class NameList(Directive):
    """The public names of the content, with links and the first lines of their docstrings."""

    has_content = True

    def run(self):
        """A definition list."""
        out = nodes.definition_list()
        for name in self.content:
            value = attrgetter(name)(feasid)
            said = first_sentence(getattr(value, "__doc__", ""))
            link = addnodes.pending_xref(
                "", refdomain="std", reftype="doc", reftarget=f"/reference/{page_of(name)}",
                refexplicit=True, refwarn=True, refdoc=self.state.document.settings.env.docname,
            )  # fmt: skip
            link += nodes.literal(text=f"feasid.{name}")
            term = nodes.term("", "", link)
            text = said if not isinstance(value, dict) else "Options of the published method."
            out += nodes.definition_list_item("", term, nodes.definition("", with_code(text)))
        return [out]


def with_code(text):
    """A paragraph in which what stands between backquotes is code."""
    parts = re.split(r"`+([^`]+)`+", text)
    return nodes.paragraph(
        "",
        "",
        *(nodes.literal(text=x) if k % 2 else nodes.Text(x) for k, x in enumerate(parts) if x),
    )


MOST_PARAMETERS = 12
"""Of a signature that is shown in full; the page's table of options has the others."""


def shorten_signature(app, what, name, obj, options, signature, returned):
    """A long signature with its keyword options in one word."""
    if signature and signature.count(",") > MOST_PARAMETERS and ", *, " in signature:
        signature = f"{signature.partition(', *, ')[0]}, **options)"
    return signature, returned


def page_of(name):
    """The page of a name. File systems that ignore case hold ``fit`` and ``Fit`` apart."""
    last = name.rpartition(".")[2]
    kind = inspect.isclass(attrgetter(name)(feasid))
    return f"class-{last.lower()}" if kind else last.lower().replace("_", "-")


class CommandList(Directive):
    """Every command with its first line and its arguments."""

    def run(self):
        """A section of literal help per command."""
        from feasid.cli.options import Parser

        out = []
        for name, line in COMMANDS.items():
            command = load_command(name)
            parser = Parser(prog=f"feasid {name}", description=command.run.__doc__)
            command.add_arguments(parser)
            section = nodes.section(ids=[f"command-{name}"])
            section += nodes.title(text=f"feasid {name}")
            section += nodes.paragraph(text=f"{line[0].upper()}{line[1:]}.")
            section += nodes.literal_block(text=ArgumentParser.format_help(parser), language="none")
            out.append(section)
        return out


class OptionList(Directive):
    """The options of a fit in groups: name, default, meaning."""

    def run(self):
        """A section per group."""
        out = []
        for title, options in option_groups(FitOptions).items():
            section = nodes.section(ids=[f"options-{title.split()[0].lower()}"])
            section += nodes.title(text=title.capitalize())
            items = nodes.definition_list()
            for name, option in options.items():
                term = nodes.term("", "", nodes.literal(text=name))
                said = nodes.paragraph(text=f"{option.doc}; default {option.default!r}")
                items += nodes.definition_list_item("", term, nodes.definition("", said))
            section += items
            out.append(section)
        return out


class Demo(Directive):
    """What ``feasid demo`` prints."""

    def run(self):
        """A literal block."""
        command = [sys.executable, "-m", "feasid", "demo"]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return [nodes.literal_block(text=done.stdout.strip(), language="none")]


class ConstantList(Directive):
    """Every numeric constant of the package with its value and what is written below it."""

    def run(self):
        """A definition list per module."""
        text = []
        for module, entries in numeric_constants(Path(feasid.__file__).parent).items():
            text += [f"**{module}**", ""]
            for name, value, lines in entries:
                told = lines or ["(explained where it is used)"]
                text += [f"``{name} = {value}``", *(f"   {line}" for line in told), ""]
        return parsed(self, "\n".join(text))


def numeric_constants(package):
    """By module, (name, value as written, lines of its docstring) of constants with numbers."""
    out = {}
    for path in sorted(package.rglob("*.py")):
        body = ast.parse(path.read_text()).body
        for k, node in enumerate(body):
            name = constant_name(node)
            if name and holds_numbers(node.value):
                after = below_group(body, k)
                doc = isinstance(after, ast.Expr) and getattr(after.value, "value", None)
                lines = doc.split("\n") if isinstance(doc, str) else []
                module = ".".join(path.relative_to(package).with_suffix("").parts)
                out.setdefault(module, []).append(
                    (name, ast.unparse(node.value), [line.strip() for line in lines])
                )
    return out


def below_group(body, k):
    """What stands below a constant, or below all that follow it without an empty line."""
    while k + 1 < len(body) and body[k + 1].lineno == body[k].end_lineno + 1:
        k += 1
        if not isinstance(body[k], ast.Assign | ast.AnnAssign):
            return body[k]
    return None


def constant_name(node):
    """The name that an assignment at module level gives to a constant; None for others."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target = node.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) and target.id.isupper() else None


def holds_numbers(value):
    """Whether an expression is made of numbers only, and of one at least."""
    parts = [n for n in ast.walk(value) if not isinstance(n, ast.operator | ast.unaryop | ast.Load)]
    plain = ast.Constant | ast.BinOp | ast.UnaryOp | ast.Tuple
    return all(isinstance(n, plain) for n in parts) and any(
        isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in parts
    )


def parsed(directive, text):
    """Nodes of reStructuredText."""
    from docutils.statemachine import StringList

    node = nodes.container()
    directive.state.nested_parse(StringList(text.splitlines(), "names"), 0, node)
    return node.children


def formula(translator, node, block):
    """MathML, which browsers show without a script."""
    text = node.astext()
    number = f"<span class=eqno>({node['number']})</span>" if node.get("number") else ""
    shown = latex2mathml.tex2mathml(text, as_block=block)
    # A long equation scrolls on a narrow screen, by keys as well.
    begin = '<div class="math" tabindex="0" role="math">'
    translator.body.append(f"{begin}{number}{shown}</div>" if block else shown)
    raise nodes.SkipNode


def setup(app):
    """Tell Sphinx."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda t, n: formula(t, n, False), None),
        block_renderers=(lambda t, n: formula(t, n, True), None),
    )
    app.connect("autodoc-process-signature", shorten_signature)
    app.add_directive("name-list", NameList)
    app.add_directive("command-list", CommandList)
    app.add_directive("demo", Demo)
    app.add_directive("option-list", OptionList)
    app.add_directive("constant-list", ConstantList)
    return {"parallel_read_safe": True}

"""Arguments of commands that are parameters of public functions, from signature and docstring.

A signature is read from the source of its module, since importing pandas and solvers takes a
second, and help waits for nothing.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from feasid.cli.options import Part, add_option, parse_argument
from feasid.core.kinds import AnnotationNames
from feasid.options.option import Option
from feasid.options.spelling import argument_name

ENTRY = re.compile(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n)*)", re.M)
"""Parameters in a docstring in the style of NumPy: names, type and text."""

WORDS = re.compile(r"\{([^{}]*)\}(?:, optional)?")
"""The type of a parameter that is one of some words."""

CLAUSE = re.compile(r"(?<=[^.])[.;](?: |$)")  #: Where the first clause of a text ends.


def parameters_of(function: str, names: str) -> Part:
    """One argument for each of these parameters of a function, ``module:name``.

    A flag that is off by default takes no value.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        options = parameter_options(function)
        for name in names.split():
            option = options[name]
            if option.syntax == "flag" and option.default is not True:
                parser.add_argument(argument_name(name), action="store_const", const="yes",
                                    help=option.doc)  # fmt: skip
            else:
                add_option(parser, name, option, dest=name)

    return add


def read_parameters(arguments: argparse.Namespace, function: str, names: str) -> dict[str, Any]:
    """The values of those of these parameters that were typed.

    Raises InputError: in the prompt's spelling.
    """
    options = parameter_options(function)
    texts = {name: getattr(arguments, name) for name in names.split()}
    return {
        name: parse_argument(argument_name(name), options[name], text)
        for name, text in texts.items()
        if text is not None
    }


@cache
def parameter_options(function: str) -> Mapping[str, Option]:
    """The parameters of a function or method as options, by name."""
    module, _, path = function.partition(":")
    spec = find_spec(f"feasid.{module}")
    node: Any = ast.parse(spec.loader.get_source(spec.name))  # type: ignore[union-attr]
    assigned = (n for n in node.body if isinstance(n, ast.AnnAssign))
    aliases = {ast.unparse(n.target): n.value for n in assigned}
    for name in path.split("."):
        node = next(n for n in node.body if getattr(n, "name", "") == name)
    entries = {
        name: (kind, " ".join(text.split()).replace("`", ""))
        for names, kind, text in ENTRY.findall(f"{ast.get_docstring(node)}\n")
        for name in names.split(", ")
    }
    required = [None] * (len(node.args.args) - len(node.args.defaults))
    defaults = [*required, *node.args.defaults, *node.args.kw_defaults]
    parameters = zip([*node.args.args, *node.args.kwonlyargs], defaults, strict=True)
    out = {}
    for argument, value in parameters:
        if argument.annotation is None:
            continue
        kind, text = entries.get(argument.arg, ("", ""))
        if words := WORDS.fullmatch(kind):
            annotation: Any = Literal[ast.literal_eval(f"({words[1]},)")]
        else:
            hint = ast.unparse(_WithoutRanges(aliases).visit(argument.annotation))
            annotation = eval(hint, {}, AnnotationNames(KINDS))
        clause = CLAUSE.split(text)[0]
        doc = clause[:1].lower() + clause[1:]
        default = value.value if isinstance(value, ast.Constant) else None  # of literals only
        out[argument.arg] = Option(doc, default, annotation=annotation)
    return out


class _WithoutRanges(ast.NodeTransformer):
    """``Annotated[X, ...]`` as ``X``, also in aliases: ranges may need what is not imported."""

    def __init__(self, aliases: Mapping[str, Any]) -> None:
        self.aliases = aliases

    def visit_Name(self, node: ast.Name) -> ast.AST:
        alias = self.aliases.get(node.id)  # a text stands for types that are not imported
        return node if isinstance(alias, ast.Constant | None) else self.visit(alias)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            return node.slice.elts[0]  # type: ignore[attr-defined,no-any-return]
        return node


KINDS = "feasid.core.kinds"
"""Where the names of annotations are; any other is a class that is known by its name."""

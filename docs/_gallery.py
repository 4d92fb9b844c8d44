"""The gallery: thumbnails of pictures that pages show, each with its page and its notebook.

Nothing is drawn here. A thumbnail is a smaller copy of a picture that a page has: one that its
cells drew when the site was built, or a file. A notebook is a page's own text and cells, or an
example's source, with a first cell that installs what it needs; ``python -m benchmarks.notebooks``
runs them with nothing but the wheel.
"""

import ast
import os
import re
import textwrap
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from PIL import Image

import feasid

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
SITE = "https://feasid.readthedocs.io/en/latest"

WIDTH, COLOURS = 480, 128
"""Of a thumbnail."""

SHAPE = 0.7  #: Height over width, below which a tall picture is cut off.

PAGES = (
    *("first_fit", "models", "excitation", "payload", "many_logs", "servos", "floating", "online"),
    "plots",
)
"""Pages whose cells run with what ``pip install`` brings."""

SCRIPTS = ("wam_control", "online_arm")
"""Examples that do."""


def page_path(name):
    """The Markdown of a page that has a notebook."""
    lesson = HERE / "tutorials" / f"{name}.md"
    return lesson if lesson.exists() else HERE / f"{name}.md"


def required_install(text):
    """What a page or an example says has to be installed."""
    found = re.search(r'pip install ("?feasid(?:\[[\w,]+\])?"?)', text)
    return found[1] if found else "feasid"


def page_notebook(name):
    """The notebook of a page; links lead to the site."""
    path = page_path(name)
    text = path.read_text(encoding="utf-8")
    book = read_myst_markdown_notebook(text, MdParserConfig(enable_extensions=set()), path=path)
    folder = path.parent.relative_to(HERE)
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(
                r"(!?)\[([^\]]*)\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)",
                lambda m: f"{m[1]}[{m[2]}]({site_address(folder, m[3], m[4] or '')})",
                cell.source,
            )
    return with_install(book, required_install(text))


def site_address(folder, target, anchor):
    """The address on the site of what a page's link leads to."""
    place = Path(os.path.normpath(folder / target)).as_posix()
    if place.endswith((".png", ".svg")):
        place = f"_images/{Path(place).name}"
    return f"{SITE}/{place.removesuffix('.md')}{'.html' * place.endswith('.md')}{anchor}"


def example_source(name):
    """An example's source, in which imports of its neighbours are those neighbours' sources."""
    text = original = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    for node in ast.parse(original).body:
        near = isinstance(node, ast.ImportFrom) and (EXAMPLES / f"{node.module}.py").exists()
        if near:
            line = ast.get_source_segment(original, node)
            neighbour = example_source(node.module).split("if __name__ ==")[0]
            text = text.replace(line, f"# -- {node.module}\n{neighbour}# -- {name}\n", 1)
    future = "from __future__ import annotations\n"
    body = text.replace(future, "")
    return f"{future}{body}" if future in text else body


def example_notebook(name):
    """The notebook of an example: what it is, its source, and a call."""
    source = example_source(name)
    said = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    functions, call = source.split("if __name__ ==")
    call = textwrap.dedent(call.partition("\n")[2])
    clean = f"import sys\n\nsys.argv = [{name!r}]\n{call}"
    title, _, text = said.partition("\n")
    words = re.sub(r"\n    (pip|python) [^\n]*", "", text).strip()
    new = nbformat.v4
    book = new.new_notebook(
        cells=[
            new.new_markdown_cell(f"# {title}\n\n{words}"),
            new.new_code_cell(functions.rstrip()),
            new.new_code_cell(clean.rstrip()),
        ]
    )
    return with_install(book, required_install(said))


def with_install(book, what):
    """The notebook with a first cell that installs, and plain identifiers of its cells."""
    book.cells.insert(1, nbformat.v4.new_code_cell(f"%pip install -q {what}"))
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata = {}
    book.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
    }
    book.nbformat, book.nbformat_minor = 4, 5
    return book


def notebooks():
    """All notebooks by name."""
    return {name: page_notebook(name) for name in PAGES} | {
        name: example_notebook(name) for name in SCRIPTS
    }


def write_notebooks(app):
    """Write the notebooks into the folder of the pages, before these are read."""
    if app.builder.format != "html":
        return
    folder = Path(app.outdir) / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for name, book in notebooks().items():
        nbformat.validate(book)
        (folder / f"{name}.ipynb").write_text(nbformat.writes(book), encoding="utf-8")


class GalleryNode(nodes.General, nodes.Element):
    """Where the gallery will stand: pictures of pages are known when all pages are read."""


class Gallery(Directive):
    """A card per line: ``title | page | picture | notebook``.

    The picture is a number, of those that the page's cells drew, or a file of the folder docs.
    """

    has_content = True

    def run(self):
        """A node that is filled later."""
        entries = [[part.strip() for part in line.split("|")] for line in self.content if line]
        return [GalleryNode("", entries=entries)]


def fill_gallery(app, doctree, docname):
    """Replace the gallery by its cards; a page that has a notebook gets a link to it."""
    name = docname.rpartition("/")[2]
    if name in PAGES and page_path(name) == Path(app.env.doc2path(docname)):
        up = "../" * docname.count("/")
        link = nodes.reference("", "This page as a notebook", refuri=f"{up}notebooks/{name}.ipynb")
        title = next(doctree.findall(nodes.title))
        title.parent.insert(1, nodes.paragraph("", "", link))
    for node in doctree.findall(GalleryNode):
        cards = (card(app, docname, *entry) for entry in node["entries"])
        html = f'<div class="gallery">{"".join(cards)}</div>'
        node.replace_self(nodes.raw("", html, format="html"))


def card(app, docname, title, page, picture, notebook):
    """One card; the thumbnail is written here."""
    source = Path(app.srcdir)
    if picture.isdigit():
        drawn = [
            image["uri"]
            for image in app.env.get_doctree(page).findall(nodes.image)
            if "jupyter_execute" in image["uri"]
        ]
        path = Path(os.path.normpath(source / drawn[int(picture)].lstrip("/")))
    else:
        path = source / picture
    name = f"{page.replace('/', '_')}_{path.stem if not picture.isdigit() else picture}.png"
    folder = Path(app.outdir) / "_images" / "thumbnails"
    folder.mkdir(parents=True, exist_ok=True)
    image = Image.open(path).convert("RGBA")
    ground = Image.new("RGBA", image.size, "white")
    image = Image.alpha_composite(ground, image).convert("RGB")
    tall = round(SHAPE * image.width)
    image = image.crop((0, 0, image.width, min(image.height, tall)))
    image.thumbnail((WIDTH, WIDTH))
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(folder / name, optimize=True)
    to = app.builder.get_relative_uri(docname, page)
    return (
        f'<figure><a href="{to}"><img src="_images/thumbnails/{name}" alt="" loading="lazy" '
        f'width="{image.width}" height="{image.height}"><span>{title}</span></a>'
        f'<figcaption><a href="notebooks/{notebook}.ipynb" download aria-label='
        f'"Notebook of: {title}">notebook</a></figcaption></figure>'
    )


def setup(app):
    """Tell Sphinx."""
    app.add_node(GalleryNode)
    app.add_directive("gallery", Gallery)
    app.connect("builder-inited", write_notebooks)
    app.connect("doctree-resolved", fill_gallery)
    return {"version": feasid.__version__, "parallel_read_safe": True, "parallel_write_safe": True}

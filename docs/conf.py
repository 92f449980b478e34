"""How Sphinx builds the site.

`make docs` runs it; nothing is fetched, and a warning is an error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import left_out  # noqa: E402
import mycel  # noqa: E402
import reference  # noqa: E402

project = "Mycel"
author = "The Mycel maintainers"
copyright = author
version = release = mycel.__version__
# Annotations are written without their modules, and some classes have namesakes ("Optimizer").
suppress_warnings = ["ref.python"]
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
# Names in single backticks of docstrings are objects of the interface where there are such, and
# code otherwise.
default_role = "py:obj"
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries = False
python_maximum_signature_line_length = 100
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Mycel {version}"
html_theme_options = {"light_css_variables": {"code-font-size": "78%"}}
html_show_sourcelink = False
html_copy_source = False
pygments_style = "friendly"


class Links(SphinxPostTransform):
    """Inline code of Markdown pages that names something of the interface becomes a link to it."""

    default_priority = 200
    NAME = re.compile(r"[A-Za-z_][\w.]*\w(?:\(\))?$")
    ROOTS = {"ms.": "mycel.", "ds.": "mycel.dataset.", "mnp.": "mycel.numpy."}
    PLACES = ("", "mycel.", "mycel.train.", "mycel.nn.", "mycel.dataset.", "mycel.ops.")
    # Words of the text, in places where a name of the interface is not what is meant.
    WORDS = re.compile(r"[a-z]+$")

    def run(self, **kwargs: Any) -> None:
        """Replace the nodes of one page."""
        if self.env.docname.startswith("api/"):
            return
        objects = self.env.get_domain("py").objects
        for node in list(self.document.findall(nodes.literal)):
            name = node.astext()
            if (
                not self.NAME.match(name)
                or self.WORDS.match(name)
                or isinstance(node.parent, nodes.reference)
            ):
                continue
            name = name.removesuffix("()")
            for short, full in self.ROOTS.items():
                if name.startswith(short):
                    name = full + name[len(short) :]
            found = next(
                (place + name for place in self.PLACES if place + name in objects), None
            )
            if found is None:
                continue
            found = reference.ALIASES.get(found, found)
            target = objects[found]
            uri = (
                self.app.builder.get_relative_uri(self.env.docname, target.docname)
                + "#"
                + target.node_id
            )
            link = nodes.reference("", "", internal=True, refuri=uri, reftitle=found)
            node.replace_self(link)
            link += node


def setup(app: Any) -> dict[str, Any]:
    """Write the pages that are made from the package before Sphinx looks for pages."""
    folder = HERE / "api"
    written = {*reference.write(folder), left_out.write(folder / "left_out.rst")}
    for stale in set(folder.rglob("*.rst")) - written:
        stale.unlink()
    app.add_post_transform(Links)
    # Pictures are text here: what would draw them is fetched from elsewhere.
    app.add_lexer("mermaid", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""How Sphinx builds the site: `make docs`.

The source folder is the repository, not docs/, so that links between Markdown pages are the same here and on
a code host. site_contents.py has the tree of pages: these stay plain Markdown. Nothing needs a network.
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from site_api import escape_names, mark_formulas, skip_inherited  # noqa: E402
from site_contents import add_contents  # noqa: E402

from tensormachines import __version__  # noqa: E402

project = "tensormachines"
author = "The tensormachines developers"
copyright = author
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/*.md",
    "results/**",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = ["docs/_*", "docs/gallery"]
templates_path = [str(DOCS / "_templates")]
nitpicky = True

myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

default_role = "literal"
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "docs/gallery",
    "gallery_dirs": "docs/auto_gallery",
    "backreferences_dir": "docs/auto_gallery/uses",
    "doc_module": ("tensormachines",),
    "remove_config_comments": True,
    "write_computation_times": False,
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
}

# MathJax in one file from a package, in place of a script from another host.
MATHJAX = next(
    file for file in distribution("sphinx-mathjax-offline").files or () if file.name == "tex-svg-full.js"
)
mathjax_path = MATHJAX.name

html_theme = "pydata_sphinx_theme"
html_title = "tensormachines"
html_static_path = [str(DOCS / "_static"), str(MATHJAX.locate())]
html_context = {"default_mode": "auto"}
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "navigation_with_keys": False,
}


def setup(app):
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", mark_formulas, priority=1)
    app.connect("autodoc-process-docstring", escape_names, priority=1000)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("build-finished", redirect)


def redirect(app, exception):
    """Lead from the folder of the site to its first page, which is one folder deeper."""
    if exception is None and app.builder.format == "html":
        refresh = f'<meta http-equiv="refresh" content="0; url={root_doc}.html">'
        page = f"<!DOCTYPE html>{refresh}<title>{project}</title>"
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")

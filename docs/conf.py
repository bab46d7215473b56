"""The documentation site: `sphinx-build -c docs . build/site`, whose start page is build/site/index.html.

The root of the sources is the repository. So links between pages are the same here and where the repository is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import tcdsl  # noqa: E402

project = "tcdsl"
author = "the authors of tcdsl"
version = release = tcdsl.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx-mathjax-offline"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/gallery/*.md",
    "docs/lessons/*.md",
    "docs/reference/*.md",
    "docs/sections/*.md",
    "notebooks/*.ipynb",
    "tcdsl/**/README.md",
    "tcdsl/error_catalogue/*.md",
    "examples/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]

# Markdown: headings have anchors, as where the repository is read.
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "fieldlist"]

# Notebooks and the examples of pages: notebooks run once, and again when they change.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True

# The literal spelling and tracebacks are no Python.
suppress_warnings = ["misc.highlighting_failure"]

# Docstrings write code as `code` and ``code``.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "pydata_sphinx_theme"
html_title = "tcdsl"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_extra_path = ["site"]
html_theme_options = {
    "header_links_before_dropdown": 5,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "footer_start": [],
    "footer_end": [],
}

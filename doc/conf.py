"""Configuration of the documentation; nothing here reaches the network."""

import os

import skcalfair

# The gallery draws to files, wherever it is built.
os.environ["MPLBACKEND"] = "Agg"

project = "skcalfair"
author = "The skcalfair developers"
copyright = f"2026, {author}"
release = version = skcalfair.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "README.md"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = f"skcalfair {release}"
html_theme_options = {"show_prev_next": False}

# A subpackage's page lists what it re-exports from its private files.
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # numpydoc sections say the types

# Members are on the page of their class, not on pages of their own.
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "doc_module": ("skcalfair",),
    "reference_url": {"skcalfair": None},
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
}


def skip_generated_methods(app, what, name, obj, skip, options):
    """Leave out `set_fit_request` and the like, which scikit-learn adds and explains.

    Their docstrings refer to labels that only scikit-learn's own pages have.
    """
    return skip or (name.startswith("set_") and name.endswith("_request"))


def setup(app):
    app.connect("autodoc-skip-member", skip_generated_methods)

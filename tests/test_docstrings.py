"""Every public object is documented, with an example, in numpydoc's form."""

import inspect
import pkgutil
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import skcalfair

SUBPACKAGES = [name for name in skcalfair.__all__ if not name.startswith("_")]

# Errors of numpydoc that are no error here: a short docstring may have no extended
# summary and no See Also, and a returned value is named as a parameter is.
NOT_ASKED = {"ES01", "SA01", "RT02"}
# A class is exemplified as a whole.
NOT_ASKED_OF_METHODS = NOT_ASKED | {"EX01"}


def import_subpackage(name):
    return import_module(f"skcalfair.{name}")


def public_objects():
    """Dotted name of each public class and function, by the name users import."""
    for subpackage in SUBPACKAGES:
        module = import_subpackage(subpackage)
        for name in getattr(module, "__all__", []):
            obj = getattr(module, name)
            if inspect.isclass(obj) or inspect.isroutine(obj):
                yield f"{module.__name__}.{name}", obj


def is_own(member):
    """Whether the package wrote a class member, not scikit-learn or the like."""
    function = member.fget if isinstance(member, property) else member
    function = getattr(function, "__func__", function)
    return str(getattr(function, "__module__", "")).startswith("skcalfair.")


def public_members(cls):
    """Name of each public method and property that the package gives a class."""
    for name, member in inspect.getmembers_static(cls):
        callable_member = isinstance(member, property | classmethod | staticmethod)
        callable_member |= inspect.isroutine(member)
        if not name.startswith("_") and callable_member and is_own(member):
            yield name


PUBLIC = dict(public_objects())
MEMBERS = [
    f"{path}.{name}"
    for path, obj in PUBLIC.items()
    if inspect.isclass(obj)
    for name in public_members(obj)
]


def documents_fields_as_attributes(cls):
    """Whether a dataclass describes all its fields under Attributes.

    A result that the package makes and a user reads has attributes, not parameters.
    """
    if not is_dataclass(cls):
        return False
    documented = {entry.name for entry in get_doc_object(cls)["Attributes"]}
    return {field.name for field in fields(cls)} <= documented


def complaints(path, not_asked):
    return [
        f"{code}: {message}"
        for code, message in validate(path)["errors"]
        if code not in not_asked
    ]


@pytest.mark.parametrize("path", PUBLIC)
def test_docstring_follows_numpydoc(path):
    not_asked = set(NOT_ASKED)
    if documents_fields_as_attributes(PUBLIC[path]):
        not_asked.add("PR01")
    assert complaints(path, not_asked) == []


@pytest.mark.parametrize("path", MEMBERS)
def test_docstring_of_member_follows_numpydoc(path):
    assert complaints(path, NOT_ASKED_OF_METHODS) == []


@pytest.mark.parametrize("path", PUBLIC)
def test_docstring_has_an_example_that_runs(path):
    examples = "\n".join(get_doc_object(PUBLIC[path])["Examples"])
    assert ">>>" in examples


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_subpackage_says_what_it_is_for(name):
    assert inspect.getdoc(import_subpackage(name))


@pytest.mark.parametrize("name", ["", *SUBPACKAGES])
def test_all_exists_and_is_sorted(name):
    module = import_subpackage(name) if name else skcalfair
    names = module.__all__
    assert [name for name in names if not hasattr(module, name)] == []
    # Constants come first, as the linter sorts them.
    assert list(names) == sorted(set(names), key=lambda x: (not x.isupper(), x))


def test_all_of_the_package_holds_every_public_module():
    on_disk = {module.name for module in pkgutil.iter_modules(skcalfair.__path__)}
    private_or_command = {name for name in on_disk if name.startswith("_")} | {"cli"}
    assert set(SUBPACKAGES) == on_disk - private_or_command
    assert set(skcalfair.__all__) <= set(dir(skcalfair))


def test_package_has_no_other_attribute():
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        _ = skcalfair.no_such_thing


def test_api_reference_lists_every_subpackage():
    api = Path(__file__).parents[1] / "doc/api.rst"
    listed = {line.strip() for line in api.read_text(encoding="utf-8").splitlines()}
    assert [name for name in SUBPACKAGES if f"skcalfair.{name}" not in listed] == []

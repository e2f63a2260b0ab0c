"""Optional dependencies fail with the command that brings them."""

import pytest

from skcalfair._optional import import_optional


def test_an_installed_module_is_returned():
    assert import_optional("json", extra="plot").dumps(1) == "1"


def test_a_missing_module_names_its_extra():
    with pytest.raises(ImportError, match=r'pip install "skcalfair\[plot\]"'):
        import_optional("no_such_module", extra="plot")

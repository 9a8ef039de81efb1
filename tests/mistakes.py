"""Tables of mistakes: by name what to call, and what the answer must be."""

import pytest


def refused(call, *answer):
    """Call it: it must raise ``answer``, a kind of error (ValueError if none is given) and what its message says."""
    error, message = answer if len(answer) == 2 else (ValueError, *answer)
    with pytest.raises(error, match=message):
        call()


def each_refused(mistakes):
    """A test that goes through a table: every entry is ``(call, [error,] message)``, refused before it compiles."""

    @pytest.mark.parametrize("name", mistakes)
    @pytest.mark.usefixtures("no_compiler")
    def test(name):
        refused(*mistakes[name])

    return test

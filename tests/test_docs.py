"""What the documentation says runs: code, commands, links; and the reference has every public name."""

import os
import re
import shutil
import subprocess
import sys
import types

import pytest
import typer

import mintmc
from caches import cached
from mintmc.cli import app
from mintmc.cli.options import build_sampler, parse_pairs
from pages import PAGES, ROOT, anchors, blocks, commands, links, name_of

TEXTS = {name_of(page): page.read_text() for page in PAGES}
WITH_PYTHON = [name for name, text in TEXTS.items() if any(block.kind == "python" for block in blocks(text))]
WITH_COMMANDS = [name for name, text in TEXTS.items() if commands(text)]
ELSEWHERE = ("--coordinator", "--distributed")
"""Options of commands that need other machines."""
LONGEST = 100
"""Characters in a line of prose."""


def run_python(name, text):
    """Run the blocks of a page, one after the other, as one program; a block with a title is a file."""
    namespace = types.ModuleType("page").__dict__
    for block in blocks(text):
        if block.title:
            with open(block.title, "w") as file:
                file.write(block.text)
        elif block.kind == "python":
            # A traceback names the line of the page.
            exec(compile("\n" * block.line + block.text, name, "exec"), namespace)


@pytest.mark.audited
@pytest.mark.filterwarnings("ignore::mintmc.TemperedDraws")
@pytest.mark.parametrize("name", WITH_PYTHON)
def test_the_code_of_a_page_and_then_its_commands_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    run_python(name, TEXTS[name])
    for words in commands(TEXTS[name]):
        if not set(words) & set(ELSEWHERE):
            code = "import sys; from mintmc.cli import main; sys.argv[0] = 'mintmc'; main()"
            done = subprocess.run([sys.executable, "-c", code, *words], env=cached(), capture_output=True, text=True)
            assert done.returncode == 0, (words, done.stderr)


def test_a_block_that_fails_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, hidden = '```python title="one.py"\none = 1\n```\n', "<!-- setup:\nfrom one import one\n-->\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AssertionError):
        run_python("page", f"{file}{hidden}```python\nassert one == 2\n```\n")


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_commands_are_understood(name):
    group = typer.main.get_command(app)
    for words in commands(TEXTS[name]):
        context = group.commands[words[0]].make_context(words[0], words[1:])
        if context.params.get("sampler"):
            build_sampler(context.params["sampler"], parse_pairs(context.args))


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files_and_headings(name):
    page = ROOT / name
    for link in links(TEXTS[name]):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path.read_text()), link


@pytest.mark.parametrize("name", TEXTS)
def test_prose_is_in_short_lines(name):
    prose = re.sub(r"^```.*?^```$|<!--.*?-->", "", TEXTS[name], flags=re.DOTALL | re.MULTILINE)
    # Tables, pictures, headings and formulas are as long as they are.
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "![", "#", "    "))]
    assert [line for line in lines if len(line) > LONGEST] == []


def test_the_reference_has_every_public_name():
    reference = "\n".join(text for name, text in TEXTS.items() if name.startswith("docs/api/"))
    named = re.findall(r"^::: mintmc\.(\S+)$", reference, flags=re.MULTILINE)
    expected = [*mintmc.__all__, *(f"protocols.{name}" for name in mintmc.protocols.__all__)]
    assert sorted(named) == sorted(expected)


def test_the_site_builds_without_warnings_and_fetches_nothing(tmp_path):
    mkdocs = shutil.which("mkdocs", path=os.path.dirname(sys.executable))
    assert mkdocs, "the site needs MkDocs: pip install 'mintmc[docs]'"
    done = subprocess.run([mkdocs, "build", "--strict", "-d", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", page.read_text())
        assert [address for address in fetched if "canonical" not in address] == [], page.name

"""Help: quick, of every command, and of every sampler's settings."""

import subprocess
import sys
from dataclasses import fields

import pytest
from typer.testing import CliRunner

import mintmc
from mintmc.cli import app
from mintmc.cli.options import PROPOSALS, samplers
from mintmc.cli.settings_help import described, settings_help
from mintmc.cli.words import SAMPLERS
from mintmc.store.encode import listed

COMMANDS = ["sample", "resume", "watch", "summary", "diagnose", "report", "plot", "plan", "prepare", "reproduce"]
WIDE = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}


def help_of(*arguments):
    result = CliRunner().invoke(app, [*arguments, "--help"], env=WIDE)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command):
    assert f"Example: mintmc {command} " in help_of(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_messages_call_file_and_run_is_called_so(command):
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).output
    usage = next(line for line in shown.splitlines() if "Usage:" in line)
    names = {"sample": "FILE", "plan": "FILE", "resume": "RUN FILE", "prepare": "SOURCE OUT", "reproduce": "NAME"}
    assert usage.replace("{", "").replace("}", "").split()[4:] == names.get(command, "RUN").split()
    assert "fifty-mo " not in shown  # no name is broken in two


@pytest.mark.parametrize("arguments", [[], ["sample"], ["watch"], ["diagnose"]])
def test_help_does_not_wait_for_jax(arguments):
    code = (
        f"import sys; sys.argv = ['mintmc', *{arguments!r}, '--help']\n"
        "from mintmc.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = [m for m in ('jax', 'numpy', 'xarray', 'zarr', 'matplotlib') if m in sys.modules]\n"
        "print(heavy, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"
    assert "Usage: mintmc" in result.stdout


def test_python_m_is_the_command():
    result = subprocess.run([sys.executable, "-m", "mintmc", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == CliRunner().invoke(app, ["--version"]).output


def test_every_sampler_is_listed_in_help():
    ours = {name for name, entry in listed().items() if entry.value.startswith("mintmc.")}
    words = {word: kind for word, kind in samplers().items() if kind.__name__ in ours}
    assert {word: kind.__name__ for word, kind in words.items()} == {word: name for word, (name, _) in SAMPLERS.items()}
    shown = help_of("sample")
    assert all(f"{word} " in shown for word in SAMPLERS)


@pytest.mark.parametrize("word", SAMPLERS)
def test_every_setting_of_every_sampler_is_explained(word):
    kind = samplers()[word]
    text = settings_help(word)
    assert text == help_of("sample", "--sampler", word).rstrip("\n")
    for field in fields(kind):
        if field.name not in ("ladder", "reference"):
            assert f"  --{field.name.replace('_', '-')}" in text
        assert described(kind)[field.name]


@pytest.mark.parametrize("word", PROPOSALS)
def test_every_setting_of_a_proposal_is_explained(word):
    kind = PROPOSALS[word]
    assert all(described(kind)[field.name] for field in fields(kind))
    assert f"With --proposal {word}:" in settings_help("mint")


def test_a_sampler_may_follow_help():
    result = CliRunner().invoke(app, ["sample", "--help", "mint"])
    assert result.output.startswith("mintmc sample FILE --sampler mint")
    assert "  --batch-size [none]\n      m, the rows of one batch." in result.output


def test_a_setting_that_both_have_goes_by_a_longer_name():
    assert "--proposal-steps [10]" in settings_help("equi-energy")
    assert "--hottest" in settings_help("equi-energy")


def test_an_unknown_sampler_has_a_nearest():
    result = CliRunner().invoke(app, ["sample", "--sampler", "mnt", "--help"])
    assert result.exit_code == 2
    assert result.output.endswith("got 'mnt'; did you mean mint?\n")


def test_completion_knows_commands_and_options():
    env = {"_MINTMC_COMPLETE": "complete_bash", "COMP_WORDS": "mintmc dia", "COMP_CWORD": "1"}
    result = CliRunner().invoke(app, [], env=env, prog_name="mintmc")
    assert result.output.split() == ["diagnose"]
    result = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="mintmc")
    assert mintmc.__name__ in result.output

# SPDX-License-Identifier: MIT. What is said to be typed can be typed: each command that a message, a man page or a page
# of docs/ names has that verb and those options.
import functools
import pathlib
import re
import shlex
import subprocess

import pytest

from conftest import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("protonctl", "protonview", "protond")
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ |%s)*(proton(?:ctl|view|d))(?= |$)(.*)")


@functools.cache
def help_of(*words):
    r = subprocess.run([str(BUILD / "bin" / words[0]), *words[1:]], capture_output=True, text=True)
    return r.stdout if r.returncode == 0 else None


@functools.cache
def options_of(tool, verb):
    """{"-n" or "--name": whether it takes a value}; None: there is no such verb."""
    text = help_of(tool, "--help") if tool == "protond" else help_of(tool, "help", verb)
    if text is None:
        return None
    found = {"--help": False, "-h": False, "--version": False, "-V": False, "--json": False, "--man": False}
    for letter, name, value in re.findall(r"^ +(?:(-\w),)? *(--[\w-]+)( [A-Z\[<][^ ]*)?(?:  | *$)", text, re.M):
        found[name] = bool(value)
        if letter:
            found[letter] = bool(value)
    return found


def words_of(line):
    line = re.split(r"[|>;#)]|2>| && ", line.replace("…", "...").replace("\\", ""))[0]
    try:
        return shlex.split(line)
    except ValueError:  # an apostrophe of prose
        return line.split()


def wrong(line):
    """What does not exist of a command line, or None."""
    command = COMMAND.match(line)
    tool, words = command[1], words_of(command[2])
    verb = None
    if tool != "protond":
        if not words or words[0].startswith("%"):
            return None
        if words[0] in ("--version", "--help", "--man", "-V", "-h", "__complete"):
            return None
        implied = tool == "protonview" and not re.fullmatch(r"[a-z]+", words[0])
        verb = "tree" if implied else words.pop(0).rstrip(",.:")
        if re.fullmatch(r"[A-Z]+|\.\.\.", verb):
            return None
    options = options_of(tool, verb)
    if options is None:
        return f"{tool} has no verb {verb}"
    while words:
        word = words.pop(0)
        if word == "--" or (verb == "run" and not word.startswith("-")):
            return None
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        if not re.match(r"--?[A-Za-z1]", word) or (verb == "set" and not word.startswith("--")):
            continue
        if option not in options:
            return f"{tool} {verb} has no option {option}"
        if options[option] and word == option and words:
            words.pop(0)
    return None


def quoted(text):
    return [m for m in re.findall(r"`([^`\n]+)`", text) if COMMAND.match(m)]


def test_the_check_itself():
    assert wrong("protonctl run -n x -- ls --what") is None and wrong("protonview @last -m count -n 3") is None
    assert wrong("protonctl rnu") == "protonctl has no verb rnu" and wrong("protonview tree @last --gate 5") == "protonview tree has no option --gate"
    assert wrong("PROTOND_DB=x protonctl top -z") == "protonctl top has no option -z" and wrong("protond --chekc")


def test_messages():
    """Of all tools, of the library and of the Python package."""
    named = []
    for room in ("agent", "daemon", "libclient", "proto", "viewer"):
        for f in sorted((ROOT / room).rglob("*.[chp]*")):
            if f.suffix in (".c", ".h", ".py"):
                named += quoted(re.sub(r'"\s*"', "", re.sub(r"(?m)^\s*(//|\*|/\*).*$", "", f.read_text()).replace('\\"', "'")))
    assert len(named) > 50
    assert not {line: wrong(line) for line in named if wrong(line)}


def bare(text):
    """Commands of ours among a text's words that are not in backticks. At the end of a line, behind a colon, one may stand alone."""
    prose = re.sub(r"`[^`]*(`|$)", "", text)  # what a macro says may follow
    said = re.match(r"proton(?:ctl|view) [a-z]+ (?:checks|ends|lists|makes|prints|removes|says|shows|starts|takes)\b", prose)
    if (COMMAND.match(prose) and not said) or re.match(r" +proton|(mpirun|eval|source|complete) ", prose):  # an example, a script
        return []
    found = [(tool, verb) for tool, verb in re.findall(r"(?<!: )\b(protonctl|protonview) ([a-z]+|--?[a-z]+)", prose)]
    return [f"{tool} {verb}" for tool, verb in found if verb.startswith("-") or options_of(tool, verb) is not None]


def test_commands_in_messages_are_marked():
    """What is to be typed stands in backticks, so that it is told from the words around it."""
    assert bare("see protonctl status for it") and bare("try protonview --json") and bare("protonctl doctor checks it")
    assert not bare("see `protonctl status`") and not bare("all: protonview tree x") and not bare("protonctl run -- x")
    found = []
    for room in ("agent", "daemon", "libclient", "proto", "viewer"):
        for f in sorted((ROOT / room).rglob("*.[ch]")):
            text = re.sub(r"(?m)^\s*(//|\*|/\*).*$", "", f.read_text())
            text = re.sub(r'"\s*"', "", re.sub(r"(?s)/\*.*?\*/", "", text))
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text):
                lines = literal.replace('\\"', "'").split("\\n")
                found += [(f.name, line) for line in lines if bare(line)]
    assert not found


def test_documentation():
    named = []
    for f in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = f.read_text()
        blocks = re.findall(r"(?ms)^```\w*\n(.*?)^```", text)
        blocks = [block[2:].partition("\n")[0] if block.startswith("$ ") else block for block in blocks]  # else it is its answer
        named += [line for block in blocks for line in block.splitlines() if COMMAND.match(line)]
        named += quoted(re.sub(r"(?ms)^```.*?^```", "", text))
    assert len(named) > 100
    assert not {line: wrong(line) for line in named if wrong(line)}


@pytest.mark.parametrize("tool", TOOLS)
def test_examples_of_the_manual_page(tool):
    page = help_of(tool, "--man").replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
    section = re.search(r"(?ms)^\.SH EXAMPLES\n(.*?)(?=^\.SH )", page)
    assert section, "it has examples"
    lines = [re.split("  +", line.strip())[0] for line in section[1].splitlines() if COMMAND.match(line.strip())]
    assert len(lines) >= 3 and any(COMMAND.match(line)[1] == tool for line in lines)
    assert not {line: wrong(line) for line in lines if wrong(line)}


def test_examples_of_each_verb():
    named = []
    for verb in re.findall(r"(?m)^  ([a-z]+) ", help_of("protonctl", "help").partition("Commands:")[2]):
        text = help_of("protonctl", "help", verb)
        examples = [line.strip() for line in text.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()]
        assert examples, verb
        named += [line for line in examples if COMMAND.match(line)]
    assert not {line: wrong(line) for line in named if wrong(line)}


@pytest.mark.parametrize("tool", ["protonctl", "protonview"])
def test_help_of_each_verb(tool):
    verbs = re.findall(r"(?m)^  ([a-z]+) ", help_of(tool, "help"))
    verbs = [verb for verb in verbs if verb not in ("protonctl", "protonview")]
    assert len(verbs) > 20
    assert [verb for verb in verbs if help_of(tool, verb, "--help") != help_of(tool, "help", verb)] == []

# SPDX-License-Identifier: MIT
"""Settings of a job, by the table of proto/terms/options.h.

What holds, later before earlier: the default; `job.NAME = value` in /etc/protond.conf and in
$XDG_CONFIG_HOME/protond.conf; the variable PROTOND_NAME; the preset's; configure().
"""
import os
from functools import partial
from typing import Any, Dict, List, NamedTuple

from ._table import OPTIONS

_FLAGS = {"0": False, "1": True, "no": False, "yes": True, "off": False, "on": True, "false": False, "true": True}

PRESETS = {
    "production": {"hook": "torch", "sample_rate": 0.05, "sample_active": 10},
    "development": {"hook": "torch", "torch_ops": True, "torch_flops": True, "torch_memory": True},
    "debug": {"hook": "torch", "torch_backward": "module", "torch_ops": True, "torch_shapes": True,
              "torch_dtypes": True, "torch_stack": True, "torch_flops": True, "torch_memory": True},
    "leak": {"hook": "torch", "torch_memory": True, "sample_rate": 0.0},
}


class Option(NamedTuple):
    name: str
    who: str       # "lib": read by libprotond from the environment; "torch": read here
    type: str      # flag, int, share, word, words, dir, text
    default: str
    words: str     # what a word may be
    help: str

    def parse(self, value: Any, where: str) -> Any:
        """The value as flag, number or str; ValueError names `where` and what it may be."""
        text = str(value).strip()
        words = self.words.split()
        if self.type == "flag":
            if isinstance(value, bool) or text.lower() in _FLAGS:
                return bool(value) if isinstance(value, bool) else _FLAGS[text.lower()]
            raise ValueError(f"{where}: {text!r} is neither 0 nor 1")
        if self.type in ("int", "share"):
            try:
                number = int(text) if self.type == "int" else float(text)
            except ValueError:
                raise ValueError(f"{where}: {text!r} is no number") from None
            if not 0 <= number <= (1 if self.type == "share" else number):
                raise ValueError(f"{where}: {text!r}: {'0 to 1' if self.type == 'share' else '0 or more'}")
            return number
        if self.type == "word" and text and text not in words:
            raise ValueError(f"{where}: {text!r} is none of: {', '.join(words)}")
        if self.type == "words" and any(one not in words for one in text.split(",") if one):
            raise ValueError(f"{where}: {text!r}: use some of: {', '.join(words)}")
        return text


TABLE = {row[0]: Option(*row) for row in OPTIONS}
_configured: Dict[str, Any] = {}


def _option(name: str, where: str) -> Option:
    option = TABLE.get(name)
    if option is None:
        raise ValueError(f"{where}: there is no option {name!r}; there are: {', '.join(sorted(TABLE))}")
    return option


def _files() -> List[str]:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return ["/etc/protond.conf", os.path.join(home, "protond.conf")]


def _from_file(path: str, found: Dict[str, Any]) -> None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(65536).splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        key, equals, value = line.partition("=")
        key = key.strip()
        if equals and key.startswith("job."):
            where = f"{path}:{number}"
            found[key[4:]] = _option(key[4:], where).parse(value, where)


def configure(**options: Any) -> None:
    """Sets options of this process by name, before torch is named; ValueError for what is none.

    protond.configure(torch_ops=True, torch_shapes=True); None gives an option back to the
    environment. docs/options.md lists them.
    """
    for name, value in options.items():
        option = _option(name, "configure()")
        if value is None:
            _configured.pop(name, None)
        else:
            _configured[name] = option.parse(value, f"configure({name}=)")


def current() -> Dict[str, Any]:
    """What holds now, by name. ValueError says where a wrong value stands."""
    found: Dict[str, Any] = {}
    for path in _files():
        _from_file(path, found)
    for name, option in TABLE.items():
        text = os.environ.get("PROTOND_" + name.upper(), "")
        if text:
            found[name] = option.parse(text, "PROTOND_" + name.upper())
    preset = _configured.get("preset", found.get("preset", ""))
    found.update(PRESETS.get(preset, {}))
    found.update(_configured)
    return {name: found.get(name, option.parse(option.default, name) if option.default else option.default)
            for name, option in TABLE.items()}


def _checked(option: Option, text: str) -> str:
    """As argparse wants it, which puts the argument's name in front."""
    from argparse import ArgumentTypeError
    try:
        option.parse(text, "")
    except ValueError as e:
        raise ArgumentTypeError(str(e)[2:]) from None
    return text


def add_arguments(parser: Any) -> None:
    """Adds --protond NAME (record this run) and --protond-OPTION to an argparse parser."""
    group = parser.add_argument_group("protond", "profiling; PROTOND_* variables do the same")
    group.add_argument("--protond", metavar="NAME", default=None, help="record this run as session NAME")
    for option in TABLE.values():
        if option.who == "torch":
            group.add_argument("--protond-" + option.name.replace("_", "-"), dest="protond_" + option.name,
                               metavar=option.words.replace(" ", "|") or option.type.upper(), default=None,
                               type=partial(_checked, option), help=option.help.replace("%", "%%"))


def take_arguments(arguments: Any) -> None:
    """configure() with what add_arguments() added; ValueError as there."""
    configure(**{name: getattr(arguments, "protond_" + name, None) for name, option in TABLE.items()
                 if option.who == "torch" and getattr(arguments, "protond_" + name, None) is not None})

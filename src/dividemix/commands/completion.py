"""dividemix completion: a script that lets a shell complete commands, flags and their values."""

import argparse
import re
from collections.abc import Callable, Iterator

from dividemix.data.builtin import BUILT_IN
from dividemix.methods import METHODS
from dividemix.planning.presets import PRESETS

HELP = "print a script that completes commands and flags in your shell"
EPILOG = """\
bash: add  source <(dividemix completion bash)  to ~/.bashrc. zsh: the same with zsh, in ~/.zshrc. fish: dividemix
completion fish > ~/.config/fish/completions/dividemix.fish."""
_VALUES = {"--method": tuple(METHODS), "--preset": tuple(PRESETS)}  # of flags whose parser does not list them
_WORDS = {"train": tuple(BUILT_IN)}  # that a command takes apart from files


def add(completion: argparse.ArgumentParser, make_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the flags of completion. `make_parser` makes the parser of all commands."""
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that the script is for")
    completion.set_defaults(command=_completion, make_parser=make_parser)


def _completion(arguments: argparse.Namespace) -> int:
    commands = dict(_commands(arguments.make_parser()))
    if arguments.shell == "fish":
        print(_fish(commands))
    else:
        print(_bash(commands, zsh=arguments.shell == "zsh"))
    return 0


def _commands(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parsers of all commands by name: "" is the main one, "data fetch" a command of a command."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from _commands(inner, f"{name} {word}".strip())


def _flags(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """The flags that --help shows, by their long names."""
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS:
            yield from ((word, action) for word in action.option_strings if word.startswith("--"))


def _values(flag: str, action: argparse.Action) -> tuple[str, ...]:
    """The words that a flag takes; none if it takes any text, or nothing."""
    if flag in _VALUES:
        return _VALUES[flag]
    if action.choices:
        return tuple(map(str, action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return tuple(metavar.split("|")) if re.fullmatch(r"[a-z0-9_]+(\|[a-z0-9_]+)+", metavar) else ()


def _inner(name: str, commands: dict[str, argparse.ArgumentParser]) -> list[str]:
    """The words after a command that are not flags: its own commands, or what its arguments may be."""
    depth = len(name.split()) + 1
    inner = [one.split()[-1] for one in commands if one.startswith(name) and len(one.split()) == depth]
    chosen = [str(word) for one in commands[name]._actions if not one.option_strings for word in one.choices or ()]
    return list(dict.fromkeys([*inner, *chosen, *_WORDS.get(name, ())]))


def _bash(commands: dict[str, argparse.ArgumentParser], *, zsh: bool) -> str:
    """A function that offers the words of the command in the line; without any that fits, the shell offers files."""
    lines = ["autoload -U +X bashcompinit && bashcompinit"] if zsh else []
    lines += [
        "_dividemix() {",
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '  local words="" name="${COMP_WORDS[1]}"',
        '  [ "$COMP_CWORD" -gt 2 ] && [ "$name" = data ] && name="data ${COMP_WORDS[2]}"',
        '  [ "$COMP_CWORD" -lt 2 ] && name=""',
        '  case "$name $before" in',
    ]
    for name, parser in commands.items():
        for flag, action in _flags(parser):
            if values := _values(flag, action):
                lines.append(f'    "{name} {flag}") words="{" ".join(values)}" ;;')
    lines += ["  esac", '  if [ -z "$words" ]; then', '    case "$name" in']
    for name, parser in commands.items():
        flags = [flag for flag, _ in _flags(parser)]
        lines.append(f'      "{name}") words="{" ".join([*_inner(name, commands), *flags])}" ;;')
    lines += ["    esac", "  fi", '  COMPREPLY=($(compgen -W "$words" -- "$word"))']
    return "\n".join([*lines, "}", "complete -o default -F _dividemix dividemix"])


def _fish(commands: dict[str, argparse.ArgumentParser]) -> str:
    """A line for each command and each flag, with its help."""
    lines = []
    for name, parser in commands.items():
        seen = "__fish_use_subcommand" if not name else f"__fish_seen_subcommand_from {name.split()[-1]}"
        for word in _inner(name, commands):
            lines.append(f"complete -c dividemix -n '{seen}' -a {word}")
        for flag, action in _flags(parser):
            text = re.sub(r"\s+", " ", (action.help or "").replace("%%", "%"))
            text = text.replace("\\", "\\\\").replace("'", "\\'")
            takes = "" if action.nargs == 0 else " -r"
            values = f" -a '{' '.join(found)}'" if (found := _values(flag, action)) else ""
            lines.append(f"complete -c dividemix -n '{seen}' -l {flag.removeprefix('--')}{takes}{values} -d '{text}'")
    return "\n".join(lines)

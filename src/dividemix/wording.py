"""Errors in the words of the command line: flags have their dashes, and argparse speaks as the library does."""

import re
from collections.abc import Collection, Iterable

from dividemix.meant import nearest, or_meant

# Where a message of the library names a setting: with an underscore anywhere, a single word only in these places.
_LONG_NAME = re.compile(r"(?<!setting )(?<![\w'\"./-])[a-z0-9]+(?:_[a-z0-9]+)+(?![\w'\"/=]|\.\w)")
_SUBJECT = re.compile(
    r"^[a-z]+(?= is | needs | cannot | has no meaning | \S+ has no meaning| and \S+ are both )|(?<=; )root(?= must be )"
)
_VERBS = "another|needs|with|without|by|set|give|as|raise|lower|smaller|larger|add|or|example"
_OBJECT = re.compile(rf"(?<= )((?:{_VERBS}) )([a-z]+)(?=$|[;:,)]| or | to | [\d'])")

# argparse's sentences, with the flag or the name of an argument as the first group.
_NO_CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)$")
_NO_NUMBER = re.compile(r"argument (\S+): invalid (int|float) value: ('.*')$")
_NO_VALUE = re.compile(r"argument (\S+): expected (?:one|at least one) argument$")
_MISSING = re.compile(r"the following arguments are required: (.+)$")

# What may be meant by an argument that a command does not take.
_ARGUMENTS = {
    "evaluate": "test data is given by --test {word}",
    "methods": "for the settings of a method: dividemix train --method {word} --help",
    "presets": "for the settings of a preset: dividemix train --preset {word} --help",
}


def with_dashes(message: str, flags: Collection[str]) -> str:
    """The message with a flag's dashes: "lr is ..." becomes "--lr is ...", "... a smaller lr" "... a smaller --lr".

    A list of settings, and a guess of one, stay as they are: they are about a file.
    """

    def dashed(name: str) -> str:
        return f"--{name}" if f"--{name}" in flags else name

    if "own settings: " in message or "unknown setting" in message:
        return message
    message = _LONG_NAME.sub(lambda found: dashed(found[0]), message)
    message = _SUBJECT.sub(lambda found: dashed(found[0]), message)
    return _OBJECT.sub(lambda found: found[1] + dashed(found[2]), message)


def plainly(message: str, program: str) -> str:
    """A message of argparse as a sentence of ours. `program` is the command that was used, such as dividemix train."""
    if found := _NO_CHOICE.match(message):
        name, word, choices = found[1], found[2], [choice.strip(" '") for choice in found[3].split(",")]
        listed = ", ".join(choices)
        if name == "COMMAND":
            return f"unknown command {word!r}: {or_meant(word, choices, f'the commands are {listed}')}"
        near = nearest(word, choices)
        meant = "" if near is None else f" (did you mean {near}?)"
        return f"{name} is {word!r}: it must be one of {listed}{meant}"
    if found := _NO_NUMBER.match(message):
        return f"{found[1]} is {found[3]}: it must be {'an integer' if found[2] == 'int' else 'a number'}"
    if found := _NO_VALUE.match(message):
        return f"{found[1]} needs a value: see {program} --help"
    if found := _MISSING.match(message):
        return f"{program} needs {found[1].replace(', ', ' and ')}: see {program} --help"
    return message


def unknown_argument(word: str, program: str, flags: Iterable[str]) -> str:
    """The message for a word that the parser does not know, with the flag that the user may have meant."""
    see = f"see {program} --help"
    command = program.partition(" ")[2]
    if not word.startswith("-"):
        meant = _ARGUMENTS.get(command, see).format(word=word)
        return f"unexpected argument {word!r}: {meant}"
    flag = word.partition("=")[0]
    if (command, flag) == ("resume", "--epochs"):
        return f"unknown flag {flag}: dividemix resume RUN --extend N adds N epochs to a finished run"
    near = nearest(flag.lstrip("-"), [known.lstrip("-") for known in flags])
    return f"unknown flag {flag}: " + (see if near is None else f"did you mean --{near}?")

"""The command line: the table of commands, and how their errors are shown."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from .._data.plain_text import plain

if TYPE_CHECKING:
    from .options import Command

# By name: the module with the command in its own COMMANDS, and the line shown by --help.
COMMANDS = {
    "fit": ("fit", "fit a model to a table"),
    "tune": ("fit", "fit a model with settings chosen by cross-validation"),
    "predict": ("predict", "predict the rows of a table of any size"),
    "evaluate": ("evaluate", "measure the errors of a model on a table"),
    "explain": ("explain", "show what columns do, why a row gets its prediction, or the formula"),
    "export": ("export", "write a model as Python, C, SQL, ONNX or JSON"),
    "report": ("report", "write an interactive page about a model"),
    "reproduce": ("reproduce", "run the paper's experiments and write a report"),
    "demo": ("demo", "compare models on small data, or write a table to try things on"),
}
DESCRIPTION = "Tensor Machines: small, fast, explicit polynomial models."
EXAMPLES = """example:
  tensormachines demo --table flats.csv
  tensormachines fit flats.csv --target rent --ignore id -o rent.tm
  tensormachines predict rent.tm flats-new.csv --keep id

Run "tensormachines COMMAND --help" for more about a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; expected errors are one line on standard error."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _print_any_character()
    try:
        options = _parser(arguments).parse_args(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = int(options.run(options))
        print(end="", flush=True)  # detects a full disk or closed pipe here, not at exit
        return code
    except KeyboardInterrupt:
        resume = " Run the same command to resume." if "reproduce" in arguments[:1] else ""
        print(f"\nStopped.{resume}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as head, has read enough
        code = 0
    except (OSError, ValueError, TypeError, ImportError, RuntimeError, MemoryError) as error:
        written = _discard_unwritable_output()
        of_output = not written and isinstance(error, OSError) and error.filename is None
        print(
            f"tensormachines: {'standard output: ' if of_output else ''}{_one_line(error)}", file=sys.stderr
        )
        return 1
    _discard_unwritable_output()
    return code


def _print_any_character() -> None:
    """Write UTF-8 to files and pipes; show escape codes of characters that a terminal lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def _discard_unwritable_output() -> bool:
    """Empty the buffer of standard output, which would otherwise fail again at exit with another message.

    Return whether it could be written."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Set up the options of the given command only: importing all commands would take seconds."""
    parser = _Parser(prog="tensormachines", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (file, summary) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary)
        if name == asked:
            command: Command = import_module(f".{file}", __package__).COMMANDS[name]
            subparser.description, subparser.epilog = command.description, command.examples
            command.add_arguments(subparser)
            subparser.usage = _usage(subparser)
    return parser


def _usage(command: argparse.ArgumentParser) -> str:
    """Show only files and required options, because all options would fill a screen."""
    files = [
        f"[{option.dest}]" if option.nargs == "?" else option.dest
        for option in command._actions
        if not option.option_strings
    ]
    required = [
        f"{option.option_strings[0]} {option.metavar}"
        for option in command._actions
        if option.option_strings and option.required
    ]
    return " ".join([command.prog, *files, *required, "[options]"])


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage, which may fill a screen."""

    def __init__(self, **settings: Any):
        super().__init__(**settings, formatter_class=argparse.RawDescriptionHelpFormatter)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; refuse those left over in the name of the command, whose help lists the others."""
        options, others = self.parse_known_args(args, namespace)
        if others:
            self.prog += f" {options.command}"
            several = any(map(os.path.exists, others))
            glob = (
                " (for the rows of several files, give a glob in quotes, such as '*.csv')" if several else ""
            )
            self.error(f"unrecognized arguments: {' '.join(others)}{glob}")
        return options

    def error(self, message: str) -> NoReturn:
        if "are required" in message and any(option.nargs == "+" for option in self._actions):
            message += " (give files first: some options take all names that follow)"
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .. import __version__

        print(f"tensormachines {__version__}")
        parser.exit()


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"tensormachines: warning: {_one_line(message)}", file=sys.stderr)


def _one_line(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror:
        return plain(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror}.")
    return plain(" ".join(str(error).split())) or type(error).__name__

"""The command line: which commands there are, and what becomes of their errors."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

COMMANDS = {
    "fit": ("fit", "fit a model to a table"),
    "tune": ("fit", "the same, with settings chosen by cross-validation"),
    "predict": ("predict", "predict the rows of a table, of any size"),
    "evaluate": ("evaluate", "the errors of a model on a table"),
    "explain": ("explain", "what its columns do, why a row is predicted so, its formula"),
    "export": ("export", "the model in Python, C, SQL, ONNX or JSON"),
    "report": ("report", "a page about a model, and with the model to play with"),
    "reproduce": ("reproduce", "run the paper's experiments and write a report"),
    "demo": ("demo", "a comparison on small data; or a table to try things on"),
}
DESCRIPTION = "Tensor Machines: small, fast, explicit polynomial models."
EXAMPLES = """example:
  tensormachines demo --table flats.csv
  tensormachines fit flats.csv --target rent --ignore id -o rent.tm
  tensormachines predict rent.tm flats-new.csv --keep id

"tensormachines COMMAND --help" tells more of each."""
SHOWN = argparse.RawDescriptionHelpFormatter


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _print_any_character()
    try:
        options = _parser(arguments).parse_args(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = int(options.run(options))
        print(end="", flush=True)  # what cannot be written is an error, too
        return code
    except KeyboardInterrupt:
        print(
            f"\nStopped.{' The same command goes on from here.' if 'reproduce' in arguments[:1] else ''}",
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:  # who reads has read enough
        code = 0
    except (OSError, ValueError, TypeError, ImportError, RuntimeError, MemoryError) as error:
        print(f"tensormachines: {_one_line(error)}", file=sys.stderr)
        code = 1
    _drop_what_cannot_be_written()
    return code


def _print_any_character() -> None:
    """Results are UTF-8 wherever they go, as tables are that are read; a terminal that lacks a character is
    shown its code.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def _drop_what_cannot_be_written() -> None:
    """It would fail again when the interpreter ends, with a message and an exit code of its own."""
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Options are set up for the command that is asked for alone: to know those of all would take seconds."""
    parser = _Parser(prog="tensormachines", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=SHOWN)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    asked = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (file, summary) in COMMANDS.items():
        if name != asked:
            commands.add_parser(name, help=summary)
            continue
        module = import_module(f".{file}", __package__)
        described = {
            "description": getattr(module, name.upper()),
            "epilog": getattr(module, f"{name.upper()}_EXAMPLES"),
        }
        command = commands.add_parser(name, help=summary, formatter_class=SHOWN, **described)
        getattr(module, f"add_{name}")(command)
        command.usage = _usage(command)
    return parser


def _usage(command: argparse.ArgumentParser) -> str:
    """Files first, and what must be there: all options would fill a screen."""
    files = [option.dest for option in command._actions if not option.option_strings]
    required = [
        f"{option.option_strings[0]} {option.metavar}"
        for option in command._actions
        if option.option_strings and option.required
    ]
    return " ".join([command.prog, *files, *required, "[options]"])


class _Parser(argparse.ArgumentParser):
    """Its errors are one line, like all others: the usage of some commands fills a screen."""

    def error(self, message: str) -> NoReturn:
        if "are required" in message and any(option.nargs == "+" for option in self._actions):
            message += " (files come first: some options take all names that follow)"
        self.exit(2, f"{self.prog}: {message}. {self.prog} --help tells more.\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .. import __version__

        print(f"tensormachines {__version__}")
        parser.exit()


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"tensormachines: warning: {_one_line(message)}", file=sys.stderr)


def _one_line(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'what was to be written'}: {error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__

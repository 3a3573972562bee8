"""What API pages do with docstrings: they set formulas as they are, and leave scikit-learn's methods out."""

import inspect
import re
from typing import Any

SECTION = re.compile(r"-{3,}")
LIST = re.compile(r"\s*([-*]|\d+\.) ")
QUOTED = re.compile(r"(`+[^`]*`+)")
FITTED = re.compile(r"(?<![\\\w])([A-Za-z]\w*)_(?![\w\\])")


def mark_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make literal blocks of indented paragraphs before the first section: formulas and short programs."""
    marked: list[str] = []
    for place, line in enumerate(lines):
        if SECTION.fullmatch(line):
            marked += lines[place:]
            break
        begins = line.startswith("    ") and place > 1 and not lines[place - 1].strip()
        if begins and not lines[place - 2].startswith("    ") and not LIST.match(lines[place - 2]):
            marked += ["::", ""]
        marked.append(line)
    lines[:] = marked


def escape_names(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what numpydoc leaves: ``alpha_`` would be a link, and |x| a substitution."""
    literal = doctest = False
    for place, line in enumerate(lines):
        literal = literal and (line.startswith("    ") or not line.strip())
        doctest = bool(line.strip()) and (doctest or line.lstrip().startswith(">>>"))
        if not (literal or doctest):
            pieces = QUOTED.split(line)
            pieces[::2] = [FITTED.sub(r"\1\\_", piece).replace("|", r"\|") for piece in pieces[::2]]
            lines[place] = "".join(pieces)
        literal = literal or line.rstrip().endswith("::")


def skip_inherited(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what is inherited from scikit-learn, such as metadata routing: its own pages explain it."""
    function = inspect.unwrap(getattr(obj, "fget", obj) or obj)
    module = getattr(function, "__module__", None) or ""
    return True if module.split(".")[0] not in ("tensormachines", "builtins", "") else None

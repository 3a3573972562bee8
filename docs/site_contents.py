"""The tree of the site. Pages are plain Markdown, so this is the only place that says where they belong."""

from typing import Any

# Of each page with pages below it: captions, and under each the pages with their short titles ("" for their
# own). The API and the gallery list their pages themselves.
Contents = dict[str, dict[str, dict[str, str]]]
CONTENTS: Contents = {
    "docs/index": {
        "": {
            "docs/user-guide": "Guide",
            "docs/auto_gallery/index": "Gallery",
            "docs/api/index": "API",
            "docs/benchmarks": "Benchmarks",
            "docs/about": "About",
        }
    },
    "docs/user-guide": {
        "Getting started": {
            "docs/install": "",
            "docs/guide": "A first model",
            "docs/choosing": "Choosing settings",
            "docs/command-line": "",
            "docs/troubleshooting": "",
        },
        "Your data": {"docs/tables": "Raw tables", "docs/large-data": "Larger than memory"},
        "Targets": {"docs/losses": "Losses and intervals"},
        "Explaining": {"docs/explain": "What a model does", "docs/report": "Reports"},
        "Deploying": {
            "docs/files": "Files",
            "docs/export": "Python, C, SQL, ONNX",
            "docs/security": "Threat model",
            "docs/failures": "When something fails",
        },
        "Deciding": {"docs/when-not": "", "docs/features": "Features compared"},
        "The method": {"docs/mathematics": "", "docs/peers": "Rival methods"},
    },
    "docs/benchmarks": {
        "Accuracy": {
            "benchmarks/ACCURACY_TABLES": "38 mixed tables, tuned",
            "benchmarks/ACCURACY": "21 sets of numbers, tuned",
            "benchmarks/TRIALS": "51 tables, as they come",
        },
        "Everything else": {
            "benchmarks/RESULTS": "Speed, memory, losses",
            "benchmarks/NOTES": "Tried without gain",
            "benchmarks/README": "The scripts",
        },
        "The paper, run again": {
            "docs/paper": "Summary",
            "results/standard/summary": "For practitioners",
            "results/standard/report": "Report",
            "results/README": "Where it falls short",
            "docs/reproduce": "How to repeat it",
            "docs/data": "Data sets",
        },
    },
    "docs/about": {
        "": {"CHANGELOG": "", "CONTRIBUTING": "", "SECURITY": "Reporting a vulnerability"},
    },
}


def add_contents(app: Any, docname: str, source: list[str]) -> None:
    """Append hidden tables of contents to a page that has pages below it.

    A link to the folder of scripts leads to the pages that are made of them."""
    source[0] = source[0].replace("](gallery/)", "](/docs/auto_gallery/index.rst)")
    for caption, pages in CONTENTS.get(docname, {}).items():
        entries = [f"{title} </{page}>" if title else f"/{page}" for page, title in pages.items()]
        named = [f":caption: {caption}"] if caption else []
        source[0] += "\n\n" + "\n".join(["```{toctree}", ":hidden:", *named, "", *entries, "```"]) + "\n"

"""Facts about the data sets: Table 1 of the paper, sources, licences, checksums and citations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .parsers import ORIGINALS

UCI = "https://archive.ics.uci.edu/dataset"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"
DELVE = "https://www.cs.toronto.edu/~delve/data/census-house/desc.html"
CC_BY = "CC BY 4.0"
NOT_STATED = "not stated"

INDOOR = (
    "Torres-Sospedra et al., UJIIndoorLoc: a new multi-building and multi-floor database for WLAN "
    "fingerprint-based indoor localization problems, IPIN 2014"
)
YEAR = "Bertin-Mahieux, Ellis, Whitman and Lamere, The Million Song Dataset, ISMIR 2011"
CENSUS = "The census-house data set of DELVE, University of Toronto, from the US census of 1990"
SLICE = (
    "Graf, Kriegel, Schubert, Poelsterl and Cavallaro, 2D image registration in CT images using radial "
    "image descriptors, MICCAI 2011"
)
BUZZ = (
    "Kawala, Douzal-Chouakria, Gaussier and Dimert, Predictions d'activite dans les reseaux sociaux en "
    "ligne, MARAMI 2013"
)
GISETTE = (
    "Guyon, Gunn, Ben-Hur and Dror, Result analysis of the NIPS 2003 feature selection challenge, NIPS 2004"
)
ADULT = (
    "Kohavi, Scaling up the accuracy of naive-Bayes classifiers: a decision-tree hybrid, KDD 1996; a9a: "
    "Chang and Lin, LIBSVM, 2011"
)
FOREST = (
    "Blackard and Dean, Comparative accuracies of artificial neural networks and discriminant analysis in "
    "predicting forest cover types from cartographic variables, Computers and Electronics in Agriculture 24, "
    "1999"
)
COD_RNA = (
    "Uzilov, Keegan and Mathews, Detection of non-coding RNAs on the basis of predicted secondary structure "
    "formation free energy change, BMC Bioinformatics 7, 2006"
)
EBAY = "Yang and Gittens, Tensor machines for learning target-specific polynomial features, 2015"


@dataclass(frozen=True)
class DataSet:
    """Facts about a data set that are known before it is loaded.

    ``paper_name`` is the name of the same or the related set in the paper. ``faithful`` says whether errors
    on the file in the folder may be compared with the paper's figures. ``degree`` is q in Table 1. ``sha256``
    is the checksum of the arrays in ``file`` (`tensormachines.datasets.content_digest`), None if no file is
    known. ``note`` says how the set differs from the one in the paper."""

    name: str
    title: str
    paper_name: str
    faithful: bool
    task: Literal["regression", "binary"]
    degree: int
    rows: int
    test_rows: int
    columns: int
    source: str
    licence: str
    citation: str
    note: str = ""
    sha256: str | None = None

    @property
    def file(self) -> str:
        """Return the name of its file in a folder; empty if there is none."""
        return {"ebay": "", "ebay_like": "", "indoor_heard": "indoor.npz"}.get(self.name, f"{self.name}.npz")


_PAPER = (
    DataSet(
        "indoor", "Indoor", "indoor", True, "regression", 3, 19_937, 1_111, 520, f"{UCI}/310/ujiindoorloc",
        CC_BY, INDOOR,
        "The target is the longitude as recorded, far from 0, as the printed errors suggest; the paper "
        "prints 11,114 test rows, the original split has 1,111.",
        "7dada4afdc6f5b2ecbcdaf962af001cb35f3ed3299dff08d557e515bbfeb56af",
    ),
    DataSet(
        "year", "Year", "year", True, "regression", 2, 463_715, 51_630, 90, f"{UCI}/203/yearpredictionmsd",
        CC_BY, YEAR,
    ),
    DataSet(
        "census", "Census", "census", True, "regression", 2, 18_186, 2_273, 119, DELVE, NOT_STATED, CENSUS,
        "The paper does not say which 119 of the attributes it uses, and no file with them is published.",
    ),
    DataSet(
        "slice", "Slice", "slice", True, "regression", 5, 42_291, 10_626, 384,
        f"{UCI}/206/relative+location+of+ct+slices+on+axial+axis", CC_BY, SLICE,
        "The paper's split is not published: this is a random one of its sizes, which leave out 583 of the "
        "53,500 rows.",
    ),
    DataSet(
        "buzz", "Buzz", "buzz", True, "regression", 3, 466_600, 116_650, 77,
        f"{UCI}/248/buzz+in+social+media", CC_BY, BUZZ,
        "The Twitter part; the paper's split is not published: this is a random one of its sizes.",
    ),
    DataSet(
        "gisette", "Gisette", "gisette", True, "binary", 3, 6_000, 1_000, 5_000, f"{UCI}/170/gisette",
        CC_BY, GISETTE,
        "The challenge's validation rows are the test rows, as only their labels are public.",
    ),
    DataSet(
        "adult", "Adult", "adult", True, "binary", 3, 32_561, 16_281, 122, LIBSVM, CC_BY, ADULT,
        "a9a without its 123rd column, which is empty in the test rows.",
        "5451bcf83f3d538c37388d48637de4604023190dd5ae849ba4199ff1bc289d3d",
    ),
    DataSet(
        "forest", "Forest", "forest", True, "binary", 4, 522_910, 58_102, 54, f"{UCI}/31/covertype",
        CC_BY, FOREST,
        "Class 2 against the rest; the file in the folder has the authors' split, a download a random one of "
        "the same sizes.",
        "8b235dab1afb88f6d23cc33c587e7d135e2f58d21e3ad51a1ef6717893476392",
    ),
    DataSet(
        "ebay", "eBay search", "ebay", False, "binary", 3, 500_000, 100_000, 478, "private", "private", EBAY,
        "Private, and not available to anybody; ebay_like is generated in its place.",
    ),
    DataSet(
        "cod_rna", "Cod-rna", "cod_rna", False, "binary", 4, 59_535, 157_413, 8, LIBSVM, NOT_STATED, COD_RNA,
        "The paper tests with cod-rna.r, and so does a download, which is faithful; the file in the folder "
        "has as many rows of cod-rna.t.",
        "a5013e560f7be32db2008c1e6d5afe70f33b25c2036f66d5f0302f744ec19637",
    ),
)  # fmt: skip

_RELATIVES = (
    DataSet(
        "indoor_heard", "Indoor, signals", "indoor", False, "regression", 3, 19_937, 1_111, 520,
        f"{UCI}/310/ujiindoorloc", CC_BY, INDOOR,
        "The same rows and target; 100, the code of an access point that was not heard, is read as no "
        "signal instead of the strongest.",
    ),
    DataSet(
        "year_msd_subset", "Year, 4,680 songs", "year", False, "regression", 2, 4_212, 468, 90,
        f"{UCI}/203/yearpredictionmsd", NOT_STATED, YEAR,
        "The same 90 columns and target for 1 % as many songs.",
        "22823a1aaadbfaf537bd0aa3b3adba462b0c89fb69256c9ac1442541c53ad650",
    ),
    DataSet(
        "census_house_16H", "Census, 16 attributes", "census", False, "regression", 2, 18_186, 2_273, 16,
        DELVE, NOT_STATED, CENSUS,
        "The house prices of the same census with 16 attributes in place of 119.",
        "41b1b0bd38ae0868ac24d44398f1d2a5cfc43ccd3e0e138b86035dd642ad96bf",
    ),
    DataSet(
        "slice_first_rows", "Slice, first rows", "slice", False, "regression", 5, 545, 136, 384,
        f"{UCI}/206/relative+location+of+ct+slices+on+axial+axis", CC_BY, SLICE,
        "The first 681 of 53,500 rows: two patients.",
        "c4057368775dbc12ec84633e8bc8795ddf675a10ab82fba6e8ed3cdfe1aad65b",
    ),
    DataSet(
        "buzz_sample", "Buzz, sample", "buzz", False, "regression", 3, 4_666, 1_166, 70,
        f"{UCI}/248/buzz+in+social+media", CC_BY, BUZZ,
        "1 % of the rows, 70 columns in place of 77, and another target.",
        "f7e22ffcd524113ec39a98ce5d8d4edb798dedd111513cb73e514b3afb86969e",
    ),
    DataSet(
        "ebay_like", "eBay-like", "ebay", False, "binary", 3, 500_000, 100_000, 478,
        "generated", "as this package", EBAY,
        "Generated: of the shape and the difficulty of the private data, but invented; see `ebay_like`.",
    ),
)  # fmt: skip

SETS: dict[str, DataSet] = {known.name: known for known in (*_PAPER, *_RELATIVES)}


def describe() -> str:
    """Return a Markdown table of the sets, followed by notes and citations."""
    lines = [
        "| set | rows to train / test | columns | task | q | comparable with the paper? | source | licence |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in SETS.values():
        size = f"{s.rows:,} / {s.test_rows:,} | {s.columns:,}"
        lines.append(
            f"| `{s.name}` | {size} | {s.task} | {s.degree} | {_comparable(s)} | {_access(s)} | {s.licence} |"
        )
    lines.append("")
    for s in SETS.values():
        source = f" [Source]({s.source})." if s.source.startswith("http") else ""
        note = f": {s.note}" if s.note else "."
        lines.append(f"- `{s.name}` ({s.title}){note} Cite: {s.citation}.{source}")
    return "\n".join(lines)


def _comparable(known: DataSet) -> str:
    if known.name != known.paper_name:
        return f"no: a relative of {SETS[known.paper_name].title}"
    return "yes" if known.faithful else "only if downloaded" if known.name in ORIGINALS else "no"


def _access(known: DataSet) -> str:
    if not known.file:
        return known.source
    return "folder, download" if Path(known.file).stem in ORIGINALS else "folder"

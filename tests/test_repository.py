"""What a Space, a fresh clone and a reader rely on."""

import ast
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from plotly.offline import get_plotlyjs_version

import transformer
from transformer import checkpoint
from transformer.server.http import limits
from transformer.server.http.limits import table
from transformer.views.export.bundle import PACKAGE

ROOT = Path(__file__).resolve().parent.parent


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def locked(name: str) -> dict[str, tuple[Requirement, list[str]]]:
    """A lock's packages, each with its pinned version and its hashes."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith(("#", "-"))]
    found = {}
    for words in lines:
        hashes = [word for word in words if word.startswith("--hash")]
        pin = Requirement(" ".join(words[: len(words) - len(hashes)]))
        found[canonicalize_name(pin.name)] = (pin, hashes)
    return found


def test_the_spaces_front_matter_agrees_with_the_requirements():
    _, front, _ = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    head = dict(re.findall(r'^(\w+): "?(.+?)"?$', front, flags=re.MULTILINE))
    assert (head["sdk"], head["sdk_version"]) == ("gradio", pins()["gradio"])
    assert (ROOT / head["app_file"]).is_file()
    assert head["python_version"] == "3.11"
    assert len(head["short_description"]) <= 60


def test_the_locks_hold_what_is_pinned_with_hashes():
    page, more = locked("requirements.lock"), locked("requirements-dev.lock")
    for name, known in (("requirements.txt", page), ("requirements-dev.txt", page | more)):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        pinned = [line for line in lines if not line.startswith(("#", "-r "))]
        assert all("==" in line for line in pinned)
        for pin in map(Requirement, pinned):
            if pin.name != "torch":
                assert known[canonicalize_name(pin.name)][0].specifier == pin.specifier
    assert {"sympy", "starlette"} < page.keys()  # which those bring
    assert all(hashes for _, hashes in (page | more).values())


def test_javascript_tools_are_pinned_with_hashes_and_no_registry():
    folder = ROOT / "tools" / "javascript"
    wanted = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    assert all(re.fullmatch(r"[\d.]+", one) for one in wanted["devDependencies"].values())
    assert "dependencies" not in wanted  # the page needs none
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    found = {name: one for name, one in lock["packages"].items() if name}
    assert len(found) > len(wanted["devDependencies"])
    assert not [name for name, one in found.items() if "resolved" in one]
    assert not [name for name, one in found.items() if "integrity" not in one]


@pytest.mark.parametrize("name", transformer.bundled_names())
def test_every_bundled_model_loads_writes_or_fills_in_and_has_a_card(name):
    model = transformer.load(name)
    assert model.name == name
    for path in (checkpoint.BUNDLED / name).iterdir():
        assert path.stat().st_size < 10_000_000
    for heading in ("## Data", "## Training", "## Scores", "## Limits"):
        assert heading in model.card
    if model.config.family == "encoder":
        assert len(model.fill("Once upon a [MASK].").guesses) == 1
        run, stack = model.trace("Once upon a time"), "encoder"
    else:
        run, stack = model.generate("Once upon a time", max_new_tokens=8), "decoder"
        assert len(run.steps) > 0
    weights = run.trace.weights(stack, "self")
    assert weights.sum(-1).sub(1).abs().max() < 1e-5


# A file's name in prose; one with a placeholder (LANGUAGE.po, NAME.js) names none.
FILE_NAME = re.compile(r"(?<![\w./*{}<>-])[\w./-]*\w\.(?:py|js|css|c|po|toml)\b(?![\w(])")
MODULE_NAME = re.compile(r"\b(?:transformer|benchmarks)(?:\.[a-z]\w*)+")
NO_FILES = {"plotly.js", "./x.js", "page.js"}  # a library, examples
COMMENTS = {".js": r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", ".css": r"/\*.*?\*/", ".toml": r"#[^\n]*"}


def files() -> list[Path]:
    """The files of the project itself."""
    folders = (
        ROOT / name for name in ("benchmarks", "deploy", "docs", "tests", "tools", "transformer")
    )
    found = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*.*"))]
    foreign = {"vendor", "node_modules"}
    return [path for path in found if path.is_file() and foreign.isdisjoint(path.parts)]


def prose(path: Path) -> Iterator[str]:
    """What a file says to its reader: comments, docstrings, and a document without its fences."""
    if path.suffix not in {".py", ".md", *COMMENTS}:
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        alone = [one.value for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Expr)]
        yield from (str(one.value) for one in alone if isinstance(one, ast.Constant))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (one.string for one in tokens if one.type == tokenize.COMMENT)
    elif path.suffix == ".md":
        yield re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    else:
        yield from re.findall(COMMENTS[path.suffix], text, re.DOTALL)


def is_there(module: str) -> bool:
    """Whether a dotted name is a module, or something that a module names."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                return length == len(parts) or bool(re.search(rf"\b{parts[length]}\b", text))
    return False


def test_no_comment_or_document_names_a_missing_file_or_module():
    paths, wrong = files(), []
    names = {f"/{path.relative_to(ROOT).as_posix()}" for path in paths}
    for path in paths:
        for said in prose(path):
            wrong += [(path.name, name) for name in MODULE_NAME.findall(said) if not is_there(name)]
            for name in set(FILE_NAME.findall(said)) - NO_FILES:
                end = "/" + re.sub(r"^(\.{1,2}/)+", "", name)
                placeholder = re.search(r"/[A-Z]+[/.]", end)
                if not placeholder and not any(one.endswith(end) for one in names):
                    wrong.append((path.name, name))
    assert wrong == []


def test_every_test_has_a_name_of_at_most_70_characters():
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    names = [name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)]
    assert [name for name in names if len(name) > 70] == []


# Methods of Playwright's locators that do not wait for what is asserted of them.
AT_ONCE = {
    "all_inner_texts", "all_text_contents", "count", "get_attribute", "inner_html", "inner_text",
    "input_value", "is_checked", "is_disabled", "is_enabled", "is_hidden", "is_visible", "labels",
    "text_content",
}  # fmt: skip


STATE = re.compile(r"^(?:export )?const (\w+) = (?:reactive|signal)\(", re.MULTILINE)


def test_all_state_of_the_page_is_named_at_the_top_of_its_store():
    """`reactive` and `signal` of a module, by name and file."""
    scripts = [path for path in (ROOT / "transformer").rglob("*.js") if "vendor" not in path.parts]
    store = (ROOT / "transformer" / "web" / "store.js").read_text(encoding="utf-8")
    listed = set()
    for line in re.findall(r"^// - .*", store.partition("export const page")[0], re.MULTILINE):
        for names, file in re.findall(r"((?:\w+, )*\w+) \((\w+\.js|below)\)", line):
            listed |= {(name, file) for name in names.split(", ")}
    held = {
        (name, "below" if path.name == "store.js" else path.name)
        for path in scripts
        for name in STATE.findall(path.read_text(encoding="utf-8"))
    }
    assert held - {("page", "below")} == listed


ANY = re.compile(r"[{<|(,:=>] ?any\b|\bany[\]>|})]")  # in the text of a type


def test_the_accent_colours_are_written_in_the_theme_alone():
    theme = PACKAGE / "web" / "theme.css"
    accents = re.findall(r"--viz-accent: (#\w{6});", theme.read_text(encoding="utf-8"))
    assert len(accents) == 2  # light and dark
    files = (path for kind in ("css", "html", "js", "py") for path in PACKAGE.rglob(f"*.{kind}"))
    copies = {
        path.relative_to(PACKAGE).as_posix()
        for path in files
        if path != theme and any(one in path.read_text(encoding="utf-8") for one in accents)
    }
    assert copies == set()


def test_types_of_scripts_leave_open_only_json_and_plotly():
    """JSON of values whose names Python declares, and Plotly, which comes without types."""
    package = ROOT / "transformer"
    lines = [
        line
        for pattern in ("*.js", "*.d.ts")
        for path in sorted(package.rglob(pattern))
        if "vendor" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if path.suffix == ".ts" or line.lstrip().startswith(("/**", "*")) or "/** @" in line
    ]
    assert [line for line in lines if ANY.search(line)] == [
        "export type PlainValues = Record<string, any>;",
        "export type PlotlyObject = Record<string, any>;",
    ]


def test_no_browser_test_asserts_on_a_page_that_is_being_drawn():
    """`expect` waits. `all()` is empty before anything is drawn: `kit.browser.every` is not."""
    wrong = []
    for path in (ROOT / "tests" / "browser").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = AT_ONCE if isinstance(node, ast.Assert) else {"all"}
            for call in ast.walk(node) if isinstance(node, ast.Assert) else [node]:
                method = call.func if isinstance(call, ast.Call) else None
                is_text = isinstance(call, ast.Call) and call.args  # "text".count("a")
                if isinstance(method, ast.Attribute) and method.attr in names and not is_text:
                    wrong.append(f"{path.name}:{call.lineno}: {method.attr}")
    assert wrong == []


def test_the_table_holds_every_number_of_the_module():
    numbers = {
        value
        for name, value in vars(limits).items()
        if name.isupper() and isinstance(value, int | float)
    }
    assert numbers <= {row["limit"] for row in table().values()}


FOLDER = PACKAGE / "web" / "vendor"
PLOTLY = PACKAGE / "server" / "static" / "vendor" / "plotly-cartesian.min.js"
FILES = [*sorted(FOLDER.glob("*.js")), PLOTLY]
PUBLISHED = json.loads((FOLDER / "published.json").read_text("utf-8"))
# A browser without an import map takes only relative imports: those alone were changed.
NAMES = {
    "./preact.js": "preact",
    "./hooks.js": "preact/hooks",
    "./signals-core.js": "@preact/signals-core",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_vendored_file_is_the_published_one_but_for_its_relative_imports(path):
    text = path.read_text("utf-8")
    as_published = re.sub(r'from"(\./[^"]+)"', lambda found: f'from"{NAMES[found[1]]}"', text)
    assert hashlib.sha256(as_published.encode()).hexdigest() == PUBLISHED[path.name]["sha256"]


def test_plotly_is_sent_as_published_in_the_version_that_makes_the_figures():
    """Browsers get the compressed file next to it."""
    packed = PLOTLY.with_name(f"{PLOTLY.name}.br").read_bytes()
    assert brotli.decompress(packed) == PLOTLY.read_bytes()
    assert PUBLISHED[PLOTLY.name]["version"] == get_plotlyjs_version()


def test_each_vendored_package_comes_with_its_licence():
    licences = {"preact": "MIT", "htm": "Apache License", "signals": "MIT"}
    for name, words in licences.items():
        assert words in (FOLDER / f"{name}.LICENSE").read_text("utf-8")


def test_a_busy_part_is_looked_for_by_its_value():
    """Preact writes aria-busy="false" too: a link of the projector stayed covered for its sake."""
    files = [one for kind in ("*.js", "*.css") for one in (ROOT / "transformer").rglob(kind)]
    texts = {one.name: one.read_text("utf-8") for one in files if "vendor" not in one.parts}
    assert [name for name, text in texts.items() if "[aria-busy]" in text] == []

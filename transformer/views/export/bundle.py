"""JavaScript modules as one text: a page without a server cannot fetch any, and any other page
starts sooner.

The modules stay what they are: each becomes a function that is called once and gives back what the
module exports, so that names of one do not meet those of another.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection
from pathlib import Path

from transformer.checks import shortened

PACKAGE = Path(__file__).resolve().parents[2]
SAID = "web/said.js"  # is no file
# After import or export: whether it begins a statement; a minified file has one line.
_BEGINS = r"(?<![^;}\n]......)"
IMPORT = re.compile(rf'(?:import|export){_BEGINS} ?(?:[^";]*? ?from ?)?"(\.[^"]+)";')
_NAMED = re.compile(rf'import{_BEGINS} ?(\w+|\{{[^}}]*\}}) ?from ?"(\.[^"]+)";')
_PASSED_ON = re.compile(rf'export{_BEGINS} ?\{{([^}}]*)\}} ?from ?"(\.[^"]+)";')
_BARE = re.compile(r'^import "\.[^"]+";$', re.MULTILINE)
_LISTED = re.compile(rf"export{_BEGINS} ?\{{([^}}]*)\}};")
_DEFAULT = re.compile(rf"export{_BEGINS} default (?=function\()")
_EXPORT = re.compile(r"^export (const|class|(?:async )?function\*?) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*|;export\b.{,60}", re.MULTILINE)
_ENDS_SCRIPT = re.compile(r"(?:</script|<!--).*", re.IGNORECASE)
# A comment behind code has no quotes: so it is none in a string.
_COMMENT = re.compile(
    r"^[ \t]*(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/[ \t]*)\n|//# sourceMappingURL=.*"
    r"| // [^\"'`\n]*$|/\*\* @type [^*]*\*/ ",
    re.MULTILINE,
)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)


def read_module(name: str) -> str:
    """A file of the package by its path there, with "/"."""
    return (PACKAGE / name).read_text(encoding="utf-8")


def read_style(name: str) -> str:
    """A style sheet of the package, without comments."""
    return _STYLE_COMMENT.sub("", read_module(name))


def needed_by(*names: str, read: Callable[[str], str] = read_module) -> list[str]:
    """These modules and all that they import, each once; what is imported comes first.

    Modules may not import each other in a circle.
    """
    modules: dict[str, None] = {}

    def add(name: str) -> None:
        for path in IMPORT.findall(read(name)):
            imported = _resolved(name, path)
            if imported not in modules:
                add(imported)
        modules[name] = None

    for name in names:
        add(name)
    return list(modules)


def bundle(
    *names: str,
    read: Callable[[str], str] = read_module,
    with_exports: bool = False,
    base: str = "",
    held: Collection[str] = (),
    said: str = "",
) -> str:
    """These modules and all that they need, as the text of one inline module.

    with_exports: it exports `modules`, what each module of it exports, by the module's name.
    base: the address of another bundle, from which the modules in `held` are imported. said: a
    module that calls `speak` of messages.js, placed before the modules that say sentences. Raises
    ValueError for an import or export that is written in another way than `import { a, b as c }
    from "./x.js";`, `import a from "./x.js";`, `import "./x.js";`, the same with `export { ... }`,
    `export const` (class, function) and `export default function(`, and for text that would end an
    inline script.
    """

    def text_of(name: str) -> str:
        return said if name == SAID else read(name)

    first = (SAID,) if said else ()
    places = {name: place for place, name in enumerate(needed_by(*first, *names, read=text_of))}
    parts = [f'import {{ modules as held }} from "{base}";'] if held else []
    parts += [
        f'const module{places[name]} = held["{name}"];'
        if name in held
        else _as_function(name, text_of(name), places)
        for name in places
    ]
    if with_exports:
        every = ",\n".join(f'  "{name}": module{place}' for name, place in places.items())
        parts.append(f"export const modules = {{\n{every},\n}};\n")
    return "\n".join(parts)


def _as_function(name: str, text: str, places: dict[str, int]) -> str:
    exported: list[str] = []

    def module(path: str) -> str:
        return f"module{places[_resolved(name, path)]}"

    def taken(match: re.Match[str]) -> str:
        names = match[1] if match[1].startswith("{") else f"{{ default: {match[1]} }}"
        return f"const {names.replace(' as ', ': ')} = {module(match[2])};"

    def passed_on(match: re.Match[str]) -> str:
        exported.extend(f"{to}: {module(match[2])}.{inner}" for inner, to in _pairs(match[1]))
        return ""

    def listed(match: re.Match[str]) -> str:
        exported.extend(f"{to}: {inner}" for inner, to in _pairs(match[1]))
        return ""

    def default(_: re.Match[str]) -> str:
        exported.append("default: exported")
        return "const exported = "

    text = _BARE.sub("", _COMMENT.sub("", text))
    text = _DEFAULT.sub(default, _LISTED.sub(listed, _PASSED_ON.sub(passed_on, text)))
    exported += [match[2] for match in _EXPORT.finditer(text)]
    text = _EXPORT.sub(r"\1 \2", _NAMED.sub(taken, text))
    if other := _OTHER.search(text) or _ENDS_SCRIPT.search(text):
        raise ValueError(
            "a module of a page without a server needs imports and exports by name, and no text "
            f"that ends its script; got {shortened(other[0])} in {name}"
        )
    properties = ", ".join(exported)
    return f"const module{places[name]} = (() => {{\n{text}\nreturn {{ {properties} }};\n}})();"


def _pairs(names: str) -> list[tuple[str, str]]:
    """The names in braces: each inside the module, and as others import it."""
    each = [part.split(" as ") for part in names.split(",") if part.strip()]
    return [(pair[0].strip(), pair[-1].strip()) for pair in each]


def _resolved(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))

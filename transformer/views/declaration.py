"""How a view declares itself: its name, its parameters, its pictures.

A folder of `transformer/views/` (or of `--views`) holds the views of one question: each a module,
or the folder's `__init__.py`, with a function decorated with `view`, or a `VIEW` that says more.
From it follow a view's place on the page, its fields of a share link, its API, and the table of its
numbers. NAME.js in the folder draws it in place of the page; NAME.css and LANGUAGE.po are found
there too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

from transformer.analysis.model_queries import ModelQueries
from transformer.checks import check_names
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.views.parameters import (
    Bool,
    Choice,
    Int,
    IntList,
    Number,
    Parameter,
    Range,
    Text,
)

Subject = Literal["run", "batch", "run or batch", "model", "runs"]
Answer = dict[str, Any]  # plain values, figures and arrays


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A figure of a run, its numbers, or both.

    figure: the pure function behind it, for Python; None where there are only numbers. answer: (its
    subject, **parameters) -> Answer, what the page and programs get; by default {"figure":
    figure(...)}. subject: a run, a batch, either of them, a model's name alone, or several runs by
    their ids. network: it runs the network again, so it takes an `analysis.ModelQueries` as its
    first argument and waits in the server's queue. lens: its run must have its lens, which that
    queue computes first. idle: it is slow and requested only when the page is idle.
    """

    name: str
    title: str = ""
    help: str = ""
    figure: Callable[..., go.Figure] | None = None
    answer: Callable[..., Answer] | None = None
    subject: Subject = "run"
    parameters: tuple[Parameter, ...] = ()
    network: bool = False
    lens: bool = False
    idle: bool = False

    def checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter with its value.

        Raises ValueError for unknown names and wrong values.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        check_names(self.name, values, parameters)
        defaults = {name: parameter.default for name, parameter in parameters.items()}
        return defaults | {name: parameters[name].check(value) for name, value in values.items()}

    def ask(self, *of: Any, given: Mapping[str, Any]) -> Answer:
        """The answer about a run, batch or model; figures have the light theme.

        Raises ValueError for a wrong parameter.
        """
        values = self.checked(given)
        if self.answer is not None:
            return self.answer(*of, **values)
        assert self.figure is not None
        return {"figure": self.figure(*of, **values)}

    def schema(self) -> dict[str, Any]:
        """The declaration as plain values."""
        return {
            "name": self.name, "title": self.title, "help": self.help, "takes": self.subject,
            "network": self.network, "idle": self.idle,
            "parameters": [parameter.schema() for parameter in self.parameters],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A part of the page: one question, with its pictures.

    tab: its tab, e.g. "Prediction"; a new name makes a new tab. order: of the tab's views; tabs
    come in the order of their first view. folded: closed until the visitor opens it by its title.
    predicts: it needs a head that predicts tokens; without one the page says so instead.
    parameters: of its controls, besides its pictures' parameters. folder: where it was found.
    """

    name: str
    tab: str
    order: int = 1000
    folded: bool = False
    predicts: bool = False
    title: str
    help: str
    pictures: tuple[Picture, ...]
    parameters: tuple[Parameter, ...] = ()
    folder: Path = Path()

    def has_script(self) -> bool:
        """Whether it draws itself; else the page does."""
        return (self.folder / f"{self.name}.js").is_file()

    def controls(self) -> dict[str, Parameter]:
        """The visitor's choices, each once, by field of a share link."""
        every = (*self.parameters, *(p for each in self.pictures for p in each.parameters))
        choices = {p.name: p for p in reversed(every) if p.use in ("control", "place")}
        return {p.link or f"{self.name}.{p.name}": p for p in reversed(choices.values())}

    def schema(self) -> dict[str, Any]:
        """The declaration as plain values, for the page and for programs."""
        return {
            "name": self.name, "tab": self.tab, "title": self.title,
            "help": self.help, "script": self.has_script(),
            "controls": {link: p.schema() for link, p in self.controls().items()},
            "pictures": [picture.schema() for picture in self.pictures],
        }  # fmt: skip


Function = TypeVar("Function", bound=Callable[..., Any])
SUBJECTS: dict[Any, Subject] = {
    Run: "run",
    Batch: "batch",
    Run | Batch: "run or batch",
    str: "model",
}
PARAMETERS: dict[Any, type[Parameter]] = {
    int: Int, float: Number, bool: Bool, str: Text, list[int]: IntList,
}  # fmt: skip


def view(
    *, tab: str, figure: Callable[..., go.Figure] | None = None, **more: Any
) -> Callable[[Function], Function]:
    """Declare the view of the decorated function: one picture, as `picture` declares it.

    Its name is the picture's, its title the first line of the docstring, its help what follows.
    figure: as in `picture`. more: other fields of `View`.
    """

    def declare(function: Function) -> Function:
        title, _, text = (inspect.getdoc(function) or "").partition("\n")
        words = {"title": title.rstrip("."), "help": " ".join(text.split())} | more
        only_picture = picture(function, figure=figure, title=words["title"], help=words["help"])
        function.view = View(name=only_picture.name, tab=tab, pictures=(only_picture,), **words)  # type: ignore[attr-defined]
        return function

    return declare


def picture(
    function: Callable[..., Any],
    *,
    name: str = "",
    figure: Callable[..., go.Figure] | None = None,
    **more: Any,
) -> Picture:
    """A picture as its function's signature declares it.

    function: gives the figure, or an Answer about what `figure` shows. It takes the run, the batch
    or a model's name, or two runs; before them the `ModelQueries`, if it runs the network again.
    Each parameter with an `Annotated` type is one of the picture: of the type, the words and the
    range or choices in its annotation, such as `Annotated[int, "Longer than", Range(0, 20)] = 0` or
    `Annotated[str, "Counted in", {"bytes": "bytes"}] = "bytes"`, or a `Parameter` to take as it is.
    name: by default the function's, without "answer_". more: other fields of `Picture`.
    """
    hints = get_type_hints(function, include_extras=True)
    arguments = list(inspect.signature(function).parameters.values())
    of = [
        argument for argument in arguments if get_origin(hints.get(argument.name)) is not Annotated
    ]
    subjects = [hints[argument.name] for argument in of if argument.default is argument.empty]
    network = subjects[:1] == [ModelQueries]
    if hints["return"] is go.Figure:
        figure = function
    else:
        more["answer"] = function
    runs = subjects[network:] == [Run, Run]
    if not runs and (len(subjects) != network + 1 or subjects[network] not in SUBJECTS):
        raise ValueError(
            f"{function.__name__} must take one run, batch or model's name, or two runs, and any "
            f"other parameter needs a default or Annotated; got {of}"
        )
    return Picture(
        name=name or function.__name__.removeprefix("answer_"),
        figure=figure,
        subject="runs" if runs else SUBJECTS[subjects[network]],
        network=network,
        parameters=tuple(
            _parameter(argument, hints[argument.name])
            for argument in arguments
            if argument not in of
        ),
        **more,
    )


def _parameter(of: inspect.Parameter, hint: Any) -> Parameter:
    kind, *notes = get_args(hint)
    facts: dict[str, Any] = {"name": of.name, "optional": type(None) in get_args(kind)}
    if of.default is not of.empty:
        facts["default"] = of.default
    declared = next((note for note in notes if isinstance(note, Parameter)), None)
    if declared is not None:
        return replace(declared, **facts)
    parameter_type = PARAMETERS[kind]
    for note in notes:
        if isinstance(note, str):
            facts["title"] = note
        elif isinstance(note, Range):
            facts |= {"least": note.least, "most": note.most}
        else:
            parameter_type, facts["options"] = Choice, note
    return parameter_type(**facts)


def tabs(views: Iterable[View]) -> dict[str, list[View]]:
    """The page's tabs with their views, both in their order."""
    by_tab: dict[str, list[View]] = {}
    for view in sorted(views, key=lambda view: (view.order, view.name)):
        by_tab.setdefault(view.tab, []).append(view)
    return by_tab


def tab_name(tab: str) -> str:
    """A tab's name in links and to the page's scripts, whatever the page's language."""
    return re.sub(r"[\W_]+", "-", tab.lower()).rstrip("-")


def is_figure(value: Any) -> bool:
    """Whether a value of an answer is a figure."""
    return isinstance(value, BaseFigure)  # go.Figure is looked up anew at each use

"""What is learned, one file a task; a recipe names it."""

from transformer.training.tasks.fill_in import FillIn
from transformer.training.tasks.language_model import LanguageModel
from transformer.training.tasks.task import Row, Task
from transformer.training.tasks.translation import Translation

TASKS: dict[str, type[LanguageModel] | type[Translation]] = {
    "language-model": LanguageModel,
    "translation": Translation,
    "fill-in": FillIn,
}

__all__ = ["TASKS", "FillIn", "LanguageModel", "Row", "Task", "Translation"]

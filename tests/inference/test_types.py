"""A program that `mypy --strict` accepts also runs, and what it refuses is refused."""

import runpy
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "typed" / "user.py"


def test_the_typed_program_of_a_user_runs(capsys):
    named = runpy.run_path(str(PROGRAM))
    assert named["effect"].change.shape == (6, 4)
    assert named["several"].ids.tolist() == [[3, 4], [5, 6]]
    assert capsys.readouterr().out

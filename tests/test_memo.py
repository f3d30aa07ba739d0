"""What is worked out of a run is kept with it, and not without end."""

from transformer.runs import memo
from transformer.runs.memo import remembered


def test_numbers_of_a_run_are_worked_out_once_and_only_the_latest_are_kept(tiny_model, monkeypatch):
    monkeypatch.setattr(memo, "MOST", 3)
    run, made = tiny_model.trace("a"), []

    def asked(key):
        return remembered(run, key, lambda: made.append(key) or key)

    assert [asked(key) for key in "abacadab"] == list("abacadab")
    assert "".join(made) == "abcdb"  # b went when d came
    assert list(memo._kept[run]) == ["d", "a", "b"]

"""What each head does over many texts, not in one sentence alone.

    python -m transformer.analysis.corpus stories --data FILE --out FOLDER

summary.py: the numbers, which may be merged in any order. reading.py: those of one text. parts.py:
a corpus in parts, of which each is worked on by itself. processes.py, with_ray.py: by whom.
over_texts.py: all of it, which goes on where it was interrupted. dossier.py: what was found of each
head, as plain values.
"""

from transformer.analysis.corpus.dossier import dossiers
from transformer.analysis.corpus.over_texts import over_texts
from transformer.analysis.corpus.reading import summary_of
from transformer.analysis.corpus.summary import Summary

__all__ = ["Summary", "dossiers", "over_texts", "summary_of"]

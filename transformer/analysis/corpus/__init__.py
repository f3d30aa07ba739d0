"""What each head does over many texts, not in one sentence alone.

    python -m transformer.analysis.corpus stories --data FILE --out FOLDER

summary.py: the numbers, which may be merged in any order. reading.py: those of one text. parts.py:
a file of texts in parts, by several processes, which goes on where it was interrupted. dossier.py:
what was found of each head, as plain values.
"""

from transformer.analysis.corpus.dossier import dossiers
from transformer.analysis.corpus.parts import over_file
from transformer.analysis.corpus.reading import summary_of
from transformer.analysis.corpus.summary import Summary

__all__ = ["Summary", "dossiers", "over_file", "summary_of"]

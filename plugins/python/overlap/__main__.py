"""Reranks by the words that question and chunk share.

The scores are those of Overlap in plugins/rerank, to the bit.
"""

import re
import unicodedata

from mmplug_plugin import invalid, serve

FUNCTION_WORDS = frozenset("""
a about after again all also am an and any are as at be because been before
being below between both but by can could did do does doing down during each
few for from further had has have having he her here hers him his how i if in
into is it its just me more most my no nor not now of off on once only or other
our ours out over own same she should so some such than that the their theirs
them then there these they this those through to too under until up very was we
were what when where which while who whom why will with would you your yours
""".split())

MEASURES = ("jaccard", "coverage")
UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "HANGUL ", "HALFWIDTH KATAKANA ", "HALFWIDTH HANGUL ")


def unspaced(char):
    """Is it a letter of a script without spaces between words?"""
    return char >= "\u1100" and char.isalpha() and unicodedata.name(char, "").startswith(UNSPACED)


def terms(text):
    """The content terms of a text: words in lower case without English
    function words, and pairs of characters where no spaces part the words."""
    if text.isascii():  # the common case, fast
        return set(re.findall("[a-z0-9]+", text.lower())) - FUNCTION_WORDS
    found = set()
    word, run = "", ""

    def flush():
        nonlocal word, run
        if word and word not in FUNCTION_WORDS:
            found.add(word)
        if len(run) == 1:
            found.add(run)
        found.update(run[i : i + 2] for i in range(len(run) - 1))
        word, run = "", ""

    for char in text:
        kind = unicodedata.category(char)[0]
        if unspaced(char):
            if word:
                flush()
            run += char
        elif kind in "LN" or kind == "M" and word:
            if run:
                flush()
            lower = char.lower()
            word += lower if len(lower) == 1 else lower[0]
        else:
            flush()
    flush()
    return found


class Overlap:
    measure = "jaccard"

    def configure(self, config):
        unknown = [key for key in config if key != "measure"]
        if unknown:
            raise invalid(f"{unknown[0]!r} is unknown: the only key is 'measure'")
        measure = config.get("measure", "jaccard")
        if measure not in MEASURES:
            raise invalid(f"measure is {measure!r}: it must be one of {', '.join(MEASURES)}")
        self.measure = measure

    def Rerank(self, request, response, context):
        question = terms(request.query.text)
        seen, scored = set(), []
        for i, candidate in enumerate(request.candidates):
            if not context.is_active():
                return  # nobody waits for the answer
            if not candidate.chunk_id:
                raise invalid(f"candidate {i}: empty chunk ID", "empty chunk ID")
            if candidate.chunk_id in seen:
                raise invalid(f"candidate {i}: chunk {candidate.chunk_id!r} is given twice", "duplicate candidate")
            seen.add(candidate.chunk_id)
            chunk = terms(candidate.text)
            shared = len(question & chunk)
            of = len(question) if self.measure == "coverage" else len(question | chunk)
            scored.append((shared / of if shared else 0.0, candidate.chunk_id))
        scored.sort(key=lambda pair: -pair[0])  # stable
        for score, chunk_id in scored:
            response.scores.add(chunk_id=chunk_id, score=score)


if __name__ == "__main__":
    overlap = Overlap()
    serve(
        "overlap-python",
        "1.0.0",
        {"Reranker": overlap},
        description="reranks by the words that question and chunk share",
        config_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "measure": {"type": "string", "enum": list(MEASURES), "default": "jaccard", "description": "how an overlap becomes a score"},
            },
        },
        configure=overlap.configure,
    )

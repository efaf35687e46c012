"""Trains the small tokenizers of this directory and writes what they make of texts.

Needs the Python packages tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf. Run it here: python3 generate.py
For every tokenizer NAME: NAME.json, and in NAME.golden.jsonl the tokens [ID, first byte, last byte + 1] of each text
in texts.jsonl. Training is not deterministic, so the tokenizers, and the
output of an example, change with every run.
"""
import json
import random
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as spm_pb
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers as n, pre_tokenizers as p, trainers

SENTENCES = [line for line in """The retriever returns twenty candidates and the decoder keeps one of them for every turn.
A turn that has no candidates is a gap; the path goes on behind it and nothing is lost.
Map matching puts a noisy track on a road network. The conversation is the track, the corpus the road.
Die Straße führt über die Brücke zum Fluß, und der Hörer fragt: „Wie weit noch?“ Äpfel, Öl, Übermut.
El niño comió piñas en la montaña; ¿cuántos años tenía? ¡Muchísimos!
Où est la bibliothèque ? L'été dernier, j'ai vu un cœur naïf à l'hôtel.
Мы ищем дорогу через лес, а ответ лежит на карте. Ещё один вопрос остаётся открытым.
Η διαδρομή είναι μακρά, αλλά ο χάρτης βοηθά. Ποιος ρωτά;
今天我们讨论地图匹配，把对话看成轨迹，把语料库看成道路网络。检索与解码要一起考虑。
故乡的路很长，雨后的桥上没有人。问题是：下一步去哪里？
日本語の文章では、ひらがなとカタカナと漢字が混ざります。東京タワーは高いです。
한국어 문장도 있습니다. 지도와 대화를 맞추는 방법을 설명합니다.
الطريق طويل والخريطة واضحة. هل نصل قبل المساء؟
हम नक्शे पर रास्ता ढूँढते हैं। यह वाक्य हिन्दी में है।
แผนที่ช่วยให้เราหาทางได้ ถนนยาวมาก
def score(path, beta=1.0):\n    return sum(s for s in path) - beta * 42\n
x = 3.14159; y = x * 2; print("total:", x + y)  # 2024-05-17, 10,000 nodes, 99%
if (a != b && c <= d) { return list[i++] << 2; } else { throw new Error("no road"); }
Distances of 4 km and 12.5 km are within reach; 1/2 of them aren't. It's what we've got, they'll say.
Emoji: 🚀 🗺️ 👍🏽 👨‍👩‍👧 🇩🇪 and symbols → ± ≤ ∑ © ™ ½ ² ﬁ ﬂ Ａ１ Ⅳ ㌔ …
""".split("\n") if line]
CORPUS = SENTENCES * 4


def save(name, tokenizer, changes=None):
    """Keeps a tokenizer, with changes to its model."""
    content = json.loads(tokenizer.to_str())
    content["model"].update(changes or {})
    TOKENIZERS[name] = Tokenizer.from_str(json.dumps(content))


TOKENIZERS = {}


def wordpiece(**options):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=24))
    t.normalizer = n.BertNormalizer(**options)
    t.pre_tokenizer = p.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=560, special_tokens=special, show_progress=False))
    return t


def bpe(size, special, model=None, normalizer=None, pre_tokenizer=None, **options):
    t = Tokenizer(models.BPE(**(model or {})))
    if normalizer:
        t.normalizer = normalizer
    if pre_tokenizer:
        t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **options))
    return t


def charsmap_and_pieces():
    """A Unigram model with a small table of replacements of its own."""
    rules = [("ﬁ", "fi"), ("ﬂ", "fl"), ("½", "1/2"), ("²", "2"), ("…", "..."), ("Ⅳ", "IV"), ("㌔", "キロ"), ("™", "TM"),
             ("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\u200b", ""), ("\u0007", ""), ("e\u0301", "é"),
             ("a\u0308", "ä"), ("u\u0308", "ü"), ("가\u11a8", "각"), ("か\u3099", "が")]
    rules += [(chr(0xFF01 + i), chr(0x21 + i)) for i in range(94)]
    points = lambda s: " ".join("%X" % ord(c) for c in s)
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/rules.tsv", "w") as f:
            f.writelines(points(a) + "\t" + points(b) + "\n" for a, b in rules)
        with open(d + "/corpus.txt", "w") as f:
            f.write("\n".join(CORPUS))
        sentencepiece.SentencePieceTrainer.train(
            input=d + "/corpus.txt", model_prefix=d + "/m", vocab_size=660, model_type="unigram", hard_vocab_limit=False,
            character_coverage=1.0, minloglevel=2, normalization_rule_tsv=d + "/rules.tsv")
        m = spm_pb.ModelProto()
        m.ParseFromString(open(d + "/m.model", "rb").read())
    return bytes(m.normalizer_spec.precompiled_charsmap), [(x.piece, x.score) for x in m.pieces]


def unigram(pieces, normalizer, pre_tokenizer, byte_fallback=False):
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=byte_fallback))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    return t


t = wordpiece(lowercase=True)
t.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
t.add_tokens([AddedToken("Rover", single_word=True), AddedToken("<TAB>", lstrip=True, rstrip=True, normalized=False),
              AddedToken("Große Fahrt")])
save("wordpiece-uncased", t)
save("wordpiece-cased", wordpiece(lowercase=False, strip_accents=False))

END, BYTES = ["<|end|>"], p.ByteLevel.alphabet()
save("bpe-bytelevel", bpe(440, END, pre_tokenizer=p.ByteLevel(add_prefix_space=False), initial_alphabet=BYTES))
save("bpe-bytelevel-nfc-prefix", bpe(440, END, normalizer=n.NFC(), pre_tokenizer=p.ByteLevel(add_prefix_space=True),
                                     initial_alphabet=BYTES))
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
save("bpe-split-regex", bpe(440, END, initial_alphabet=BYTES, pre_tokenizer=p.Sequence(
    [p.Split(Regex(WORDS), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)])), {"ignore_merges": True})
t = bpe(260, ["<unk>", "<s>", "</s>"], {"unk_token": "<unk>", "fuse_unk": True},
        n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]), limit_alphabet=120, max_token_length=12)
save("bpe-fuse-unk", t)
vocab = json.loads(t.to_str())["model"]["vocab"]
vocab.update({"<0x%02X>" % i: len(vocab) + i for i in range(256)})
save("bpe-byte-fallback", t, {"vocab": vocab, "byte_fallback": True})
save("bpe-clip", bpe(660, END, {"unk_token": "<|end|>", "end_of_word_suffix": "</w>", "continuing_subword_prefix": ""},
                     n.Sequence([n.NFC(), n.Replace(Regex(r"\s+"), " "), n.Lowercase()]),
                     p.Sequence([p.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
                                 p.ByteLevel(add_prefix_space=False)]),
                     end_of_word_suffix="</w>", initial_alphabet=BYTES))
save("bpe-whitespace-digits", bpe(260, ["[UNK]"], {"unk_token": "[UNK]", "continuing_subword_prefix": "##"},
                                  n.Sequence([n.NFKD(), n.StripAccents(), n.Lowercase()]),
                                  p.Sequence([p.Whitespace(), p.Digits(individual_digits=True)]),
                                  continuing_subword_prefix="##", limit_alphabet=60))

charsmap, pieces = charsmap_and_pieces()
save("unigram-xlmr", unigram(pieces, n.Sequence([n.Precompiled(charsmap), n.Replace(Regex(" {2,}"), " ")]),
                             p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="always")])))
save("unigram-t5", unigram(pieces, n.Precompiled(charsmap), p.Metaspace(prepend_scheme="always")))
save("unigram-byte-fallback", unigram(pieces + [("<0x%02X>" % i, 0.0) for i in range(256)], n.NFKC(),
                                      p.Metaspace(prepend_scheme="first", split=False), True))
save("unigram-nmt", unigram(pieces, n.Sequence([n.Nmt(), n.NFD(), n.Strip(), n.Lowercase()]),
                            p.Sequence([p.Metaspace(prepend_scheme="never"), p.Punctuation("contiguous"), p.Digits()])))

BLOCKS = [(0x20, 0x7E)] * 6 + [
    (0, 0x20), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x4FF), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F),
    (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x209F), (0x2100, 0x218F), (0x2200, 0x22FF), (0x2460, 0x24FF),
    (0x3000, 0x30FF), (0x3300, 0x33FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFB06),
    (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1F64F), (0x20000, 0x2A6D0)]
SPECIAL = [
    "[MASK]", " [MASK] ", "Rover", "xRover ", " Rover ", " <TAB> ", "große fahrt", "Große Fahrt", "<s>", "<unk>", "<|end|>",
    "\r\n", "\n\n", "   ", "\u00a0", "\u3000", "\u200b", "e\u0301", "a\u0323\u0301", "\u0301", "가\u11a8", "か\u3099", "ﬁ", "½", "İ", "ß",
    "Σς", "👨‍👩‍👧", "🇩🇪🇫🇷", "'s", "'LL", "▁", "Ġ", "1234567", "12.5", "...", "\t", "\x00", "\ufffd", "\ufeff", "ﷺ"]
R = random.Random(7)


def mixture():
    out = []
    for _ in range(R.randint(1, 14)):
        kind = R.random()
        if kind < 0.45:
            out.append(R.choice(R.choice(SENTENCES).split()) + R.choice(["", " ", " ", " "]))
        elif kind < 0.7:
            out.append(R.choice(SPECIAL))
        else:
            low, high = R.choice(BLOCKS)
            out += [c for c in (chr(R.randint(low, high)) for _ in range(R.randint(1, 5))) if unicodedata.category(c) != "Cn"]
    return "".join(out)


texts = ["", " ", "\n", "\n\n\n", "a"] + SENTENCES[:1] + SENTENCES[3:5] + SENTENCES[8:10] + SENTENCES[13:16]
texts += [mixture() for _ in range(24)]
with open("texts.jsonl", "w") as f:
    f.writelines(json.dumps(x, ensure_ascii=False) + "\n" for x in texts)
for name, t in TOKENIZERS.items():
    with open(name + ".json", "w") as f:
        f.write(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    with open(name + ".golden.jsonl", "w") as f:
        for x in texts:
            e = t.encode(x, add_special_tokens=False)
            at = lambda i: len(x[:i].encode())
            tokens = [[i, at(a), at(b)] for i, (a, b) in zip(e.ids, e.offsets)]
            f.write(json.dumps(tokens, separators=(",", ":")) + "\n")

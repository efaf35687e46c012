// Package tokenizer cuts text into the tokens of a language or embedding model,
// from the tokenizer.json file that Hugging Face tokenizers write.
//
// It is an interpreter of the parts of that format that decide which tokens a
// text has and where they lie in it:
//
//   - models WordPiece, BPE (byte-level, with byte fallback, with prefix and
//     suffix), Unigram (SentencePiece, as in XLM-R and T5) and WordLevel;
//   - normalizers BertNormalizer, NFC, NFD, NFKC, NFKD, Nmt, Lowercase,
//     StripAccents, Strip, Prepend, Replace, Precompiled and Sequence;
//   - pre-tokenizers BertPreTokenizer, Whitespace, WhitespaceSplit, ByteLevel,
//     Metaspace, Split, Punctuation, Digits, CharDelimiterSplit and Sequence;
//   - added tokens with all their flags.
//
// A file with anything else is refused with the name of the component. The
// post-processor is read only when [Tokenizer.Special] is asked for the special
// tokens around a text; truncation, padding and the decoder are not looked at.
// So offsets are those before a post-processor trims white space off them, and
// the tokens of a text touch wherever the model lets them.
//
// Why not a library: those that read the format without C code were tried
// against the reference implementation and gave other tokens for most texts
// beyond plain English, panicked on some, or read one model only. The tests
// compare with tokens of the reference implementation.
//
// Regular expressions in a file are those of Oniguruma, which are translated
// for package regexp. Look-around, anchors of words, and classes inside
// classes are refused, but for the one look-ahead that nearly all byte-level
// tokenizers end in.
//
// Characters are sorted and normalised by the Unicode tables of the Go release,
// which are newer than the reference implementation's: text in characters
// younger than Unicode 9 may have other tokens here. Where a normaliser drops
// characters at the beginning of a text, offsets here point at the characters
// that were kept.
package tokenizer

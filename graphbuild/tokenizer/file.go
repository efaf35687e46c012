package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Load reads a tokenizer.json file and checks that its SHA-256, in
// hexadecimal, is wantSHA256. Another hash is an error that wraps
// [mapmatched.ErrStaleIndex] and has both. An empty wantSHA256 is an error too,
// which says the hash of the file; see [Parse] for the rest.
func Load(path, wantSHA256 string) (*Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if err := checkPointer(data); err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	switch got := hash(data); {
	case wantSHA256 == "":
		return nil, fmt.Errorf("tokenizer %s: no SHA-256 to check it by; pin the one it has, %s", path, got)
	case !strings.EqualFold(wantSHA256, got):
		return nil, fmt.Errorf("%w: tokenizer %s has SHA-256 %s, want %s; get the pinned file, or pin this one and index again",
			mapmatched.ErrStaleIndex, path, got, wantSHA256)
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	return t, nil
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func checkPointer(data []byte) error {
	if bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) {
		return errors.New("the file is a Git LFS pointer, not the tokenizer; run git lfs pull")
	}
	return nil
}

// file is a tokenizer.json. What does not change tokens without special ones
// is not read, but for the post-processor by [Tokenizer.Special].
type file struct {
	Version       string          `json:"version"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	Model         json.RawMessage `json:"model"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
}

// Parse makes a tokenizer from the content of a tokenizer.json file. Truncated
// content, a Git LFS pointer in its place, and whatever the package does not
// support are errors; the latter name the component.
func Parse(data []byte) (*Tokenizer, error) {
	if err := checkPointer(data); err != nil {
		return nil, err
	}
	var f file
	if err := strict(data, &f); err != nil {
		var syntax *json.SyntaxError
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
			errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
			return nil, fmt.Errorf("the file ends in the middle, after %d bytes; download it again", len(data))
		}
		return nil, fmt.Errorf("not a tokenizer.json file: %w", err)
	}
	if f.Version != "1.0" {
		return nil, fmt.Errorf("version is %q, want \"1.0\"; use a newer mmplug or an older file", f.Version)
	}
	if absent(f.Model) {
		return nil, errors.New("the file has no model; export the tokenizer again")
	}
	m, find, err := parseModel(f.Model)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	t := &Tokenizer{sha256: hash(data), model: m, special: f.PostProcessor}
	if t.normalize, err = parseNormalizer(f.Normalizer, 0); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.cut, err = parsePretokenizer(f.PreTokenizer, 0); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	var raw, cooked []addedToken
	for _, a := range f.AddedTokens {
		if id, ok := find(a.Content); ok && int(id) != a.ID || a.ID < 0 || a.ID > math.MaxInt32 {
			return nil, fmt.Errorf("added token %q has ID %d, which is not that of the vocabulary; export the tokenizer again", a.Content, a.ID)
		}
		if a.Normalized {
			cooked = append(cooked, a)
		} else {
			raw = append(raw, a)
		}
	}
	t.raw, t.cooked = newAddedTokens(raw, nil), newAddedTokens(cooked, t.normalize)
	return t, nil
}

// strict decodes one JSON value and refuses keys that are not known.
func strict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fmt.Errorf("more data after the value, at byte %d; download the file again", decoder.InputOffset())
	}
	return nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// typeOf returns the type that a component says it is of.
func typeOf(raw json.RawMessage) (string, error) {
	var c struct{ Type string }
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", err
	}
	return c.Type, nil
}

// maxDepth is how deep sequences may be nested.
const maxDepth = 8

func parseNormalizer(raw json.RawMessage, depth int) (normalizer, error) {
	if absent(raw) {
		return sequence(nil), nil
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	var c struct {
		Type                string
		Normalizers         []json.RawMessage `json:"normalizers"`
		CleanText           *bool             `json:"clean_text"`
		HandleChineseChars  *bool             `json:"handle_chinese_chars"`
		StripAccents        *bool             `json:"strip_accents"`
		Lowercase           *bool             `json:"lowercase"`
		StripLeft           *bool             `json:"strip_left"`
		StripRight          *bool             `json:"strip_right"`
		Prepend             string            `json:"prepend"`
		Pattern             json.RawMessage   `json:"pattern"`
		Content             string            `json:"content"`
		PrecompiledCharsmap *[]byte           `json:"precompiled_charsmap"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	switch kind {
	case "Sequence":
		if depth == maxDepth {
			return nil, fmt.Errorf("sequences are nested more than %d deep; flatten them", maxDepth)
		}
		steps := make([]normalizer, len(c.Normalizers))
		for i, step := range c.Normalizers {
			if steps[i], err = parseNormalizer(step, depth+1); err != nil {
				return nil, fmt.Errorf("step %d: %w", i, err)
			}
		}
		return sequence(steps), nil
	case "BertNormalizer":
		lower := or(c.Lowercase, true)
		return bertNormalizer(or(c.CleanText, true), or(c.HandleChineseChars, true), or(c.StripAccents, lower), lower), nil
	case "NFC":
		return form(nfc), nil
	case "NFD":
		return form(nfd), nil
	case "NFKC":
		return form(nfkc), nil
	case "NFKD":
		return form(nfkd), nil
	case "Nmt":
		return nmt(), nil
	case "Lowercase":
		return lowercase, nil
	case "StripAccents":
		return stripAccents(), nil
	case "Strip":
		return strip(or(c.StripLeft, true), or(c.StripRight, true)), nil
	case "Prepend":
		return prepend(c.Prepend), nil
	case "Replace":
		p, err := parsePattern(c.Pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		return replace(p, c.Content), nil
	case "Precompiled":
		if c.PrecompiledCharsmap == nil {
			return nil, fmt.Errorf("%s has no precompiled_charsmap; export the tokenizer again", kind)
		}
		if len(*c.PrecompiledCharsmap) == 0 {
			return sequence(nil), nil
		}
		m, err := parseCharsmap(*c.PrecompiledCharsmap)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		return m.normalize, nil
	}
	return nil, fmt.Errorf("the type %q is not supported; use a tokenizer whose normalizer is Sequence, BertNormalizer, NFC, NFD, NFKC, NFKD, Nmt, Lowercase, StripAccents, Strip, Prepend, Replace or Precompiled", kind)
}

func or(p *bool, otherwise bool) bool {
	if p == nil {
		return otherwise
	}
	return *p
}

func parsePretokenizer(raw json.RawMessage, depth int) (pretokenizer, error) {
	if absent(raw) {
		return pretokenizers(nil), nil
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, err
	}
	var c struct {
		Type             string
		Pretokenizers    []json.RawMessage `json:"pretokenizers"`
		Pattern          json.RawMessage   `json:"pattern"`
		Behavior         *behavior         `json:"behavior"`
		Invert           bool              `json:"invert"`
		IndividualDigits bool              `json:"individual_digits"`
		Delimiter        string            `json:"delimiter"`
		AddPrefixSpace   *bool             `json:"add_prefix_space"`
		TrimOffsets      *bool             `json:"trim_offsets"` // of the special tokens' processor
		UseRegex         *bool             `json:"use_regex"`
		Replacement      string            `json:"replacement"`
		StrRep           string            `json:"str_rep"` // the same again, in old files
		PrependScheme    *string           `json:"prepend_scheme"`
		Split            *bool             `json:"split"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	b := isolated
	if c.Behavior != nil {
		b = *c.Behavior
	}
	if !b.known() {
		return nil, fmt.Errorf("%s: behavior %q is not supported; want Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", kind, b)
	}
	switch kind {
	case "Sequence":
		if depth == maxDepth {
			return nil, fmt.Errorf("sequences are nested more than %d deep; flatten them", maxDepth)
		}
		steps := make([]pretokenizer, len(c.Pretokenizers))
		for i, step := range c.Pretokenizers {
			if steps[i], err = parsePretokenizer(step, depth+1); err != nil {
				return nil, fmt.Errorf("step %d: %w", i, err)
			}
		}
		return pretokenizers(steps), nil
	case "BertPreTokenizer":
		return bertPretokenizer(), nil
	case "Whitespace":
		return whitespace(), nil
	case "WhitespaceSplit":
		return whitespaceSplit(), nil
	case "ByteLevel":
		return byteLevel(or(c.AddPrefixSpace, true), !or(c.UseRegex, true))
	case "Punctuation":
		return split(runes(isPunctuation), b, false), nil
	case "Digits":
		return digits(c.IndividualDigits), nil
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(c.Delimiter) != 1 {
			return nil, fmt.Errorf("%s: delimiter is %q, want one character", kind, c.Delimiter)
		}
		return split(literal(c.Delimiter), removed, false), nil
	case "Split":
		p, err := parsePattern(c.Pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		return split(p, b, c.Invert), nil
	case "Metaspace":
		scheme := "always"
		if !or(c.AddPrefixSpace, true) {
			scheme = "never"
		}
		if c.PrependScheme != nil {
			scheme = *c.PrependScheme
		}
		if scheme != "always" && scheme != "first" && scheme != "never" {
			return nil, fmt.Errorf("%s: prepend_scheme is %q, want always, first or never", kind, scheme)
		}
		if utf8.RuneCountInString(c.Replacement) != 1 {
			return nil, fmt.Errorf("%s: replacement is %q, want one character", kind, c.Replacement)
		}
		return metaspace(c.Replacement, scheme, or(c.Split, true)), nil
	}
	return nil, fmt.Errorf("the type %q is not supported; use a tokenizer whose pre_tokenizer is Sequence, BertPreTokenizer, Whitespace, WhitespaceSplit, ByteLevel, Metaspace, Punctuation, Digits, CharDelimiterSplit or Split", kind)
}

// parsePattern reads {"String": …} or {"Regex": …}.
func parsePattern(raw json.RawMessage) (pattern, error) {
	if absent(raw) {
		return nil, errors.New("there is no pattern; export the tokenizer again")
	}
	var p struct{ String, Regex string }
	if err := strict(raw, &p); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case p.String != "" && p.Regex == "":
		return literal(p.String), nil
	case p.Regex != "" && p.String == "":
		return compile(p.Regex)
	}
	return nil, fmt.Errorf("pattern %s: want one String or Regex that is not empty", raw)
}

// lookup finds the ID of a text in the vocabulary.
type lookup func(string) (int32, bool)

func parseModel(raw json.RawMessage) (model, lookup, error) {
	kind, err := modelType(raw)
	if err != nil {
		return nil, nil, err
	}
	var m model
	var find lookup
	switch kind {
	case "WordPiece":
		m, find, err = parseWordPiece(raw)
	case "WordLevel":
		m, find, err = parseWordLevel(raw)
	case "BPE":
		m, find, err = parseBPE(raw)
	case "Unigram":
		m, find, err = parseUnigram(raw)
	default:
		return nil, nil, fmt.Errorf("the type %q is not supported; use a tokenizer whose model is WordPiece, BPE, Unigram or WordLevel", kind)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	return m, find, nil
}

// modelType guesses the type from the keys where an old file does not say it.
func modelType(raw json.RawMessage) (string, error) {
	kind, err := typeOf(raw)
	if err != nil || kind != "" {
		return kind, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return "", err
	}
	for _, known := range [][2]string{
		{"merges", "BPE"}, {"unk_id", "Unigram"}, {"max_input_chars_per_word", "WordPiece"}, {"vocab", "WordLevel"},
	} {
		if keys[known[0]] != nil {
			return known[1], nil
		}
	}
	return "", nil
}

func parseWordLevel(raw json.RawMessage) (model, lookup, error) {
	var c struct {
		Type  string
		Vocab map[string]int32 `json:"vocab"`
		Unk   string           `json:"unk_token"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, nil, err
	}
	if err := checkIDs(c.Vocab); err != nil {
		return nil, nil, err
	}
	unk, ok := c.Vocab[c.Unk]
	if !ok {
		unk = -1
	}
	return &wordLevel{c.Vocab, unk}, in(c.Vocab), nil
}

func parseWordPiece(raw json.RawMessage) (model, lookup, error) {
	var c struct {
		Type     string
		Vocab    map[string]int32 `json:"vocab"`
		Unk      *string          `json:"unk_token"`
		Prefix   *string          `json:"continuing_subword_prefix"`
		MaxRunes *int             `json:"max_input_chars_per_word"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, nil, err
	}
	if err := checkIDs(c.Vocab); err != nil {
		return nil, nil, err
	}
	unk, prefix, maxRunes := "[UNK]", "##", 100
	if c.Unk != nil {
		unk = *c.Unk
	}
	if c.Prefix != nil {
		prefix = *c.Prefix
	}
	if c.MaxRunes != nil {
		maxRunes = *c.MaxRunes
	}
	id, ok := c.Vocab[unk]
	if !ok {
		return nil, nil, fmt.Errorf("the unknown token %q is not in the vocabulary; export the tokenizer again", unk)
	}
	return newWordPiece(c.Vocab, prefix, id, maxRunes), in(c.Vocab), nil
}

func parseBPE(raw json.RawMessage) (model, lookup, error) {
	var c struct {
		Type         string
		Dropout      *float64          `json:"dropout"`
		Unk          string            `json:"unk_token"`
		Prefix       string            `json:"continuing_subword_prefix"`
		Suffix       string            `json:"end_of_word_suffix"`
		FuseUnk      bool              `json:"fuse_unk"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Vocab        map[string]int32  `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, nil, err
	}
	if c.Dropout != nil && *c.Dropout != 0 {
		return nil, nil, fmt.Errorf("dropout is %v, which makes tokens random; set it to null", *c.Dropout)
	}
	if err := checkIDs(c.Vocab); err != nil {
		return nil, nil, err
	}
	list := make([][2]string, len(c.Merges))
	for i, raw := range c.Merges {
		var err error
		if list[i], err = parseMerge(raw); err != nil {
			return nil, nil, fmt.Errorf("merge %d: %w", i, err)
		}
	}
	merges, err := newMerges(c.Vocab, list, c.Prefix)
	if err != nil {
		return nil, nil, err
	}
	m := &bpe{
		vocab: c.Vocab, merges: merges, prefix: c.Prefix, suffix: c.Suffix,
		unk: c.Unk, fuseUnk: c.FuseUnk, ignoreMerges: c.IgnoreMerges,
	}
	if c.ByteFallback {
		m.bytes = newByteTokens(in(c.Vocab))
	}
	return m, in(c.Vocab), nil
}

// parseMerge reads "a b" or ["a", "b"].
func parseMerge(raw json.RawMessage) (pair [2]string, err error) {
	if raw[0] == '[' {
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return pair, err
		}
		if len(list) != 2 {
			return pair, fmt.Errorf("%s is not a pair; export the tokenizer again", raw)
		}
		return [2]string{list[0], list[1]}, nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return pair, err
	}
	left, right, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(right, " ") {
		return pair, fmt.Errorf("%q is not two texts with a space between; export the tokenizer again", s)
	}
	return [2]string{left, right}, nil
}

func parseUnigram(raw json.RawMessage) (model, lookup, error) {
	var c struct {
		Type         string
		UnkID        *int                 `json:"unk_id"`
		Vocab        [][2]json.RawMessage `json:"vocab"`
		ByteFallback bool                 `json:"byte_fallback"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, nil, err
	}
	if len(c.Vocab) == 0 {
		return nil, nil, errors.New("the vocabulary is empty; export the tokenizer again")
	}
	unk := int32(-1)
	if c.UnkID != nil {
		if *c.UnkID < 0 || *c.UnkID >= len(c.Vocab) {
			return nil, nil, fmt.Errorf("unk_id is %d, but the vocabulary has %d entries; export the tokenizer again", *c.UnkID, len(c.Vocab))
		}
		unk = int32(*c.UnkID)
	}
	pieces := make([]string, len(c.Vocab))
	scores := make([]float64, len(c.Vocab))
	for i, v := range c.Vocab {
		if v[0] == nil || v[1] == nil {
			return nil, nil, fmt.Errorf("vocabulary entry %d is not a pair of piece and score; export the tokenizer again", i)
		}
		if err := json.Unmarshal(v[0], &pieces[i]); err != nil {
			return nil, nil, fmt.Errorf("vocabulary entry %d: %w", i, err)
		}
		if err := json.Unmarshal(v[1], &scores[i]); err != nil {
			return nil, nil, fmt.Errorf("vocabulary entry %d: %w", i, err)
		}
	}
	m := newUnigram(pieces, scores, unk, c.ByteFallback)
	return m, func(s string) (int32, bool) {
		id := m.pieces.find(s)
		return id, id >= 0
	}, nil
}

func in(vocab map[string]int32) lookup {
	return func(s string) (int32, bool) {
		id, ok := vocab[s]
		return id, ok
	}
}

// checkIDs reports the entry with the least negative ID, if there is one.
func checkIDs(vocab map[string]int32) error {
	lowest, text := int32(0), ""
	for s, id := range vocab { // the result does not depend on the order
		if id < lowest || id == lowest && id < 0 && s < text {
			lowest, text = id, s
		}
	}
	if lowest < 0 {
		return fmt.Errorf("token %q has ID %d; IDs count from 0", text, lowest)
	}
	return nil
}

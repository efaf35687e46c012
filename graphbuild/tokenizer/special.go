package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Special returns the IDs of the special tokens that the post-processor of the
// file sets before and after a single text, such as [CLS] and [SEP]. A file
// without a post-processor has none.
//
// The post-processors BertProcessing, RobertaProcessing, TemplateProcessing,
// ByteLevel (which adds nothing) and Sequence are read. Others, and templates
// that repeat the text or give a token another type than 0, are errors.
func (t *Tokenizer) Special() (before, after []int, err error) {
	before, after, err = parseSpecial(t.special, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("post_processor: %w", err)
	}
	return before, after, nil
}

// templatePiece is a part of a template: one key and its value.
type templatePiece struct {
	Sequence, SpecialToken *struct {
		ID   string `json:"id"`
		Type int    `json:"type_id"`
	}
}

// templateToken is what a special token of a template stands for.
type templateToken struct {
	ID     string
	IDs    []int `json:"ids"`
	Tokens []string
}

func parseSpecial(raw json.RawMessage, depth int) (before, after []int, err error) {
	if absent(raw) {
		return nil, nil, nil
	}
	kind, err := typeOf(raw)
	if err != nil {
		return nil, nil, err
	}
	var c struct {
		Type           string
		Processors     []json.RawMessage        `json:"processors"`
		Cls            *boundary                `json:"cls"`
		Sep            *boundary                `json:"sep"`
		Single         []templatePiece          `json:"single"`
		Pair           json.RawMessage          `json:"pair"` // of two texts
		SpecialTokens  map[string]templateToken `json:"special_tokens"`
		TrimOffsets    *bool                    `json:"trim_offsets"`
		AddPrefixSpace *bool                    `json:"add_prefix_space"` // of the pre-tokenizer
		UseRegex       *bool                    `json:"use_regex"`        // of the pre-tokenizer
	}
	if err := strict(raw, &c); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	switch kind {
	case "Sequence":
		if depth == maxDepth {
			return nil, nil, fmt.Errorf("sequences are nested more than %d deep; flatten them", maxDepth)
		}
		for i, step := range c.Processors { // each goes around what the ones before it made
			outerBefore, outerAfter, err := parseSpecial(step, depth+1)
			if err != nil {
				return nil, nil, fmt.Errorf("step %d: %w", i, err)
			}
			before, after = slices.Concat(outerBefore, before), slices.Concat(after, outerAfter)
		}
		return before, after, nil
	case "ByteLevel":
		return nil, nil, nil
	case "BertProcessing", "RobertaProcessing":
		if c.Cls == nil || c.Sep == nil {
			return nil, nil, fmt.Errorf("%s lacks cls or sep; export the tokenizer again", kind)
		}
		before, after = []int{int(*c.Cls)}, []int{int(*c.Sep)}
	case "TemplateProcessing":
		before, after, err = template(c.Single, c.SpecialTokens)
	default:
		err = errors.New("the type is not supported; use a tokenizer whose post_processor is BertProcessing, RobertaProcessing, TemplateProcessing, ByteLevel or Sequence")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind, err)
	}
	for _, id := range slices.Concat(before, after) {
		if id < 0 || id > math.MaxInt32 {
			return nil, nil, fmt.Errorf("%s: a special token has ID %d, want 0 to %d; export the tokenizer again", kind, id, math.MaxInt32)
		}
	}
	return before, after, nil
}

// template reads the template of a single text.
func template(pieces []templatePiece, tokens map[string]templateToken) (before, after []int, err error) {
	seen := false
	for i, p := range pieces {
		switch {
		case p.Sequence != nil && p.SpecialToken == nil:
			if p.Sequence.ID != "A" || p.Sequence.Type != 0 || seen {
				return nil, nil, fmt.Errorf("piece %d is text %q of type %d; only text A, once, of type 0 is supported", i, p.Sequence.ID, p.Sequence.Type)
			}
			seen = true
		case p.SpecialToken != nil && p.Sequence == nil:
			token, known := tokens[p.SpecialToken.ID]
			switch {
			case !known:
				return nil, nil, fmt.Errorf("piece %d is the special token %q, which has no entry in special_tokens; export the tokenizer again", i, p.SpecialToken.ID)
			case p.SpecialToken.Type != 0:
				return nil, nil, fmt.Errorf("piece %d gives the special token %q the type %d; only type 0 is supported", i, p.SpecialToken.ID, p.SpecialToken.Type)
			case seen:
				after = append(after, token.IDs...)
			default:
				before = append(before, token.IDs...)
			}
		default:
			return nil, nil, fmt.Errorf("piece %d is not one of Sequence and SpecialToken; export the tokenizer again", i)
		}
	}
	if !seen {
		return nil, nil, errors.New("the template has no place for the text; export the tokenizer again")
	}
	return before, after, nil
}

// boundary is the ID of a special token, given as [text, ID].
type boundary int

// UnmarshalJSON implements json.Unmarshaler.
func (b *boundary) UnmarshalJSON(raw []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("%s is not a pair of a text and an ID; export the tokenizer again", raw)
	}
	var text string
	if err := json.Unmarshal(list[0], &text); err != nil {
		return err
	}
	return json.Unmarshal(list[1], (*int)(b))
}

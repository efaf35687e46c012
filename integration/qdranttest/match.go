package qdranttest

import (
	"slices"
	"strings"

	"github.com/qdrant/go-client/qdrant"
)

// compileMatch compiles a match of one value. The index is a text index on the
// key, or nil.
func compileMatch(in *qdrant.Match, index *payloadIndex) (func(*qdrant.Value) bool, error) {
	switch m := in.GetMatchValue().(type) {
	case *qdrant.Match_Keyword:
		return func(v *qdrant.Value) bool { return oneOf([]string{m.Keyword}, v) }, nil
	case *qdrant.Match_Integer:
		return func(v *qdrant.Value) bool { return oneOfIntegers([]int64{m.Integer}, v) }, nil
	case *qdrant.Match_Boolean:
		return func(v *qdrant.Value) bool {
			b, ok := v.GetKind().(*qdrant.Value_BoolValue)
			return ok && b.BoolValue == m.Boolean
		}, nil
	case *qdrant.Match_Keywords:
		return func(v *qdrant.Value) bool { return oneOf(m.Keywords.GetStrings(), v) }, nil
	case *qdrant.Match_Integers:
		return func(v *qdrant.Value) bool { return oneOfIntegers(m.Integers.GetIntegers(), v) }, nil
	case *qdrant.Match_ExceptKeywords:
		return func(v *qdrant.Value) bool { return !isNull(v) && !oneOf(m.ExceptKeywords.GetStrings(), v) }, nil
	case *qdrant.Match_ExceptIntegers:
		return func(v *qdrant.Value) bool { return !isNull(v) && !oneOfIntegers(m.ExceptIntegers.GetIntegers(), v) }, nil
	case *qdrant.Match_Text:
		if index != nil {
			want := index.tokens(m.Text)
			return indexed(index, func(have []string) bool { return len(want) > 0 && containsAll(have, want) }), nil
		}
		return contains(m.Text), nil
	case *qdrant.Match_Phrase:
		if index != nil {
			want := index.tokens(m.Phrase)
			return indexed(index, func(have []string) bool { return len(want) > 0 && containsRun(have, want) }), nil
		}
		return contains(m.Phrase), nil
	case *qdrant.Match_TextAny:
		if index != nil {
			want := index.tokens(m.TextAny)
			return indexed(index, func(have []string) bool {
				return slices.ContainsFunc(want, func(w string) bool { return slices.Contains(have, w) })
			}), nil
		}
		words := strings.Fields(m.TextAny)
		return text(func(stored string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(stored, w) })
		}), nil
	}
	return nil, invalidArgument("Malformed Match condition")
}

// text checks values that are strings.
func text(fits func(string) bool) func(*qdrant.Value) bool {
	return func(v *qdrant.Value) bool {
		s, ok := v.GetKind().(*qdrant.Value_StringValue)
		return ok && fits(s.StringValue)
	}
}

// contains is the match of a text without an index: a substring.
func contains(part string) func(*qdrant.Value) bool {
	return text(func(stored string) bool { return strings.Contains(stored, part) })
}

// indexed is the match of a text by its tokens.
func indexed(index *payloadIndex, fits func([]string) bool) func(*qdrant.Value) bool {
	return text(func(stored string) bool { return fits(index.tokens(stored)) })
}

func oneOf(list []string, v *qdrant.Value) bool {
	s, ok := v.GetKind().(*qdrant.Value_StringValue)
	return ok && slices.Contains(list, s.StringValue)
}

// oneOfIntegers looks at integers only: 42.0 is a float and never equals 42.
func oneOfIntegers(list []int64, v *qdrant.Value) bool {
	n, ok := v.GetKind().(*qdrant.Value_IntegerValue)
	return ok && slices.Contains(list, n.IntegerValue)
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}

// containsRun says whether want stands in have without a gap.
func containsRun(have, want []string) bool {
	for i := 0; i+len(want) <= len(have); i++ {
		if slices.Equal(have[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

package policy

import (
	"fmt"
	"strconv"
)

// Change is a key that two policies differ in.
type Change struct {
	Key string `json:"key"` // path, such as "decode.transition_weight"
	Old string `json:"old"` // its value in the first policy, as JSON writes it, texts without quotes; "" when it has none
	New string `json:"new"` // its value in the second
}

// String is the change in words: key old → new.
func (c Change) String() string {
	return fmt.Sprintf("%s %s → %s", c.Key, orNotSet(c.Old), orNotSet(c.New))
}

func orNotSet(value string) string {
	if value == "" {
		return "(not set)"
	}
	return value
}

// Diff lists what two policies differ in among the keys that their digests
// depend on, in the order of the file form; it is empty exactly when the
// digests are the same. In tables and lists it compares key by key and place
// by place.
func Diff(a, b *Policy) []Change {
	d := differ{order: yamlWriter{order: knownPaths()}}
	d.compare(compared(a), compared(b), "")
	return d.changes
}

// compared is what Diff looks at: what the digest depends on, and sections that
// are no part of it because they are at their defaults.
func compared(p *Policy) map[string]any {
	m := treeOf(p)
	for _, key := range append([]string{"name"}, optional...) {
		delete(m, key)
	}
	return m
}

type differ struct {
	order   yamlWriter
	changes []Change
}

// compare compares two trees of which one may be missing, as an absent value.
func (d *differ) compare(a, b any, path string) {
	x, xs := parts(a)
	y, ys := parts(b)
	if !xs && !ys {
		if old, now := leafText(a), leafText(b); old != now {
			d.changes = append(d.changes, Change{path, old, now})
		}
		return
	}
	if len(x) == 0 && len(y) == 0 {
		return
	}
	both := map[string]any{}
	for key := range x {
		both[key] = nil
	}
	for key := range y {
		both[key] = nil
	}
	for _, key := range d.order.keys(both, path) {
		d.compare(orAbsent(x, key), orAbsent(y, key), join(path, key))
	}
}

// absent is the value of a key that is not there. It differs from null.
type absent struct{}

func orAbsent(m map[string]any, key string) any {
	if v, there := m[key]; there {
		return v
	}
	return absent{}
}

// parts is what is in a mapping or a list, by key or place.
func parts(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case []any:
		m := make(map[string]any, len(v))
		for i, item := range v {
			m[strconv.Itoa(i)] = item
		}
		return m, true
	}
	return nil, false
}

func leafText(v any) string {
	switch v := v.(type) {
	case absent:
		return ""
	case string:
		if v != "" && v != "null" && !numberForm.MatchString(v) {
			return v
		}
		return strconv.Quote(v)
	}
	return jsonText(v)
}

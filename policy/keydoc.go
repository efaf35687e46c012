package policy

import (
	_ "embed" // FORMAT.md
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed FORMAT.md
var formatPage string

// keyDoc is what FORMAT.md says about a key.
type keyDoc struct {
	typ, limits, standard, meaning string
}

// keyDocs is FORMAT.md by key, with * for a name in a table or a place in a
// list. The page is the one description of the file form: the comments of a
// new file and the JSON Schema are made from it.
var keyDocs = sync.OnceValue(func() map[string]keyDoc {
	docs := map[string]keyDoc{}
	for line := range strings.Lines(formatPage) {
		if heading, ok := strings.CutPrefix(line, "## `"); ok {
			name, meaning, _ := strings.Cut(strings.TrimSpace(heading), "`: ")
			docs[name] = keyDoc{typ: "section", meaning: meaning}
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		doc := keyDoc{cells[2], cells[3], strings.Trim(cells[4], "`"), cells[5]}
		key := strings.Trim(cells[1], "`")
		if above, isHeading := docs[key]; isHeading && doc.typ != "section" {
			doc.meaning = above.meaning + ": " + doc.meaning
		}
		docs[key] = doc
	}
	return docs
})

// bounds reads a range of numbers such as "≥ 0", "> 0", "0 … 1" or "> 0 … 1".
// above says that low itself is outside.
func (d keyDoc) bounds() (low, high float64, above bool) {
	low, high = math.Inf(-1), math.Inf(1)
	text, above := strings.CutPrefix(d.limits, "> ")
	from, to, both := strings.Cut(strings.TrimPrefix(text, "≥ "), " … ")
	if x, err := strconv.ParseFloat(from, 64); err == nil {
		low = x
	}
	if x, err := strconv.ParseFloat(to, 64); both && err == nil {
		high = x
	}
	return low, high, above
}

var choiceForm = regexp.MustCompile("`([^`]+)`")

// choices lists the values of an enumeration, nil when any text goes.
func (d keyDoc) choices() []any {
	var list []any
	for _, found := range choiceForm.FindAllStringSubmatch(d.limits, -1) {
		list = append(list, found[1])
	}
	return list
}

// comment is what a new policy file says at a key.
func (d keyDoc) comment() string {
	limits := strings.ReplaceAll(d.limits, "`", "")
	if limits == "" || limits == "any" {
		return d.meaning
	}
	return d.meaning + " (" + limits + ")"
}

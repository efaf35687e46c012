package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// The start of a policy file in each format.
const (
	yamlHead = "schema: mmplug.policy/1\nname: t\n"
	jsonHead = `{"schema": "mmplug.policy/1", "name": "t"`
	tomlHead = "schema = \"mmplug.policy/1\"\nname = \"t\"\n"
)

// Sections with a place for a value of fusion.k, decode.beam or fusion.alpha.
const (
	yamlFusion = "fusion:\n  version: rrf_v1\n  alpha: %s\n  min_score: 0\n  k: %s\n  arms: {dense: {weight: 1, timeout_ms: 0}}\n"
	jsonFusion = `,"fusion": {"version": "rrf_v1", "alpha": %s, "min_score": 0, "k": %s, "arms": {"dense": {"weight": 1, "timeout_ms": 0}}}}`
	tomlFusion = "[fusion]\nversion = \"rrf_v1\"\nalpha = %s\nmin_score = 0\nk = %s\narms = {dense = {weight = 1, timeout_ms = 0}}\n"
	yamlRerank = "rerank: {version: rerank_policy_pre_v1, mode: off, budget_ms: %s, pairs: 50}\n"
	jsonRerank = `,"rerank": {"version": "rerank_policy_pre_v1", "mode": "off", "budget_ms": %s, "pairs": 50}}`
	tomlRerank = "[rerank]\nversion = \"rerank_policy_pre_v1\"\nmode = \"off\"\nbudget_ms = %s\npairs = 50\n"
)

func fusionFile(format Format, alpha, k string) Source {
	switch format {
	case YAML:
		return Source{"t.yaml", []byte(yamlHead + fmt.Sprintf(yamlFusion, alpha, k))}
	case JSON:
		return Source{"t.json", []byte(jsonHead + fmt.Sprintf(jsonFusion, alpha, k))}
	}
	return Source{"t.toml", []byte(tomlHead + fmt.Sprintf(tomlFusion, alpha, k))}
}

func rerankFile(format Format, budget string) Source {
	switch format {
	case YAML:
		return Source{"t.yaml", []byte(yamlHead + fmt.Sprintf(yamlRerank, budget))}
	case JSON:
		return Source{"t.json", []byte(jsonHead + fmt.Sprintf(jsonRerank, budget))}
	}
	return Source{"t.toml", []byte(tomlHead + fmt.Sprintf(tomlRerank, budget))}
}

var formats = []Format{YAML, JSON, TOML}

// problemsOf parses what must have problems.
func problemsOf(t *testing.T, sources ...Source) Problems {
	t.Helper()
	p, err := Parse(sources...)
	var problems Problems
	if p != nil || !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("a policy %t and error %v, want problems", p != nil, err)
	}
	return problems
}

// TestStrictValues: the same values are refused, with the same hint, in every
// format.
func TestStrictValues(t *testing.T) {
	for _, c := range []struct {
		name string
		file func(Format) Source
		want string // after file and line
	}{
		{"text for a number", func(f Format) Source { return fusionFile(f, `"0.7"`, "60") },
			"`fusion.alpha` is the text \"0.7\", it must be a number: remove the quotes"},
		{"word for a number", func(f Format) Source { return fusionFile(f, `"much"`, "60") },
			"`fusion.alpha` is the text \"much\", it must be a number"},
		{"true for a number", func(f Format) Source { return fusionFile(f, "0.7", "true") }, "`fusion.k` is true, it must be a number"},
		{"list for a number", func(f Format) Source { return fusionFile(f, "0.7", "[60]") }, "`fusion.k` is a list, it must be a number"},
		{"fraction for a whole number", func(f Format) Source { return rerankFile(f, "8.9") },
			"`rerank.budget_ms` is the number 8.9, it must be a whole number: it is not rounded"},
		{"whole number too large", func(f Format) Source { return rerankFile(f, "9007199254740993") },
			"`rerank.budget_ms` is the number 9007199254740993, it must be at most 9007199254740991 in size"},
		{"true for a whole number", func(f Format) Source { return rerankFile(f, "true") }, "`rerank.budget_ms` is true, it must be a whole number"},
		{"text for a whole number", func(f Format) Source { return rerankFile(f, `"500"`) },
			"`rerank.budget_ms` is the text \"500\", it must be a whole number: remove the quotes"},
		{"too large for a number", func(f Format) Source {
			return fusionFile(f, "0.7", map[Format]string{YAML: "1e400", JSON: "1e400", TOML: `"1e400"`}[f])
		},
			"`fusion.k` is 1e400: too large for a number of 64 bits"},
		{"too large for a whole number", func(f Format) Source {
			return rerankFile(f, map[Format]string{YAML: "-1e400", JSON: "-1e400", TOML: `"-1e400"`}[f])
		},
			"`rerank.budget_ms` is -1e400: too large for a number of 64 bits"},
		{"out of range", func(f Format) Source { return fusionFile(f, "1.5", "60") }, "fusion.alpha is 1.5: it must be between 0 and 1"},
	} {
		for _, format := range formats {
			t.Run(c.name+"/"+string(format), func(t *testing.T) {
				problems := problemsOf(t, c.file(format))
				if len(problems) != 1 || problems[0].Err.Error() != c.want {
					t.Fatalf("%v\nwant %s", problems, c.want)
				}
				if problems[0].Line == 0 {
					t.Error("no line")
				}
			})
		}
	}
}

// TestStrictFiles has a row for each fault that files of other loaders were
// seen to get away with.
func TestStrictFiles(t *testing.T) {
	decode := "decode: {version: decode_v1, emission_weight: 1, transition_weight: 1, score_normalization: zscore, candidate_limit: 20, beam: 0, break_distance: 0, on_empty: gap, temperature: 1, rank_by: max_marginal}\n"
	for _, c := range []struct {
		name, path, data string
		want             []string // the problems, in order
	}{
		{"unknown key kk", "p.yaml", yamlHead + fmt.Sprintf(yamlFusion, "0.6", "60") + "  kk: 1\n",
			[]string{"p.yaml:9: unknown key `fusion.kk`: `fusion` has version, alpha, min_score, k, arms"}},
		{"misspelt", "p.yaml", yamlHead + strings.Replace(fmt.Sprintf(yamlFusion, "0.6", "60"), "alpha", "alhpa", 1),
			[]string{"p.yaml:5: unknown key `fusion.alhpa`, did you mean `fusion.alpha`?"}},
		{"misspelt in JSON", "p.json", jsonHead + "\n" + strings.Replace(fmt.Sprintf(jsonFusion, "0.6", "60"), "alpha", "alhpa", 1),
			[]string{"p.json:2: unknown key `fusion.alhpa`, did you mean `fusion.alpha`?"}},
		{"misspelt in TOML", "p.toml", tomlHead + strings.Replace(fmt.Sprintf(tomlFusion, "0.6", "60"), "alpha", "alhpa", 1),
			[]string{"p.toml:5: unknown key `fusion.alhpa`, did you mean `fusion.alpha`?"}},
		{"wrong case", "p.yaml", yamlHead + strings.Replace(fmt.Sprintf(yamlFusion, "0.6", "60"), "  k:", "  K:", 1),
			[]string{"p.yaml:7: unknown key `fusion.K`, did you mean `fusion.k`?"}},
		{"wrong section", "p.yaml", yamlHead + "alpha: 0.6\n", []string{"p.yaml:3: unknown key `alpha`, did you mean `fusion.alpha`?"}},
		{"wrong case of a section", "p.toml", tomlHead + "[Context]\nradius = 1\n", []string{"p.toml:3: unknown key `Context`, did you mean `context`?"}},
		{"NaN", "p.yaml", yamlHead + "context:\n  radius: .nan\n", []string{"p.yaml:4: `context.radius` is .nan: a number must be finite"}},
		{"infinite", "p.yaml", yamlHead + "context:\n  radius: -.inf\n", []string{"p.yaml:4: `context.radius` is -.inf: a number must be finite"}},
		{"NaN in TOML", "p.toml", tomlHead + "context.radius = nan\n", []string{"p.toml:3: `context.radius` is nan: a number must be finite"}},
		{"infinite in TOML", "p.toml", tomlHead + "context.radius = -inf\n", []string{"p.toml:3: `context.radius` is -inf: a number must be finite"}},
		{"NaN in JSON", "p.json", jsonHead + ",\n\"context\": {\"radius\": NaN}}", []string{"p.json:2: not JSON: invalid character 'N' looking for beginning of value"}},
		{"overflow", "p.json", jsonHead + `,"context": {"radius": 1e999}}`, []string{"p.json:1: `context.radius` is 1e999: too large for a number of 64 bits"}},
		{"octal", "p.yaml", yamlHead + "context: {radius: 010}\n", []string{"p.yaml:3: `context.radius` is 010: write numbers in decimal, such as 60, 0.7 or 1e-6"}},
		{"missing key", "p.yaml", yamlHead + strings.Replace(fmt.Sprintf(yamlFusion, "0.6", "60"), "  k: 60\n", "", 1),
			[]string{"p.yaml:3: missing key `fusion.k`: what is given of `fusion` must be whole; its default is 60"}},
		{"missing key in a table", "p.json", jsonHead + strings.Replace(fmt.Sprintf(jsonFusion, "0.6", "60"), `, "timeout_ms": 0`, "", 1),
			[]string{"p.json:1: missing key `fusion.arms.dense.timeout_ms`: what is given of `fusion.arms.dense` must be whole; its default is 1000"}},
		{"missing key in a list", "p.toml", tomlHead + "[[plugins]]\nname = \"x\"\n",
			[]string{"p.toml:3: missing key `plugins.0.sha256`: what is given of `plugins.0` must be whole"}},
		{"missing name", "p.yaml", "schema: mmplug.policy/1\n", []string{"p.yaml: missing key `name`: it tells policies apart for people"}},
		{"missing schema", "p.yaml", "name: t\n", []string{"p.yaml:1: missing key `schema`: a policy file says schema: mmplug.policy/1"}},
		{"another schema", "p.yaml", "schema: mmplug.policy/2\nname: t\nfuture: 1\n",
			[]string{"p.yaml:1: `schema` is the text \"mmplug.policy/2\", this release reads \"mmplug.policy/1\""}},
		{"second document", "p.yaml", yamlHead + "---\nname: u\n", []string{"p.yaml:3: a second YAML document starts here: one file holds one policy"}},
		{"broken second document", "p.yaml", yamlHead + "---\n{", []string{"p.yaml:4: not YAML: did not find expected node content"}},
		{"duplicate key", "p.yaml", yamlHead + "name: u\n", []string{"p.yaml:3: key `name` is set twice, first in line 2: keep one"}},
		{"duplicate key in JSON", "p.json", jsonHead + ",\n\"context\": {\"radius\": 1,\n\"radius\": 2}}",
			[]string{"p.json:3: key `context.radius` is set twice, first in line 2: keep one"}},
		{"duplicate section in JSON", "p.json", jsonHead + `,"context": {"radius": 1}, "context": {"radius": 1}}`,
			[]string{"p.json:1: key `context` is set twice, first in line 1: keep one"}},
		{"escaped duplicate", "p.json", jsonHead + `, "n\u0061me": "u"}`, []string{"p.json:1: key `name` is set twice, first in line 1: keep one"}},
		{"conflict", "p.yaml", yamlHead + "{fusion: rrf, fusion.k: 60}\n", []string{"p.yaml:3: not YAML: could not find expected ':'"}},
		{"conflict of a scalar", "p.json", jsonHead + `, "fusion": "rrf", "fusion.k": 60}`, []string{
			"p.json:1: `fusion` is the text \"rrf\", it must be a mapping",
			"p.json:1: key `fusion.k` conflicts with key `fusion` of line 1: write `fusion` once, with `k` below it"}},
		{"conflict of a scalar in YAML", "p.yaml", yamlHead + "fusion: rrf\nfusion.k: 60\n", []string{
			"p.yaml:3: `fusion` is the text \"rrf\", it must be a mapping",
			"p.yaml:4: key `fusion.k` conflicts with key `fusion` of line 3: write `fusion` once, with `k` below it"}},
		{"conflict of a mapping", "p.yaml", yamlHead + "context: {radius: 2}\ncontext.radius: 3\n", []string{
			"p.yaml:4: key `context.radius` conflicts with key `context` of line 3: write `context` once, with `radius` below it"}},
		{"conflict in TOML", "p.toml", tomlHead + "fusion = \"rrf\"\nfusion.k = 60\n", []string{"p.toml:4: not TOML: toml: key fusion is already defined"}},
		{"dotted key", "p.yaml", yamlHead + "context.radius: 3\n", []string{"p.yaml:3: dotted key `context.radius`: write `radius` below `context`"}},
		{"quoted dotted key in TOML", "p.toml", tomlHead + "\"context.radius\" = 3\n", []string{"p.toml:3: dotted key `context.radius`: write `radius` below `context`"}},
		{"dotted name in a table", "p.yaml", yamlHead + "graph: {version: knn_v1, k: 10, minimum_edge_distance: 1e-6, maximum_distance: 10, weights: {see.also: 1}}\n",
			[]string{"p.yaml:3: dotted key `graph.weights.see.also`: a name in `graph.weights` has no dots"}},
		{"anchor", "p.yaml", yamlHead + "context: &c {radius: 1}\n", []string{"p.yaml:3: `context`: an anchor (&c): write the value out where it is used"}},
		{"alias", "p.yaml", "schema: mmplug.policy/1\nname: &n t\ndescription: *n\n", []string{
			"p.yaml:2: `name`: an anchor (&n): write the value out where it is used",
			"p.yaml:3: `description`: an alias (*n): write the value out",
			"p.yaml:3: `description` is a YAML value of type !!str, it must be a text: put quotes around it"}},
		{"merge key", "p.yaml", yamlHead + "context: {<<: {radius: 1}, radius: 1}\n", []string{"p.yaml:3: `context`: a merge key (<<): write the keys out"}},
		{"tag", "p.yaml", yamlHead + "context: {radius: !!float 1}\n", []string{"p.yaml:3: `context.radius`: an explicit tag (!!float): write the plain value"}},
		{"key that is a number", "p.yaml", yamlHead + "1: x\n", []string{"p.yaml:3: a key that is no text: keys are words"}},
		{"empty section", "p.yaml", yamlHead + "context:\n", []string{"p.yaml:3: `context` is empty (null), it must be a mapping: give a value or leave the key out"}},
		{"null for a number", "p.json", jsonHead + `, "context": {"radius": null}}`,
			[]string{"p.json:1: `context.radius` is empty (null), it must be a number: give a value or leave the key out"}},
		{"number for a text", "p.yaml", "schema: mmplug.policy/1\nname: 60\n", []string{"p.yaml:2: `name` is the number 60, it must be a text: put quotes around it"}},
		{"date for a text", "p.toml", "schema = \"mmplug.policy/1\"\nname = 2026-01-02\n", []string{"p.toml:2: `name` is a date or time (2026-01-02), it must be a text: put quotes around it"}},
		{"date in YAML", "p.yaml", "schema: mmplug.policy/1\nname: 2026-01-02\n", []string{"p.yaml:2: `name` is a YAML value of type !!timestamp, it must be a text: put quotes around it"}},
		{"yes for true", "p.yaml", yamlHead + "transition: {version: transition_v1, stage: off, p: {}, q: {}, keep_distance: yes}\n",
			[]string{"p.yaml:3: `transition.keep_distance` is the text \"yes\", it must be true or false"}},
		{"quoted true", "p.json", jsonHead + `, "transition": {"version": "transition_v1", "stage": "off", "p": {}, "q": {}, "keep_distance": "true"}}`,
			[]string{"p.json:1: `transition.keep_distance` is the text \"true\", it must be true or false: remove the quotes"}},
		{"mapping for a list", "p.yaml", yamlHead + "plugins: {name: x}\n", []string{"p.yaml:3: `plugins` is a mapping, it must be a list"}},
		{"list for a mapping", "p.yaml", yamlHead + "context: [1]\n", []string{"p.yaml:3: `context` is a list, it must be a mapping"}},
		{"list for a table", "p.yaml", yamlHead + "graph: {version: knn_v1, k: 10, minimum_edge_distance: 1e-6, maximum_distance: 10, weights: []}\n",
			[]string{"p.yaml:3: `graph.weights` is a list, it must be a mapping"}},
		{"empty name in a table", "p.yaml", yamlHead + "graph: {version: knn_v1, k: 10, minimum_edge_distance: 1e-6, maximum_distance: 10, weights: {\"\": 1}}\n",
			[]string{"p.yaml:3: `graph.weights` has an empty key"}},
		{"unknown version", "p.yaml", yamlHead + strings.Replace(decode, "decode_v1", "decode_v2", 1),
			[]string{"p.yaml:3: decode.version is \"decode_v2\": it must be decode_v1; did you mean \"decode_v1\"?"}},
		{"unknown versions list the known ones", "p.yaml", yamlHead + strings.Replace(fmt.Sprintf(yamlFusion, "0.6", "60"), "rrf_v1", "borda_v1", 1),
			[]string{"p.yaml:4: fusion.version is \"borda_v1\": it must be geometric_v1, hybrid_fusion_pre_v1 or rrf_v1"}},
		{"hidden character", "p.json", jsonHead + `, "description": "a\u202eb"}`, []string{"p.json:1: `description` contains the character U+202E, which cannot be seen: leave it out"}},
		{"two lines", "p.yaml", yamlHead + "description: |\n  a\n  b\n", []string{"p.yaml:3: `description` contains the character U+000A, which cannot be seen: leave it out"}},
		{"hidden character in a key", "p.json", jsonHead + `, "fu\u0007sion": 1}`, []string{"p.json:1: unknown key `fu\\asion`, did you mean `fusion`?"}},
		{"half a surrogate pair", "p.json", jsonHead + `, "description": "a\ud800"}`, []string{"p.json:1: `description` contains the character U+FFFD, which cannot be seen: leave it out"}},
		{"break beyond the graph", "p.yaml", yamlHead + strings.Replace(decode, "break_distance: 0", "break_distance: 11", 1),
			[]string{"p.yaml:3: decode.break_distance is 11: it must be at most graph.maximum_distance, which is 10"}},
		{"another digest", "p.yaml", yamlHead + "digest: " + strings.Repeat("0a", 32) + "\n", []string{
			"p.yaml:3: digest is \"" + strings.Repeat("0a", 32) + "\": it must be that of the content, " + Default().Digest() + ", or left out"}},
		{"evidence without digest", "p.yaml", yamlHead + "evidence: " + strings.Repeat("0a", 32) + "\n",
			[]string{"p.yaml: digest is \"\": it must be the digest of the policy, because evidence makes it a frozen one"}},
		{"half a digest", "p.yaml", yamlHead + "digest: abc\nevidence: abc\n", []string{
			"p.yaml:3: digest is \"abc\": it must be a SHA-256: 64 lower-case hexadecimal digits, or left out",
			"p.yaml:3: policy is frozen: it was frozen with the digest abc, its content now has " + Default().Digest() + ": restore the file, or change a copy without digest and evidence",
			"p.yaml:4: evidence is \"abc\": it must be the SHA-256 of an evaluation report: 64 lower-case hexadecimal digits, or left out"}},
		{"empty", "p.yaml", "", []string{"p.yaml: " + emptyFile}},
		{"blank", "p.json", " \n\t\n", []string{"p.json: " + emptyFile}},
		{"comments only", "p.yaml", "# nothing\n", []string{"p.yaml: " + emptyFile}},
		{"comments only in TOML", "p.toml", "# nothing\n", []string{"p.toml: " + emptyFile}},
		{"null", "p.json", "null", []string{"p.json: " + emptyFile}},
		{"list", "p.json", "[1]", []string{"p.json:1: the file is a list: a policy is a mapping of sections"}},
		{"text", "p.yaml", "just words\n", []string{"p.yaml:1: the file is the text \"just words\": a policy is a mapping of sections"}},
		{"byte order mark", "p.yaml", "\ufeff" + yamlHead, []string{"p.yaml: the file starts with a byte order mark: save it as UTF-8 without one"}},
		{"UTF-16", "p.yaml", "\xff\xfes\x00", []string{"p.yaml: the file is UTF-16: save it as UTF-8"}},
		{"invalid UTF-8", "p.toml", tomlHead + "description = \"\xc3\"\n", []string{"p.toml: the file is not valid UTF-8"}},
		{"zero byte", "p.json", jsonHead + "}\x00", []string{"p.json: the file contains a zero byte: it is no text"}},
		{"too large", "p.yaml", yamlHead + "#" + strings.Repeat("x", MaxFileSize), []string{"p.yaml: the file has 1048609 bytes: a policy has at most 1048576"}},
		{"cut JSON", "p.json", jsonHead, []string{"p.json:1: not JSON: unexpected end of JSON input"}},
		{"cut YAML", "p.yaml", yamlHead + "context: {radius: 1", []string{"p.yaml:3: not YAML: did not find expected ',' or '}'"}},
		{"cut TOML", "p.toml", tomlHead + "[conte", []string{"p.toml:3: not TOML: toml: expected ']' to close table name"}},
		{"cut at the end of a line", "p.yaml", yamlHead + fmt.Sprintf(yamlFusion, "0.6", "60")[:55],
			[]string{"p.yaml:3: missing key `fusion.k`: what is given of `fusion` must be whole; its default is 60",
				"p.yaml:3: missing key `fusion.arms`: what is given of `fusion` must be whole; its default is {\"dense\":{\"timeout_ms\":1000,\"weight\":0.7},\"lexical\":{\"timeout_ms\":1000,\"weight\":0.3}}"}},
		{"something after JSON", "p.json", jsonHead + "}\n{}", []string{"p.json:2: not JSON: invalid character '{' after top-level value"}},
		{"another extension", "p.ini", "x", []string{"p.ini: the name of a policy file ends in .yaml, .json or .toml, not in \".ini\""}},
		{"nested lists", "p.yaml", yamlHead + "plugins: " + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "\n", []string{
			"p.yaml:3: values are nested deeper than 16 levels", "p.yaml:3: `plugins.0` is a list, it must be a mapping"}},
		{"nested objects", "p.json", jsonHead + `,"context": ` + strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 21), []string{
			"p.json:1: values are nested deeper than 16 levels", "p.json:1: unknown key `context.a`: `context` has radius, limit",
			"p.json:1: missing key `context.radius`: what is given of `context` must be whole; its default is 1"}},
		{"nesting bomb", "p.yaml", strings.Repeat("[", 100000), []string{"p.yaml: values are nested deeper than 16 levels"}},
		{"nesting bomb in JSON", "p.json", strings.Repeat(`{"a":`, 100000), []string{"p.json: values are nested deeper than 16 levels"}},
		{"nesting bomb in TOML", "p.toml", "a = " + strings.Repeat("[", 100000), []string{"p.toml: values are nested deeper than 16 levels"}},
		{"key with many parts in TOML", "p.toml", strings.Repeat("a.", 100000) + "a = 1", []string{"p.toml:1: values are nested deeper than 16 levels"}},
		{"table with many parts in TOML", "p.toml", "[" + strings.Repeat("a.", 1000) + "a]", []string{"p.toml:1: values are nested deeper than 16 levels"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range problemsOf(t, Source{c.path, []byte(c.data)}) {
				got = append(got, p.Error())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
			}
		})
	}
}

func TestDepthOfIndentation(t *testing.T) {
	for _, data := range []string{strings.Repeat("- ", 200000), strings.Repeat("? ", 200000)} {
		problems := problemsOf(t, Source{"p.yaml", []byte(data)})
		if len(problems) == 0 || !strings.HasPrefix(problems[0].Error(), "p.yaml") {
			t.Errorf("%v", problems)
		}
	}
}

// TestManyProblems: a file of nothing but faults is reported in bounded time
// and space.
func TestManyProblems(t *testing.T) {
	var many strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&many, "alhpa%d: 1\n", i)
	}
	json := jsonHead + strings.ReplaceAll(strings.ReplaceAll(many.String(), "alhpa", `, "alhpa`), ":", `":`) + "}"
	long := strings.Repeat("k", MaxFileSize-200)
	for name, c := range map[string]struct {
		data string
		want int
	}{
		"many": {many.String(), maxProblems + 1},
		"long": {long + ": 1\n", 1},
	} {
		problems := problemsOf(t, Source{"p.yaml", []byte(yamlHead + c.data)})
		if len(problems) != c.want {
			t.Errorf("%s: %d problems, want %d", name, len(problems), c.want)
		}
		if size := len(problems.Error()); size > 100*1000 {
			t.Errorf("%s: a message of %d bytes", name, size)
		}
	}
	problems := problemsOf(t, Source{"p.json", []byte(json)})
	if last := problems[maxProblems].Error(); last != "p.json: 19800 more problems are not listed" {
		t.Error(last)
	}
}

// TestAllProblemsAtOnce: nothing hides what is wrong elsewhere in a file.
func TestAllProblemsAtOnce(t *testing.T) {
	data := yamlHead + `
fusion:
  version: rrf
  alhpa: 0.6
  min_score: 0
  k: "60"
  arms: {dense: {weight: -1, timeout_ms: 0}}
context:
  radius: -2
context:
  radius: 3
plugins:
  - {name: x, sha256: 12}
  - {name: y, sha256: short}
rerank: &r {version: rerank_policy_pre_v1, mode: never, budget_ms: 0.5, pairs: 0}
`
	want := []string{
		"p.yaml:5: fusion.version is \"rrf\": it must be geometric_v1, hybrid_fusion_pre_v1 or rrf_v1",
		"p.yaml:6: unknown key `fusion.alhpa`, did you mean `fusion.alpha`?",
		"p.yaml:8: `fusion.k` is the text \"60\", it must be a number: remove the quotes",
		"p.yaml:9: fusion.arms.dense.weight is -1: it must be finite and at least 0",
		"p.yaml:11: context.radius is -2: it must be finite and at least 0",
		"p.yaml:12: key `context` is set twice, first in line 10: keep one",
		"p.yaml:15: `plugins.0.sha256` is the number 12, it must be a text: put quotes around it",
		"p.yaml:16: plugins.1.sha256 is \"short\": it must be a SHA-256: 64 lower-case hexadecimal digits",
		"p.yaml:17: `rerank`: an anchor (&r): write the value out where it is used",
		"p.yaml:17: `rerank.budget_ms` is the number 0.5, it must be a whole number: it is not rounded",
		"p.yaml:17: rerank.mode is \"never\": it must be off, deferred or sync",
		"p.yaml:17: rerank.pairs is 0: it must be at least 1",
	}
	var got []string
	for _, p := range problemsOf(t, Source{"p.yaml", []byte(data)}) {
		got = append(got, p.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestSeveralFiles(t *testing.T) {
	a := Source{"a.yaml", []byte(yamlHead + "context: {radius: 2}\n")}
	b := Source{"b.toml", []byte("schema = \"mmplug.policy/1\"\ndescription = \"both\"\n\n[graph]\nversion = \"knn_v1\"\nk = 7\nminimum_edge_distance = 1e-6\nmaximum_distance = 10\nweights = {link = 2}\n")}
	c := Source{"c.json", []byte(`{"schema": "mmplug.policy/1", "graph": {"k": 8}, "fusion": {"version": "rrf_v1", "alpha": 0.6, "min_score": 0, "k": 60, "arms": {"lexical": {"weight": 1, "timeout_ms": 0}}}}`)}
	d := Source{"d.yaml", []byte("schema: mmplug.policy/1\ncontext:\n  limit: 5\n")}

	digests := map[string]bool{}
	for _, order := range [][]Source{{a, b, d}, {b, a, d}, {d, b, a}, {a, d, b}} {
		p, err := Parse(order...)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != "t" || p.Description != "both" || p.Context.Radius != 2 || *p.Context.Limit != 5 || p.Graph.K != 7 || p.Graph.Weights["link"] != 2 {
			t.Errorf("%+v", p)
		}
		digests[p.Digest()] = true
	}
	if len(digests) != 1 {
		t.Errorf("the digest depends on the order of the files: %v", digests)
	}

	want := "key `graph.k` is set in %s too, in line %d: keep one"
	for _, order := range []struct {
		sources []Source
		path    string
		text    string
	}{
		{[]Source{a, b, c}, "c.json", fmt.Sprintf(want, "b.toml", 6)},
		{[]Source{c, a, b}, "b.toml", fmt.Sprintf(want, "c.json", 1)},
	} {
		problems := problemsOf(t, order.sources...)
		if len(problems) != 1 || problems[0].Path != order.path || problems[0].Err.Error() != order.text {
			t.Errorf("%v, want %s: %s", problems, order.path, order.text)
		}
	}
	// A table is one value, so two files cannot share it.
	e := Source{"e.yaml", []byte("schema: mmplug.policy/1\ngraph: {weights: {next: 1}}\n")}
	if problems := problemsOf(t, a, b, e); problems[0].Key != "graph.weights" {
		t.Errorf("a shared table: %v", problems)
	}
	if problems := problemsOf(t, a, Source{"f.yaml", []byte("name: t\n")}); problems[0].Key != "schema" || problems[0].Path != "f.yaml" {
		t.Errorf("a file without schema: %v", problems)
	}
	frozen := Source{"g.yaml", []byte("schema: mmplug.policy/1\nevidence: " + strings.Repeat("0a", 32) + "\n")}
	if problems := problemsOf(t, a, frozen); problems[0].Key != "evidence" || !errors.Is(problems, mapmatched.ErrPolicyFrozen) {
		t.Errorf("a frozen file among others: %v", problems)
	}
	if _, err := Parse(a, a); err == nil || err.Error() != "a.yaml: the file is given twice" {
		t.Errorf("a file twice: %v", err)
	}
	if _, err := Parse(); err == nil {
		t.Error("no file at all is a policy")
	}
}

// TestTableReplacesDefault: what a file leaves out of a table is not there.
func TestTableReplacesDefault(t *testing.T) {
	p, err := Parse(fusionFile(YAML, "0.6", "60"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Fusion.Arms) != 1 || p.Fusion.Arms[ArmDense].Weight != 1 {
		t.Errorf("arms %v, want dense alone", p.Fusion.Arms)
	}
}

func TestNoEnvironment(t *testing.T) {
	t.Setenv("MMPLUG_CONTEXT_RADIUS", "9")
	t.Setenv("HOME", "elsewhere")
	p, err := Parse(Source{"p.yaml", []byte(yamlHead + "description: $HOME ${HOME}\n")})
	if err != nil {
		t.Fatal(err)
	}
	if p.Context.Radius != 1 || p.Description != "$HOME ${HOME}" {
		t.Errorf("radius %v, description %q", p.Context.Radius, p.Description)
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	path := filepath.Join(dir, "t.YML")
	if err := os.WriteFile(path, []byte(yamlHead), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := Load(path)
	if err != nil || p.Name != "t" {
		t.Errorf("%v, %v", p, err)
	}
	if err := os.WriteFile(path, []byte(yamlHead+"#"+strings.Repeat("x", 2*MaxFileSize)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "a policy has at most 1048576") {
		t.Errorf("a file of 2 MiB: %v", err)
	}
}

func BenchmarkLoad(b *testing.B) {
	p := Default()
	p.Name = "t"
	for _, format := range formats {
		data, err := p.Encode(format)
		if err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(b.TempDir(), "t."+string(format))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			b.Fatal(err)
		}
		b.Run("format="+string(format), func(b *testing.B) {
			for b.Loop() {
				if _, err := Load(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package plugins

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

const goodSum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func lockText(change func(*LockEntry)) string {
	e := LockEntry{File: "mmplug-reranker-overlap", Kind: KindReranker, Name: "overlap", Version: "1.0.0", Protocol: 1, OS: "linux", Arch: "amd64", SHA256: goodSum}
	change(&e)
	b, err := json.Marshal(Lock{Schema: 1, Plugins: []LockEntry{e}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestParseLock(t *testing.T) {
	good := lockText(func(*LockEntry) {})
	if lock, err := ParseLock([]byte(good)); err != nil || len(lock.Plugins) != 1 {
		t.Errorf("lock %+v, error %v", lock, err)
	}
	for want, text := range map[string]string{
		"not a name in the plugin directory": lockText(func(e *LockEntry) { e.File = "../mmplug-reranker-overlap" }),
		`"a/b" is not a name`:                lockText(func(e *LockEntry) { e.File = "a/b" }),
		`".." is not a name`:                 lockText(func(e *LockEntry) { e.File = ".." }),
		`not a name in`:                      lockText(func(e *LockEntry) { e.File = `C:\x` }),
		`kind "oracle"`:                      lockText(func(e *LockEntry) { e.Kind = "oracle" }),
		`name "../x"`:                        lockText(func(e *LockEntry) { e.Name = "../x" }),
		`version "one"`:                      lockText(func(e *LockEntry) { e.Version = "one" }),
		"protocol 0":                         lockText(func(e *LockEntry) { e.Protocol = 0 }),
		"no system and architecture":         lockText(func(e *LockEntry) { e.OS = "" }),
		"64 hexadecimal digits":              lockText(func(e *LockEntry) { e.SHA256 = strings.ToUpper(goodSum) }),
		"SHA-256 \"12\"":                     lockText(func(e *LockEntry) { e.SHA256 = "12" }),
		"schema 2":                           strings.Replace(good, `"schema":1`, `"schema":2`, 1),
		"unknown field":                      strings.Replace(good, `"name"`, `"nam"`, 1),
		"is there twice":                     strings.Replace(good, `"schema":1`, `"schema":1,"schema":1`, 1),
		"for linux/amd64 is there twice":     strings.Replace(good, "]", ","+good[strings.Index(good, "[")+1:strings.Index(good, "]")]+"]", 1),
		"not JSON":                           good[:40],
		"goes on":                            good + "{}",
	} {
		if _, err := ParseLock([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || mapmatched.KindOf(err) != mapmatched.KindCorrupt {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte(lockText(func(*LockEntry) {})))
	f.Add([]byte(`{"schema":1,"plugins":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		lock, err := ParseLock(b)
		if err != nil {
			return
		}
		for _, e := range lock.Plugins {
			if filepath.Base(e.File) != e.File || filepath.Join("dir", e.File) == "dir" {
				t.Errorf("%q leads out of the directory", e.File)
			}
		}
		text, err := json.Marshal(lock)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseLock(text); err != nil || !reflect.DeepEqual(again, lock) {
			t.Errorf("%s becomes %+v, error %v", text, again, err)
		}
	})
}

func TestVersions(t *testing.T) {
	ordered := []string{"0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.0+build", "1.2", "1.9.0", "1.10.0", "1.10.0.1", "10.0", "999999999999999999999"}
	for i, a := range ordered {
		if err := checkVersion(a); err != nil {
			t.Error(err)
		}
		for j, b := range ordered {
			if got := compareVersions(a, b); got != compareInts(i, j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
	for _, bad := range []string{"", "v1", "1..2", "1.2.3.4.5", "one", "1.0/../2", "1.0 ", strings.Repeat("1", 65)} {
		if checkVersion(bad) == nil {
			t.Errorf("version %q was taken", bad)
		}
	}
}

func compareInts(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestFileNames(t *testing.T) {
	for file, want := range map[string]Entry{
		"mmplug-reranker-lexical-overlap":            {Kind: KindReranker, Name: "lexical-overlap"},
		"mmplug-provider-weaviate_v1.10.0":           {Kind: KindProvider, Name: "weaviate", Version: "1.10.0"},
		"mmplug-decoder-python_v2.0.0-rc.1":          {Kind: KindDecoder, Name: "python", Version: "2.0.0-rc.1"},
		"mmplug-oracle-x":                            {},
		"mmplug-reranker":                            {},
		"mmplug-reranker-":                           {},
		"mmplug-reranker-../x":                       {},
		"mmplug-reranker-X":                          {},
		"mmplug-reranker-a--b":                       {},
		"mmplug-reranker-a_v":                        {},
		"mmplug-reranker-a.old":                      {},
		"plugins.lock":                               {},
		"mmplug-reranker-" + strings.Repeat("a", 65): {},
	} {
		got, err := parseFileName(file + exeSuffix)
		got.File = ""
		if (err == nil) != (want.Name != "") || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, error %v", file, got, err)
		}
	}
}

// certificateText is a certificate as a handshake has it.
func certificateText(t testing.TB) string {
	text, _, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text))
	return base64.RawStdEncoding.EncodeToString(block.Bytes)
}

func TestHandshake(t *testing.T) {
	cert := certificateText(t)
	socket, err := parseHandshake("1|1|unix|/run/x|grpc|" + cert + "\n")
	if err != nil || socket != "/run/x" {
		t.Errorf("socket %q, error %v", socket, err)
	}
	if socket, err := parseHandshake("1|1|tcp|127.0.0.1:1234|grpc|" + cert); err != nil || socket != "" {
		t.Errorf("socket %q, error %v", socket, err)
	}
	for line, want := range map[string]string{
		"":                                    "before the handshake",
		"Loading | model | weights | now":     "before the handshake",
		"2|1|unix|/run/x|grpc|" + cert:        "version 2, not 1",
		"1|x|unix|/run/x|grpc|" + cert:        "is no number",
		"1|3|unix|/run/x|grpc|" + cert:        "upgrade the host",
		"1|0|unix|/run/x|grpc|" + cert:        "upgrade the plugin",
		"1|1|unix|/run/x":                     "no gRPC",
		"1|1|unix|/run/x|netrpc|":             "no gRPC",
		"1|1|unix|/run/x|grpc|":               "no certificate",
		"1|1|unix|/run/x|grpc|AAAA":           "DER form",
		"1|1|tcp|10.0.0.1:80|grpc|" + cert:    "not a loopback address",
		"1|1|tcp|example.com:80|grpc|" + cert: "not a loopback address",
		"1|1|udp|x|grpc|" + cert:              `network "udp"`,
	} {
		if _, err := parseHandshake(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
	if _, err := parseHandshake("1|2|unix|x|grpc|"); !errors.Is(err, ErrProtocol) {
		t.Errorf("error %v, want %v", err, ErrProtocol)
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add("1|1|unix|/run/x|grpc|" + certificateText(f))
	f.Add("1|1|tcp|127.0.0.1:1|grpc|AAAA")
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := parseHandshake(line); err != nil && len(err.Error()) > 4*maxQuoted+500 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

func TestSchema(t *testing.T) {
	schema, err := ParseSchema([]byte(`{"type": "object", "required": ["url"], "properties": {
		"url": {"type": "string", "minLength": 1}, "k": {"type": "integer", "minimum": 1, "maximum": 10}, "mode": {"type": "string", "enum": ["a", "b"]},
		"weights": {"type": "array", "items": {"type": "number", "minimum": 0}}, "tls": {"type": "boolean"},
		"inner": {"type": "object", "properties": {"x": {"type": "number"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]string{
		`{"url": "x", "k": 10, "mode": "b", "weights": [0, 0.5], "tls": true, "inner": {"x": 1e3}}`: "",
		`{"url": "x", "k": 3.0}`:                  "",
		`{}`:                                      "it lacks url",
		`{"url": ""}`:                             `url is "", shorter than 1`,
		`{"url": 5}`:                              "url is 5, not a string",
		`{"url": "x", "k": "3"}`:                  `k is "3", not a number`,
		`{"url": "x", "k": 0}`:                    "k is 0, below 1",
		`{"url": "x", "k": 8.9}`:                  "k is 8.9, not an integer",
		`{"url": "x", "kk": 1, "K": 2}`:           `it has the unknown member "K"`,
		`{"url": "x", "mode": "c"}`:               `mode is "c", not one of "a", "b"`,
		`{"url": "x", "weights": [1, -1]}`:        "weights[1] is -1, below 0",
		`{"url": "x", "weights": 1}`:              "weights is 1, not an array",
		`{"url": "x", "tls": "yes"}`:              "not true or false",
		`{"url": "x", "inner": {"y": 1}}`:         `inner has the unknown member "y"`,
		`{"url": "x", "inner": {"x": 1, "x": 2}}`: `"x" is there twice`,
		`{"url": "x"} {}`:                         "goes on",
		`[]`:                                      "not an object",
		``:                                        "not JSON",
	} {
		err := schema.check([]byte(config))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
	for bad, want := range map[string]string{
		`{"type": "string"}`:                               `not "object"`,
		`{"type": "object", "patternProperties": {}}`:      "patternProperties",
		`{"type": "object", "properties": {"a": {}}}`:      `a has the type ""`,
		`{"type": "object", "properties": {"a": null}}`:    "a is null",
		`{"type": "object", "required": ["a"]}`:            `requires "a"`,
		`{"type": "object", "additionalProperties": true}`: "additional properties",
		``: "empty",
	} {
		if _, err := ParseSchema([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", bad, err, want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}`), []byte(`{"a":5}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`), []byte(`{"a":["x",["y"]],"a":1}`))
	f.Fuzz(func(t *testing.T, schema, config []byte) {
		s, err := ParseSchema(schema)
		if err == nil && s.check(config) == nil && !json.Valid(config) {
			t.Errorf("%q was taken", config)
		}
	})
}

func TestPluginValidate(t *testing.T) {
	if err := (Plugin{Name: "x", Version: "1.0", Services: Services{Decoder: mapmatched.Viterbi{}}}).Validate(); err != nil {
		t.Error(err)
	}
	for want, p := range map[string]Plugin{
		"names no kind":     {Name: "x", Version: "1.0"},
		`name "X"`:          {Name: "X", Version: "1.0", Kinds: []Kind{KindGraph}},
		`version ""`:        {Name: "x", Kinds: []Kind{KindGraph}},
		"Schema is not":     {Name: "x", Version: "1", Kinds: []Kind{KindGraph}, Configure: func(_ context.Context, _ json.RawMessage) (Services, error) { return Services{}, nil }},
		"Configure is not":  {Name: "x", Version: "1", Kinds: []Kind{KindGraph}, Schema: json.RawMessage(`{"type": "object"}`)},
		`kind "oracle"`:     {Name: "x", Version: "1", Kinds: []Kind{"oracle"}, Services: Services{Decoder: mapmatched.Viterbi{}}},
		"is not one line":   {Name: "x", Version: "1", Kinds: []Kind{KindGraph}, Description: "a\nb"},
		"patternProperties": {Name: "x", Version: "1", Kinds: []Kind{KindGraph}, Schema: json.RawMessage(`{"type": "object", "patternProperties": {}}`)},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestEmbedBatch(t *testing.T) {
	big := strings.Repeat("x", maxEmbedBytes-10)
	for _, c := range []struct {
		texts []string
		want  int
	}{{nil, 0}, {[]string{"a"}, 1}, {[]string{big, "a", big}, 2}, {[]string{big + big, "a"}, 1}, {slices.Repeat([]string{"a"}, 5000), maxEmbedTexts}} {
		if got := embedBatch(c.texts); got != c.want {
			t.Errorf("%d texts: %d in the first call, want %d", len(c.texts), got, c.want)
		}
	}
}

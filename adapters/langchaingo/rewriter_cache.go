package langchaingo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// rewriteSchema is the value of the key "schema" of the files of a Rewriter.
const rewriteSchema = "mmplug.rewrite/1"

// rewriteEntry is a reply on disk with all that led to it.
type rewriteEntry struct {
	Schema   string   `json:"schema"`
	Model    string   `json:"model"`
	Prompt   string   `json:"prompt"`
	History  []string `json:"history"`
	Question string   `json:"question"`
	Rewrite  string   `json:"rewrite"`
}

// key is the SHA-256, in hexadecimal, of everything but the reply: each field
// after its length in bytes and the history after its number of questions, as
// 64-bit numbers, highest byte first.
func (e rewriteEntry) key() string {
	var data []byte
	field := func(s string) {
		data = binary.BigEndian.AppendUint64(data, uint64(len(s)))
		data = append(data, s...)
	}
	for _, s := range []string{e.Schema, e.Model, e.Prompt, e.Question} {
		field(s)
	}
	data = binary.BigEndian.AppendUint64(data, uint64(len(e.History)))
	for _, s := range e.History {
		field(s)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func rewritePath(dir, key string) string { return filepath.Join(dir, key[:2], key+".json") }

// readRewrite returns the reply on disk, "" when there is none.
func readRewrite(dir, key string, want rewriteEntry) (string, error) {
	path := rewritePath(dir, key)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fail("rewrite", mapmatched.KindUnavailable, "stored reply: %w", err)
	}
	reply, err := decodeRewrite(raw, want)
	if err != nil {
		return "", fail("rewrite", mapmatched.KindCorrupt, "stored reply %s: %w; delete the file to ask again", path, err)
	}
	return reply, nil
}

// decodeRewrite reads a stored reply and checks that it is one to want.
func decodeRewrite(raw []byte, want rewriteEntry) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var e rewriteEntry
	if err := decoder.Decode(&e); err != nil {
		return "", err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("something follows the reply")
	}
	if e.Schema != want.Schema || e.Model != want.Model || e.Prompt != want.Prompt || e.Question != valid(want.Question) ||
		!slices.EqualFunc(e.History, want.History, func(a, b string) bool { return a == valid(b) }) {
		return "", errors.New("it belongs to another model, prompt, history or question")
	}
	if e.Rewrite == "" {
		return "", errors.New("it is empty")
	}
	return e.Rewrite, nil
}

// valid is a text as JSON keeps it.
func valid(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return s // a string has a JSON form
	}
	var out string
	if err := json.Unmarshal(raw, &out); err != nil {
		return s // and is read back
	}
	return out
}

// writeRewrite stores a reply in one step: a reader or a crash sees all of it
// or nothing.
func writeRewrite(dir, key string, e rewriteEntry) error {
	if err := storeRewrite(rewritePath(dir, key), e); err != nil {
		return fail("rewrite", mapmatched.KindUnavailable, "storing the reply: %w", err)
	}
	return nil
}

func storeRewrite(path string, e rewriteEntry) (err error) {
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(append(raw, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

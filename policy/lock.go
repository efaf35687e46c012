package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
)

// ErrChanged says that the files of a policy in use are not what they were when
// it was loaded.
var ErrChanged = errors.New("policy file changed while in use")

// Lock is the policy of a running process together with what its files held
// when they were loaded. Nothing that happens to the files changes the policy.
// It is safe for concurrent use.
type Lock struct {
	policy  *Policy
	digest  string
	sources []Source
}

// NewLock loads a policy as Load does and remembers the files.
func NewLock(paths ...string) (*Lock, error) {
	l := &Lock{sources: make([]Source, len(paths))}
	for i, path := range paths {
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		l.sources[i] = Source{path, data}
	}
	p, err := Parse(l.sources...)
	if err != nil {
		return nil, err
	}
	l.policy, l.digest = p, p.Digest()
	return l, nil
}

// Policy returns the policy that was loaded. It is not to be changed.
func (l *Lock) Policy() *Policy { return l.policy }

// Digest returns the digest of the policy that was loaded.
func (l *Lock) Digest() string { return l.digest }

// ChangedError says what happened to the files of a policy in use. It wraps
// ErrChanged, and what is wrong with the file as it is now, if anything.
type ChangedError struct {
	Path   string // the file
	How    string // what happened to it, in words
	Locked string // digest of the policy in use
	Found  string // digest of the policy that the files give now, "" for none
	Err    error  // why they give none, nil when they do
}

// Error implements error.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: %v: it %s; the policy with digest %s stays in force: restore the file, or start again to use it", e.Path, ErrChanged, e.How, e.Locked)
}

// Unwrap returns ErrChanged and what is wrong with the file.
func (e *ChangedError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrChanged}
	}
	return []error{ErrChanged, e.Err}
}

// Check compares the files with what was loaded and returns a *ChangedError
// when they now give another policy or none: rewritten, cut short, half written
// or removed. A file in which only comments, order or spacing changed gives the
// same policy and is no error. Nothing is adopted.
func (l *Lock) Check() error {
	now := make([]Source, len(l.sources))
	changed := -1
	for i, source := range l.sources {
		data, err := readFile(source.Path)
		if err != nil {
			how := "cannot be read any more (" + err.Error() + ")"
			if errors.Is(err, fs.ErrNotExist) {
				how = "was removed"
			}
			return &ChangedError{source.Path, how, l.digest, "", err}
		}
		now[i] = Source{source.Path, data}
		if changed < 0 && !bytes.Equal(data, source.Data) {
			changed = i
		}
	}
	if changed < 0 {
		return nil
	}
	old, data := l.sources[changed], now[changed].Data
	p, err := Parse(now...)
	cut := len(data) < len(old.Data) && bytes.HasPrefix(old.Data, data)
	switch {
	case err == nil && p.Digest() == l.digest:
		return nil
	case cut:
		found := ""
		if err == nil {
			found = p.Digest()
		}
		how := fmt.Sprintf("was cut from %d to %d bytes", len(old.Data), len(data))
		return &ChangedError{old.Path, how, l.digest, found, err}
	case err != nil:
		how := "was rewritten, or is half written, and is no policy now"
		var problems Problems
		if errors.As(err, &problems) {
			how += " (" + problems[0].Error() + ")"
		}
		return &ChangedError{old.Path, how, l.digest, "", err}
	}
	return &ChangedError{old.Path, "was rewritten and has the digest " + p.Digest(), l.digest, p.Digest(), nil}
}

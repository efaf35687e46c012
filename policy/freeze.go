package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mapmatched/mmplug/mapmatched"
)

// EvidenceOf returns the evidence that a file gives, an evaluation report: its
// SHA-256. An empty file gives none.
func EvidenceOf(path string) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", fmt.Errorf("%s is empty: give the report of an evaluation as evidence", path)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Freeze writes the policy of a file with every key explicit, its digest and
// the evidence it rests on, the SHA-256 of an evaluation report (see
// EvidenceOf). Nothing is recorded of who did so or when. The frozen policy
// replaces the file, in one step, or goes to out when that is not "", in the
// format of its name; another file that is there already is not replaced.
//
// A policy that is frozen cannot be frozen again (mapmatched.ErrPolicyFrozen).
func Freeze(path, out, evidence string) (*Policy, error) {
	if !sha256Form.MatchString(evidence) {
		return nil, fmt.Errorf("evidence %q is no SHA-256: give the 64 lower-case hexadecimal digits of an evaluation report's", evidence)
	}
	p, err := Load(path)
	if err != nil {
		return nil, err
	}
	if p.Frozen() {
		return nil, fmt.Errorf("%s: %w already, with the digest %s: freeze a copy without digest and evidence", path, mapmatched.ErrPolicyFrozen, p.StatedDigest)
	}
	if out == "" {
		out = path
	} else if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is there already: give another name for the frozen policy", out)
	}
	format, err := FormatOf(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	p.StatedDigest, p.Evidence = p.Digest(), evidence
	data, err := p.Encode(format)
	if err != nil {
		return nil, err
	}
	if err := replaceFile(out, data); err != nil {
		return nil, err
	}
	return p, nil
}

// replaceFile writes a file in one step: a reader, or a crash, sees the old
// content or the new one. A symbolic link keeps pointing to where it does.
func replaceFile(path string, data []byte) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()           //nolint:errcheck // closed already, or the first error counts
			os.Remove(f.Name()) //nolint:errcheck // nothing more to be done
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

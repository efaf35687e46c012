package plugins

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/internal/disk"
	"github.com/mapmatched/mmplug/mapmatched"
)

// LockFile is the name of the lock file in a plugin directory.
const LockFile = "plugins.lock"

// anyPlatform stands for the system and architecture of a script.
const anyPlatform = "any"

const lockSchema = 1

// Lock says which plugins a directory may hold.
type Lock struct {
	Schema  int         `json:"schema"` // 1
	Plugins []LockEntry `json:"plugins"`
}

// LockEntry is one plugin of a lock file.
type LockEntry struct {
	File     string `json:"file"` // name in the directory
	Kind     Kind   `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	OS       string `json:"os"`     // as GOOS, "any" for a script
	Arch     string `json:"arch"`   // as GOARCH, "any" for a script
	SHA256   string `json:"sha256"` // of the file, hexadecimal, lower case
}

// ParseLock reads a lock file. Unknown and repeated members, names that lead
// out of the directory, and entries that are there twice are errors.
func ParseLock(b []byte) (Lock, error) {
	lock, err := parseLock(b)
	if err != nil {
		return Lock{}, failAs(mapmatched.KindCorrupt, "read lock", "", err)
	}
	return lock, nil
}

func parseLock(b []byte) (Lock, error) {
	var lock Lock
	if err := checkDuplicates(b); err != nil {
		return lock, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&lock); err != nil {
		return lock, err
	}
	if lock.Schema != lockSchema {
		return lock, fmt.Errorf("it has the schema %d, this program knows %d: upgrade the older one", lock.Schema, lockSchema)
	}
	for i, e := range lock.Plugins {
		if err := e.check(); err != nil {
			return lock, fmt.Errorf("plugin %d: %w", i, err)
		}
		for _, before := range lock.Plugins[:i] {
			if before.key() == e.key() {
				return lock, fmt.Errorf("plugin %d: %s for %s/%s is there twice", i, e.File, e.OS, e.Arch)
			}
		}
	}
	lock.sort()
	return lock, nil
}

func (e LockEntry) key() [3]string { return [3]string{e.File, e.OS, e.Arch} }

func (e LockEntry) check() error {
	switch {
	case e.File == "" || e.File == "." || e.File == ".." || len(e.File) > 255 || strings.ContainsAny(e.File, "/\\:\x00\r\n"):
		return fmt.Errorf("the file %q is not a name in the plugin directory", e.File)
	case !slices.Contains(Kinds(), e.Kind):
		return fmt.Errorf("%s: the kind %q is not one of %s", e.File, e.Kind, join(Kinds()))
	case !validName(e.Name):
		return fmt.Errorf("%s: the name %q is not made of a-z, 0-9 and single '-'", e.File, e.Name)
	case checkVersion(e.Version) != nil:
		return fmt.Errorf("%s: %w", e.File, checkVersion(e.Version))
	case e.Protocol < 1:
		return fmt.Errorf("%s: the protocol %d is below 1", e.File, e.Protocol)
	case !validName(e.OS) || !validName(e.Arch):
		return fmt.Errorf("%s: %q/%q is no system and architecture", e.File, e.OS, e.Arch)
	case !isSHA256(e.SHA256) || strings.ToLower(e.SHA256) != e.SHA256:
		return fmt.Errorf("%s: the SHA-256 %q is not 64 hexadecimal digits in lower case", e.File, e.SHA256)
	}
	return nil
}

// isSHA256 reports whether s has the form of a digest.
func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// sort orders the plugins by name, kind, version, system and architecture.
func (l *Lock) sort() {
	slices.SortFunc(l.Plugins, func(a, b LockEntry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), compareVersions(a.Version, b.Version),
			cmp.Compare(a.OS, b.OS), cmp.Compare(a.Arch, b.Arch), cmp.Compare(a.File, b.File))
	})
}

// find returns the entry of a file for this machine, nil for none.
func (l Lock) find(file string) *LockEntry {
	for _, e := range l.Plugins {
		if e.File == file && e.here() {
			return &e
		}
	}
	return nil
}

// here reports whether an entry counts on this machine.
func (e LockEntry) here() bool {
	return (e.OS == runtime.GOOS || e.OS == anyPlatform) && (e.Arch == runtime.GOARCH || e.Arch == anyPlatform)
}

// ReadLock reads the lock file of a plugin directory. A directory without one
// gives an error that is fs.ErrNotExist.
func ReadLock(dir string) (Lock, error) {
	path := filepath.Join(dir, LockFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return Lock{}, fail("read lock", "", err)
	}
	lock, err := parseLock(b)
	if err != nil {
		return Lock{}, failAs(mapmatched.KindCorrupt, "read lock", "", fmt.Errorf("%s: %w", path, err))
	}
	return lock, nil
}

// trusted compares a plugin's file with plugins.lock and with what is pinned.
// It returns the digest of the file where it had to know it.
func (e Entry) trusted(pins []map[string]string, allowUnlocked bool) (sum string, err error) {
	lock, err := ReadLock(filepath.Dir(e.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	locked := lock.find(e.File)
	if locked == nil && !allowUnlocked {
		why := "does not list it for this machine"
		if err != nil {
			why = "is not there"
		}
		return "", fmt.Errorf("%w: %s %s: lock it (mmplug plugin lock), or allow it in so many words while you develop it",
			ErrUnlocked, filepath.Join(filepath.Dir(e.Path), LockFile), why)
	}
	if locked != nil && locked.Protocol != protocolVersion {
		return "", fmt.Errorf("%w: %s lists %s with protocol %d, this host speaks %d: upgrade the older one and lock again", ErrProtocol, LockFile, e.File, locked.Protocol, protocolVersion)
	}
	if locked == nil && len(pins) == 0 {
		return "", nil
	}
	if sum, err = fileSHA256(e.Path); err != nil {
		return "", err
	}
	if locked != nil && sum != locked.SHA256 {
		return "", fmt.Errorf("%w: %s: wanted %s (%s), got %s", ErrChecksum, e.Path, locked.SHA256, LockFile, sum)
	}
	return sum, checkPins(pins, e.Path, sum, e.Name)
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// WriteLock starts every plugin of a directory for this machine, asks what it
// is, and writes the lock file in one step. Entries of other systems stay as
// they are. Locking is to trust what lies there now. Of opts, which may be nil,
// only what says how to run a plugin counts, not Dir, Kind and Config.
func WriteLock(ctx context.Context, dir string, opts *Options) (Lock, error) {
	const op = "lock"
	entries, err := list(dir)
	if err != nil {
		return Lock{}, fail(op, "", err)
	}
	old, err := ReadLock(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Lock{}, err
	}
	lock := Lock{Schema: lockSchema, Plugins: []LockEntry{}}
	for _, e := range old.Plugins {
		if !e.here() {
			lock.Plugins = append(lock.Plugins, e)
		}
	}
	for _, e := range entries {
		locked, err := lockEntry(ctx, e, opts)
		if err != nil {
			return Lock{}, fail(op, e.Name, err)
		}
		lock.Plugins = append(lock.Plugins, locked)
	}
	lock.sort()
	b, err := json.MarshalIndent(lock, "", "  ")
	if err != nil {
		return Lock{}, fail(op, "", err)
	}
	return lock, fail(op, "", replaceFile(filepath.Join(dir, LockFile), append(b, '\n')))
}

// lockEntry asks a plugin what it is. The digest is of the file before it ran.
func lockEntry(ctx context.Context, e Entry, opts *Options) (LockEntry, error) {
	sum, err := fileSHA256(e.Path)
	if err != nil {
		return LockEntry{}, err
	}
	system, arch, err := platform(e.Path)
	if err != nil {
		return LockEntry{}, fmt.Errorf("%s: %w", e.Path, err)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Dir, o.Kind, o.Config = "", "", nil // not for each of them
	info, err := Inspect(ctx, e.Path, &o)
	if err != nil {
		return LockEntry{}, err
	}
	if e.Name != info.Name {
		return LockEntry{}, failAs(mapmatched.KindInvalid, "lock", e.Name, fmt.Errorf("%s calls itself %s: rename the file to %s%s-%s", e.Path, info.Name, filePrefix, e.Kind, info.Name))
	}
	if e.Version != "" && e.Version != info.Version {
		return LockEntry{}, fmt.Errorf("%s says that it is version %s: rename the file", e.Path, info.Version)
	}
	locked := LockEntry{File: e.File, Kind: e.Kind, Name: e.Name, Version: info.Version, Protocol: info.Protocol, OS: runtime.GOOS, Arch: runtime.GOARCH, SHA256: sum}
	if system == "" && arch == "" {
		locked.OS, locked.Arch = anyPlatform, anyPlatform
	}
	return locked, nil
}

// replaceFile writes a file in one step: a reader sees the old one or the new.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error says more
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// Verify compares a plugin directory with its lock file: one finding for each
// plugin, failed for one that is missing, changed or not listed. The plugins
// are not started. The error is about the directory or the lock file itself.
func Verify(dir string) ([]mapmatched.Finding, error) {
	entries, err := list(dir)
	if err != nil {
		return nil, fail("verify", "", err)
	}
	lock, err := ReadLock(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var findings []mapmatched.Finding
	for _, e := range entries {
		finding := mapmatched.Finding{Check: e.File, Status: mapmatched.StatusOK}
		_, err := e.trusted(nil, false)
		if err == nil {
			err = checkExecutable(e.Path)
		}
		if err != nil {
			finding.Status, finding.Detail = mapmatched.StatusFailed, err.Error()
			finding.Hint = "put the right file there, or look at it and lock it again (mmplug plugin lock)"
		} else {
			locked := lock.find(e.File)
			finding.Detail = fmt.Sprintf("%s %s, protocol %d, SHA-256 %s", locked.Name, locked.Version, locked.Protocol, locked.SHA256)
		}
		findings = append(findings, finding)
	}
	for _, locked := range lock.Plugins {
		if locked.here() && !slices.ContainsFunc(entries, func(e Entry) bool { return e.File == locked.File }) {
			findings = append(findings, mapmatched.Finding{Check: locked.File, Status: mapmatched.StatusFailed,
				Detail: LockFile + " lists it, but it is not in " + dir, Hint: "put it there, or lock again (mmplug plugin lock)"})
		}
	}
	return findings, nil
}

package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mapmatched/mmplug/mapmatched"
)

// filePrefix begins the names of plugins' files.
const filePrefix = "mmplug-"

// Entry is a plugin's file.
type Entry struct {
	File    string     `json:"file"`              // name in the directory
	Path    string     `json:"path"`              // where it is
	Kind    Kind       `json:"kind,omitempty"`    // as its name says; "" for a file with another name
	Name    string     `json:"name"`              // as its name says; the whole file name if that says nothing
	Version string     `json:"version,omitempty"` // as its name says, "" for none
	Locked  *LockEntry `json:"locked,omitempty"`  // its entry in plugins.lock for this machine, nil for none
}

// parseFileName reads mmplug-KIND-NAME and mmplug-KIND-NAME_vVERSION.
func parseFileName(file string) (Entry, error) {
	e := Entry{File: file}
	rest, ok := strings.CutPrefix(file, filePrefix)
	if exeSuffix != "" {
		rest = strings.TrimSuffix(rest, exeSuffix)
	}
	kind, rest, cut := strings.Cut(rest, "-")
	if !ok || !cut || !slices.Contains(Kinds(), Kind(kind)) {
		return e, fmt.Errorf("%q is not named mmplug-KIND-NAME with a kind of %s", file, join(Kinds()))
	}
	e.Kind = Kind(kind)
	name, version, versioned := strings.Cut(rest, "_v")
	if !validName(name) {
		return e, fmt.Errorf("%q: the name %q is not made of a-z, 0-9 and single '-'", file, name)
	}
	if versioned {
		if err := checkVersion(version); err != nil {
			return e, fmt.Errorf("%q: %w", file, err)
		}
	}
	e.Name, e.Version = name, version
	return e, nil
}

// List lists the plugins of a directory, by name, kind and version; versions
// compare as numbers. Files with other names are left out. The plugins are not
// started.
func List(dir string) ([]Entry, error) {
	entries, err := list(dir)
	if err != nil {
		return nil, fail("list", "", err)
	}
	lock, err := ReadLock(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i := range entries {
		entries[i].Locked = lock.find(entries[i].File)
	}
	return entries, nil
}

func list(dir string) ([]Entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, f := range files {
		e, err := parseFileName(f.Name())
		if err != nil || f.IsDir() {
			continue
		}
		e.Path = filepath.Join(dir, e.File)
		out = append(out, e)
	}
	sortEntries(out)
	return out, nil
}

// sortEntries orders plugins by name, kind and version.
func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), compareVersions(cmp.Or(a.Version, "0"), cmp.Or(b.Version, "0")), cmp.Compare(a.File, b.File))
	})
}

// locate finds the file of a plugin by name or path and sets the plugin
// directory in the options.
func locate(nameOrPath string, o *Options) (Entry, error) {
	if nameOrPath == "" {
		return Entry{}, failAs(mapmatched.KindInvalid, "open", "", errors.New("the name of the plugin is empty"))
	}
	if strings.ContainsAny(nameOrPath, `/`+string(filepath.Separator)) {
		path, err := filepath.Abs(nameOrPath)
		if err != nil {
			return Entry{}, err
		}
		if _, err := os.Stat(path); err != nil {
			return Entry{}, err
		}
		if o.Dir == "" {
			o.Dir = filepath.Dir(path)
		}
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return Entry{}, err
		}
		if dir != filepath.Dir(path) {
			return Entry{}, failAs(mapmatched.KindInvalid, "open", "", fmt.Errorf("%s is not in the plugin directory %s: leave Dir out, or give the plugin's name", path, dir))
		}
		e, err := parseFileName(filepath.Base(path))
		if err != nil { // any name will do for a path
			e = Entry{File: filepath.Base(path), Name: filepath.Base(path), Kind: o.Kind}
		}
		e.Path = path
		return e, nil
	}
	name, version, _ := strings.Cut(nameOrPath, "@")
	switch {
	case !validName(name):
		return Entry{}, failAs(mapmatched.KindInvalid, "open", "", fmt.Errorf("the name %q is not made of a-z, 0-9 and single '-': give a name or a path with a slash", name))
	case o.Dir == "":
		return Entry{}, failAs(mapmatched.KindInvalid, "open", name, errors.New("the plugin directory is missing: set Dir (PATH is not searched)"))
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Entry{}, err
	}
	entries, err := list(dir)
	if err != nil {
		return Entry{}, fmt.Errorf("the plugin directory: %w", err)
	}
	lock, err := ReadLock(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, err
	}
	for i, e := range entries {
		if locked := lock.find(e.File); e.Version == "" && locked != nil {
			entries[i].Version = locked.Version
		}
	}
	sortEntries(entries)
	return choose(entries, name, version, o.Kind, dir)
}

// choose takes the newest plugin of a name.
func choose(entries []Entry, name, version string, kind Kind, dir string) (Entry, error) {
	var found []Entry
	var names []string
	for _, e := range entries {
		if kind == "" || e.Kind == kind {
			names = append(names, e.File)
			if e.Name == name && (version == "" || e.Version == version) {
				found = append(found, e)
			}
		}
	}
	if len(found) == 0 {
		there := "there is none"
		if len(names) > 0 {
			there = "there are " + strings.Join(names, ", ")
		}
		what := filePrefix + string(cmp.Or(kind, "KIND")) + "-" + name
		if version != "" {
			what += "_v" + version
		}
		return Entry{}, fmt.Errorf("%s is not in the plugin directory %s, %s: %w", what, dir, there, fs.ErrNotExist)
	}
	if first, last := found[0], found[len(found)-1]; first.Kind != last.Kind {
		return Entry{}, failAs(mapmatched.KindInvalid, "open", name, fmt.Errorf("%s and %s have the same name: say which kind", first.File, last.File))
	}
	return found[len(found)-1], nil
}

// Inspect starts the plugin at path, asks what it is and ends it. It runs the
// binary without looking at plugins.lock. Without a configuration in opts the
// plugin is not configured: capabilities may be missing then.
func Inspect(ctx context.Context, path string, opts *Options) (Info, error) {
	h, err := open(ctx, path, opts, true)
	if err != nil {
		return Info{}, err
	}
	info := h.Info()
	return info, h.Close()
}

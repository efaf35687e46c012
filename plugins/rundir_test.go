package plugins

import (
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// put writes a file, and the directories that lead to it.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree lists everything below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			out = append(out, strings.TrimPrefix(path, dir+string(filepath.Separator)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSweep leaves alone what is not a run directory, whatever its name and
// age: nothing in it is removed, and nothing made.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"mmp-backup/letters/1.txt":       "dear",
		"mmp-locked/" + runLock:          "",
		"mmp-marked/" + runMarker:        "another program's",
		"mmp-longer/" + runMarker:        runMagic + "and more",
		"mmp-folder/" + runMarker + "/x": "",
		"mmp-abc/" + runMarker:           runMagic,
		"other/" + runMarker:             runMagic,
	} {
		put(t, filepath.Join(dir, filepath.FromSlash(path)), text)
	}
	if err := os.Mkdir(filepath.Join(dir, "mmp-bare01"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := tree(t, dir)
	left := filepath.Join(dir, "mmp-left01")
	put(t, filepath.Join(left, runMarker), runMagic)
	put(t, filepath.Join(left, "models", "big"), "x")

	held, err := newRunDir(dir, quietLog()) // it sweeps
	if err != nil {
		t.Fatal(err)
	}
	sweep(dir)
	if !isMarked(held.path) {
		t.Error("a run directory in use is swept, or not marked")
	}
	held.remove()
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("there are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRunDirAbsolute: the plugin runs in the directory, so its path may not
// depend on where that is.
func TestRunDirAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("temp", 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := newRunDir("temp", quietLog())
	if err != nil {
		t.Fatal(err)
	}
	defer d.remove()
	if !filepath.IsAbs(d.path) {
		t.Errorf("path %s", d.path)
	}
}

// TestRemoveSocket removes sockets in the directory and below it, and nothing
// else, wherever the path leads.
func TestRemoveSocket(t *testing.T) {
	dir := t.TempDir()
	d, err := newRunDir(dir, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	defer d.remove()
	outside := filepath.Join(dir, "out")
	put(t, filepath.Join(outside, "file"), "")
	put(t, filepath.Join(d.path, "file"), "")
	if err := os.Mkdir(filepath.Join(d.path, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(d.path, "link")); err != nil {
		t.Skip("SKIP: no symbolic links here: " + err.Error())
	}
	for path, goes := range map[string]bool{
		filepath.Join(d.path, "s"):         true,
		filepath.Join(d.path, "sub", "s"):  true,
		filepath.Join(outside, "s"):        false,
		filepath.Join(d.path, "link", "s"): false,
	} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false)
		d.removeSocket(path)
		if _, err := os.Lstat(path); (err != nil) != goes {
			t.Errorf("%s: error %v", path, err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		_ = os.Remove(path) // there, or not
	}
	for _, path := range []string{filepath.Join(d.path, "file"), filepath.Join(d.path, "link", "file"), d.path + "/../out/file"} {
		d.removeSocket(path)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestRemoveForbidden removes what a plugin has locked up.
func TestRemoveForbidden(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("SKIP: nothing is forbidden to root; run this test as another user")
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "run", "a", "b", "f"), "")
	for _, c := range []struct {
		path string
		mode fs.FileMode
	}{{"run/a/b", 0}, {"run/a", 0o500}} {
		if err := os.Chmod(filepath.Join(dir, c.path), c.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAll(filepath.Join(dir, "run")); err != nil {
		t.Error(err)
	}
	if left := tree(t, dir); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestRemoveSaysWhatIsLeft logs a directory that cannot be removed.
func TestRemoveSaysWhatIsLeft(t *testing.T) {
	var out strings.Builder
	d := &runDir{path: t.TempDir() + "/.", unlock: func() {}, log: slog.New(slog.NewTextHandler(&out, nil))}
	d.remove()
	if got := out.String(); !strings.Contains(got, "left behind") {
		t.Errorf("the log has %q", got)
	}
}

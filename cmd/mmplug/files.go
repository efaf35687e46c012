package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// readFile reads a file, or standard input for "-", and names it in errors. It
// returns when ctx is done, also while there is nothing to read yet.
func readFile[T any](ctx context.Context, std stdio, path string, read func(io.Reader) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := readNow(std, path, read)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

func readNow[T any](std stdio, path string, read func(io.Reader) (T, error)) (T, error) {
	var zero T
	in := std.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return zero, cannot("read", path, err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	v, err := read(in)
	if errors.As(err, new(*fs.PathError)) {
		return zero, cannot("read", inputName(path), err)
	}
	if err != nil {
		return zero, fmt.Errorf("%s: %w", inputName(path), err)
	}
	return v, nil
}

// inputName is what errors call a file that is read.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// writeFile replaces a file in one step: a reader, or a crash, sees the old
// content or the new one. "-" is standard output.
func writeFile(std stdio, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(std.out)
	}
	if err := replaceFile(path, write); err != nil {
		return cannot("write", path, err)
	}
	return nil
}

func replaceFile(path string, write func(io.Writer) error) (err error) {
	target, err := followed(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0)
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		// A device or a pipe cannot be replaced, only written to.
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	} else if err == nil {
		mode = info.Mode().Perm()
	}
	fresh := beside(target, fmt.Sprint(os.Getpid()))
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()        //nolint:errcheck // closed already, or the first error counts
			os.Remove(fresh) //nolint:errcheck // nothing more to be done
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(fresh, target)
}

// checkTarget reports whether a file can be where path says; "" is no file.
func checkTarget(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return syscall.EISDIR
	}
	info, err := os.Stat(filepath.Dir(path))
	if err == nil && !info.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

// followed follows the symbolic links of path, so that what they lead to is
// replaced and not a link.
func followed(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		return target, nil
	}
	if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", errors.New("it is a symbolic link that leads nowhere")
	}
	return path, nil
}

// beside is the name of a file that this program keeps next to another one for
// a while.
func beside(path, what string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".mmplug-"+what)
}

// cannot says which file could not be read or written, why, and what to do.
func cannot(do, name string, err error) error {
	return fmt.Errorf("cannot %s %s: %w%s", do, name, cause(err), hint(err))
}

// cause is err without the name of the file, which the message gives already.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// hint says what to do about an error of the system.
func hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "; check the path"
	case errors.Is(err, fs.ErrPermission):
		return "; check its permissions"
	case errors.Is(err, syscall.EISDIR):
		return "; name a file"
	case errors.Is(err, syscall.ENOSPC):
		return "; free some space"
	}
	return ""
}

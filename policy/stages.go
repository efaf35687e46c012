package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Staged runs a part of the policy at its stage. Off returns plain without
// calling compute. Shadow calls it, hands the outcome to log, and returns plain
// whatever came of it, an error included. Active calls it, logs it and returns
// it; an error is returned with plain. log may be nil.
func Staged[T any](s Stage, plain T, compute func() (T, error), log func(T, error)) (T, error) {
	if s != StageShadow && s != StageActive {
		return plain, nil
	}
	staged, err := compute()
	if log != nil {
		log(staged, err)
	}
	switch {
	case s == StageShadow:
		return plain, nil
	case err != nil:
		return plain, err
	}
	return staged, nil
}

// ShadowRecord is a line of a shadow log: what a part of the policy would have
// done in a turn. It holds no text of the conversation unless the caller puts
// it there.
type ShadowRecord struct {
	Applied         string   `json:"applied"`                    // what was in effect
	CounterEvidence []string `json:"counter_evidence,omitempty"` // what speaks against the outcome
	Error           string   `json:"error,omitempty"`            // why there is no outcome
	Features        Features `json:"features,omitempty"`         // what the outcome was made of
	Outcome         string   `json:"outcome"`                    // what the part decided
	Part            string   `json:"part"`                       // such as "activation"
	Policy          string   `json:"policy,omitempty"`           // digest of the policy that the part belongs to
	Session         string   `json:"session,omitempty"`          // of the conversation, "" when it has no name
	Sources         []string `json:"sources,omitempty"`          // chunk IDs that the outcome is about
	Support         []string `json:"support,omitempty"`          // what speaks for the outcome
	Turn            int      `json:"turn_index"`
	Value           *float64 `json:"value,omitempty"` // number that the outcome hangs on, such as a confidence
	Version         string   `json:"version"`         // tag of the formula, or digest of a whole policy
}

// Validate reports every fault: no part, a turn below 0, a number that is not
// finite.
func (r *ShadowRecord) Validate() error {
	var errs []error
	if r.Part == "" {
		errs = append(errs, errors.New("shadow record: part is empty"))
	}
	if r.Turn < 0 {
		errs = append(errs, fmt.Errorf("shadow record: turn_index is %d: it must be at least 0", r.Turn))
	}
	if r.Value != nil && !finite(*r.Value) {
		errs = append(errs, fmt.Errorf("shadow record: value is %v: %w", *r.Value, mapmatched.ErrNonFinite))
	}
	if err := r.Features.check(); err != nil {
		errs = append(errs, fmt.Errorf("shadow record: %w", err))
	}
	return errors.Join(errs...)
}

// The defaults of ShadowLogOptions.
const (
	DefaultShadowLogBytes = 10 << 20
	DefaultShadowLogFiles = 4
)

// ShadowLogOptions bound a shadow log. The zero value, and nil, are the
// defaults.
type ShadowLogOptions struct {
	// MaxBytes is the most bytes of one file, and of one record. 0 means
	// DefaultShadowLogBytes.
	MaxBytes int64
	// MaxFiles is the most files, the one being written included: PATH, and
	// PATH.1 to PATH.(MaxFiles−1), the newest first. 0 means
	// DefaultShadowLogFiles.
	MaxFiles int
}

// ShadowLog is a file of shadow records, one JSON object a line. It never takes
// more than MaxBytes·MaxFiles: a file that would grow too large is renamed, and
// the oldest is removed. It is safe for concurrent use within one process; two
// processes need two paths.
type ShadowLog struct {
	mu       sync.Mutex
	path     string
	maxBytes int64
	maxFiles int
	file     *os.File // nil after Close, or when a new file could not be opened
	size     int64
	closed   bool
}

// OpenShadowLog opens or makes the log at path and appends to it. The rest of
// a line that a crash cut short is removed.
func OpenShadowLog(path string, opts *ShadowLogOptions) (*ShadowLog, error) {
	if opts == nil {
		opts = &ShadowLogOptions{}
	}
	l := &ShadowLog{path: path, maxBytes: opts.MaxBytes, maxFiles: opts.MaxFiles}
	if l.maxBytes == 0 {
		l.maxBytes = DefaultShadowLogBytes
	}
	if l.maxFiles == 0 {
		l.maxFiles = DefaultShadowLogFiles
	}
	if l.maxBytes < 0 || l.maxFiles < 0 {
		return nil, fmt.Errorf("shadow log: %w: MaxBytes %d and MaxFiles %d must be at least 1, or 0 for the defaults", mapmatched.ErrInvalidConfig, opts.MaxBytes, opts.MaxFiles)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("shadow log: %w", err)
	}
	return l, nil
}

// open opens the file and goes to the end of its last whole line.
func (l *ShadowLog) open() error {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	size, err := wholeLines(file)
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		_, err = file.Seek(size, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, size
	return nil
}

// wholeLines is the length of a file up to and with its last line feed.
func wholeLines(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", file.Name())
	}
	block := make([]byte, 4096)
	for end := info.Size(); end > 0; {
		begin := max(end-int64(len(block)), 0)
		part := block[:end-begin]
		if _, err := file.ReadAt(part, begin); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		end = begin
	}
	return 0, nil
}

// Write appends a record. A record that is invalid or longer than a whole file
// may be is refused; after Close the error is mapmatched.ErrClosed.
func (l *ShadowLog) Write(r ShadowRecord) error {
	if err := r.Validate(); err != nil {
		return err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("shadow log: %w", err)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("shadow log: %w", mapmatched.ErrClosed)
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return fmt.Errorf("shadow log: %w", err)
		}
	}
	length := int64(len(line))
	if length > l.maxBytes {
		return fmt.Errorf("shadow log: a record of %d bytes does not fit into a file of %d", length, l.maxBytes)
	}
	if l.size+length > l.maxBytes {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("shadow log: rotate: %w", err)
		}
	}
	if _, err := l.file.Write(line); err != nil {
		// Leave no line in part. What cannot be undone, the next open removes.
		_, _ = l.file.Seek(l.size, io.SeekStart)
		_ = l.file.Truncate(l.size)
		return fmt.Errorf("shadow log: %w", err)
	}
	l.size += length
	return nil
}

// rotate begins a new file.
func (l *ShadowLog) rotate() error {
	if l.maxFiles == 1 {
		if _, err := l.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		l.size = 0
		return l.file.Truncate(0)
	}
	for n := l.maxFiles - 1; n > 0; n-- {
		if err := os.Rename(l.name(n-1), l.name(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	old := l.file
	l.file = nil
	return errors.Join(old.Close(), l.open())
}

// name is the path of the n-th newest file.
func (l *ShadowLog) name(n int) string {
	if n == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, n)
}

// Files lists the paths of the log's files that exist, oldest first.
func (l *ShadowLog) Files() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var paths []string
	for n := l.maxFiles - 1; n >= 0; n-- {
		if _, err := os.Stat(l.name(n)); err == nil {
			paths = append(paths, l.name(n))
		}
	}
	return paths
}

// Close closes the log. Closing again does nothing.
func (l *ShadowLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}

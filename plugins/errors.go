package plugins

import (
	"context"
	"errors"
	"io/fs"

	"github.com/mapmatched/mmplug/mapmatched"
)

var (
	// ErrUnlocked says that a plugin is not in plugins.lock.
	ErrUnlocked = errors.New("plugin is not in plugins.lock")
	// ErrChecksum says that a plugin is not the binary that plugins.lock or a
	// policy names.
	ErrChecksum = errors.New("plugin has another SHA-256 than it should")
	// ErrProtocol says that plugin and host have no protocol version in
	// common.
	ErrProtocol = errors.New("no protocol version in common")
	// ErrGaveUp says that a plugin failed too often in a row to be started
	// again.
	ErrGaveUp = errors.New("plugin is not started again")
)

// fail makes the error of an operation on a plugin, its kind found from its
// cause. An error that has a kind keeps it.
func fail(op, name string, err error) error {
	if err == nil || mapmatched.KindOf(err) != "" {
		return err
	}
	kind := mapmatched.KindUnavailable
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = mapmatched.KindDeadline
	case errors.Is(err, fs.ErrNotExist):
		kind = mapmatched.KindNotFound
	case errors.Is(err, ErrUnlocked), errors.Is(err, ErrChecksum), errors.Is(err, ErrProtocol):
		kind = mapmatched.KindInvalid
	}
	return failAs(kind, op, name, err)
}

// failAs makes an error of a given kind.
func failAs(kind mapmatched.Kind, op, name string, err error) error {
	return &mapmatched.Error{Op: op, Adapter: adapterName(name), Kind: kind, Err: err}
}

// adapterName is the adapter in the errors of a plugin.
func adapterName(name string) string {
	if name == "" {
		return "plugins"
	}
	return "plugin " + name
}

//go:build !linux

package embedded

import "errors"

// exchange swaps two directories in one step, which this system cannot do.
func exchange(_, _ string) error { return errors.ErrUnsupported }

package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

type (
	pinsKey   struct{}
	loggerKey struct{}
)

// WithPins returns a context in which [Open], and with it the registry, starts
// no plugin but those that are pinned: SHA-256 digests in hexadecimal by plugin
// name, as the list of a policy has them. [Options].Pins says what is compared.
// Without pins the context stays as it is; pins that it has already count too.
func WithPins(ctx context.Context, pins map[string]string) context.Context {
	if len(pins) == 0 {
		return ctx
	}
	before := pinsOf(ctx)
	return context.WithValue(ctx, pinsKey{}, append(before[:len(before):len(before)], maps.Clone(pins)))
}

func pinsOf(ctx context.Context) []map[string]string {
	pins, _ := ctx.Value(pinsKey{}).([]map[string]string)
	return pins
}

// WithLogger returns a context in which [Open], and with it the registry, gives
// plugins this logger where [Options].Logger is nil.
func WithLogger(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, log)
}

// validatePins reports digests that are none.
func validatePins(pins map[string]string) []error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		if !isSHA256(pins[name]) {
			faults = append(faults, fmt.Errorf("the pin of %s is %q, not 64 hexadecimal digits", name, pins[name]))
		}
	}
	return faults
}

// checkPins expects the digest of a file in every list, and where a list has
// one of the names, that digest.
func checkPins(lists []map[string]string, path, sum string, names ...string) error {
	for _, pins := range lists {
		for _, name := range names {
			if pin, ok := pins[name]; ok && !strings.EqualFold(pin, sum) {
				return fmt.Errorf("%w: %s: wanted %s (pinned for %s, as by a policy), got %s", ErrChecksum, path, strings.ToLower(pin), name, sum)
			}
		}
		listed := slices.ContainsFunc(slices.Collect(maps.Values(pins)), func(pin string) bool { return strings.EqualFold(pin, sum) })
		if !listed {
			return fmt.Errorf("%w: %s has %s, and pinned, as by a policy, are only %s", ErrChecksum, path, sum, strings.Join(slices.Sorted(maps.Keys(pins)), ", "))
		}
	}
	return nil
}

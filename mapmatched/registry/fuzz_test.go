package registry

import (
	"context"
	"strings"
	"testing"

	"github.com/mapmatched/mmplug/mapmatched"
)

// FuzzOpen: no URL panics; every refusal is typed; a secret that the URL gives
// in a known place never comes back in the error.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"store:x", "store://h:1/c?limit=3", "store:a%zz", "store:x?api_key=", "C:\\x", "store:x?a=1&a=2", "store://u:p@h"} {
		f.Add(s)
	}
	var r Registry
	r.RegisterProvider("store", storeOpener())
	f.Fuzz(func(t *testing.T, raw string) {
		check := func(raw string) error {
			p, err := r.OpenProvider(context.Background(), raw)
			if (p == nil) == (err == nil) {
				t.Fatalf("%q: provider %v with error %v", raw, p, err)
			}
			if _, typed := err.(*mapmatched.Error); err != nil && !typed {
				t.Fatalf("%q: error is a %T", raw, err)
			}
			return err
		}
		_ = check(raw) // only the invariants matter
		const secret = "xyzzy-9f8e7d6c"
		err := check("store:x?" + strings.NewReplacer("#", "", "&", "").Replace(raw) + "&password=" + secret)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Fatalf("%q: error %v", raw, err)
		}
	})
}

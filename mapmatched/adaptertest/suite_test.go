package adaptertest

import (
	"context"
	"testing"
	"time"
)

func TestTrippingContext(t *testing.T) {
	c := newTrippingContext(context.Background(), 2)
	for n := range 2 {
		if err := c.Err(); err != nil || c.tripped() {
			t.Errorf("asked %d times before: error %v, want none", n, err)
		}
	}
	if c.Err() != context.Canceled || !c.tripped() {
		t.Error("not cancelled the third time it is asked")
	}
	derived, cancel := context.WithTimeout(newTrippingContext(context.Background(), 0), time.Hour)
	defer cancel()
	<-derived.Done() // a context made from it is cancelled as well
	if derived.Err() != context.Canceled {
		t.Errorf("derived: error %v, want context.Canceled", derived.Err())
	}
}

func TestParallelReturnsTheFirstFault(t *testing.T) {
	err := parallel(4, func(i int) error {
		if i == 2 {
			panic("two")
		}
		if i == 3 {
			return errBroken
		}
		return nil
	})
	if err == nil || err.Error() != "panic: two" {
		t.Errorf("error %v, want the panic of number 2", err)
	}
}

package adaptertest

import (
	"context"
	"testing"
	"time"
)

func TestTrippingContext(t *testing.T) {
	c := newTrippingContext(context.Background(), 2)
	if c.Err() != nil || c.Err() != nil || c.tripped() {
		t.Error("cancelled before the third time it is asked")
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

package langchaingo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Asker conducts one conversation. *mapmatched.Session is one; a conversation
// under a policy becomes one in a few lines, see the example of AnswerAsker.
//
// An Asker that also has a method Session() *mapmatched.Session has a trace for
// Conversations.Step and is found by Conversations.Session.
type Asker interface {
	// Ask decodes the next turn. The query has the words of the turn and, as
	// History, the questions from before the first turn that this Asker was
	// asked; its own turns it knows itself. The ranking of the result is the
	// order of the documents, with texts. A turn that fails leaves the
	// conversation as it was.
	Ask(ctx context.Context, q mapmatched.Query) (*mapmatched.Result, error)
}

// AnswerAsker is an Asker that makes use of the assistant's last reply, "" when
// there is none. AskAfter is called in place of Ask.
type AnswerAsker interface {
	Asker
	AskAfter(ctx context.Context, q mapmatched.Query, answer string) (*mapmatched.Result, error)
}

// sessionOf is the session of an Asker, nil when it shows none.
func sessionOf(a Asker) *mapmatched.Session {
	switch a := a.(type) {
	case *mapmatched.Session:
		return a
	case interface{ Session() *mapmatched.Session }:
		return a.Session()
	}
	return nil
}

// asking is an Asker of the caller's with the history of its conversation. Its
// turns take turns.
type asking struct {
	id      string
	begin   func(context.Context, string) (Asker, error)
	decoder atomic.Pointer[mapmatched.Session] // what the Asker shows
	history func(context.Context, string) ([]Turn, error)
	lock    chan struct{} // holds one token while a turn is under way
	asker   Asker         // nil before the first turn
	begun   bool          // a turn was answered
	before  []string      // questions from before the first turn
}

func (a *asking) ask(ctx context.Context, text string) (*mapmatched.Result, error) {
	select {
	case a.lock <- struct{}{}:
		defer func() { <-a.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.asker == nil {
		asker, err := a.begin(ctx, a.id)
		if err == nil && asker == nil {
			err = errors.New("there is no Asker")
		}
		if err != nil {
			return nil, fmt.Errorf("cannot begin: %w", err)
		}
		a.asker = asker
		a.decoder.Store(sessionOf(asker))
	}
	after, hears := a.asker.(AnswerAsker)
	before, answer := a.before, ""
	if a.history != nil && (hears || !a.begun) {
		turns, err := earlier(ctx, a.history, a.id, text)
		if err != nil {
			return nil, err
		}
		if !a.begun {
			before = questions(turns)
		}
		if len(turns) > 0 {
			answer = turns[len(turns)-1].Answer
		}
	}
	q := mapmatched.Query{Text: text, History: before}
	var result *mapmatched.Result
	var err error
	if hears {
		result, err = after.AskAfter(ctx, q, answer)
	} else {
		result, err = a.asker.Ask(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	a.begun, a.before = true, before
	return result, nil
}

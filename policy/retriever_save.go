package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mapmatched/mmplug/mapmatched"
)

// ConversationSchema is the value of the key "schema" of saved conversations.
const ConversationSchema = "mmplug.conversation/1"

// savedRetriever is the form of a saved conversation.
type savedRetriever struct {
	Schema     string          `json:"schema"`
	Policy     savedPolicy     `json:"policy"`
	Activation ActivationState `json:"activation"`
	Feedback   Feedback        `json:"feedback"`
	Vectors    [][]float32     `json:"vectors,omitempty"`
	Survivors  []string        `json:"survivors,omitempty"`
	Shadows    []savedShadow   `json:"shadows,omitempty"`
	Session    json.RawMessage `json:"session"`
}

type savedPolicy struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

type savedShadow struct {
	Part    string          `json:"part"`
	Version string          `json:"version"`
	Dead    string          `json:"dead,omitempty"`
	State   json.RawMessage `json:"state,omitempty"` // a savedRetriever, left out for one that never began
}

// Save writes the conversation as JSON, with what runs in shadow. Restored, it
// continues bit for bit as if it had never been away.
func (r *Retriever) Save(w io.Writer) error {
	r.lock <- struct{}{}
	defer r.release()
	raw, err := r.saved()
	if err != nil {
		return fmt.Errorf("save conversation: %w", err)
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

func (r *Retriever) saved() ([]byte, error) {
	var session bytes.Buffer
	if err := r.session.Save(&session); err != nil {
		return nil, err
	}
	saved := savedRetriever{
		Schema: ConversationSchema, Policy: savedPolicy{r.policy.Name, r.digest},
		Activation: r.memory.activation, Feedback: r.memory.feedback, Vectors: r.memory.vectors,
		Survivors: r.memory.survivors, Session: session.Bytes(),
	}
	for _, s := range r.shadows {
		one := savedShadow{Part: s.part, Version: s.version, Dead: s.dead}
		if s.retriever != nil {
			var err error
			if one.State, err = s.retriever.saved(); err != nil {
				return nil, err
			}
		}
		saved.Shadows = append(saved.Shadows, one)
	}
	return json.Marshal(saved)
}

// Restore reads a conversation that Save wrote. It goes on under the policy it
// was made under, on the same corpus; anything else is an error. What runs in
// shadow and was not saved begins with the next turn.
func Restore(ctx context.Context, reader io.Reader, p *Policy, parts Parts) (*Retriever, error) {
	raw, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	r, err := restore(ctx, raw, p, parts)
	if err != nil {
		return nil, fmt.Errorf("restore conversation: %w", err)
	}
	return r, nil
}

func restore(ctx context.Context, raw []byte, p *Policy, parts Parts) (*Retriever, error) {
	saved, err := readSaved(raw)
	if err != nil {
		return nil, err
	}
	r, err := newRetriever(ctx, p, parts)
	if err != nil {
		return nil, err
	}
	if saved.Policy.Digest != r.digest {
		return nil, fmt.Errorf("%w: it was made under policy %s with the digest %s, not under %s with %s: a conversation keeps its policy",
			mapmatched.ErrInvalidConfig, saved.Policy.Name, saved.Policy.Digest, p.Name, r.digest)
	}
	r.session, err = mapmatched.RestoreSession(bytes.NewReader(saved.Session), providing(r.candidates), r.graph(), r.config())
	if err != nil {
		return nil, err
	}
	r.memory = memory{saved.Activation, saved.Feedback, saved.Vectors, saved.Survivors}
	if n := len(saved.Vectors); n > 0 && n != r.session.Turns() {
		return nil, fmt.Errorf("not a saved conversation: %d query vectors for %d turns", n, r.session.Turns())
	}
	if err := r.beginShadows(ctx, saved.Shadows); err != nil {
		return nil, err
	}
	return r, nil
}

// readSaved checks the form of a saved conversation.
func readSaved(raw []byte) (*savedRetriever, error) {
	saved := &savedRetriever{}
	if err := saved.read(raw); err != nil {
		return nil, fmt.Errorf("not a saved conversation: %w", err)
	}
	return saved, nil
}

func (s *savedRetriever) read(raw []byte) error {
	var head struct {
		Schema string `json:"schema"`
	}
	var syntax *json.SyntaxError
	err := json.Unmarshal(raw, &head)
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(raw)):
		return errors.New("the JSON ends in the middle")
	case errors.As(err, &syntax) && json.NewDecoder(bytes.NewReader(raw)).Decode(&head) == nil:
		return errors.New("something follows the JSON value")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON at byte %d: %w", syntax.Offset, err)
	case err != nil || head.Schema != ConversationSchema:
		return fmt.Errorf("schema %q, this release reads %q", head.Schema, ConversationSchema)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(s); err != nil {
		return err
	}
	a := s.Activation
	switch a.Activation {
	case "", Suppress, Prefetch, Emit:
	default:
		return fmt.Errorf("activation %q", a.Activation)
	}
	if a.Cooldown < 0 {
		return fmt.Errorf("cooldown %d", a.Cooldown)
	}
	return nil
}

// ReadConversationTrace reads a saved conversation for its detailed trace alone.
func ReadConversationTrace(reader io.Reader) (*mapmatched.Trace, error) {
	raw, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	saved, err := readSaved(raw)
	if err != nil {
		return nil, err
	}
	return mapmatched.ReadSessionTrace(bytes.NewReader(saved.Session))
}

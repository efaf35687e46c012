package langchaingo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Limits of the calls of a service.
const (
	headerTimeout = 5 * time.Minute // until a reply begins; a model may have to be loaded first
	maxReply      = 1 << 28         // bytes of a reply
	maxRedirects  = 10
)

// newClient returns a client that follows redirects within one scheme and host,
// port included, or none.
func newClient(redirects bool) *http.Client {
	client := &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		from := via[len(via)-1].URL
		switch {
		case !redirects:
			return fail("embed", mapmatched.KindInvalid, "the service redirects to %s://%s, and the API key is not sent on; name the right address in base_url", r.URL.Scheme, r.URL.Host)
		case r.URL.Scheme != from.Scheme || r.URL.Host != from.Host:
			return fail("embed", mapmatched.KindInvalid, "the service redirects to %s://%s, which is another place; name that one in base_url or server if it is meant", r.URL.Scheme, r.URL.Host)
		case len(via) >= maxRedirects:
			return fail("embed", mapmatched.KindInvalid, "the service redirects more than %d times", maxRedirects)
		}
		return nil
	}}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		transport := standard.Clone()
		transport.ResponseHeaderTimeout = headerTimeout
		client.Transport = transport
	}
	return client
}

// doer sends the requests of the OpenAI client.
type doer struct {
	keyless bool
	client  *http.Client
}

func newDoer(keyless bool) doer { return doer{keyless, newClient(keyless)} }

// Do implements the interface that the client asks for.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	if d.keyless {
		r.Header.Del("Authorization")
	}
	reply, err := d.client.Do(r)
	if err != nil {
		var refused *mapmatched.Error
		if errors.As(err, &refused) { // bare: some versions of the client drop what an error of the network wraps
			return nil, refused
		}
		return nil, err
	}
	switch reply.StatusCode {
	case http.StatusOK:
		return reply, sortReply(reply)
	case http.StatusUnauthorized, http.StatusForbidden:
		hint := "the API key is wrong or has no right to the model"
		if d.keyless {
			hint = "it wants an API key; name the variable that has it in api_key_env"
		}
		return nil, errors.Join(fail("embed", mapmatched.KindUnauthenticated, "HTTP status %d: %s", reply.StatusCode, hint), reply.Body.Close())
	case http.StatusNotFound:
		hint := "is the model there?"
		if !strings.HasSuffix(r.URL.Path, "/v1/embeddings") {
			hint = "does base_url end in /v1?"
		}
		return nil, errors.Join(fail("embed", mapmatched.KindNotFound, "HTTP status %d from %s: %s", reply.StatusCode, r.URL, hint), reply.Body.Close())
	}
	return reply, nil
}

// sortReply puts the vectors of a reply in the order of the texts, as their
// indices say: the client drops those and takes the vectors as they come.
func sortReply(reply *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxReply+1))
	if err = errors.Join(err, reply.Body.Close()); err != nil {
		return err
	}
	if len(data) > maxReply {
		return fail("embed", mapmatched.KindInvalid, "the reply is longer than %d bytes; set a lower batch_size", maxReply)
	}
	if data, err = inOrder(data); err != nil {
		return fail("embed", mapmatched.KindInvalid, "reply of the service: %w", err)
	}
	reply.Body, reply.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	reply.Header.Del("Content-Length")
	return nil
}

// inOrder sorts the list "data" of a reply by the numbers "index" of its
// entries, which are 0 to n−1 in some order, or absent from all.
func inOrder(reply []byte) ([]byte, error) {
	var body struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(reply, &body); err != nil {
		return nil, fmt.Errorf("it is not the JSON of embeddings: %w", err)
	}
	sorted := make([]json.RawMessage, len(body.Data))
	without := 0
	for i, entry := range body.Data {
		var at struct {
			Index *int `json:"index"`
		}
		if err := json.Unmarshal(entry, &at); err != nil {
			return nil, fmt.Errorf("entry %d of data: %w", i, err)
		}
		switch {
		case at.Index == nil:
			without++
		case *at.Index < 0 || *at.Index >= len(sorted):
			return nil, fmt.Errorf("entry %d of data has the index %d, and there are %d", i, *at.Index, len(sorted))
		case sorted[*at.Index] != nil:
			return nil, fmt.Errorf("two entries of data have the index %d; which text is which cannot be told", *at.Index)
		default:
			sorted[*at.Index] = entry
		}
	}
	switch without {
	case 0:
		body.Data = sorted
	case len(body.Data):
	default:
		return nil, fmt.Errorf("%d of %d entries of data have no index; which text is which cannot be told", without, len(body.Data))
	}
	return json.Marshal(body)
}

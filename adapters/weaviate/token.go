package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mapmatched/mmplug/mapmatched"
)

// tokenSource gives the bearer token of a request: the API key, or a token that
// an OIDC issuer gave for the client's secret. It is safe for concurrent use.
type tokenSource struct {
	connection *Connection
	base       http.RoundTripper
	address    string

	turn  chan struct{} // holds one value while a token is being fetched
	token *oauth2.Token
	grant *clientcredentials.Config
}

func newTokenSource(o *Connection, base http.RoundTripper, address string) *tokenSource {
	return &tokenSource{connection: o, base: base, address: address, turn: make(chan struct{}, 1)}
}

// bearer returns the token, "" for none.
func (t *tokenSource) bearer(ctx context.Context) (string, error) {
	if t.connection.ClientSecret == "" {
		return t.connection.APIKey, nil
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-t.turn }()
	if t.token.Valid() {
		return t.token.AccessToken, nil
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: t.base})
	if t.grant == nil {
		grant, err := t.discover(ctx)
		if err != nil {
			return "", err
		}
		t.grant = grant
	}
	token, err := t.grant.Token(ctx)
	if err != nil {
		return "", refusedToken(ctx, t.grant.TokenURL, err)
	}
	t.token = token
	return token.AccessToken, nil
}

// refusedToken words the error of an issuer without what it quotes.
func refusedToken(ctx context.Context, tokenURL string, err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		return &reply{kind: mapmatched.KindUnauthenticated, message: fmt.Sprintf("%s gives no token (status %d, %s): check ClientID and ClientSecret", tokenURL, refused.Response.StatusCode, refused.ErrorCode)}
	}
	return fmt.Errorf("token from %s: %w", tokenURL, err)
}

// discover asks the server for its issuer, and that for where it gives tokens.
func (t *tokenSource) discover(ctx context.Context) (*clientcredentials.Config, error) {
	scheme := "http"
	if t.connection.TLS {
		scheme = "https"
	}
	var named struct {
		Href     string   `json:"href"`
		ClientID string   `json:"clientId"`
		Scopes   []string `json:"scopes"`
	}
	found, err := t.get(ctx, scheme+"://"+t.address+"/v1/.well-known/openid-configuration", &named)
	if err != nil {
		return nil, err
	}
	if !found || named.Href == "" {
		return nil, &reply{kind: mapmatched.KindUnauthenticated, message: "the server takes no OIDC tokens: leave ClientSecret out"}
	}
	if err := t.checkSecure(named.Href); err != nil {
		return nil, err
	}
	var issuer struct {
		TokenEndpoint string `json:"token_endpoint"`
	}
	found, err = t.get(ctx, named.Href, &issuer)
	if err != nil {
		return nil, err
	}
	if !found || issuer.TokenEndpoint == "" {
		return nil, corrupt("%s names no token_endpoint", named.Href)
	}
	if err := t.checkSecure(issuer.TokenEndpoint); err != nil {
		return nil, err
	}
	grant := &clientcredentials.Config{
		ClientID: named.ClientID, ClientSecret: t.connection.ClientSecret, TokenURL: issuer.TokenEndpoint,
		Scopes: slices.Concat(t.connection.Scopes, named.Scopes),
	}
	if t.connection.ClientID != "" {
		grant.ClientID = t.connection.ClientID
	}
	return grant, nil
}

// checkSecure refuses to send the secret without encryption.
func (t *tokenSource) checkSecure(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return corrupt("the server names %q as its issuer, which is no URL", raw)
	}
	if u.Scheme != "https" && !t.connection.Plaintext && !loopback(u.Hostname()) {
		return invalid("the secret would go to %s without encryption: set Plaintext if that is meant", u.Host)
	}
	return nil
}

// get reads JSON. It reports false when there is nothing (404).
func (t *tokenSource) get(ctx context.Context, from string, into any) (found bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return false, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return false, err
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return false, nil
	default:
		return false, translateHTTP(response.StatusCode, string(body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, corrupt("%s: %v", from, err)
	}
	return true, nil
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t *tokenSource) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := t.bearer(ctx)
	if token == "" || err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Whether a
// secret may go without is decided when connecting.
func (t *tokenSource) RequireTransportSecurity() bool { return false }

// authorized adds the token to every request.
type authorized struct {
	base   http.RoundTripper
	tokens *tokenSource
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.tokens.bearer(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the interface asks for it
		}
		return nil, err
	}
	if token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return a.base.RoundTrip(r)
}

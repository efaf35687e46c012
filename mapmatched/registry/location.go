package registry

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Location is a URL without its parameters.
type Location struct {
	Scheme string // lower case
	Host   string // name or address without brackets; "" in scheme:path
	Port   string // decimal digits, "" when the URL has none
	Path   string // unescaped; begins with "/" after a host, may be relative in scheme:path
}

// File returns the path of a location on disk. It is an error when there is
// none or when the URL has a host, as in scheme://path/file, where the first
// part of the path would be lost.
func (l Location) File() (string, error) {
	if l.Host != "" || l.Port != "" {
		return "", fmt.Errorf("%q is read as a host; write %s:PATH, without //", l.hostPort(), l.Scheme)
	}
	if l.Path == "" {
		return "", fmt.Errorf("the path is missing; write %s:PATH", l.Scheme)
	}
	return l.Path, nil
}

func (l Location) hostPort() string {
	if l.Port == "" {
		return l.Host
	}
	return l.Host + ":" + l.Port
}

// splitScheme cuts the scheme off a URL and lowers its case.
func splitScheme(raw string) (scheme, rest string, err error) {
	scheme, rest, found := strings.Cut(raw, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case raw == "":
		return "", "", errors.New("the URL is empty")
	case !found || strings.ContainsAny(scheme, "/\\?#@"):
		return "", "", errors.New("the URL has no scheme; write SCHEME:PATH or SCHEME://HOST/NAME")
	case len(scheme) == 1:
		return "", "", fmt.Errorf("%q looks like a drive letter, not a scheme; write SCHEME:%s:PATH", scheme+":", scheme)
	case !validScheme(scheme):
		return "", "", fmt.Errorf("%q is not a scheme: it begins with a letter and has letters, digits, '+', '-' and '.'", scheme)
	}
	return scheme, rest, nil
}

// validScheme reports whether s is a lower-case scheme (RFC 3986, section
// 3.1). One letter is left to the drives of Windows.
func validScheme(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && !strings.ContainsRune("+-.", c)) {
			return false
		}
	}
	return len(s) > 1
}

// parseURL splits a URL into its location and its raw query. Its errors never
// repeat what may be a secret.
func parseURL(raw string) (Location, string, error) {
	scheme, rest, err := splitScheme(raw)
	if err != nil {
		return Location{}, "", err
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") || strings.Contains(query, "#") {
		return Location{}, "", errors.New("the URL has a fragment, which means nothing here; write # as %23")
	}
	u, err := url.Parse(scheme + ":" + rest)
	if err != nil {
		return Location{}, "", parseFault(err)
	}
	if u.User != nil {
		return Location{}, "", errors.New("the URL has a user name or password before the host; secrets come from the environment, see the *_env parameters")
	}
	loc := Location{Scheme: scheme, Host: u.Hostname(), Port: u.Port(), Path: u.Path}
	if u.Opaque != "" {
		if loc.Path, err = url.PathUnescape(u.Opaque); err != nil {
			return Location{}, "", parseFault(err)
		}
	}
	if strings.HasSuffix(u.Host, ":") {
		return Location{}, "", errors.New("the port is missing after the host's colon")
	}
	if strings.ContainsRune(loc.Path, 0) {
		return Location{}, "", errors.New("the path has a zero byte")
	}
	return loc, query, nil
}

// parseFault words an error of net/url without the text it quotes.
func parseFault(err error) error {
	var escape url.EscapeError
	if errors.As(err, &escape) {
		return errors.New("a % is not followed by two hexadecimal digits; write a percent sign as %25")
	}
	var host url.InvalidHostError
	if errors.As(err, &host) {
		return errors.New("the host has a character that is not allowed")
	}
	return errors.New("the URL is malformed; write SCHEME:PATH or SCHEME://HOST:PORT/NAME, without control characters")
}

package registry

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Params reads the parameters of a URL. A reader returns the default where the
// parameter is absent or at fault; the faults are collected and [Params.Err]
// reports them all at once, so an opener reads everything first and then asks
// Err before it connects to anything.
//
// Reading a parameter that the opener's [Doc] does not list panics, so that
// what users are told is complete.
type Params struct {
	scheme string
	known  []string          // names in the Doc
	given  []string          // names in the URL, in order, each once
	values map[string]string // by name, without what was refused
	read   map[string]bool
	faults []string
}

// newParams splits a raw query. Faults of form are collected like all others.
func newParams(scheme string, doc Doc, query string) *Params {
	p := &Params{scheme: scheme, known: doc.names(), values: map[string]string{}, read: map[string]bool{}}
	for i, piece := range strings.Split(query, "&") {
		if piece == "" {
			continue
		}
		name, value, found := strings.Cut(piece, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		switch {
		case looksSecret(name):
			p.fault("parameter %q: secrets do not belong in a URL; put it in an environment variable and %s", name, p.secretHint())
			p.read[name] = true
			continue
		case !found || name == "":
			p.fault("parameter %d is not of the form name=value", i+1)
			continue
		case nameErr != nil || valueErr != nil:
			p.fault("parameter %d has a %% that is not followed by two hexadecimal digits; write a percent sign as %%25", i+1)
			continue
		}
		if slices.Contains(p.given, name) {
			p.fault("parameter %s=%q is given again; give it once", name, value)
			continue
		}
		p.given = append(p.given, name)
		p.values[name] = value
	}
	return p
}

// secretHint says where a secret goes.
func (p *Params) secretHint() string {
	for _, name := range p.known {
		if strings.HasSuffix(name, "_env") {
			return "name that in " + name + "="
		}
	}
	return fmt.Sprintf("leave it out: scheme %q takes no secret", p.scheme)
}

func (p *Params) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// lookup returns the value of a parameter that is in the URL and not empty.
func (p *Params) lookup(name string) (string, bool) {
	if !slices.Contains(p.known, name) {
		panic(fmt.Sprintf("registry: the opener of scheme %q reads parameter %q, which its Doc does not list", p.scheme, name))
	}
	value, ok := p.values[name]
	first := !p.read[name]
	p.read[name] = true
	if ok && value == "" {
		if first {
			p.fault("parameter %s has no value; leave it out for the default", name)
		}
		return "", false
	}
	return value, ok
}

// Has reports whether the URL has the parameter with a value. It does not count
// as reading it.
func (p *Params) Has(name string) bool { return p.values[name] != "" }

// String reads a text.
func (p *Params) String(name, byDefault string) string {
	if value, ok := p.lookup(name); ok {
		return value
	}
	return byDefault
}

// Int reads a decimal integer from low to high, bounds included.
func (p *Params) Int(name string, byDefault, low, high int) int {
	text, ok := p.lookup(name)
	if !ok {
		return byDefault
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < low || value > high {
		p.fault("parameter %s=%q is not an integer from %d to %d", name, text, low, high)
		return byDefault
	}
	return value
}

// Float reads a finite number from low to high, bounds included.
func (p *Params) Float(name string, byDefault, low, high float64) float64 {
	text, ok := p.lookup(name)
	if !ok {
		return byDefault
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) || !(value >= low && value <= high) {
		p.fault("parameter %s=%q is not a finite number from %g to %g", name, text, low, high)
		return byDefault
	}
	return value
}

// Bool reads "true" or "false".
func (p *Params) Bool(name string, byDefault bool) bool {
	return p.Enum(name, strconv.FormatBool(byDefault), "true", "false") == "true"
}

// Duration reads a duration with its unit, such as 500ms or 1m30s, from low to
// high, bounds included. A bare number is refused, 0 too.
func (p *Params) Duration(name string, byDefault, low, high time.Duration) time.Duration {
	text, ok := p.lookup(name)
	if !ok {
		return byDefault
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		p.fault("parameter %s=%q has no unit; write %sms or %ss", name, text, text, text)
		return byDefault
	}
	value, err := time.ParseDuration(text)
	if err != nil || value < low || value > high {
		p.fault("parameter %s=%q is not a duration from %v to %v", name, text, low, high)
		return byDefault
	}
	return value
}

// Enum reads one of the given values.
func (p *Params) Enum(name, byDefault string, values ...string) string {
	text, ok := p.lookup(name)
	if !ok {
		return byDefault
	}
	if !slices.Contains(values, text) {
		p.fault("parameter %s=%q is not one of %s%s", name, text, strings.Join(values, ", "), suggest(text, values))
		return byDefault
	}
	return text
}

// Secret reads the secret called name, such as "api_key", from the environment
// variable that the parameter name_env names. It is "" when the URL does not
// have that parameter; a variable that is unset or empty is a fault.
func (p *Params) Secret(name string) string {
	parameter := name + "_env"
	variable, ok := p.lookup(parameter)
	if !ok {
		return ""
	}
	secret := os.Getenv(variable)
	if secret == "" {
		// Whoever pastes the secret itself must not find it in a log.
		shown := variable
		if strings.Trim(variable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			shown = "named there"
		}
		p.fault("parameter %s: the environment variable %s is not set; export it first", parameter, shown)
	}
	return secret
}

// Err reports every fault found so far in one error of kind invalid, unknown
// parameters and those that the opener did not read included; nil when there
// is none. It is asked after all parameters have been read.
func (p *Params) Err() error {
	faults := slices.Clone(p.faults)
	for _, name := range p.given {
		switch {
		case !slices.Contains(p.known, name):
			valid := "it takes none"
			if len(p.known) > 0 {
				valid = "the valid ones are " + strings.Join(p.known, ", ")
			}
			faults = append(faults, fmt.Sprintf("parameter %s=%q is unknown; %s%s", name, p.values[name], valid, suggest(name, p.known)))
		case !p.read[name]:
			faults = append(faults, fmt.Sprintf("parameter %s=%q has no effect together with the others; leave it out", name, p.values[name]))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	text := strings.Join(faults, "; ")
	if len(faults) > 1 {
		text = fmt.Sprintf("%d faults: %s", len(faults), text)
	}
	return &mapmatched.Error{Op: "open", Adapter: p.scheme, Kind: mapmatched.KindInvalid, Err: errors.New(text)}
}

// looksSecret reports whether a parameter of this name would hold a secret.
// A name that ends in "env" does not: it holds the name of a variable.
func looksSecret(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_-. ", r) })
	if len(words) == 0 || words[len(words)-1] == "env" {
		return false
	}
	for i, w := range words {
		switch w {
		case "password", "passwd", "passphrase", "pass", "pwd", "secret", "token", "credential", "credentials",
			"bearer", "jwt", "auth", "authorization", "apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken":
			return true
		case "key":
			if i == 0 && len(words) == 1 || i > 0 && slices.Contains([]string{"api", "access", "private"}, words[i-1]) {
				return true
			}
		}
	}
	return false
}

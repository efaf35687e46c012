package weaviate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Names go into queries and paths as they are, so what is not a name is
// refused before.
var (
	classPattern  = regexp.MustCompile(`^[A-Za-z][_0-9A-Za-z]{0,254}$`)
	namePattern   = regexp.MustCompile(`^[_A-Za-z][_0-9A-Za-z]{0,230}$`)
	tenantPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// className checks the name of a class and capitalises it, as the server does.
func className(name string) (string, error) {
	if !classPattern.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a class: a letter, then letters, digits and _, at most 255", name)
	}
	return strings.ToUpper(name[:1]) + name[1:], nil
}

// checkName checks the name of a property or a vector.
func checkName(what, name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("%q is not the name of a %s: a letter or _, then letters, digits and _, at most 231", name, what)
	}
	return nil
}

// propertyName is a property as the server spells it: it lowers the first
// letter.
func propertyName(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToLower(name[:1]) + name[1:]
}

func checkTenant(name string) error {
	if !tenantPattern.MatchString(name) {
		return fmt.Errorf("%q is not the name of a tenant: letters, digits, _ and -, at most 64", name)
	}
	return nil
}

// nameFaults checks a list of properties. Two that differ only in the case of
// the first letter are one for the server.
func nameFaults(field string, names []string) faults {
	var f faults
	seen := map[string]string{}
	for _, name := range names {
		if err := checkName("property", name); err != nil {
			f.add("%s: %v", field, err)
			continue
		}
		if first, again := seen[propertyName(name)]; again {
			f.add("%s: %q and %q are the same property", field, first, name)
		}
		seen[propertyName(name)] = name
	}
	return f
}

// searchPropertyFaults checks properties that may have a weight, "title^2".
func searchPropertyFaults(properties []string) faults {
	var f faults
	names := make([]string, len(properties))
	for i, p := range properties {
		name, weight, weighted := strings.Cut(p, "^")
		names[i] = name
		if !weighted {
			continue
		}
		if w, err := strconv.ParseFloat(weight, 64); err != nil || !finite(w) || w <= 0 {
			f.add("SearchProperties: the weight of %q is not a positive number", p)
		}
	}
	return append(f, nameFaults("SearchProperties", names)...)
}

// searchProperty spells a property with a weight as the server does.
func searchProperty(p string) string { return propertyName(p) }

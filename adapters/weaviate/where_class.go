package weaviate

import (
	"fmt"
	"slices"

	"github.com/weaviate/weaviate/entities/models"
)

// internalProperties are those of every object that a filter may name.
var internalProperties = []string{uuidProperty, "_id", "_creationTimeUnix", "_lastUpdateTimeUnix"}

// where is a checked filter as the class has it: names as the server spells
// them, and numbers of the type of their property, which the server wants in
// GraphQL and makes of others itself over gRPC. A property that the class does
// not have is an error.
func (c *class) where(w *models.WhereFilter) (*models.WhereFilter, error) {
	if w == nil {
		return nil, nil
	}
	out := *w
	if len(w.Operands) > 0 {
		out.Operands = make([]*models.WhereFilter, len(w.Operands))
		for i, operand := range w.Operands {
			var err error
			if out.Operands[i], err = c.where(operand); err != nil {
				return nil, err
			}
		}
		return &out, nil
	}
	path, dataType, err := c.wherePath(w.Path)
	if err != nil {
		return nil, err
	}
	out.Path = path
	return &out, retype(&out, dataType)
}

// wherePath spells a path and finds the data type of what it ends at, "" where
// that is not known: references lead to other classes.
func (c *class) wherePath(path []string) (spelled []string, dataType string, err error) {
	if len(path) == 1 && slices.Contains(internalProperties, path[0]) {
		return path, "", nil
	}
	name, isLength := path[0], lengthPattern.MatchString(path[0])
	if isLength {
		name = name[len("len(") : len(name)-len(")")]
	}
	p, err := c.need("Where", name)
	if err != nil {
		return nil, "", err
	}
	switch {
	case isLength:
		return []string{"len(" + p.name + ")"}, "int", nil
	case len(path) == 1 && len(p.targets) > 0:
		return []string{p.name}, "int", nil // how many references there are
	case len(path) == 1:
		return []string{p.name}, p.dataType, nil
	}
	of, err := className(path[1])
	if err != nil {
		return nil, "", err
	}
	if !slices.Contains(p.targets, of) {
		return nil, "", fmt.Errorf("the filter: property %s of class %s is no reference to class %s", p.name, c.name, of)
	}
	rest := slices.Clone(path[2:])
	if of == c.name {
		if rest, dataType, err = c.wherePath(rest); err != nil {
			return nil, "", err
		}
	} else {
		for i, part := range rest {
			switch {
			case i%2 == 1:
				rest[i], err = className(part)
			case !lengthPattern.MatchString(part):
				rest[i] = propertyName(part)
			}
			if err != nil {
				return nil, "", err
			}
		}
	}
	return append([]string{p.name, of}, rest...), dataType, nil
}

// retype makes the numbers of a filter those of its property.
func retype(w *models.WhereFilter, dataType string) error {
	switch dataType {
	case "int", "int[]":
		var err error
		if w.ValueNumber != nil {
			var i int64
			i, err = whole(*w.ValueNumber)
			w.ValueInt, w.ValueNumber = &i, nil
		}
		for _, x := range w.ValueNumberArray {
			i, wholeErr := whole(x)
			w.ValueIntArray = append(w.ValueIntArray, i)
			if err == nil {
				err = wholeErr
			}
		}
		w.ValueNumberArray = nil
		if err != nil {
			return fmt.Errorf("the filter at %q: %w", w.Path, err)
		}
	case "number", "number[]":
		if w.ValueInt != nil {
			x := float64(*w.ValueInt)
			w.ValueNumber, w.ValueInt = &x, nil
		}
		for _, i := range w.ValueIntArray {
			w.ValueNumberArray = append(w.ValueNumberArray, float64(i))
		}
		w.ValueIntArray = nil
	}
	return nil
}

// whole is the integer of a number that is one and that float64 keeps exactly.
func whole(x float64) (int64, error) {
	if i := int64(x); x >= -maxExact && x <= maxExact && float64(i) == x {
		return i, nil
	}
	return 0, fmt.Errorf("%v is no integer from −2^53 to 2^53, and the property has integers", x)
}

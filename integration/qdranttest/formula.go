package qdranttest

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/qdrant/go-client/qdrant"
)

// formula is a compiled score formula.
type formula struct {
	root     expression
	defaults map[string]*qdrant.Value // by the canonical text of the variable
}

// expression is the value of a part of a formula at a point.
type expression func(*evaluation) (float64, error)

// evaluation is a formula at work on one point.
type evaluation struct {
	p        *point
	scores   []map[pointID]float32 // of each prefetch
	defaults map[string]*qdrant.Value
}

// compileFormula reads a formula; f32 constants become f64, as on the server.
func (v *view) compileFormula(in *qdrant.Formula) (*formula, error) {
	if in.GetExpression() == nil {
		return nil, invalidArgument("missing field: expression")
	}
	compiled := &formula{defaults: map[string]*qdrant.Value{}}
	for _, name := range slices.Sorted(maps.Keys(in.GetDefaults())) {
		variable, err := parseVariable(name)
		if err != nil {
			return nil, err
		}
		compiled.defaults[variable.String()] = in.GetDefaults()[name]
	}
	var err error
	compiled.root, err = v.expression(in.GetExpression())
	return compiled, err
}

// variable is a score of a prefetch or a payload key.
type variable struct {
	score int  // of which prefetch, when at is nil
	at    path // payload key
}

func parseVariable(text string) (variable, error) {
	name, isScore := strings.CutPrefix(text, "$")
	at, err := parsePath(name)
	if !isScore {
		if err != nil {
			return variable{}, invalidArgument("failed to parse formula: Invalid payload variable: %s", text)
		}
		return variable{at: at}, nil
	}
	switch {
	case err != nil:
	case at[0].key != "score":
		return variable{}, invalidArgument("failed to parse formula: Invalid reserved word: %s", text)
	case len(at) == 1:
		return variable{}, nil
	case len(at) == 2 && at[1].kind == stepIndex:
		return variable{score: at[1].index}, nil
	}
	return variable{}, invalidArgument("failed to parse formula: Invalid reserved variable: %s", text)
}

func (x variable) String() string {
	if x.at == nil {
		return "$score[" + strconv.Itoa(x.score) + "]"
	}
	return x.at.String()
}

// rescore gives every point of the prefetches its value of the formula, best
// first.
func (f *formula) rescore(lists [][]scored, limit int, threshold *float32) ([]scored, error) {
	scores := make([]map[pointID]float32, len(lists))
	for i, list := range lists {
		scores[i] = make(map[pointID]float32, len(list))
		for _, s := range list {
			scores[i][s.p.id] = s.score
		}
	}
	rescored := join(lists, func(int, int) float32 { return 0 })
	for i := range rescored {
		value, err := f.root(&evaluation{p: rescored[i].p, scores: scores, defaults: f.defaults})
		if err != nil {
			return nil, err
		}
		score := float32(value)
		if !finite(float64(score)) {
			return nil, nonFinite("%s as f32 = %s", value, float64(score))
		}
		rescored[i].score, rescored[i].order = score, nil
	}
	sortScored(rescored)
	return cut(rescored, limit, threshold), nil
}

// nonFinite is the error of a calculation, whose numbers it writes as the server
// does: inf, NaN, and never with an exponent.
func nonFinite(format string, numbers ...float64) error {
	args := make([]any, len(numbers))
	for i, x := range numbers {
		if math.IsInf(x, 0) {
			args[i] = strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'f', -1, 64), "+"))
		} else {
			args[i] = strconv.FormatFloat(x, 'f', -1, 64)
		}
	}
	return badInput("The expression "+format+" produced a non-finite number", args...)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// value finds what a payload variable is at the point.
func (e *evaluation) value(x variable, expected string) (*qdrant.Value, error) {
	values := x.at.values(e.p.payload)
	switch {
	case len(values) == 1:
		return values[0], nil
	case len(values) > 1:
		return qdrant.NewValueFromList(values...), nil
	}
	if v := e.defaults[x.String()]; v != nil {
		return v, nil
	}
	return nil, wrongVariable(x, expected, "No value found in a payload nor defaults")
}

func wrongVariable(x variable, expected, why string) error {
	return badInput("Expected %s value for %s in the payload and/or in the formula defaults. Error: %s", expected, x, why)
}

// seconds is a time as formulas count it.
func seconds(text string) (float64, bool) {
	t, ok := parseTime(text)
	return float64(t.UnixMicro()) / 1e6, ok
}

func (v *view) expression(in *qdrant.Expression) (expression, error) {
	switch x := in.GetVariant().(type) {
	case *qdrant.Expression_Constant:
		value := float64(x.Constant)
		return func(*evaluation) (float64, error) { return value, nil }, nil
	case *qdrant.Expression_Variable:
		return compileVariable(x.Variable)
	case *qdrant.Expression_Condition:
		fits, err := v.compile(&qdrant.Filter{Must: []*qdrant.Condition{x.Condition}})
		return func(e *evaluation) (float64, error) {
			if fits(e.p) {
				return 1, nil
			}
			return 0, nil
		}, err
	case *qdrant.Expression_GeoDistance:
		return nil, notModelled("geo_distance in formulas")
	case *qdrant.Expression_Datetime:
		value, ok := seconds(x.Datetime)
		if !ok {
			return nil, invalidArgument("failed to parse formula: Malformed datetime: %s", x.Datetime)
		}
		return func(*evaluation) (float64, error) { return value, nil }, nil
	case *qdrant.Expression_DatetimeKey:
		return compileTimeKey(x.DatetimeKey)
	case *qdrant.Expression_Mult:
		return v.compileProduct(x.Mult.GetMult())
	case *qdrant.Expression_Sum:
		return v.compileSum(x.Sum.GetSum())
	case *qdrant.Expression_Div:
		return v.compileQuotient(x.Div)
	case *qdrant.Expression_Neg:
		return v.unary(x.Neg, "-(%s) = %s", func(a float64) float64 { return -a })
	case *qdrant.Expression_Abs:
		return v.unary(x.Abs, "|%s| = %s", math.Abs)
	case *qdrant.Expression_Sqrt:
		return v.unary(x.Sqrt, "√%s = %s", math.Sqrt)
	case *qdrant.Expression_Exp:
		return v.unary(x.Exp, "exp(%s) = %s", math.Exp)
	case *qdrant.Expression_Log10:
		return v.unary(x.Log10, "log10(%s) = %s", math.Log10)
	case *qdrant.Expression_Ln:
		return v.unary(x.Ln, "ln(%s) = %s", math.Log)
	case *qdrant.Expression_Pow:
		return v.compilePower(x.Pow)
	case *qdrant.Expression_ExpDecay:
		return v.compileDecay(x.ExpDecay, decayExp)
	case *qdrant.Expression_GaussDecay:
		return v.compileDecay(x.GaussDecay, decayGauss)
	case *qdrant.Expression_LinDecay:
		return v.compileDecay(x.LinDecay, decayLin)
	}
	return nil, invalidArgument("missing field: variant")
}

func compileVariable(text string) (expression, error) {
	x, err := parseVariable(text)
	if err != nil {
		return nil, err
	}
	if x.at == nil {
		return func(e *evaluation) (float64, error) {
			if x.score < len(e.scores) {
				if score, has := e.scores[x.score][e.p.id]; has {
					return float64(score), nil
				}
			}
			score, _ := number(e.defaults[x.String()])
			return score, nil // 0 without a default
		}, nil
	}
	return func(e *evaluation) (float64, error) {
		v, err := e.value(x, "number")
		if err != nil {
			return 0, err
		}
		n, ok := number(v)
		if !ok {
			return 0, wrongVariable(x, "number", "Value is not a number")
		}
		return n, nil
	}, nil
}

func compileTimeKey(text string) (expression, error) {
	x, err := parseVariable(text)
	if err != nil || x.at == nil {
		return nil, invalidArgument("invalid payload key")
	}
	return func(e *evaluation) (float64, error) {
		v, err := e.value(x, "datetime")
		if err != nil {
			return 0, err
		}
		s, ok := v.GetKind().(*qdrant.Value_StringValue)
		if !ok {
			return 0, wrongVariable(x, "datetime", "Value is not a string")
		}
		n, ok := seconds(s.StringValue)
		if !ok {
			return 0, wrongVariable(x, "datetime", "input contains invalid characters")
		}
		return n, nil
	}, nil
}

func (v *view) expressions(in []*qdrant.Expression) ([]expression, error) {
	parts := make([]expression, len(in))
	for i, raw := range in {
		var err error
		if parts[i], err = v.expression(raw); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// compileProduct stops at the first 0, so what comes after may be missing.
func (v *view) compileProduct(in []*qdrant.Expression) (expression, error) {
	parts, err := v.expressions(in)
	return func(e *evaluation) (float64, error) {
		product := 1.0
		for _, part := range parts {
			value, err := part(e)
			if err != nil || value == 0 {
				return 0, err
			}
			product *= value
		}
		return product, nil
	}, err
}

func (v *view) compileSum(in []*qdrant.Expression) (expression, error) {
	parts, err := v.expressions(in)
	return func(e *evaluation) (float64, error) {
		sum := 0.0
		for _, part := range parts {
			value, err := part(e)
			if err != nil {
				return 0, err
			}
			sum += value
		}
		return sum, nil
	}, err
}

func (v *view) compileQuotient(in *qdrant.DivExpression) (expression, error) {
	parts, err := v.pair(in.GetLeft(), in.GetRight(), "left", "right")
	return func(e *evaluation) (float64, error) {
		left, err := parts[0](e)
		if err != nil || left == 0 {
			return 0, err
		}
		right, err := parts[1](e)
		if err != nil {
			return 0, err
		}
		if right == 0 && in.ByZeroDefault != nil {
			return float64(in.GetByZeroDefault()), nil
		}
		if q := left / right; finite(q) {
			return q, nil
		}
		return 0, nonFinite("%s/%s = %s", left, right, left/right)
	}, err
}

func (v *view) compilePower(in *qdrant.PowExpression) (expression, error) {
	parts, err := v.pair(in.GetBase(), in.GetExponent(), "base", "exponent")
	return func(e *evaluation) (float64, error) {
		base, err := parts[0](e)
		if err != nil {
			return 0, err
		}
		exponent, err := parts[1](e)
		if err != nil {
			return 0, err
		}
		if power := math.Pow(base, exponent); finite(power) {
			return power, nil
		}
		return 0, nonFinite("%s^%s = %s", base, exponent, math.Pow(base, exponent))
	}, err
}

func (v *view) pair(a, b *qdrant.Expression, nameA, nameB string) ([]expression, error) {
	switch {
	case a == nil:
		return nil, invalidArgument("missing field: %s", nameA)
	case b == nil:
		return nil, invalidArgument("missing field: %s", nameB)
	}
	return v.expressions([]*qdrant.Expression{a, b})
}

func (v *view) unary(in *qdrant.Expression, format string, f func(float64) float64) (expression, error) {
	part, err := v.expression(in)
	return func(e *evaluation) (float64, error) {
		value, err := part(e)
		if err != nil {
			return 0, err
		}
		if result := f(value); finite(result) {
			return result, nil
		}
		return 0, nonFinite(format, value, f(value))
	}, err
}

type decayKind uint8

const (
	decayExp decayKind = iota
	decayGauss
	decayLin
)

// compileDecay is a function of |x − target| that is 1 at 0 and the midpoint at
// the scale: m^(d/s), m^((d/s)²) or max(0, 1 − (1 − m)·d/s).
func (v *view) compileDecay(in *qdrant.DecayParamsExpression, kind decayKind) (expression, error) {
	if in.GetX() == nil {
		return nil, invalidArgument("missing field: x")
	}
	raw := []*qdrant.Expression{in.GetX()}
	if in.GetTarget() != nil {
		raw = append(raw, in.GetTarget())
	}
	parts, err := v.expressions(raw)
	if err != nil {
		return nil, err
	}
	midpoint, scale := 0.5, 1.0
	if in.Midpoint != nil {
		midpoint = float64(in.GetMidpoint())
	}
	if in.Scale != nil {
		scale = float64(in.GetScale())
	}
	switch {
	case kind == decayLin && !(midpoint >= 0 && midpoint <= 1):
		return nil, invalidArgument("failed to parse formula: Validation failed: Linear decay midpoint should be in the range [0.0, 1.0], got %v.", midpoint)
	case kind != decayLin && !(midpoint > 0 && midpoint < 1):
		return nil, invalidArgument("failed to parse formula: Validation failed: Decay midpoint should be in the range (0.0, 1.0), got %v.", midpoint)
	case !(scale > 0):
		return nil, invalidArgument("failed to parse formula: Validation failed: Decay scale should be non-zero positive, got %v.", scale)
	}
	return func(e *evaluation) (float64, error) {
		x, err := parts[0](e)
		if err != nil {
			return 0, err
		}
		if len(parts) == 2 {
			target, err := parts[1](e)
			if err != nil {
				return 0, err
			}
			x -= target
		}
		distance := math.Abs(x)
		switch kind {
		case decayExp:
			return math.Exp(math.Log(midpoint) / scale * distance), nil
		case decayGauss:
			return math.Exp(math.Log(midpoint) / (scale * scale) * distance * distance), nil
		}
		return max(1-(1-midpoint)/scale*distance, 0), nil
	}, nil
}

package qdranttest

import (
	"math"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// TestFormula scores point 1 of one prefetch with the score 0.5.
func TestFormula(t *testing.T) {
	client := dial(t, start(t, nil))
	create(t, client, 1, qdrant.Distance_Dot)
	upsert(t, client, at(1, map[string]any{"n": 3, "f": -2.5, "s": "x", "l": []any{1, 2}, "day": "1970-01-01T00:01:00Z"}, 0.5))
	constant := qdrant.NewExpressionConstant
	variable := qdrant.NewExpressionVariable
	score, n := variable("$score"), variable("n")
	sum := func(e ...*qdrant.Expression) *qdrant.Expression {
		return qdrant.NewExpressionSum(&qdrant.SumExpression{Sum: e})
	}
	mult := func(e ...*qdrant.Expression) *qdrant.Expression {
		return qdrant.NewExpressionMult(&qdrant.MultExpression{Mult: e})
	}
	div := func(a, b *qdrant.Expression, zero *float32) *qdrant.Expression {
		return qdrant.NewExpressionDiv(&qdrant.DivExpression{Left: a, Right: b, ByZeroDefault: zero})
	}
	decay := &qdrant.DecayParamsExpression{X: n, Target: constant(1), Scale: proto.Float32(4), Midpoint: proto.Float32(0.25)}
	run := func(f *qdrant.Formula) ([]*qdrant.ScoredPoint, error) {
		return client.Query(t.Context(), &qdrant.QueryPoints{CollectionName: "c", Query: qdrant.NewQueryFormula(f), Prefetch: []*qdrant.PrefetchQuery{{Query: qdrant.NewQuery(1)}}})
	}
	for _, c := range []struct {
		name     string
		e        *qdrant.Expression
		defaults map[string]any
		want     float64
	}{
		{"constant", constant(2), nil, 2},
		{"score", score, nil, 0.5},
		{"score by index", variable("$score[0]"), nil, 0.5},
		{"score of another prefetch", variable("$score[1]"), nil, 0},
		{"its default", variable("$score[1]"), map[string]any{"$score[1]": 0.25}, 0.25},
		{"payload", n, nil, 3},
		{"default of a missing key", variable("zz"), map[string]any{"zz": 7}, 7},
		{"sum", sum(score, n, variable("f")), nil, 1},
		{"product", mult(score, n), nil, 1.5},
		{"product ends at 0", mult(constant(0), variable("zz")), nil, 0},
		{"condition", sum(score, mult(constant(2), qdrant.NewExpressionCondition(qdrant.NewMatch("s", "x")))), nil, 2.5},
		{"condition that fails", qdrant.NewExpressionCondition(qdrant.NewMatch("s", "y")), nil, 0},
		{"quotient", div(n, constant(2), nil), nil, 1.5},
		{"quotient by 0", div(n, constant(0), proto.Float32(9)), nil, 9},
		{"0 by 0", div(constant(0), constant(0), nil), nil, 0},
		{"negative", qdrant.NewExpressionNeg(n), nil, -3},
		{"absolute", qdrant.NewExpressionAbs(variable("f")), nil, 2.5},
		{"root", qdrant.NewExpressionSqrt(n), nil, math.Sqrt(3)},
		{"power", qdrant.NewExpressionPow(&qdrant.PowExpression{Base: n, Exponent: constant(2)}), nil, 9},
		{"exponential", qdrant.NewExpressionExp(constant(1)), nil, math.E},
		{"logarithm to 10", qdrant.NewExpressionLog10(constant(1000)), nil, 3},
		{"natural logarithm", qdrant.NewExpressionLn(n), nil, math.Log(3)},
		{"exponential decay", qdrant.NewExpressionExpDecay(decay), nil, math.Pow(0.25, 2./4)},
		{"gaussian decay", qdrant.NewExpressionGaussDecay(decay), nil, math.Pow(0.25, 4./16)},
		{"linear decay", qdrant.NewExpressionLinDecay(decay), nil, 1 - 0.75*2/4},
		{"seconds of a time", sum(qdrant.NewExpressionDatetimeKey("day"), qdrant.NewExpressionNeg(qdrant.NewExpressionDatetime("1970-01-01T00:00:10Z"))), nil, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			points := must(run(&qdrant.Formula{Expression: c.e, Defaults: qdrant.NewValueMap(c.defaults)}))(t)
			wantHits(t, points, hit{"1", c.want})
		})
	}
	for _, c := range []struct {
		name string
		e    *qdrant.Expression
		want string
	}{
		{"missing key", variable("zz"), "Expected number value for zz in the payload and/or in the formula defaults. Error: No value found in a payload nor defaults"},
		{"string", variable("s"), "Expected number value for s in the payload and/or in the formula defaults. Error: Value is not a number"},
		{"list", variable("l[]"), "Value is not a number"},
		{"reserved word", variable("$rank"), "Invalid reserved word: $rank"},
		{"bad index", variable("$score.x"), "Invalid reserved variable: $score.x"},
		{"infinite", div(n, constant(0), nil), "The expression 3/0 = inf produced a non-finite number"},
		{"imaginary", qdrant.NewExpressionSqrt(variable("f")), "produced a non-finite number"},
		{"beyond float32", qdrant.NewExpressionExp(constant(100)), "produced a non-finite number"},
		{"nothing", &qdrant.Expression{}, "missing field: variant"},
		{"half a quotient", div(n, nil, nil), "missing field: right"},
		{"midpoint", qdrant.NewExpressionExpDecay(&qdrant.DecayParamsExpression{X: n, Midpoint: proto.Float32(1)}), "Decay midpoint should be in the range (0.0, 1.0), got 1."},
		{"scale", qdrant.NewExpressionLinDecay(&qdrant.DecayParamsExpression{X: n, Scale: proto.Float32(0)}), "Decay scale should be non-zero positive, got 0."},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(&qdrant.Formula{Expression: c.e})
			wantError(t, err, codes.InvalidArgument, c.want)
		})
	}
}

func TestFormulaOrder(t *testing.T) {
	client := fusionClient(t)
	boost := qdrant.NewExpressionSum(&qdrant.SumExpression{Sum: []*qdrant.Expression{
		qdrant.NewExpressionVariable("$score[0]"), qdrant.NewExpressionVariable("$score[1]"), qdrant.NewExpressionVariable("id"),
	}})
	in := &qdrant.QueryPoints{Query: qdrant.NewQueryFormula(&qdrant.Formula{Expression: boost}), Prefetch: []*qdrant.PrefetchQuery{arm("a"), arm("b")}}
	wantHits(t, query(t, client, in), hit{"1", 15}, hit{"3", 13}, hit{"2", 10}, hit{"4", 6})
	in.ScoreThreshold, in.Limit = proto.Float32(10), proto.Uint64(9)
	wantHits(t, query(t, client, in), hit{"1", 15}, hit{"3", 13}, hit{"2", 10})
	in.Offset, in.Limit = proto.Uint64(1), proto.Uint64(1)
	wantHits(t, query(t, client, in), hit{"3", 13})
}

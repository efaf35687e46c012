package weaviate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weaviate/weaviate/entities/models"

	"github.com/mapmatched/mmplug/mapmatched"
)

// findGraphQL runs a search by GraphQL.
func (s *server) findGraphQL(ctx context.Context, q *search) ([]hit, error) {
	response, err := s.graphql.Raw().WithQuery(queryGraphQL(q)).Do(ctx)
	if err != nil {
		return nil, err
	}
	return hitsGraphQL(q, response)
}

func queryGraphQL(q *search) string {
	var b query
	b.raw("{Get{" + q.class.name + "(limit:" + strconv.Itoa(q.limit))
	if q.tenant != "" {
		b.raw(" tenant:")
		b.text(q.tenant)
	}
	if q.autocut > 0 {
		b.raw(" autocut:" + strconv.Itoa(q.autocut))
	}
	if q.where != nil {
		b.raw(" where:{")
		whereGraphQL(&b, q.where)
		b.raw("}")
	}
	value := ""
	switch {
	case q.hybrid != nil:
		value = "score"
		b.raw(" hybrid:{query:")
		b.text(q.text.query)
		searchedGraphQL(&b, q.text)
		b.raw(" vector:")
		b.vector(q.near.vector)
		b.raw(" alpha:")
		b.number(q.hybrid.alpha)
		b.raw(" fusionType:" + map[Fusion]string{FusionRanked: "rankedFusion", FusionRelativeScore: "relativeScoreFusion"}[q.hybrid.fusion])
		targetsGraphQL(&b, q.near)
		b.raw("}")
	case q.text != nil:
		value = "score"
		b.raw(" bm25:{query:")
		b.text(q.text.query)
		searchedGraphQL(&b, q.text)
		b.raw("}")
	case q.near != nil && q.near.object != "":
		value = "distance"
		b.raw(" nearObject:{id:")
		b.text(q.near.object)
		targetsGraphQL(&b, q.near)
		b.raw("}")
	case q.near != nil:
		value = "distance"
		b.raw(" nearVector:{vector:")
		b.vector(q.near.vector)
		if q.near.maxDistance != nil {
			b.raw(" distance:")
			b.number(*q.near.maxDistance)
		}
		if q.near.minCertainty != nil {
			b.raw(" certainty:")
			b.number(*q.near.minCertainty)
		}
		targetsGraphQL(&b, q.near)
		b.raw("}")
	}
	b.raw("){" + strings.Join(q.properties, " "))
	for _, name := range q.references {
		b.raw(" " + name + "{... on " + q.class.name + "{_additional{id}")
		if q.targetID != uuidProperty {
			b.raw(" " + q.targetID)
		}
		b.raw("}}")
	}
	b.raw(" _additional{id " + value)
	if q.vector != nil {
		if *q.vector == "" {
			b.raw(" vector")
		} else {
			b.raw(" vectors{" + *q.vector + "}")
		}
	}
	b.raw("}}}}")
	return b.String()
}

func searchedGraphQL(b *query, t *text) {
	if len(t.properties) > 0 {
		b.raw(" properties:")
		b.texts(t.properties)
	}
}

var combinationsGraphQL = map[Combination]string{
	CombineMinimum:       "minimum",
	CombineAverage:       "average",
	CombineSum:           "sum",
	CombineManualWeights: "manualWeights",
	CombineRelativeScore: "relativeScore",
}

func targetsGraphQL(b *query, n *near) {
	switch len(n.targets) {
	case 0:
		return
	case 1:
		b.raw(" targetVectors:")
		b.texts(n.targets)
		return
	}
	b.raw(" targets:{combinationMethod:" + combinationsGraphQL[n.combination] + " targetVectors:")
	b.texts(n.targets)
	if len(n.weights) > 0 {
		b.raw(" weights:{")
		for i, w := range n.weights {
			b.raw(" " + n.targets[i] + ":")
			b.number(w)
		}
		b.raw("}")
	}
	b.raw("}")
}

// hitsGraphQL reads the answer. Faults come with HTTP status 200 and no error
// of the client.
func hitsGraphQL(q *search, response *models.GraphQLResponse) ([]hit, error) {
	if len(response.Errors) > 0 {
		messages := make([]string, 0, len(response.Errors))
		for _, e := range response.Errors {
			if e != nil {
				messages = append(messages, oneLine(e.Message))
			}
		}
		return nil, hinted(&reply{kind: mapmatched.KindInvalid, message: strings.Join(messages, "; ")})
	}
	get, _ := response.Data["Get"].(map[string]any)
	list, ok := get[q.class.name].([]any)
	if !ok {
		return nil, corrupt("the answer has no list of %s", q.class.name)
	}
	hits := make([]hit, len(list))
	for i, raw := range list {
		object, ok := raw.(map[string]any)
		if !ok {
			return nil, corrupt("object %d of the answer is %T", i, raw)
		}
		h, err := hitGraphQL(q, object)
		if err != nil {
			return nil, err
		}
		hits[i] = h
	}
	return hits, nil
}

func hitGraphQL(q *search, object map[string]any) (hit, error) {
	additional, _ := object["_additional"].(map[string]any)
	h := hit{properties: map[string]any{}}
	if h.uuid, _ = additional["id"].(string); h.uuid == "" {
		return h, corrupt("an object came without its UUID")
	}
	for _, name := range q.properties {
		p, _ := q.class.property(name)
		value, err := typed(p.dataType, object[name])
		if err != nil {
			return h, corrupt("object %s: property %s: %v", h.uuid, name, err)
		}
		if value != nil {
			h.properties[name] = value
		}
	}
	for _, name := range q.references {
		list, _ := object[name].([]any)
		for _, raw := range list {
			fields, _ := raw.(map[string]any)
			meta, known := fields["_additional"].(map[string]any)
			if !known {
				continue // of another class
			}
			var t target
			t.uuid, _ = meta["id"].(string)
			t.id, _ = fields[q.targetID].(string)
			h.references = appendTarget(h.references, name, t)
		}
	}
	var err error
	switch {
	case q.text != nil:
		h.value, err = scoreGraphQL(additional["score"])
	case q.near != nil:
		h.value, err = scoreGraphQL(additional["distance"])
	}
	if err != nil {
		return h, corrupt("object %s: %v", h.uuid, err)
	}
	if q.vector != nil {
		raw := additional["vector"]
		if *q.vector != "" {
			named, _ := additional["vectors"].(map[string]any)
			raw = named[*q.vector]
		}
		if h.vector, err = vectorGraphQL(raw); err != nil {
			return h, corrupt("object %s: %v", h.uuid, err)
		}
	}
	return h, nil
}

// scoreGraphQL reads a score, which comes as text, or a distance, which comes
// as a number. Both are float32 in the server.
func scoreGraphQL(raw any) (float64, error) {
	var value float64
	switch x := raw.(type) {
	case float64:
		value = float64(float32(x))
	case string:
		parsed, err := strconv.ParseFloat(x, 32)
		if err != nil {
			return 0, fmt.Errorf("score %q is no number", x)
		}
		value = parsed
	default:
		return 0, fmt.Errorf("score %v (%T) is no number", raw, raw)
	}
	if !finite(value) {
		return 0, fmt.Errorf("score %v: %w", raw, mapmatched.ErrNonFinite)
	}
	return value, nil
}

func vectorGraphQL(raw any) ([]float32, error) {
	list, ok := raw.([]any)
	if raw != nil && !ok {
		return nil, fmt.Errorf("vector is %T", raw)
	}
	if len(list) == 0 {
		return nil, nil
	}
	v := make([]float32, len(list))
	for i, x := range list {
		number, ok := x.(float64)
		if !ok {
			return nil, fmt.Errorf("component %d of the vector is %T", i, x)
		}
		v[i] = float32(number)
	}
	return v, nil
}

// typed turns a JSON value of a property into the Go type of its data type; nil
// for null.
func typed(dataType string, raw any) (any, error) {
	if raw == nil {
		return nil, nil
	}
	element, isList := strings.CutSuffix(dataType, "[]")
	if !isList {
		return typedOne(element, raw)
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf("%T instead of a list", raw)
	}
	switch element {
	case "int":
		return typedList[int64](element, list)
	case "number":
		return typedList[float64](element, list)
	case "boolean":
		return typedList[bool](element, list)
	}
	return typedList[string](element, list)
}

func typedList[T any](element string, list []any) ([]T, error) {
	out := make([]T, len(list))
	for i, raw := range list {
		value, err := typedOne(element, raw)
		if err != nil {
			return nil, err
		}
		x, ok := value.(T)
		if !ok {
			return nil, fmt.Errorf("element %d is %T", i, value)
		}
		out[i] = x
	}
	return out, nil
}

func typedOne(element string, raw any) (any, error) {
	var ok bool
	value := raw
	switch element {
	case "int":
		var number float64
		number, ok = raw.(float64)
		ok = ok && number == math.Trunc(number) && math.Abs(number) < 1<<63
		value = int64(number)
	case "number":
		_, ok = raw.(float64)
	case "boolean":
		_, ok = raw.(bool)
	default:
		_, ok = raw.(string)
	}
	if !ok {
		return nil, fmt.Errorf("%v (%T) is no %s", raw, raw, element)
	}
	return value, nil
}

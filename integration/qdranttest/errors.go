package qdranttest

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The errors of Qdrant: what it knows as BadInput, BadRequest, NotFound and so
// on, with the code and the first words it gives each over gRPC.

func invalidArgument(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func badInput(format string, args ...any) error {
	return invalidArgument("Wrong input: "+format, args...)
}

func badRequest(text string) error { return invalidArgument("Bad request: %s", text) }

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, "Not found: "+format, args...)
}

func notModelled(format string, args ...any) error {
	return status.Errorf(codes.Unimplemented, "qdranttest does not model "+format, args...)
}

func pointNotFound(id pointID) error { return notFound("No point with id %s found", id) }

func noSuchVector(name string) error { return badInput("Not existing vector name error: %s", name) }

func wrongDimension(want, got int) error {
	return badInput("Vector dimension error: expected dim: %d, got %d", want, got)
}

func wrongSparse() error { return badInput("Conversion between sparse and regular vectors failed") }

func wrongMulti() error { return badInput("Conversion between multi and regular vectors failed") }

// invalidField is what the validation of requests says of one field.
func invalidField(field, format string, args ...any) error {
	return invalidArgument("Validation error in body: [%s: %s]", field, fmt.Sprintf(format, args...))
}

// atLeast checks a number that has a smallest value; nil passes.
func atLeast(field string, value *uint64, smallest uint64) error {
	if value != nil && *value < smallest {
		return invalidField(field, "value %d invalid, must be %d or larger", *value, smallest)
	}
	return nil
}

// checkName checks the length of a collection's name in a request.
func checkName(field, name string) error {
	if n := len([]rune(name)); n < 1 || n > 255 {
		return invalidField(field, "value %s invalid, must be from 1 to 255 characters", strconv.Quote(name))
	}
	return nil
}

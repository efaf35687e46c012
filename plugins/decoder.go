package plugins

import (
	"context"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins/internal/wire"
)

// decoderServer serves a Decoder.
type decoderServer struct {
	wire.UnimplementedDecoderServer
	*server
}

// Decode implements the call Decode.
func (s *decoderServer) Decode(ctx context.Context, r *wire.DecodeRequest) (*wire.DecodeResponse, error) {
	decoder := s.current().Decoder
	if decoder == nil {
		return nil, absent(KindDecoder)
	}
	trellis, err := fromTrellis(r)
	if err != nil {
		return nil, invalid(err)
	}
	decoding, err := decoder.Decode(ctx, trellis)
	if err != nil {
		return nil, err
	}
	return toDecoding(decoding), nil
}

// Decoder returns the plugin as a decoding backend. Closing it closes the host.
// It fails when the plugin is no decoder.
func (h *Host) Decoder() (mapmatched.Decoder, error) {
	if err := h.serves(KindDecoder); err != nil {
		return nil, err
	}
	return &decoder{h}, nil
}

// decoder is a plugin as a Decoder.
type decoder struct{ host *Host }

// Close implements io.Closer.
func (d *decoder) Close() error { return d.host.Close() }

// Health implements mapmatched.HealthChecker.
func (d *decoder) Health(ctx context.Context) error { return d.host.Health(ctx) }

// Decode implements mapmatched.Decoder.
func (d *decoder) Decode(ctx context.Context, t *mapmatched.Trellis) (mapmatched.Decoding, error) {
	request, err := toTrellis(t)
	if err != nil {
		return mapmatched.Decoding{}, d.host.fail("decode", err)
	}
	return call(ctx, d.host, "decode", wire.NewDecoderClient, wire.DecoderClient.Decode, request,
		func(r *wire.DecodeResponse) (mapmatched.Decoding, error) { return fromDecoding(r, t) })
}

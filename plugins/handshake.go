package plugins

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// maxQuoted is how much is quoted of what a plugin prints, in bytes.
const maxQuoted = 200

// parseHandshake reads the line by which a plugin says where it listens:
// 1|VERSION|NETWORK|ADDRESS|grpc|CERTIFICATE. It returns the path of the
// socket, "" for TCP.
func parseHandshake(line string) (socket string, err error) {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 4 {
		return "", fmt.Errorf("it printed %q before the handshake: nothing may be written to stdout first", cut(line, maxQuoted))
	}
	if _, err := strconv.Atoi(parts[0]); err != nil {
		return "", fmt.Errorf("it printed %q before the handshake: nothing may be written to stdout first", cut(line, maxQuoted))
	}
	if parts[0] != "1" {
		return "", fmt.Errorf("its handshake is of version %s, not 1: build it with another go-plugin", cut(parts[0], maxQuoted))
	}
	version, err := strconv.Atoi(parts[1])
	switch {
	case err != nil:
		return "", fmt.Errorf("its handshake has the protocol version %q, which is no number", cut(parts[1], maxQuoted))
	case version > protocolVersion:
		return "", fmt.Errorf("%w: the plugin speaks version %d and later, this host 1 to %d: upgrade the host", ErrProtocol, version, protocolVersion)
	case version < protocolVersion:
		return "", fmt.Errorf("%w: the plugin speaks versions up to %d, this host %d: upgrade the plugin", ErrProtocol, version, protocolVersion)
	case len(parts) < 5 || parts[4] != "grpc":
		return "", fmt.Errorf("it offers no gRPC: its handshake is %q", cut(line, maxQuoted))
	case len(parts) < 6 || parts[5] == "":
		return "", fmt.Errorf("its handshake has no certificate: it has to serve TLS for the certificate in %s", envClientCert)
	}
	der, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err == nil {
		_, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return "", fmt.Errorf("its handshake has no certificate in DER form and base64 without padding: %w", err)
	}
	switch parts[2] {
	case "unix":
		return parts[3], nil
	case "tcp":
		host, _, err := net.SplitHostPort(parts[3])
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return "", fmt.Errorf("it listens on %q, which is not a loopback address with a port", cut(parts[3], maxQuoted))
		}
		return "", nil
	}
	return "", fmt.Errorf("it listens on the network %q, not unix or tcp", cut(parts[2], maxQuoted))
}

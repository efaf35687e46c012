"""Serve an mmplug plugin from Python.

A plugin is one or more objects that have the methods of the services of
plugins/proto/v1/plugin.proto. A method gets the request, the response to fill
and the context of the call:

    class Newest:
        def Rerank(self, request, response, context):
            for i, candidate in enumerate(request.candidates):
                response.scores.add(chunk_id=candidate.chunk_id, score=-i)

    serve("newest", "1.0.0", {"Reranker": Newest()})

Needs grpcio, protobuf and cryptography, from PyPI or, on Debian:

    apt-get install python3-grpcio python3-protobuf python3-cryptography

Standard output belongs to the handshake: print to standard error, or use
logging, whose records arrive in the log of the host.
"""

import base64
import concurrent.futures
import contextlib
import datetime
import json
import logging
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import threading
import traceback

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# The handshake of hashicorp/go-plugin, as the host of mmplug expects it.
CORE_PROTOCOL = 1
PROTOCOL = 1
COOKIE_KEY = "MMPLUG_PLUGIN"
COOKIE_VALUE = "mapmatched-retrieval"

PACKAGE = "mmplug.plugin.v1"
MESSAGE_LIMIT = 64 << 20  # bytes, in both directions
WORKERS = 128  # calls at the same time


class PluginError(Exception):
    """An error of a call. code is a grpc.StatusCode, cause a well-known cause
    as in plugin.proto, or empty."""

    def __init__(self, code, message, cause=""):
        super().__init__(message)
        self.code, self.cause = code, cause


def invalid(message, cause=""):
    """An error for a request, or a configuration, that is wrong."""
    return PluginError(grpc.StatusCode.INVALID_ARGUMENT, message, cause)


def load_protocol():
    """The descriptors of the protocol: its messages by name, its services."""
    pool = descriptor_pool.DescriptorPool()
    data = pkgutil.get_data(__name__, "mmplug_v1.pb")
    file = descriptor_pb2.FileDescriptorProto.FromString(data)
    pool.Add(file)
    if hasattr(message_factory, "GetMessageClass"):
        class_of = message_factory.GetMessageClass
    else:  # protobuf before 4.22
        class_of = message_factory.MessageFactory(pool).GetPrototype
    messages = {
        m.name: class_of(pool.FindMessageTypeByName(f"{PACKAGE}.{m.name}"))
        for m in file.message_type
    }
    return messages, {s.name: s for s in file.service}


MESSAGES, SERVICES = load_protocol()


class _Base:
    """The service Base."""

    def __init__(self, info, configure):
        self._info, self._configure = info, configure

    def Info(self, request, response, context):
        response.MergeFrom(self._info)

    def Health(self, request, response, context):
        pass

    def Configure(self, request, response, context):
        try:
            config = json.loads(request.config)
        except ValueError as err:
            raise invalid(f"the configuration is not JSON: {err}") from None
        if not isinstance(config, dict):
            raise invalid("the configuration is not a JSON object")
        if self._configure:
            self._configure(config)
        elif config:
            raise invalid("this plugin takes no configuration")


def serve(name, version, services, description="", capabilities=(), config_schema=None, configure=None):
    """Serve until the host says to stop, or is gone.

    services is an object by the name of its service, such as "Reranker".
    config_schema is the JSON Schema of the configuration, as a dict, and
    configure is called with the configuration, a dict; it raises invalid(…).
    """
    if os.environ.get(COOKIE_KEY) != COOKIE_VALUE:
        sys.exit(f"{name} is a plugin of mmplug and is started by it: see mmplug plugin --help")
    _log_to_host()
    info = MESSAGES["InfoResponse"](
        name=name,
        version=version,
        description=description,
        kinds=[s.lower() for s in services],
        capabilities=capabilities,
        config_schema=json.dumps(config_schema).encode() if config_schema else b"",
    )
    stop = threading.Event()
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(WORKERS),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
        ],
    )
    for service, servant in {"Base": _Base(info, configure), **services}.items():
        server.add_generic_rpc_handlers((_handlers(service, servant),))
    server.add_generic_rpc_handlers(_of_go_plugin(stop))

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the host
    # The host has made a directory for this process alone.
    own = os.environ.get("PLUGIN_UNIX_SOCKET_DIR")
    directory = own or tempfile.mkdtemp(prefix="py")
    path = os.path.join(directory, "plugin.sock")
    try:
        certificate = _listen(server, path)
        server.start()
        print(CORE_PROTOCOL, PROTOCOL, "unix", path, "grpc", certificate, sep="|", flush=True)
        if os.environ.get("MMPLUG_WATCH_STDIN") == "1":
            threading.Thread(target=_watch, args=(stop,), daemon=True).start()
        stop.wait()
        server.stop(grace=1).wait()
    finally:
        if own:
            with contextlib.suppress(OSError):  # the host has removed it already
                os.unlink(path)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)  # calls that do not end keep nobody waiting


def _watch(stop):
    """Stops when standard input ends, which it does with the host."""
    while os.read(0, 1024):
        pass
    stop.set()


def _handlers(service, servant):
    """The handlers of a service, for the methods that servant has."""
    handlers = {}
    for method in SERVICES[service].method:
        function = getattr(servant, method.name, None)
        if function is None or method.server_streaming or method.client_streaming:
            continue
        request = MESSAGES[method.input_type.rsplit(".", 1)[1]]
        response = MESSAGES[method.output_type.rsplit(".", 1)[1]]
        handlers[method.name] = grpc.unary_unary_rpc_method_handler(
            _call(function, response),
            request_deserializer=request.FromString,
            response_serializer=response.SerializeToString,
        )
    return grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", handlers)


def _call(function, response_type):
    def call(request, context):
        response = response_type()
        try:
            function(request, response, context)
            return response
        except PluginError as err:
            code, message, cause = err.code, str(err), err.cause
        except BaseException as err:  # sys.exit too: it fails this call alone
            logging.error("%s", traceback.format_exc())
            at = traceback.extract_tb(err.__traceback__)[-1]
            code, cause = grpc.StatusCode.INTERNAL, ""
            message = f"{type(err).__name__}: {err} ({os.path.basename(at.filename)}:{at.lineno})"
        message = " ".join(message.encode(errors="replace").decode().split())  # lone surrogates
        if cause:
            details = _status(code.value[0], message, MESSAGES["ErrorDetail"](cause=cause))
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, message)

    return call


def _status(code, message, detail):
    """A google.rpc.Status with one detail, encoded."""

    def field(number, data):
        size, length = len(data), b""
        while size > 0x7F:
            length += bytes([size & 0x7F | 0x80])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + data

    url = f"type.googleapis.com/{PACKAGE}.{type(detail).DESCRIPTOR.name}"
    packed = field(1, url.encode()) + field(2, detail.SerializeToString())
    return bytes([1 << 3, code]) + field(2, message.encode()) + field(3, packed)


def _of_go_plugin(stop):
    """What go-plugin itself calls: is it alive, and stop."""

    def raw(function):
        return grpc.unary_unary_rpc_method_handler(function)

    def shutdown(request, context):
        stop.set()
        return b""

    serving = b"\x08\x01"
    return (
        grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": raw(lambda *_: serving)}),
        grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": raw(shutdown)}),
    )


def _listen(server, path):
    """Listen for the host alone, and return the certificate to know us by."""
    host = os.environ.get("PLUGIN_CLIENT_CERT")
    if not host:
        server.add_insecure_port("unix:" + path)
        return ""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    credentials = grpc.ssl_server_credentials(
        [
            (
                key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
                certificate.public_bytes(pem),
            )
        ],
        root_certificates=host.encode(),
        require_client_auth=True,
    )
    server.add_secure_port("unix:" + path, credentials)
    der = certificate.public_bytes(serialization.Encoding.DER)
    return base64.b64encode(der).decode().rstrip("=")


# What a record of logging has without being given anything.
RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _HostHandler(logging.Handler):
    """Writes records as the host reads them: a JSON object a line. What is
    given as extra becomes attributes, an exception the attribute exception."""

    def emit(self, record):
        try:
            self._write(record)
        except Exception:
            self.handleError(record)

    def _write(self, record):
        levels = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"), (logging.DEBUG, "debug"))
        line = {
            "@level": next((name for least, name in levels if record.levelno >= least), "trace"),
            "@message": record.getMessage(),
            "@timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        }
        if record.exc_info:
            line["exception"] = logging.Formatter().formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        for key, value in vars(record).items():
            if key not in RECORD:
                line.setdefault(key, _plain(value))
        sys.stderr.write(json.dumps(line) + "\n")
        sys.stderr.flush()


def _plain(value):
    """The value, or its text where JSON cannot have it."""
    try:
        json.dumps(value, allow_nan=False)
        return value
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _log_to_host():
    root = logging.getLogger()
    root.addHandler(_HostHandler())
    levels = {"trace": 1, "debug": logging.DEBUG, "warn": logging.WARNING, "error": logging.ERROR}
    root.setLevel(levels.get(os.environ.get("MMPLUG_LOG_LEVEL"), logging.INFO))

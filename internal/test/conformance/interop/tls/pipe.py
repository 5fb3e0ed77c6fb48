# Sends its input over TLS to $ADDR and writes the reply, with Python's ssl.
import os
import socket
import ssl
import sys

version = {
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}[os.environ["VERSION"]]
context = ssl.create_default_context(cafile=os.environ["CA"])
if version == ssl.TLSVersion.TLSv1_1:
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # otherwise OpenSSL does not offer it
context.minimum_version = context.maximum_version = version
if os.environ.get("CERT"):
    context.load_cert_chain(os.environ["CERT"], os.environ["KEY"])

host, port = os.environ["ADDR"].split(":")
with socket.create_connection((host, int(port)), timeout=10) as plain:
    with context.wrap_socket(plain, server_hostname="localhost") as s:
        s.sendall(sys.stdin.buffer.read())
        while chunk := s.recv(4096):
            sys.stdout.buffer.write(chunk)

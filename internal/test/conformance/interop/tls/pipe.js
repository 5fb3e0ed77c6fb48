// Sends its input over TLS to $ADDR and writes the reply, with Node's tls.
const fs = require('fs');
const tls = require('tls');

const { ADDR, CA, CERT, KEY, VERSION } = process.env;
const [host, port] = ADDR.split(':');
const options = {
  host,
  port,
  servername: 'localhost',
  ca: fs.readFileSync(CA),
  minVersion: `TLSv${VERSION}`,
  maxVersion: `TLSv${VERSION}`,
};
if (CERT) {
  options.cert = fs.readFileSync(CERT);
  options.key = fs.readFileSync(KEY);
}
if (VERSION === '1.1') {
  options.ciphers = 'DEFAULT@SECLEVEL=0'; // otherwise OpenSSL does not offer it
}
const socket = tls.connect(options, () => socket.write(fs.readFileSync(0)));
socket.on('error', (e) => {
  console.error(e.message);
  process.exitCode = 1;
});
socket.pipe(process.stdout);

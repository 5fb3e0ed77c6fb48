<?php
// Sends its input over TLS to $ADDR and writes the reply, with PHP's stream wrapper.

[$ca, $cert, $key] = [getenv('CA'), getenv('CERT'), getenv('KEY')];
$only = [
    '1.1' => STREAM_CRYPTO_METHOD_TLSv1_1_CLIENT,
    '1.2' => STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT,
    '1.3' => STREAM_CRYPTO_METHOD_TLSv1_3_CLIENT,
];
$options = ['cafile' => $ca, 'peer_name' => 'localhost', 'crypto_method' => $only[getenv('VERSION')]];
if ($cert) {
    $options += ['local_cert' => $cert, 'local_pk' => $key];
}
if (getenv('VERSION') === '1.1') {
    $options += ['ciphers' => 'DEFAULT@SECLEVEL=0']; // otherwise OpenSSL does not offer it
}
$context = stream_context_create(['ssl' => $options]);
$socket = stream_socket_client('ssl://' . getenv('ADDR'), $code, $error, 10, STREAM_CLIENT_CONNECT, $context);
if (!$socket) {
    exit(1);
}
fwrite($socket, stream_get_contents(STDIN));
echo stream_get_contents($socket);

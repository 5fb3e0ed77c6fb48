<?php
// Runs checks and prints their results as TAP, which ../run counts.

error_reporting(E_ALL & ~E_DEPRECATED); // the packages are older than the interpreter

function run(string $client, array $checks): void
{
    echo "# $client\n1..", count($checks), "\n";
    $n = 0;
    foreach ($checks as $name => $check) {
        $n++;
        try {
            $check("php-$n");
            echo "ok $n - $name\n";
        } catch (\Throwable $e) {
            $why = substr(preg_replace('/\s+/', ' ', get_class($e) . ' ' . $e->getMessage()), 0, 150);
            echo "not ok $n - $name: $why\n";
        }
    }
}

function same($want, $got): void
{
    if ($want !== $got) {
        throw new \RuntimeException('got ' . json_encode($got) . ', want ' . json_encode($want));
    }
}

function refused(string $class, callable $call, string $message = ''): void
{
    try {
        $call();
    } catch (\Throwable $e) {
        if ($e instanceof $class && ($message === '' || strpos($e->getMessage(), $message) !== false)) {
            return;
        }
        throw $e;
    }
    throw new \RuntimeException("no $class");
}

// debianVersion returns the upstream version of an installed package.
function debianVersion(string $package): string
{
    return trim(shell_exec('dpkg-query -W -f \'${source:Upstream-Version}\' ' . escapeshellarg($package)) ?? '?');
}

function address(): array
{
    [$host, $port] = explode(':', getenv('ADDR'));
    return [$host, (int) $port];
}

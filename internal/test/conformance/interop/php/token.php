<?php
// Pheanstalk with a token, which is the body of the first put.

require __DIR__ . '/tap.php';
require 'Pheanstalk/autoload.php';

use Pheanstalk\Pheanstalk;

function check(): void
{
    $c = Pheanstalk::create(...address());
    same(0, $c->put(getenv('TOKEN'))->getId());
    $put = $c->useTube('mail')->put('hello');
    $job = $c->watchOnly('mail')->reserve();
    same($put->getId(), $job->getId());
    same('hello', $job->getData());
    $c->delete($job);
    same(null, $c->reserveWithTimeout(0)); // the token is not a job

    refused(\Throwable::class, fn () => Pheanstalk::create(...address())->put('not a token'));
}

check();
echo "ok\n";

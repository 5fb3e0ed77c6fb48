<?php
// The life of a job with Pheanstalk.

require __DIR__ . '/tap.php';
require 'Pheanstalk/autoload.php';

use Pheanstalk\Exception;
use Pheanstalk\JobId;
use Pheanstalk\Pheanstalk;

function connect(string $tube): Pheanstalk
{
    return Pheanstalk::create(...address())->useTube($tube)->watchOnly($tube);
}

const NOBODY = 999999;

$policy = getenv('POLICIES') ? [
    'the third release buries the job if a policy requires it' => function ($tube) {
        $c = connect("$tube-acts");
        $job = $c->put('again');
        for ($n = 0; $n < 3; $n++) {
            $c->release($c->reserveWithTimeout(1));
        }
        $s = $c->statsJob($job);
        same(['buried', '3'], [$s['state'], $s['releases']]);
    },
] : [];

run('Pheanstalk ' . debianVersion('php-pda-pheanstalk'), [
    'put, reserve, delete' => function ($tube) {
        $c = connect($tube);
        $put = $c->put('hello');
        $job = $c->reserve();
        same($put->getId(), $job->getId());
        same('hello', $job->getData());
        $c->delete($job);
        refused(Exception\JobNotFoundException::class, fn () => $c->delete($job));
    },
    'the smallest priority comes first, then the oldest' => function ($tube) {
        $c = connect($tube);
        $c->put('third', 10);
        $c->put('first', 1);
        $c->put('second', 1);
        foreach (['first', 'second', 'third'] as $want) {
            same($want, $c->reserve()->getData());
        }
    },
    'the oldest of all watched tubes' => function ($tube) {
        $c = connect($tube);
        $c->watch("$tube-2");
        foreach (['1' => $tube, '2' => "$tube-2", '3' => $tube] as $body => $t) {
            $c->useTube($t)->put((string) $body);
        }
        foreach (['1', '2', '3'] as $want) {
            same($want, $c->reserve()->getData());
        }
    },
    'a delayed job becomes ready at its time' => function ($tube) {
        $c = connect($tube);
        $c->put('later', 0, 1);
        same(null, $c->reserveWithTimeout(0));
        same('later', $c->reserveWithTimeout(3)->getData());
    },
    'release with a priority and a delay' => function ($tube) {
        $c = connect($tube);
        $c->put('again');
        $job = $c->reserve();
        $c->release($job, 7, 100);
        $s = $c->statsJob($job);
        same(['delayed', '7', '100', '99', '1'], [$s['state'], $s['pri'], $s['delay'], $s['time-left'], $s['releases']]);
        refused(Exception\JobNotFoundException::class, fn () => $c->release($job));
    },
    'bury, peek-buried, kick' => function ($tube) {
        $c = connect($tube);
        $c->put('bad');
        $job = $c->reserve();
        $c->bury($job, 3);
        same($job->getId(), $c->peekBuried()->getId());
        same(1, $c->kick(10));
        same(0, $c->kick(10));
        same('ready', $c->statsJob($job)['state']);
        refused(Exception\JobNotFoundException::class, fn () => $c->bury($job));
    },
    'kick-job' => function ($tube) {
        $c = connect($tube);
        $job = $c->put('x', 0, 100);
        $c->kickJob($job);
        same('ready', $c->statsJob($job)['state']);
        refused(Exception\JobNotFoundException::class, fn () => $c->kickJob($job));
    },
    'touch restarts the TTR; time-left is rounded down' => function ($tube) {
        $c = connect($tube);
        $c->put('slow', 0, 0, 10);
        $job = $c->reserve();
        same('9', $c->statsJob($job)['time-left']);
        usleep(1100000);
        same('8', $c->statsJob($job)['time-left']);
        $c->touch($job);
        same('9', $c->statsJob($job)['time-left']);
    },
    'DEADLINE_SOON' => function ($tube) {
        $c = connect($tube);
        $c->put('short', 0, 0, 1);
        $c->reserve();
        refused(Exception\DeadlineSoonException::class, fn () => $c->reserve());
    },
    'peek and the heads' => function ($tube) {
        $c = connect($tube);
        same([null, null, null], [$c->peekReady(), $c->peekDelayed(), $c->peekBuried()]);
        $ready = $c->put('ready');
        $delayed = $c->put('delayed', 0, 100);
        same('ready', $c->peek($ready)->getData());
        same([$ready->getId(), $delayed->getId()], [$c->peekReady()->getId(), $c->peekDelayed()->getId()]);
        refused(Exception\JobNotFoundException::class, fn () => $c->peek(new JobId(NOBODY)));
    },
    'unicode, binary and empty bodies' => function ($tube) {
        $c = connect($tube);
        $all = implode('', array_map('chr', range(0, 255))) . "\r\n\0\r\n";
        foreach (['naïve ☕ 日本 🫘', $all, '', "delete 1\r\nquit\r\n"] as $body) {
            $c->put($body);
            same(bin2hex($body), bin2hex($c->reserve()->getData()));
        }
    },
    'the largest body works; a larger one throws JobTooBigException, and the connection stays open' => function ($tube) {
        $c = connect($tube);
        $c->put(str_repeat('x', 65535));
        same(65535, strlen($c->reserve()->getData()));
        refused(Exception\JobTooBigException::class, fn () => $c->put(str_repeat('x', 65536)));
        $c->put('small');
        same('small', $c->reserve()->getData());
    },
    'errors are exceptions of their kind' => function ($tube) {
        $c = connect($tube);
        refused(Exception\ServerException::class, fn () => $c->statsJob(new JobId(NOBODY)), 'NOT_FOUND');
        refused(Exception\ServerException::class, fn () => $c->statsTube('no-such-tube'), 'NOT_FOUND');
        refused(Exception\ServerException::class, fn () => $c->pauseTube('no-such-tube', 1), 'NOT_FOUND');
        refused(Exception\JobNotFoundException::class, fn () => $c->touch(new JobId(NOBODY)));
    },
    'lists' => function ($tube) {
        $c = connect($tube);
        same($tube, $c->listTubeUsed(true));
        same([$tube], $c->listTubesWatched(true));
        same('default', $c->listTubes()[0]);
        same(true, in_array($tube, $c->listTubes(), true));
    },
    'stats, read by the one who changed them' => function ($tube) {
        $c = connect($tube);
        $before = (int) $c->stats()['total-jobs'];
        $c->put('x');
        $stats = $c->stats();
        same($before + 1, (int) $stats['total-jobs']);
        same('65535', $stats['max-job-size']);
        same(1, preg_match('/^"?\d+\.\d+"?$/', $stats['version']));
    },
    'stats-tube' => function ($tube) {
        $c = connect($tube);
        $c->put('x');
        $c->put('y', 0, 9);
        $c->delete($c->put('z'));
        $s = $c->statsTube($tube);
        same(['1', '1', '3', '1', '1', '1'], [$s['current-jobs-ready'], $s['current-jobs-delayed'], $s['total-jobs'],
            $s['cmd-delete'], $s['current-using'], $s['current-watching']]);
    },
    'pauseTube and resumeTube' => function ($tube) {
        $c = connect($tube);
        $c->put('x');
        $c->pauseTube($tube, 100);
        same(null, $c->reserveWithTimeout(0));
        $c->resumeTube($tube);
        same('x', $c->reserveWithTimeout(0)->getData());
    },
    'a closed connection releases its jobs to other workers' => function ($tube) {
        $gone = connect($tube);
        $gone->put('mine');
        $gone->reserve();
        unset($gone);
        gc_collect_cycles();
        same('mine', connect($tube)->reserveWithTimeout(3)->getData());
    },
] + $policy);

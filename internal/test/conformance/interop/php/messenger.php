<?php
// The use of a queue by Symfony Messenger's beanstalkd transport.

require __DIR__ . '/tap.php';
require 'Symfony/Component/Messenger/autoload.php';
require 'Symfony/Component/Messenger/Bridge/Beanstalkd/autoload.php';

use Symfony\Component\Messenger\Bridge\Beanstalkd\Transport\BeanstalkdReceivedStamp;
use Symfony\Component\Messenger\Bridge\Beanstalkd\Transport\BeanstalkdTransport;
use Symfony\Component\Messenger\Bridge\Beanstalkd\Transport\Connection;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

class Message
{
    public string $text;

    public function __construct(string $text)
    {
        $this->text = $text;
    }
}

function transport(string $tube, array $options = []): BeanstalkdTransport
{
    $options += ['tube_name' => $tube, 'timeout' => 0, 'ttr' => 60];
    return new BeanstalkdTransport(Connection::fromDsn('beanstalkd://' . getenv('ADDR'), $options), new PhpSerializer());
}

function send(BeanstalkdTransport $t, string $text, int $delay = 0): void
{
    $t->send(new Envelope(new Message($text), $delay ? [new DelayStamp($delay)] : []));
}

function next_(BeanstalkdTransport $t): ?Envelope
{
    foreach ($t->get() as $envelope) {
        return $envelope;
    }
    return null;
}

run('Symfony Messenger ' . debianVersion('php-symfony-beanstalkd-messenger'), [
    'send, get, ack' => function ($tube) {
        $t = transport($tube);
        send($t, 'naïve ☕');
        $envelope = next_($t);
        same('naïve ☕', $envelope->getMessage()->text);
        same($tube, $envelope->last(BeanstalkdReceivedStamp::class)->getTube());
        $t->ack($envelope);
        same(null, next_($t));
    },
    'reject deletes' => function ($tube) {
        $t = transport($tube);
        send($t, 'x');
        $t->reject(next_($t));
        same(0, $t->getMessageCount());
    },
    'the message count is that of ready jobs' => function ($tube) {
        $t = transport($tube);
        send($t, 'a');
        send($t, 'b');
        send($t, 'later', 100000);
        same(2, $t->getMessageCount());
    },
    'messages come in their order' => function ($tube) {
        $t = transport($tube);
        foreach (['1', '2', '3'] as $text) {
            send($t, $text);
        }
        foreach (['1', '2', '3'] as $want) {
            same($want, next_($t)->getMessage()->text);
        }
    },
    'a delayed message comes when its time has come' => function ($tube) {
        $t = transport($tube, ['timeout' => 3]);
        send($t, 'later', 1000);
        same(null, next_(transport($tube)));
        same('later', next_($t)->getMessage()->text);
    },
    'a message that nobody acknowledges comes again' => function ($tube) {
        $t = transport($tube, ['ttr' => 1]);
        send($t, 'again');
        same('again', next_($t)->getMessage()->text);
        same('again', next_(transport($tube, ['timeout' => 3]))->getMessage()->text);
    },
    'acknowledging what is gone is an error' => function ($tube) {
        $t = transport($tube);
        send($t, 'x');
        $envelope = next_($t);
        $t->ack($envelope);
        refused(\Throwable::class, fn () => $t->ack($envelope), 'NOT_FOUND');
    },
]);

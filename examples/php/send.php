<?php
// Sends a message: php send.php FROM TO
declare(strict_types=1);
require __DIR__ . '/svc.php';

try {
    $message = svc_request('POST', '/v1/messages', [
        'from' => $argv[1],
        'to' => [$argv[2]],
        'subject' => 'Your order',
        'text' => 'It is on its way.',
        'html' => '<p>It is on its way.</p>',
        'tags' => ['order'],
    ]);
    echo $message['id'], "\n";
} catch (SvcError $error) {
    fwrite(STDERR, $error->getMessage() . "\n");
    foreach ($error->errors as $problem) fwrite(STDERR, "  {$problem['field']}: {$problem['issue']}\n");
    exit(1);
}

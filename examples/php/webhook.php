<?php
// Receives webhooks: php -S 127.0.0.1:8080 webhook.php to try it, PHP-FPM behind a web server that has the certificate
// to run it (webhooks are sent by HTTPS only).
declare(strict_types=1);

const TOLERANCE_SECONDS = 5 * 60;
const KEPT_SECONDS = 25 * 60 * 60;

/** True for a body, as it came, that the holder of the secret signed within the last five minutes. */
function is_genuine(array $server, string $body): bool
{
    $secret = getenv('SVC_WEBHOOK_SECRET'); // the 64 characters as they are: they are not encoded
    $timestamp = $server['HTTP_X_SVC_TIMESTAMP'] ?? '';
    if (!$secret || !ctype_digit($timestamp) || abs(time() - (int) $timestamp) > TOLERANCE_SECONDS) return false;
    $expected = 'sha256=' . hash_hmac('sha256', "$timestamp.$body", $secret);
    // For a while after the secret was rotated, the second header is signed with the one before.
    return hash_equals($expected, $server['HTTP_X_SVC_SIGNATURE'] ?? '')
        || hash_equals($expected, $server['HTTP_X_SVC_SIGNATURE_PREVIOUS'] ?? '');
}

/** False where the event was here before: each may come more than once. One file an id; better a table with a unique key. */
function is_new(string $eventId): bool
{
    $folder = (getenv('SVC_SEEN_DIR') ?: sys_get_temp_dir() . '/svc-webhook') . '/';
    if (!is_dir($folder)) @mkdir($folder, 0700, true);
    if (random_int(1, 100) === 1) {
        foreach (glob("$folder*") as $file) if (time() - filemtime($file) > KEPT_SECONDS) @unlink($file);
    }
    return @fopen($folder . basename($eventId), 'x') !== false; // x: fails where the file is there
}

function handle(array $event): void
{
    error_log("{$event['event_id']} {$event['event']} " . ($event['data']['to'] ?? ''));
}

$body = file_get_contents('php://input', length: 1_000_001);
if ($_SERVER['REQUEST_METHOD'] !== 'POST' || strlen($body) > 1_000_000 || !is_genuine($_SERVER, $body)) {
    http_response_code(401);
    exit;
}
$event = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
http_response_code(202); // first the answer, then the work: there are 10 seconds for it
if (function_exists('fastcgi_finish_request')) fastcgi_finish_request();
if (is_new($event['event_id'])) handle($event);

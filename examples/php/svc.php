<?php
// One request to the API, tried again as the API asks for. PHP 8.0 or newer with its curl extension.
declare(strict_types=1);

const MOST_RETRIES = 5;
const CEILING_MS = 30_000;

final class SvcError extends RuntimeException
{
    public readonly array $errors;

    public function __construct(public readonly int $status, string $text)
    {
        $problem = json_decode($text, true) ?? ['code' => 'unknown', 'detail' => substr($text, 0, 200)];
        $this->errors = $problem['errors'] ?? [];
        parent::__construct("$status {$problem['code']}: {$problem['detail']} (" . ($problem['request_id'] ?? 'no request id') . ')');
    }
}

/**
 * Answers the parsed body, null for none; throws an SvcError for a refusal. The Idempotency-Key is the same on every
 * try, so that what is sent twice is done once. Keep it with your job, and pass it in, to be safe across a restart too.
 */
function svc_request(string $method, string $path, ?array $body = null, ?string $idempotencyKey = null): ?array
{
    $headers = [
        'Authorization: Bearer ' . getenv('SVC_API_KEY'),
        'Accept: application/json, application/problem+json', // one form for all errors
    ];
    if ($body !== null) $headers[] = 'Content-Type: application/json';
    if ($method !== 'GET') $headers[] = 'Idempotency-Key: ' . ($idempotencyKey ?? uuid_v4());

    $baseMs = (int) (getenv('SVC_RETRY_BASE_MS') ?: 1000);
    for ($retry = 0; ; $retry++) {
        $retryAfter = 0;
        $curl = curl_init(getenv('SVC_BASE_URL') . $path);
        curl_setopt_array($curl, [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 30,
            CURLOPT_HEADERFUNCTION => function ($curl, string $line) use (&$retryAfter): int {
                if (preg_match('/^retry-after:\s*(\d+)/i', $line, $found)) $retryAfter = (int) $found[1];
                return strlen($line);
            },
        ]);
        if ($body !== null) curl_setopt($curl, CURLOPT_POSTFIELDS, json_encode($body, JSON_THROW_ON_ERROR));
        if (getenv('SVC_CA_FILE')) curl_setopt($curl, CURLOPT_CAINFO, getenv('SVC_CA_FILE')); // a server with a certificate of its own
        $text = curl_exec($curl);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);

        if ($text === false) {
            // No answer: nobody knows whether it was done, so it is tried again.
            if ($retry === MOST_RETRIES) throw new RuntimeException(curl_error($curl));
        } elseif ($status >= 200 && $status < 300) {
            return $text === '' ? null : json_decode($text, true, flags: JSON_THROW_ON_ERROR);
        } elseif ($retry === MOST_RETRIES || ($status !== 429 && $status < 500)) {
            throw new SvcError($status, $text);
        }
        // What the server asks for with 429 and 503; else a growing delay with jitter.
        $backoffMs = min(CEILING_MS, $baseMs * 2 ** $retry * (1 + mt_rand() / mt_getrandmax()));
        $asked = $text !== false && in_array($status, [429, 503], true) && $retryAfter > 0;
        usleep((int) (1000 * ($asked ? $retryAfter * 1000 : $backoffMs)));
    }
}

function uuid_v4(): string
{
    $bytes = random_bytes(16);
    $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
    $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
}

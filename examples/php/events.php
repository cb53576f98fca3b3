<?php
// Prints the events, oldest first, one a line: php events.php [--follow] [CURSOR]
// The cursor goes to stderr: keep it, and the next run begins behind what this one has printed.
declare(strict_types=1);
require __DIR__ . '/svc.php';

$follow = in_array('--follow', $argv, true);
$cursor = array_values(array_diff(array_slice($argv, 1), ['--follow']))[0] ?? null;

for (;;) {
    $query = http_build_query(['limit' => 1000] + ($cursor === null ? [] : ['cursor' => $cursor]));
    $page = svc_request('GET', "/v1/events?$query");
    foreach ($page['data'] as $event) echo json_encode($event), "\n";
    $cursor = $page['next_cursor'] ?? $cursor; // the last page has one too: what happens later comes behind it
    if ($page['has_more']) continue;
    if (!$follow) break;
    sleep(2);
}
if ($cursor !== null) fwrite(STDERR, "$cursor\n");

// A receiver that counts: one thread, announces PIPELINING, takes every mail and keeps none.
// sink STATS PORT ADDRESSES DELAY_MS DEFER_PERCENT
//   STATS      file, mapped: struct stats below, then the time of the 250 by message number
//   ADDRESSES  listens on 127.0.0.1 and on so many more: 127.0.1.1 … 127.0.1.250, 127.0.2.1 …
//   DELAY_MS   every reply leaves so much later, the greeting too
//   DEFER_PERCENT  of RCPT commands are answered with 451
// A message's number is in its X-Bench-Number field. Times are CLOCK_MONOTONIC. SIGUSR1 sets all counts to 0.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NUMBERS = 1 << 20, INPUT = 65536, OUTPUT = 16384 };
struct stats {
  uint64_t messages, first_ns, last_ns, bytes, connections, signatures, deferred, open, most_open, answered_ns;
  uint64_t spare[6];
  uint64_t delivered_ns[NUMBERS];
};
enum state { COMMAND, HEADER, BODY };
struct connection {
  int fd, in_len, out_len, closing, references;
  enum state state;
  int line_start;
  uint64_t number;
  char in[INPUT], out[OUTPUT];
};
struct pending { struct connection *connection; uint64_t due_ns; int length; struct pending *next; };

static struct stats *stats;
static volatile sig_atomic_t reset_wanted;
static uint64_t delay_ns, recipients;
static unsigned defer_percent;
static struct pending *first_pending, *last_pending;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
static void on_reset(int signal) { (void)signal; reset_wanted = 1; }
static void reset(void) {
  uint64_t open = stats->open;
  memset(stats, 0, sizeof *stats);
  stats->open = stats->most_open = open;
  recipients = 0;
  reset_wanted = 0;
}
static void say(struct connection *c, const char *text) {
  int length = (int)strlen(text);
  if (c->out_len + length > OUTPUT) { c->closing = 1; return; }
  memcpy(c->out + c->out_len, text, (size_t)length);
  c->out_len += length;
}
static void release(struct connection *c) {
  if (--c->references == 0) free(c);
}
static void hang_up(struct connection *c) {
  if (c->fd < 0) return;
  close(c->fd);
  c->fd = -1;
  stats->open--;
  release(c);
}
static void write_out(struct connection *c, int length) {
  int at = 0;
  while (at < length) {
    ssize_t written = write(c->fd, c->out + at, (size_t)(length - at));
    if (written < 0 && errno == EAGAIN) continue;
    if (written < 0) { hang_up(c); return; }
    at += (int)written;
  }
  memmove(c->out, c->out + length, (size_t)(c->out_len - length));
  c->out_len -= length;
  if (c->closing && c->out_len == 0) hang_up(c);
}
// What was said since `before` leaves now, or after the delay. The delay is the same for all, so a queue is enough.
static void reply(struct connection *c, int before) {
  if (c->out_len == before) { if (c->closing && c->out_len == 0) hang_up(c); return; }
  if (delay_ns == 0) { write_out(c, c->out_len); return; }
  struct pending *p = malloc(sizeof *p);
  *p = (struct pending){ .connection = c, .due_ns = now_ns() + delay_ns, .length = c->out_len - before, .next = NULL };
  c->references++;
  if (last_pending) last_pending->next = p; else first_pending = p;
  last_pending = p;
}
static int write_due(void) { // milliseconds until the next is due, -1: none waits
  while (first_pending) {
    uint64_t now = now_ns();
    struct pending *p = first_pending;
    if (p->due_ns > now) return (int)((p->due_ns - now) / 1000000) + 1;
    first_pending = p->next;
    if (!first_pending) last_pending = NULL;
    if (p->connection->fd >= 0) write_out(p->connection, p->length);
    release(p->connection);
    free(p);
  }
  return -1;
}
static void arrived(struct connection *c) {
  uint64_t now = now_ns();
  if (stats->messages++ == 0) stats->first_ns = now;
  stats->last_ns = stats->answered_ns = now;
  if (c->number < NUMBERS) stats->delivered_ns[c->number] = now;
  c->state = COMMAND;
  say(c, "250 2.0.0 Ok\r\n");
}
static void command(struct connection *c, const char *line) {
  if (!strncasecmp(line, "RCPT", 4)) {
    // Evenly spread: a percentage of each hundred, in steps of 37 (coprime to 100).
    if (recipients++ * 37 % 100 < defer_percent) {
      stats->deferred++;
      stats->answered_ns = now_ns();
      say(c, "451 4.7.1 Greylisted, please try again later\r\n");
      c->number = NUMBERS + 1; // DATA has no recipient
    } else {
      c->number = NUMBERS;
      say(c, "250 2.1.5 Ok\r\n");
    }
  } else if (!strncasecmp(line, "DATA", 4)) {
    if (c->number == NUMBERS + 1) { say(c, "554 5.5.1 No valid recipients\r\n"); return; }
    c->state = HEADER;
    say(c, "354 Go ahead\r\n");
  } else if (!strncasecmp(line, "EHLO", 4)) {
    say(c, "250-sink.test\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n");
  } else if (!strncasecmp(line, "QUIT", 4)) {
    say(c, "221 2.0.0 Bye\r\n");
    c->closing = 1;
  } else {
    say(c, "250 2.0.0 Ok\r\n");
  }
}
static void header_line(struct connection *c, const char *line, int length) {
  if (!strncasecmp(line, "DKIM-Signature:", 15)) stats->signatures++;
  else if (!strncasecmp(line, "X-Bench-Number:", 15)) c->number = strtoull(line + 15, NULL, 10);
  else if (length == 2) { c->state = BODY; c->line_start = 1; }
  else if (length == 3 && line[0] == '.') arrived(c);
}
// Eats what is whole; what is left of a line, or could begin the final dot, stays for the next read.
static void eat(struct connection *c) {
  int at = 0;
  while (at < c->in_len && !c->closing) {
    char *from = c->in + at;
    int left = c->in_len - at;
    if (c->state == BODY) {
      if (c->line_start && left >= 3 && !memcmp(from, ".\r\n", 3)) { at += 3; arrived(c); continue; }
      if (c->line_start && left < 3) break;
      char *end = memmem(from, (size_t)left, "\r\n.\r\n", 5);
      if (end) { stats->bytes += (uint64_t)(end - from); at += (int)(end - from) + 5; arrived(c); continue; }
      int keep = left < 4 ? left : 4;
      stats->bytes += (uint64_t)(left - keep);
      if (left > keep) c->line_start = 0;
      at += left - keep;
      break;
    }
    char *end = memchr(from, '\n', (size_t)left);
    if (!end) { if (left == INPUT) c->closing = 1; break; }
    int length = (int)(end - from) + 1;
    at += length;
    *end = '\0';
    if (c->state == COMMAND) command(c, from); else header_line(c, from, length);
  }
  memmove(c->in, c->in + at, (size_t)(c->in_len - at));
  c->in_len -= at;
}
static void listen_on(int epoll, uint32_t address, int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(address) };
  if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4096)) { perror("sink: listen"); exit(1); }
  struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)fd << 1 | 1 };
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}
static void welcome(int epoll, int listener) {
  int fd, one = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->references = 1;
    stats->connections++;
    if (++stats->open > stats->most_open) stats->most_open = stats->open;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    say(c, "220 sink.test ESMTP\r\n");
    reply(c, 0);
  }
}
static void hear(struct connection *c) {
  if (c->fd < 0) return;
  ssize_t got = read(c->fd, c->in + c->in_len, (size_t)(INPUT - c->in_len));
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) { hang_up(c); return; }
  c->in_len += (int)got;
  int before = c->out_len;
  eat(c);
  reply(c, before);
}
int main(int count, char **argument) {
  if (count != 6) { fprintf(stderr, "usage: sink STATS PORT ADDRESSES DELAY_MS DEFER_PERCENT\n"); return 2; }
  int port = atoi(argument[2]), addresses = atoi(argument[3]);
  delay_ns = strtoull(argument[4], NULL, 10) * 1000000ull;
  defer_percent = (unsigned)atoi(argument[5]);
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = { .sa_handler = on_reset };
  sigaction(SIGUSR1, &action, NULL);
  struct rlimit files = { 65536, 65536 };
  setrlimit(RLIMIT_NOFILE, &files);
  int file = open(argument[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, sizeof *stats)) { perror("sink: stats"); return 1; }
  stats = mmap(NULL, sizeof *stats, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  int epoll = epoll_create1(0);
  listen_on(epoll, INADDR_LOOPBACK, port);
  for (int i = 0; i < addresses; i++)
    listen_on(epoll, 0x7f000100u + ((uint32_t)(i / 250) << 8) + 1 + (uint32_t)(i % 250), port);
  puts("ready");
  fflush(stdout);
  struct epoll_event events[512];
  for (;;) {
    if (reset_wanted) reset();
    int ready = epoll_wait(epoll, events, 512, write_due());
    for (int i = 0; i < ready; i++) {
      if (events[i].data.u64 & 1) welcome(epoll, (int)(events[i].data.u64 >> 1));
      else hear(events[i].data.ptr);
    }
  }
}

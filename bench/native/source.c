// A sender of numbered mails, in lockstep as smtp-source is: one thread, SESSIONS connections at once.
// source TIMES HOST PORT SESSIONS MESSAGES SIZE DESTINATIONS PER_SECOND FIRST_NUMBER
//   TIMES         file that is written at the end: the time of the 250 by message number (uint64, CLOCK_MONOTONIC)
//   DESTINATIONS  the recipient of mail n is rcpt@dX.test, X being n modulo so many
//   PER_SECOND    mails that are begun in a second; 0: as many as go
//   FIRST_NUMBER  of the mails' X-Bench-Number fields
// Prints: accepted, refused, nanoseconds from the first mail to the last 250.
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
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 512 };
enum step { GREETING, EHLO, MAIL, RCPT, DATA, DOT, RESET, IDLE };
struct session { int fd, in_len; enum step step; uint64_t number; char in[4096]; };

static uint64_t messages, begun, accepted, refused, first_number, began_ns, last_ns, *times;
static int destinations, body_len, sessions_open;
static double per_second;
static char *mail; // room for a header, then the body that all share
static struct session **idle;
static int idle_count;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
static void die(const char *what) { fprintf(stderr, "source: %s: %s\n", what, strerror(errno)); exit(1); }
static void put(struct session *s, const char *bytes, int length) {
  while (length > 0) {
    ssize_t written = write(s->fd, bytes, (size_t)length);
    if (written < 0 && errno == EAGAIN) continue;
    if (written < 0) die("write");
    bytes += written;
    length -= (int)written;
  }
}
static int may_begin(void) {
  if (begun >= messages) return 0;
  return per_second == 0 || (double)begun <= (double)(now_ns() - began_ns) / 1e9 * per_second;
}
static void begin(struct session *s) {
  s->number = first_number + begun++;
  s->step = MAIL;
  static const char command[] = "MAIL FROM:<sender@example.test>\r\n";
  put(s, command, sizeof command - 1);
}
static void next(struct session *s) {
  if (may_begin()) { begin(s); return; }
  s->step = IDLE;
  idle[idle_count++] = s;
}
static void transmit(struct session *s) {
  char head[HEAD];
  time_t t = time(NULL);
  struct tm utc;
  char date[64];
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&t, &utc));
  int length = snprintf(head, sizeof head,
    "From: <sender@example.test>\r\nTo: <rcpt@d%d.test>\r\nDate: %s\r\nSubject: number %llu\r\n"
    "Message-Id: <%llu.%d@example.test>\r\nX-Bench-Number: %llu\r\n\r\n",
    (int)(s->number % (uint64_t)destinations), date, (unsigned long long)s->number,
    (unsigned long long)s->number, (int)getpid(), (unsigned long long)s->number);
  memcpy(mail + HEAD - length, head, (size_t)length);
  put(s, mail + HEAD - length, length + body_len);
}
static void settled(struct session *s, int taken) {
  last_ns = now_ns();
  if (taken) { accepted++; times[s->number - first_number] = last_ns; } else refused++;
  next(s);
}
static void replied(struct session *s, int code) {
  char line[128];
  int good = code < 400;
  switch (s->step) {
    case GREETING: s->step = EHLO; put(s, "EHLO source.test\r\n", 18); return;
    case EHLO: next(s); return;
    case MAIL:
      if (!good) { settled(s, 0); return; }
      s->step = RCPT;
      put(s, line, snprintf(line, sizeof line, "RCPT TO:<rcpt@d%d.test>\r\n", (int)(s->number % (uint64_t)destinations)));
      return;
    case RCPT:
      s->step = good ? DATA : RESET;
      put(s, good ? "DATA\r\n" : "RSET\r\n", 6);
      return;
    case DATA:
      if (!good) { settled(s, 0); return; }
      s->step = DOT;
      transmit(s);
      return;
    case DOT: settled(s, good); return;
    case RESET: settled(s, 0); return;
    case IDLE: fprintf(stderr, "source: %d came unasked\n", code); exit(1);
  }
}
static void hear(struct session *s) {
  ssize_t got = read(s->fd, s->in + s->in_len, sizeof s->in - 1 - (size_t)s->in_len);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) die("the other side hung up");
  s->in_len += (int)got;
  s->in[s->in_len] = '\0';
  char *line = s->in, *end;
  while ((end = strchr(line, '\n'))) {
    if (end - line < 4) die("a reply that is none");
    int code = atoi(line), last = line[3] != '-';
    if (code >= 400 && refused < 3) fprintf(stderr, "source: %.*s\n", (int)(end - line), line);
    line = end + 1;
    if (last) replied(s, code);
  }
  s->in_len -= (int)(line - s->in);
  memmove(s->in, line, (size_t)s->in_len);
}
static struct session *dial(int epoll, const char *host, int port) {
  struct session *s = calloc(1, sizeof *s);
  struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
  int one = 1;
  inet_pton(AF_INET, host, &a.sin_addr);
  s->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(s->fd, (struct sockaddr *)&a, sizeof a)) die("connect");
  setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(s->fd, F_SETFL, O_NONBLOCK);
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
  epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &event);
  sessions_open++;
  return s;
}
int main(int count, char **argument) {
  if (count != 10) { fprintf(stderr, "usage: source TIMES HOST PORT SESSIONS MESSAGES SIZE DESTINATIONS PER_SECOND FIRST_NUMBER\n"); return 2; }
  int sessions = atoi(argument[4]), size = atoi(argument[6]);
  messages = strtoull(argument[5], NULL, 10);
  destinations = atoi(argument[7]);
  per_second = atof(argument[8]);
  first_number = strtoull(argument[9], NULL, 10);
  signal(SIGPIPE, SIG_IGN);
  times = calloc(messages, sizeof *times);
  idle = calloc((size_t)sessions, sizeof *idle);
  mail = malloc(HEAD + (size_t)size + 128);
  char *body = mail + HEAD;
  while (body_len < size) body_len += sprintf(body + body_len, "%s\r\n", "the quick brown fox jumps over the lazy dog and back again, all day long");
  body_len += sprintf(body + body_len, ".\r\n");
  int epoll = epoll_create1(0);
  began_ns = now_ns();
  for (int i = 0; i < sessions; i++) dial(epoll, argument[2], atoi(argument[3]));
  struct epoll_event events[256];
  while (accepted + refused < messages) {
    int ready = epoll_wait(epoll, events, 256, idle_count > 0 && begun < messages ? 1 : 60000);
    if (ready == 0 && (idle_count == 0 || begun >= messages)) die("nothing came for a minute");
    for (int i = 0; i < ready; i++) hear(events[i].data.ptr);
    while (idle_count > 0 && may_begin()) begin(idle[--idle_count]);
  }
  FILE *file = fopen(argument[1], "w");
  if (!file || fwrite(times, sizeof *times, messages, file) != messages || fclose(file)) die("times");
  printf("%llu %llu %llu\n", (unsigned long long)accepted, (unsigned long long)refused, (unsigned long long)(last_ns - began_ns));
  return 0;
}

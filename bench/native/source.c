// A sender of numbered mails: one thread, SESSIONS connections at once; in lockstep as smtp-source is, or pipelined.
// source TIMES HOST PORT SESSIONS MESSAGES SIZE DESTINATIONS PER_SECOND FIRST_NUMBER TLS LOGIN MAILS PIPELINED
//   TIMES         file that is written at the end: the time of the 250 by message number (uint64, CLOCK_MONOTONIC)
//   DESTINATIONS  the recipient of mail n is rcpt@dX.test, X being n modulo so many
//   PER_SECOND    mails that are begun in a second; 0: as many as go
//   FIRST_NUMBER  of the mails' X-Bench-Number fields
//   TLS           1: from the first byte on, nothing of it verified or resumed
//   LOGIN         what AUTH PLAIN sends, in base64; -: no login
//   MAILS         of a session, which then ends with QUIT and makes room for the next one; 0: all that go
//   PIPELINED     1: MAIL, RCPT and DATA in one write (RFC 2920)
// Prints: accepted, refused, nanoseconds from the first mail to the last 250.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
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
enum step { GREETING, EHLO, AUTH, MAIL, RCPT, DATA, DOT, RESET, IDLE, QUIT };
struct session { int fd, in_len, sent; SSL *tls; enum step step; uint64_t number; char in[4096]; };

static uint64_t messages, begun, accepted, refused, first_number, began_ns, last_ns, *times;
static int destinations, body_len, epoll, mails_of_session, pipelined;
static struct sockaddr_in server;
static SSL_CTX *tls;
static const char *login; // NULL: none
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
/** What read and write answer: octets; 0: the end; -1: none now. */
static int moved(struct session *s, int count) {
  if (!s->tls) {
    if (count < 0 && errno != EAGAIN) die("the connection");
    return count;
  }
  if (count > 0) return count;
  int why = SSL_get_error(s->tls, count);
  if (why == SSL_ERROR_ZERO_RETURN) return 0;
  if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) die("TLS");
  return -1;
}
static void put(struct session *s, const char *bytes, int length) {
  while (length > 0) {
    int written = moved(s, s->tls ? SSL_write(s->tls, bytes, length) : (int)write(s->fd, bytes, (size_t)length));
    if (written < 0) continue;
    if (written == 0) die("the other side hung up");
    bytes += written;
    length -= written;
  }
}
static int may_begin(void) {
  if (begun >= messages) return 0;
  return per_second == 0 || (double)begun <= (double)(now_ns() - began_ns) / 1e9 * per_second;
}
static void begin(struct session *s) {
  s->number = first_number + begun++;
  s->sent++;
  s->step = MAIL;
  char commands[192];
  int length = sprintf(commands, "MAIL FROM:<sender@example.test>\r\n");
  if (pipelined)
    length += sprintf(commands + length, "RCPT TO:<rcpt@d%d.test>\r\nDATA\r\n", (int)(s->number % (uint64_t)destinations));
  put(s, commands, length);
}
static void next(struct session *s) {
  if (mails_of_session > 0 && s->sent >= mails_of_session) {
    s->step = QUIT;
    put(s, "QUIT\r\n", 6);
    return;
  }
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
  char line[512];
  int good = code < 400;
  if (!good && pipelined && s->step != DOT) { fprintf(stderr, "source: refused while it pipelined\n"); exit(1); }
  switch (s->step) {
    case GREETING: s->step = EHLO; put(s, "EHLO source.test\r\n", 18); return;
    case EHLO:
      if (!login) { next(s); return; }
      s->step = AUTH;
      put(s, line, snprintf(line, sizeof line, "AUTH PLAIN %s\r\n", login));
      return;
    case AUTH:
      if (!good) { fprintf(stderr, "source: the login was refused\n"); exit(1); }
      next(s);
      return;
    case MAIL:
      if (!good) { settled(s, 0); return; }
      s->step = RCPT;
      if (pipelined) return;
      put(s, line, snprintf(line, sizeof line, "RCPT TO:<rcpt@d%d.test>\r\n", (int)(s->number % (uint64_t)destinations)));
      return;
    case RCPT:
      s->step = good ? DATA : RESET;
      if (pipelined) return;
      put(s, good ? "DATA\r\n" : "RSET\r\n", 6);
      return;
    case DATA:
      if (!good) { settled(s, 0); return; }
      s->step = DOT;
      transmit(s);
      return;
    case DOT: settled(s, good); return;
    case RESET: settled(s, 0); return;
    case QUIT: return; // its end follows
    case IDLE: fprintf(stderr, "source: %d came unasked\n", code); exit(1);
  }
}
static void dial(void);
/** One read; false: there is no more now. */
static int hear(struct session *s) {
  int room = (int)sizeof s->in - 1 - s->in_len;
  int got = moved(s, s->tls ? SSL_read(s->tls, s->in + s->in_len, room) : (int)read(s->fd, s->in + s->in_len, (size_t)room));
  if (got < 0) return 0;
  if (got == 0) {
    if (s->step != QUIT) die("the other side hung up");
    SSL_free(s->tls);
    close(s->fd);
    free(s);
    if (begun < messages) dial();
    return 0;
  }
  s->in_len += got;
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
  return 1;
}
static void dial(void) {
  struct session *s = calloc(1, sizeof *s);
  int one = 1;
  s->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(s->fd, (struct sockaddr *)&server, sizeof server)) die("connect");
  setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(s->fd, F_SETFL, O_NONBLOCK);
  if (tls) {
    s->tls = SSL_new(tls);
    SSL_set_fd(s->tls, s->fd);
    moved(s, SSL_connect(s->tls)); // its first message; the reads do the rest
  }
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
  epoll_ctl(epoll, EPOLL_CTL_ADD, s->fd, &event);
}
int main(int count, char **argument) {
  if (count != 14) { fprintf(stderr, "usage: source TIMES HOST PORT SESSIONS MESSAGES SIZE DESTINATIONS PER_SECOND FIRST_NUMBER TLS LOGIN MAILS PIPELINED\n"); return 2; }
  int sessions = atoi(argument[4]), size = atoi(argument[6]);
  messages = strtoull(argument[5], NULL, 10);
  destinations = atoi(argument[7]);
  per_second = atof(argument[8]);
  first_number = strtoull(argument[9], NULL, 10);
  if (atoi(argument[10])) {
    tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(tls, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  if (strcmp(argument[11], "-")) login = argument[11];
  mails_of_session = atoi(argument[12]);
  pipelined = atoi(argument[13]);
  server.sin_family = AF_INET;
  server.sin_port = htons((uint16_t)atoi(argument[3]));
  inet_pton(AF_INET, argument[2], &server.sin_addr);
  signal(SIGPIPE, SIG_IGN);
  times = calloc(messages, sizeof *times);
  idle = calloc((size_t)sessions, sizeof *idle);
  mail = malloc(HEAD + (size_t)size + 128);
  char *body = mail + HEAD;
  while (body_len < size) body_len += sprintf(body + body_len, "%s\r\n", "the quick brown fox jumps over the lazy dog and back again, all day long");
  body_len += sprintf(body + body_len, ".\r\n");
  epoll = epoll_create1(0);
  began_ns = now_ns();
  for (int i = 0; i < sessions; i++) dial();
  struct epoll_event events[256];
  while (accepted + refused < messages) {
    int ready = epoll_wait(epoll, events, 256, idle_count > 0 && begun < messages ? 1 : 60000);
    if (ready == 0 && (idle_count == 0 || begun >= messages)) die("nothing came for a minute");
    for (int i = 0; i < ready; i++) while (hear(events[i].data.ptr) && tls) ; // what TLS holds back, epoll does not tell
    while (idle_count > 0 && may_begin()) begin(idle[--idle_count]);
  }
  FILE *file = fopen(argument[1], "w");
  if (!file || fwrite(times, sizeof *times, messages, file) != messages || fclose(file)) die("times");
  printf("%llu %llu %llu\n", (unsigned long long)accepted, (unsigned long long)refused, (unsigned long long)(last_ns - began_ns));
  return 0;
}

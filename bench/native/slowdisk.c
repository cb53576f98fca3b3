// Preloaded (LD_PRELOAD), it makes every fsync and fdatasync take SLOWDISK_MS milliseconds longer, as a slower
// disk would. The sync itself is done.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void rest(void) {
  const char *text = getenv("SLOWDISK_MS");
  long ms = text ? atol(text) : 0;
  struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
  int before = errno;
  while (nanosleep(&left, &left)) ;
  errno = before;
}
int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  int result = real(file);
  rest();
  return result;
}
int fdatasync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  int result = real(file);
  rest();
  return result;
}

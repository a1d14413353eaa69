/* A disk that fails on demand, put before libc by LD_PRELOAD.
 *
 * Operations on files whose path begins with a watched prefix are counted. From the n-th on, some can be refused
 * (EIO, ENOSPC), or stop half-way. Or the power goes at the n-th: what was not synced is then on the disk in part, in
 * any choice of whole writes and of 512-byte sectors, drawn from a seed, and the process is killed.
 *
 * Contents are lost so; names are not: what was created, renamed or removed stays so at once. After a refused fsync,
 * the kernel keeps what was written readable but never tries again to write it, and so does this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, SYNC = 4, NAME = 8 };
enum { FAIL_EIO = 1, FAIL_ENOSPC = 2, FAIL_TORN = 3 };
enum { MAX_FD = 4096, MAX_FILES = 256, SECTOR = 512, MEMORY_ONLY = -1 };

struct op {
  struct op *next;
  int truncates, dead; /* dead: its fsync was refused */
  off_t at;
  size_t size;
  unsigned char *data;
};

struct file {
  dev_t dev;
  ino_t ino;
  int gone, handle; /* a descriptor of our own, never closed: closing one drops the locks of the process */
  unsigned char *safe;
  size_t safe_size;
  struct op *first, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[MAX_FILES];
static int number_of_files;
static int fds[MAX_FD]; /* number of the file + 1, or MEMORY_ONLY */
static char prefix[4096];
static long counted, fail_at, fail_times, crash_at, crash_counted;
static int fail_kind, fail_classes;
static uint64_t dice;

#define REAL(type, name, ...)                                     \
  static type (*real_)(__VA_ARGS__);                              \
  if (!real_) real_ = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static ssize_t raw_pread(int fd, void *to, size_t size, off_t at) {
  REAL(ssize_t, "pread64", int, void *, size_t, off_t);
  return real_(fd, to, size, at);
}

static ssize_t raw_pwrite(int fd, const void *from, size_t size, off_t at) {
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
  return real_(fd, from, size, at);
}

static int raw_truncate(int fd, off_t size) {
  REAL(int, "ftruncate64", int, off_t);
  return real_(fd, size);
}

static uint64_t roll(void) { /* xorshift64 */
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return dice;
}

/* --- what the disk holds ------------------------------------------------------------------------------------------ */

static void put(struct file *f, const unsigned char *data, size_t size, off_t at) {
  size_t end = (size_t)at + size;
  if (end > f->safe_size) {
    f->safe = realloc(f->safe, end);
    memset(f->safe + f->safe_size, 0, end - f->safe_size);
    f->safe_size = end;
  }
  memcpy(f->safe + at, data, size);
}

static void cut(struct file *f, size_t size) {
  if (size > f->safe_size) {
    f->safe = realloc(f->safe, size);
    memset(f->safe + f->safe_size, 0, size - f->safe_size);
  }
  f->safe_size = size;
}

static void note(struct file *f, int truncates, const void *data, size_t size, off_t at) {
  struct op *op = calloc(1, sizeof *op);
  op->truncates = truncates;
  op->at = at;
  op->size = size;
  if (data && size) op->data = memcpy(malloc(size), data, size);
  *f->last = op;
  f->last = &op->next;
}

static void forget(struct file *f) {
  while (f->first) {
    struct op *op = f->first;
    f->first = op->next;
    free(op->data);
    free(op);
  }
  f->last = &f->first;
}

static void synced(struct file *f) {
  for (struct op *op = f->first; op; op = op->next) {
    if (op->dead) continue;
    if (op->truncates) cut(f, (size_t)op->at);
    else put(f, op->data, op->size, op->at);
  }
  forget(f);
}

static void power_goes(void) {
  for (int i = 0; i < number_of_files; i++) {
    struct file *f = &files[i];
    if (f->gone || f->handle < 0) continue;
    for (struct op *op = f->first; op; op = op->next) {
      uint64_t fate = roll() % 4;
      if (fate == 0) continue;
      if (op->truncates) {
        cut(f, (size_t)op->at);
      } else if (fate == 1) { /* some of its sectors */
        for (size_t from = 0; from < op->size; from += SECTOR)
          if (roll() % 2) put(f, op->data + from, op->size - from < SECTOR ? op->size - from : SECTOR, op->at + from);
      } else {
        put(f, op->data, op->size, op->at);
      }
    }
    raw_truncate(f->handle, 0);
    for (size_t done = 0; done < f->safe_size;) {
      ssize_t n = raw_pwrite(f->handle, f->safe + done, f->safe_size - done, (off_t)done);
      if (n <= 0) break;
      done += (size_t)n;
    }
  }
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* --- which files, and what happens to an operation ---------------------------------------------------------------- */

static int watched(const char *path) { return prefix[0] && path && strncmp(path, prefix, strlen(prefix)) == 0; }

static struct file *file_of(int fd) { return fd >= 0 && fd < MAX_FD && fds[fd] > 0 ? &files[fds[fd] - 1] : NULL; }

static int is_watched(int fd) { return prefix[0] && fd >= 0 && fd < MAX_FD && fds[fd] != 0; }

static void opened(int fd, const char *path, int flags) {
  struct stat st;
  size_t length = strlen(path);
  if (fd < 0 || fd >= MAX_FD || fstat(fd, &st) || !S_ISREG(st.st_mode)) return;
  if (length > 4 && strcmp(path + length - 4, "-shm") == 0) {
    fds[fd] = MEMORY_ONLY; /* the index of the log is never read back from a disk */
    return;
  }
  int i = 0;
  while (i < number_of_files && (files[i].gone || files[i].dev != st.st_dev || files[i].ino != st.st_ino)) i++;
  if (i == MAX_FILES) abort();
  struct file *f = &files[i];
  if (i == number_of_files) {
    number_of_files++;
    memset(f, 0, sizeof *f);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->handle = -1;
    f->last = &f->first;
    f->safe = malloc((size_t)st.st_size + 1);
    ssize_t n = raw_pread(fd, f->safe, (size_t)st.st_size, 0);
    f->safe_size = n > 0 ? (size_t)n : 0;
  }
  if (f->handle < 0 && (flags & O_ACCMODE) != O_RDONLY) f->handle = dup(fd);
  fds[fd] = i + 1;
}

static void removed(const char *path) {
  struct stat st;
  if (stat(path, &st) || st.st_nlink > 1) return;
  for (int i = 0; i < number_of_files; i++)
    if (!files[i].gone && files[i].dev == st.st_dev && files[i].ino == st.st_ino) {
      files[i].gone = 1;
      forget(&files[i]);
    }
}

/* Count an operation; return how it fails, 0 = it does not. */
static int fate_of(int class) {
  if (class != READ && ++crash_counted == crash_at) power_goes();
  if (!(class & fail_classes)) return 0;
  counted++;
  return fail_at && counted >= fail_at && counted < fail_at + fail_times ? fail_kind : 0;
}

static int refuse(int kind) {
  errno = kind == FAIL_ENOSPC ? ENOSPC : EIO;
  return -1;
}

/* --- for the test ------------------------------------------------------------------------------------------------- */

void faultfs_watch(const char *path) { snprintf(prefix, sizeof prefix, "%s", path); }

void faultfs_fail(long at, long times, int kind, int classes) {
  counted = 0;
  fail_at = at;
  fail_times = times;
  fail_kind = kind;
  fail_classes = classes;
}

void faultfs_mend(void) { fail_at = 0; }

void faultfs_crash(long at, unsigned long seed) {
  crash_at = at;
  crash_counted = 0;
  dice = seed * 2654435761u + 88172645463325252u;
}

long faultfs_counted(void) { return counted; }
long faultfs_crashed(void) { return crash_counted; }

/* --- libc --------------------------------------------------------------------------------------------------------- */

static ssize_t any_write(int fd, const void *from, size_t size, off_t at) {
  pthread_mutex_lock(&lock);
  struct file *f = file_of(fd);
  if (f) note(f, 0, from, size, at); /* first, so that the power may go in the midst of it */
  int kind = fate_of(WRITE);
  ssize_t done;
  if (kind && f) { /* it is not written, or its first half only */
    struct op *op = f->first, *before = NULL;
    while (op->next) before = op, op = op->next;
    if (kind == FAIL_TORN && size > 1) {
      op->size = size / 2;
    } else {
      if (before) before->next = NULL;
      else f->first = NULL;
      f->last = before ? &before->next : &f->first;
      free(op->data);
      free(op);
    }
  }
  if (kind == FAIL_TORN && size > 1) raw_pwrite(fd, from, size / 2, at);
  done = kind ? refuse(kind) : raw_pwrite(fd, from, size, at);
  pthread_mutex_unlock(&lock);
  return done;
}

ssize_t pwrite64(int fd, const void *from, size_t size, off_t at) {
  return is_watched(fd) ? any_write(fd, from, size, at) : raw_pwrite(fd, from, size, at);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { return pwrite64(fd, from, size, at); }

ssize_t write(int fd, const void *from, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  if (!is_watched(fd)) return real_(fd, from, size);
  off_t at = fcntl(fd, F_GETFL) & O_APPEND ? lseek(fd, 0, SEEK_END) : lseek(fd, 0, SEEK_CUR);
  ssize_t done = any_write(fd, from, size, at);
  if (done > 0) lseek(fd, at + done, SEEK_SET);
  return done;
}

static ssize_t any_read(int fd, void *to, size_t size, off_t at) {
  pthread_mutex_lock(&lock);
  int kind = fate_of(READ);
  ssize_t done = kind ? refuse(FAIL_EIO) : raw_pread(fd, to, size, at);
  pthread_mutex_unlock(&lock);
  return done;
}

ssize_t pread64(int fd, void *to, size_t size, off_t at) {
  return is_watched(fd) ? any_read(fd, to, size, at) : raw_pread(fd, to, size, at);
}
ssize_t pread(int fd, void *to, size_t size, off_t at) { return pread64(fd, to, size, at); }

static int any_sync(int fd, const char *name) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  if (!is_watched(fd)) return real(fd);
  pthread_mutex_lock(&lock);
  struct file *f = file_of(fd);
  int kind = fate_of(SYNC), done = 0;
  if (kind) {
    for (struct op *op = f ? f->first : NULL; op; op = op->next) op->dead = 1;
    done = refuse(kind);
  } else if (f) { /* nothing waits for the real disk: what would be on it is kept here */
    synced(f);
  }
  pthread_mutex_unlock(&lock);
  return done;
}

int fsync(int fd) { return any_sync(fd, "fsync"); }
int fdatasync(int fd) { return any_sync(fd, "fdatasync"); }

int ftruncate64(int fd, off_t size) {
  if (!is_watched(fd)) return raw_truncate(fd, size);
  pthread_mutex_lock(&lock);
  struct file *f = file_of(fd);
  int kind = fate_of(WRITE);
  int done = kind ? refuse(kind) : raw_truncate(fd, size);
  if (f && done == 0) note(f, 1, NULL, 0, size);
  pthread_mutex_unlock(&lock);
  return done;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int unlink(const char *path) {
  REAL(int, "unlink", const char *);
  if (!watched(path)) return real_(path);
  pthread_mutex_lock(&lock);
  int kind = fate_of(NAME), done;
  if (kind) {
    done = refuse(FAIL_EIO);
  } else {
    removed(path);
    done = real_(path);
  }
  pthread_mutex_unlock(&lock);
  return done;
}

int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  if (!watched(from) && !watched(to)) return real_(from, to);
  pthread_mutex_lock(&lock);
  int kind = fate_of(NAME), done;
  if (kind) {
    done = refuse(kind);
  } else {
    removed(to);
    done = real_(from, to);
  }
  pthread_mutex_unlock(&lock);
  return done;
}

static int any_open(int folder, const char *path, int flags, mode_t mode) {
  REAL(int, "openat64", int, const char *, int, mode_t);
  if (!watched(path)) return real_(folder, path, flags, mode);
  pthread_mutex_lock(&lock);
  int fd, kind = flags & O_CREAT && access(path, F_OK) ? fate_of(NAME) : 0;
  if (kind) {
    fd = refuse(kind);
  } else {
    fd = real_(folder, path, flags, mode);
    if (fd >= 0) {
      opened(fd, path, flags);
      if (flags & O_TRUNC && file_of(fd)) note(file_of(fd), 1, NULL, 0, 0);
    }
  }
  pthread_mutex_unlock(&lock);
  return fd;
}

#define OPEN(name, parameters, last, folder)                   \
  int name parameters {                                    \
    mode_t mode = 0;                                       \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list more;                                        \
      va_start(more, last);                                \
      mode = va_arg(more, mode_t);                         \
      va_end(more);                                        \
    }                                                      \
    return any_open(folder, path, flags, mode);            \
  }
OPEN(open, (const char *path, int flags, ...), flags, AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), flags, AT_FDCWD)
OPEN(openat, (int at, const char *path, int flags, ...), flags, at)
OPEN(openat64, (int at, const char *path, int flags, ...), flags, at)

int close(int fd) {
  REAL(int, "close", int);
  if (fd >= 0 && fd < MAX_FD) fds[fd] = 0;
  return real_(fd);
}

#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "say.h"
#include "words.h"

struct sg_file {
	struct sg_lock lock;
	int fd, error;
	bool closed, regular;
	bool marked; // an end follows the frames; the next frame replaces it
	char path[PATH_MAX]; // absolute, so that the file can be opened again
	dev_t device;
	ino_t inode;
	uint64_t bytes, max_bytes;
	struct sg_extent extent;
	uint64_t references;

	struct sg_body chunks, tables; // the two lists of the index
	uint64_t chunk_count, table_count, last_chunk, last_table;
	uint64_t done_at; // position of DONE
	uint64_t open_count, open_last; // table_count, last_table and tables.bytes before the end was written
	size_t open_bytes;

	struct sg_range *ranges;
	uint32_t range_count, range_room;
	uint64_t generation;
	uint32_t blocks, words, most_references;

	uint32_t crc[256];
};

enum {
	frame_head = 8, // magic and length
	tag_bytes = 4,
	body_at = frame_head + tag_bytes,
	check_bytes = 4,
};

// ---- bodies

static bool room(struct sg_body *b, size_t more)
{
	if (!b->at && !b->bytes)
		b->bytes = body_at; // the head of the frame is stored there
	if (b->bytes + more <= b->room)
		return true;
	size_t wanted = b->room ? b->room : 4096;
	while (wanted < b->bytes + more)
		wanted *= 2;
	void *moved = sg_remap(b->at, b->room, wanted);
	if (!moved)
		return false;
	b->at = moved;
	b->room = wanted;
	return true;
}

void sg_put_bytes(struct sg_body *b, const void *from, size_t bytes)
{
	if (!room(b, bytes))
		return;
	memcpy(b->at + b->bytes, from, bytes);
	b->bytes += bytes;
}

void sg_put_uv(struct sg_body *b, uint64_t v)
{
	uint8_t text[10];
	sg_put_bytes(b, text, (size_t)(sg_uv(text, v) - text));
}

void sg_put_str(struct sg_body *b, const char *s)
{
	size_t bytes = strlen(s);
	sg_put_uv(b, bytes);
	sg_put_bytes(b, s, bytes);
}

static void empty(struct sg_body *b)
{
	sg_unmap(b->at, b->room);
	*b = (struct sg_body){0};
}

// ---- checksum

static void make_crc(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
		table[i] = c;
	}
}

static uint32_t crc32c(const struct sg_file *f, const uint8_t *p, size_t bytes)
{
	uint32_t c = ~0u;
	for (size_t i = 0; i < bytes; i++)
		c = c >> 8 ^ f->crc[(uint8_t)c ^ p[i]];
	return ~c;
}

// ---- writing

// The program may have closed the runtime's descriptor together with all others, and the number may
// now refer to one of the program's own files.
static bool ours(const struct sg_file *f, int fd)
{
	struct stat s;
	return fstat(fd, &s) == 0 && s.st_dev == f->device && s.st_ino == f->inode;
}

// Moves the descriptor to a high number, which the program does not expect to use.
static int out_of_the_way(int fd)
{
	struct rlimit limit;
	int least = 900;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= (rlim_t)least)
		least = limit.rlim_cur > 8 ? (int)limit.rlim_cur - 8 : 3;
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

// Writing to a pipe that nobody reads would block, with signals held back. For one second, the
// runtime waits, because the reader may start at the same time.
static int open_to_write(const char *path, int flags)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int fd = -1;
	for (int tries = 0;; tries++) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0666);
		if (fd >= 0 || errno != ENXIO || tries == 100)
			break;
		nanosleep(&pause, 0);
	}
	return fd;
}

static bool still_open(struct sg_file *f)
{
	if (ours(f, f->fd))
		return true;
	int fd = open_to_write(f->path, 0);
	if (fd < 0 || !ours(f, fd)) {
		if (fd >= 0)
			close(fd);
		errno = EBADF;
		return false;
	}
	f->fd = out_of_the_way(fd);
	return true;
}

// Waits until the pipe has room.
static void wait_for_reader(const struct sg_file *f)
{
	struct pollfd room = {.fd = f->fd, .events = POLLOUT};
	if (poll(&room, 1, 1000) == 0)
		sg_waited_a_second();
}

static void write_all(struct sg_file *f, const uint8_t *from, size_t bytes)
{
	for (uint64_t at = f->bytes; bytes > 0;) {
		ssize_t n = f->regular ? pwrite(f->fd, from, bytes, (off_t)at) : write(f->fd, from, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			wait_for_reader(f);
			continue;
		}
		if (n <= 0) {
			f->error = n < 0 ? errno : ENOSPC;
			return;
		}
		from += n, bytes -= (size_t)n, at += (size_t)n;
	}
}

// If a file exceeds the process's limit, or a pipe has no reader, a write sends a signal that would
// end the program.
static void write_unsignalled(struct sg_file *f, const uint8_t *from, size_t bytes)
{
	sigset_t sent, before, pending;
	sigemptyset(&sent);
	sigaddset(&sent, SIGXFSZ);
	sigaddset(&sent, SIGPIPE);
	sigpending(&pending);
	sigprocmask(SIG_BLOCK, &sent, &before);
	write_all(f, from, bytes);
	if (f->error == EFBIG || f->error == EPIPE) {
		int number = f->error == EFBIG ? SIGXFSZ : SIGPIPE;
		if (!sigismember(&pending, number)) {
			sigemptyset(&sent);
			sigaddset(&sent, number);
			sigtimedwait(&sent, 0, &(struct timespec){0});
		}
	}
	sigprocmask(SIG_SETMASK, &before, 0);
}

// Appends complete frames. On failure, the file ends after the previous frame.
static bool append(struct sg_file *f, const uint8_t *from, size_t bytes)
{
	if (f->error || f->closed)
		return false;
	if (!still_open(f) || (f->marked && ftruncate(f->fd, (off_t)f->bytes) != 0))
		f->error = errno;
	else
		write_unsignalled(f, from, bytes);
	f->marked = false;
	if (f->error) {
		if (f->regular && ours(f, f->fd) && ftruncate(f->fd, (off_t)f->bytes) != 0)
			return false; // it ends with a truncated frame, which readers ignore
		return false;
	}
	f->bytes += bytes;
	return true;
}

static size_t wrap(const struct sg_file *f, uint8_t *frame, size_t bytes, const char *tag)
{
	size_t length = bytes - frame_head + check_bytes;
	sg_u32(frame, 0x184D2A53);
	sg_u32(frame + 4, (uint32_t)length);
	memcpy(frame + frame_head, tag, tag_bytes);
	sg_u32(frame + bytes, crc32c(f, frame + frame_head, bytes - frame_head));
	return bytes + check_bytes;
}

// The caller holds the lock.
static bool add_frame(struct sg_file *f, const char *tag, struct sg_body *body)
{
	uint64_t at = f->bytes;
	uint8_t check[check_bytes] = {0};
	sg_put_bytes(body, check, check_bytes);
	bool written = false;
	if (body->at) {
		size_t bytes = wrap(f, body->at, body->bytes - check_bytes, tag);
		written = append(f, body->at, bytes);
	}
	empty(body);
	if (written) {
		sg_put_uv(&f->tables, at - f->last_table);
		f->last_table = at;
		f->table_count++;
	}
	return written;
}

void sg_file_frame(struct sg_file *f, const char *tag, struct sg_body *body)
{
	sg_acquire(&f->lock);
	add_frame(f, tag, body);
	sg_release(&f->lock);
}

// ---- opening

static bool absolute(char to[PATH_MAX], const char *path)
{
	size_t before = 0;
	if (path[0] != '/') {
		if (!getcwd(to, PATH_MAX - 1))
			return false;
		before = strlen(to);
		to[before++] = '/';
	}
	if (before + strlen(path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(to + before, path);
	return true;
}

static bool create(struct sg_file *f, const char *path)
{
	struct stat s;
	if (!absolute(f->path, path))
		return false;
	f->fd = open_to_write(f->path, O_CREAT);
	if (f->fd < 0)
		return false;
	f->fd = out_of_the_way(f->fd);
	if (fstat(f->fd, &s) != 0)
		return false;
	f->device = s.st_dev;
	f->inode = s.st_ino;
	f->regular = S_ISREG(s.st_mode);
	if (!f->regular)
		return true;
	return flock(f->fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(f->fd, 0) == 0;
}

static void let_go(struct sg_file *f)
{
	int error = errno;
	if (f->fd >= 0 && ours(f, f->fd))
		close(f->fd);
	empty(&f->chunks);
	empty(&f->tables);
	sg_unmap(f->ranges, f->range_room * sizeof *f->ranges);
	sg_unmap(f, sizeof *f);
	errno = error;
}

static void put_number(struct sg_body *b, const char *name, uint64_t n)
{
	struct sg_sentence digits = {0};
	sg_add_digits(&digits, n);
	sg_put_str(b, name);
	sg_put_str(b, digits.text);
}

struct sg_file *sg_file_open(const char *path, struct sg_extent extent, const struct sg_fact *facts, size_t count)
{
	struct sg_file *f = sg_map(sizeof *f);
	if (!f)
		return 0;
	f->fd = -1;
	f->extent = extent;
	f->max_bytes = extent.max_bytes ? extent.max_bytes : UINT64_MAX;
	make_crc(f->crc);
	if (!create(f, path)) {
		let_go(f);
		return 0;
	}
	struct sg_body head = {0};
	sg_put_uv(&head, 1); // version
	sg_put_uv(&head, 1); // the oldest version whose readers can read the file
	sg_put_uv(&head, 8 * sizeof(void *));
	sg_put_uv(&head, count + (extent.after > 0) + (extent.count > 0));
	for (size_t i = 0; i < count; i++) {
		sg_put_str(&head, facts[i].name);
		sg_put_str(&head, facts[i].value);
	}
	if (extent.after > 0)
		put_number(&head, "references left out at the beginning of each thread", extent.after);
	if (extent.count > 0)
		put_number(&head, "limit of references in each thread", extent.count);
	sg_file_frame(f, "SGT.", &head);
	if (f->error) {
		errno = f->error;
		let_go(f);
		return 0;
	}
	return f;
}

// ---- modules

static bool note_range(struct sg_file *f, struct sg_range r)
{
	if (f->range_count == f->range_room) {
		uint32_t wanted = f->range_room ? 2 * f->range_room : 64;
		void *moved = sg_remap(f->ranges, f->range_room * sizeof r, wanted * sizeof r);
		if (!moved)
			return false;
		f->ranges = moved;
		f->range_room = wanted;
	}
	f->ranges[f->range_count++] = r;
	return true;
}

uint32_t sg_file_module(struct sg_file *f, struct __sg_block *block, uint32_t blocks, const uint8_t *scale,
                        const uint8_t *tables, size_t tables_bytes)
{
	struct sg_body body = {0};
	sg_put_bytes(&body, tables, tables_bytes);
	sg_acquire(&f->lock);
	uint32_t first = f->blocks, word = f->words;
	add_frame(f, "MODL", &body);
	for (uint32_t i = 0; i < blocks; i++) {
		block[i].number = f->blocks++;
		block[i].first_value = f->words;
		f->words += SG_RECORD + SG_PREDICTION * block[i].values;
		if (block[i].references > f->most_references)
			__atomic_store_n(&f->most_references, block[i].references, __ATOMIC_SEQ_CST);
	}
	note_range(f, (struct sg_range){(uintptr_t)block, (uintptr_t)(block + blocks), first, word, scale});
	sg_release(&f->lock);
	return first;
}

void sg_file_forget(struct sg_file *f, const struct __sg_block *block)
{
	sg_acquire(&f->lock);
	for (uint32_t i = 0; i < f->range_count; i++)
		if (f->ranges[i].first == (uintptr_t)block)
			f->ranges[i] = (struct sg_range){0};
	__atomic_fetch_add(&f->generation, 1, __ATOMIC_SEQ_CST);
	sg_release(&f->lock);
}

uint32_t sg_file_ranges(struct sg_file *f, struct sg_range *to, uint32_t have, uint32_t room)
{
	sg_acquire(&f->lock);
	uint32_t count = f->range_count;
	for (uint32_t i = have; i < count && room > 0; i++, room--)
		*to++ = f->ranges[i];
	sg_release(&f->lock);
	return count;
}

uint64_t sg_file_generation(struct sg_file *f) { return __atomic_load_n(&f->generation, __ATOMIC_SEQ_CST); }

// ---- chunks

static uint8_t *describe(uint8_t *to, const struct sg_chunk *c, size_t frame_bytes)
{
	const uint64_t fields[] = {c->thread,        c->steps,       c->references,   c->first_ticket, c->last_ticket, c->floor,
	                           c->control_bytes, c->value_bytes, c->ticket_bytes, frame_bytes};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		to = sg_uv(to, fields[i]);
	return to;
}

static void index_chunk(struct sg_file *f, const struct sg_chunk *c, uint64_t at)
{
	sg_put_uv(&f->chunks, at - f->last_chunk);
	const uint64_t fields[] = {c->thread, c->steps, c->references, c->first_ticket, c->last_ticket};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		sg_put_uv(&f->chunks, fields[i]);
	f->last_chunk = at;
	f->chunk_count++;
}

// The space that DONE and INDX need, and some more.
static uint64_t tail_bytes(const struct sg_file *f) { return f->chunks.bytes + f->tables.bytes + 256; }

bool sg_file_chunk(struct sg_file *f, const struct sg_chunk *c, uint8_t *frame, size_t bytes)
{
	uint8_t head[SG_HEADROOM];
	uint8_t *end = describe(head + body_at, c, bytes);
	size_t head_bytes = wrap(f, head, (size_t)(end - head), "CHNK");
	memcpy(frame - head_bytes, head, head_bytes);
	sg_acquire(&f->lock);
	uint64_t at = f->bytes;
	if (!f->error && at + head_bytes + bytes + tail_bytes(f) > f->max_bytes)
		f->error = ECANCELED;
	bool written = append(f, frame - head_bytes, head_bytes + bytes);
	if (written) {
		index_chunk(f, c, at);
		f->references += c->references;
	}
	sg_release(&f->lock);
	return written;
}

// ---- the end

static void put_list(struct sg_body *to, uint64_t count, const struct sg_body *list)
{
	sg_put_uv(to, count);
	if (list->at)
		sg_put_bytes(to, list->at + body_at, list->bytes - body_at);
}

static void write_index(struct sg_file *f)
{
	struct sg_body b = {0};
	uint8_t tail[12 + check_bytes] = {0};
	put_list(&b, f->chunk_count, &f->chunks);
	put_list(&b, f->table_count, &f->tables);
	memcpy(sg_u64(tail, f->bytes), "SGTX", 4);
	sg_put_bytes(&b, tail, sizeof tail);
	if (b.at)
		append(f, b.at, wrap(f, b.at, b.bytes - check_bytes, "INDX"));
	empty(&b);
}

// The caller holds the lock.
static void write_end(struct sg_file *f, const char *ended, int status, uint64_t lost)
{
	struct sg_body done = {0};
	sg_put_str(&done, ended);
	sg_put_uv(&done, (uint32_t)status);
	sg_put_uv(&done, f->references);
	sg_put_uv(&done, lost);
	f->done_at = f->bytes;
	f->open_count = f->table_count;
	f->open_last = f->last_table;
	f->open_bytes = f->tables.bytes;
	if (add_frame(f, "DONE", &done))
		write_index(f);
}

static void forget_end(struct sg_file *f)
{
	f->bytes = f->done_at;
	f->table_count = f->open_count;
	f->last_table = f->open_last;
	f->tables.bytes = f->open_bytes;
}

void sg_file_close(struct sg_file *f, const char *ended, int status, uint64_t lost)
{
	sg_acquire(&f->lock);
	if (!f->closed) {
		int error = f->error;
		f->error = 0; // these may fit even if a chunk did not
		write_end(f, ended, status, lost);
		f->error = error ? error : f->error;
		f->closed = true;
	}
	sg_release(&f->lock);
}

void sg_file_mark(struct sg_file *f, const char *ended, uint64_t lost)
{
	sg_acquire(&f->lock);
	if (f->regular && !f->closed && !f->error) {
		write_end(f, ended, 0, lost);
		forget_end(f);
		f->marked = true;
	}
	sg_release(&f->lock);
}

bool sg_file_reopen(struct sg_file *f)
{
	sg_acquire(&f->lock);
	bool can = f->closed && f->regular && !f->error && still_open(f) && ftruncate(f->fd, (off_t)f->done_at) == 0;
	if (can) {
		f->closed = false;
		forget_end(f);
	}
	sg_release(&f->lock);
	return can;
}

void sg_file_abandon(struct sg_file *f) { let_go(f); }

int sg_file_error(const struct sg_file *f) { return f->error; }
uint64_t sg_file_references(const struct sg_file *f) { return f->references; }

const struct sg_extent *sg_file_extent(const struct sg_file *f) { return &f->extent; }

uint32_t sg_file_most_references(const struct sg_file *f) { return __atomic_load_n(&f->most_references, __ATOMIC_SEQ_CST); }
uint64_t sg_file_bytes(const struct sg_file *f) { return f->bytes; }

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"
#include "say.h"

// pthread_getattr_np would return the stack, but it calls malloc.

struct mapping_search {
	uint64_t inside;
	struct sg_stack found;
	uint64_t low, high;
	enum { in_low, in_high, in_rest } state;
};

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void search_mapping(struct mapping_search *s, char c)
{
	if (c == '\n') {
		if (s->low <= s->inside && s->inside < s->high)
			s->found = (struct sg_stack){s->low, s->high};
		s->low = s->high = 0;
		s->state = in_low;
	} else if (s->state == in_low) {
		if (c == '-')
			s->state = in_high;
		else
			s->low = s->low << 4 | (uint64_t)hex(c);
	} else if (s->state == in_high) {
		if (hex(c) < 0)
			s->state = in_rest;
		else
			s->high = s->high << 4 | (uint64_t)hex(c);
	}
}

// Finds the mapping around an address, in /proc/self/maps.
static struct sg_stack mapping_of(uint64_t address)
{
	struct mapping_search s = {.inside = address};
	char part[1024]; // short, because it may run on an alternate stack
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return s.found;
	for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;)
		for (ssize_t i = 0; i < n; i++)
			search_mapping(&s, part[i]);
	close(fd);
	return s.found;
}

SG_API uint64_t sg_my_id(void) { return (uint64_t)syscall(SYS_gettid); }

SG_API struct sg_stack sg_my_stack(void)
{
	struct sg_stack s = mapping_of((uint64_t)(uintptr_t)__builtin_frame_address(0));
	uint64_t control = (uint64_t)(uintptr_t)pthread_self();
	struct rlimit limit;
	if (sg_my_id() != (uint64_t)getpid()) {
		// The C library puts the control block of a thread at the upper end of its stack. The rest
		// of the mapping may belong to another thread.
		uint64_t end = (control + 2304 + 4095) & ~UINT64_C(4095);
		if (s.low <= control && end < s.high)
			s.high = end;
	} else if (s.high && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < s.high) {
		s.low = s.high - limit.rlim_cur; // it may still grow
	}
	return s;
}

static size_t read_all(const char *path, char *to, size_t room)
{
	size_t got = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	for (ssize_t n; got < room && (n = read(fd, to + got, room - got)) > 0;)
		got += (size_t)n;
	close(fd);
	return got;
}

SG_API void sg_thread_name(uint64_t id, char to[32])
{
	struct sg_sentence path = {0};
	sg_add(&path, "/proc/self/task/");
	sg_add_digits(&path, id);
	sg_add(&path, "/comm");
	path.text[path.length] = 0;
	to[read_all(path.text, to, 31)] = 0;
	to[strcspn(to, "\n")] = 0;
}

SG_API size_t sg_facts(struct sg_fact to[sg_most_facts], bool sliced)
{
	static char line[1 << 16];
	size_t count = 0, bytes = read_all("/proc/self/cmdline", line, sizeof line - 1);
	line[bytes] = 0;
	to[count++] = (struct sg_fact){"tool", "stackglass cc"};
	// The name as it was typed. Whether to disclose the program's folder is the user's decision.
	to[count++] = (struct sg_fact){"program", line};
	for (size_t at = strlen(line) + 1; at < bytes && count < sg_most_facts - 1; at += strlen(line + at) + 1)
		to[count++] = (struct sg_fact){"argument", line + at};
	to[count++] = (struct sg_fact){"order", sliced ? "sliced" : "exact"};
	return count;
}

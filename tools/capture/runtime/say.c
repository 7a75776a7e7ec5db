#define _GNU_SOURCE
#include "say.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stat at_start;
static int known;

void sg_say_prepare(void) { known = fstat(STDERR_FILENO, &at_start) == 0; }

void sg_add(struct sg_sentence *s, const char *text)
{
	size_t left = sizeof s->text - s->length - 1, bytes = strlen(text);
	if (bytes > left)
		bytes = left;
	memcpy(s->text + s->length, text, bytes);
	s->length += bytes;
}

static void add_grouped(struct sg_sentence *s, uint64_t n, int every)
{
	char digits[32], *at = digits + sizeof digits - 1;
	*at = 0;
	for (int i = 0; i == 0 || n; i++, n /= 10) {
		if (i > 0 && every && i % every == 0)
			*--at = ',';
		*--at = (char)('0' + n % 10);
	}
	sg_add(s, at);
}

void sg_add_number(struct sg_sentence *s, uint64_t n) { add_grouped(s, n, 3); }

void sg_add_digits(struct sg_sentence *s, uint64_t n) { add_grouped(s, n, 0); }

void sg_add_bytes(struct sg_sentence *s, uint64_t bytes)
{
	static const char *const unit[] = {" bytes", " kB", " MB", " GB", " TB"};
	uint64_t size = 1;
	int u = 0;
	for (; u < 4 && bytes / size >= 1000; u++)
		size *= 1000;
	sg_add_digits(s, bytes / size);
	if (u > 0) {
		sg_add(s, ".");
		sg_add_digits(s, bytes % size * 10 / size);
	}
	sg_add(s, unit[u]);
}

void sg_add_error(struct sg_sentence *s, int error)
{
	switch (error) {
	case ENOSPC: sg_add(s, "the disk is full"); break;
	case EDQUOT: sg_add(s, "the disk quota is used up"); break;
	case EFBIG: sg_add(s, "it would exceed the maximum file size"); break;
	case EACCES:
	case EPERM: sg_add(s, "permission denied"); break;
	case EROFS: sg_add(s, "the disk is read-only"); break;
	case ENOENT: sg_add(s, "its folder does not exist"); break;
	case EISDIR: sg_add(s, "it is a folder"); break;
	case ENXIO: sg_add(s, "it is a pipe that nobody reads"); break;
	case EPIPE: sg_add(s, "it is a pipe that nobody reads any more"); break;
	case ENOMEM: sg_add(s, "no memory"); break;
	default:
		sg_add(s, "error ");
		sg_add_digits(s, (uint64_t)error);
	}
}

void sg_say(struct sg_sentence *s)
{
	struct stat now;
	if (!known || fstat(STDERR_FILENO, &now) != 0 || now.st_dev != at_start.st_dev || now.st_ino != at_start.st_ino)
		return;
	s->text[s->length++] = '\n';
	if (write(STDERR_FILENO, s->text, s->length) < 0)
		return; // there is no one left to notify
}

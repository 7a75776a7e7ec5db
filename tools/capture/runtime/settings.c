#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

static bool is(const char *name, const char *value)
{
	const char *set = secure_getenv(name);
	return set && strcmp(set, value) == 0;
}

// %p is the number of the process.
static void expand(struct sg_sentence *to, const char *pattern)
{
	for (; *pattern; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			sg_add_digits(to, (uint64_t)getpid());
			pattern++;
		} else {
			sg_add(to, (char[]){*pattern, 0});
		}
	}
}

static void name_output(char to[PATH_MAX])
{
	struct sg_sentence path = {0};
	const char *set = secure_getenv("STACKGLASS_OUT");
	if (set && *set) {
		expand(&path, set);
	} else {
		sg_add(&path, program_invocation_short_name);
		sg_add(&path, ".sgt");
	}
	memcpy(to, path.text, path.length + 1);
}

// A number of bytes, with K, M or G for the powers of 1024; what is no such number
// limits nothing.
static uint64_t bytes(const char *text)
{
	char *end;
	if (!text || *text < '0' || *text > '9')
		return 0;
	uint64_t n = strtoull(text, &end, 10);
	const char *units = "KMG", *unit = *end ? strchr(units, *end & ~0x20) : 0;
	return unit ? n << 10 * (unit - units + 1) : n;
}

void sg_settings_read(struct sg_settings *s)
{
	name_output(s->out);
	s->max_bytes = bytes(secure_getenv("STACKGLASS_MAX_BYTES"));
	s->region = secure_getenv("STACKGLASS_REGION");
	if (s->region && !*s->region)
		s->region = 0;
	s->only_regions = s->region || is("STACKGLASS_START", "off");
	s->sliced = is("STACKGLASS_ORDER", "sliced");
	s->fork_file = is("STACKGLASS_FORK", "file");
	s->quiet = secure_getenv("STACKGLASS_QUIET") && !is("STACKGLASS_QUIET", "") && !is("STACKGLASS_QUIET", "0");
}

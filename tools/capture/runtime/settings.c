#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

// %p is the process number.
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

// ---- the settings

static void reject(const char *name, const char *value, const char *wanted)
{
	struct sg_sentence s = {0};
	sg_add(&s, "stackglass: ");
	sg_add(&s, name);
	sg_add(&s, "=");
	sg_add(&s, value);
	sg_add(&s, " is invalid and is ignored; set ");
	sg_add(&s, wanted);
	sg_say(&s);
}

static bool is_set(const char *name)
{
	const char *set = secure_getenv(name);
	return set && *set && strcmp(set, "0") != 0;
}

// Reports whether a variable has the second of two values. The first value is the default.
static bool chosen(const char *name, const char *usual, const char *other)
{
	const char *set = secure_getenv(name);
	struct sg_sentence wanted = {0};
	if (!set || !*set || strcmp(set, usual) == 0)
		return false;
	if (strcmp(set, other) == 0)
		return true;
	sg_add(&wanted, usual);
	sg_add(&wanted, " or ");
	sg_add(&wanted, other);
	reject(name, set, wanted.text);
	return false;
}

// ---- numbers of bytes

static bool is_digit(char c) { return '0' <= c && c <= '9'; }

// Returns the exponent of the power of two that a unit represents; -1 if there is no such unit.
static int unit_bits(const char *unit)
{
	static const char units[] = "KMGT";
	int bits = 0;
	const char *known = *unit ? strchr(units, *unit & ~0x20) : 0;
	if (known && *known) {
		bits = 10 * (int)(known - units + 1);
		unit += unit[1] == 'i' && unit[2] == 'B' ? 2 : 1;
	}
	unit += *unit == 'B';
	return *unit ? -1 : bits;
}

// Reads a size such as 4096, 64K or 1.5G. Decimals after the sixth are ignored.
static bool parse_bytes(const char *text, uint64_t *bytes)
{
	uint64_t whole = 0, millionths = 0;
	if (!is_digit(*text))
		return false;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *text - '0', &whole))
			return false;
	if (*text == '.')
		for (uint64_t place = 100000; is_digit(*++text); place /= 10)
			millionths += place * (uint64_t)(*text - '0');
	int bits = unit_bits(text);
	if (bits < 0 || whole >> (63 - bits))
		return false;
	*bytes = (whole << bits) + (millionths << bits) / 1000000;
	return true;
}

static uint64_t most_bytes(void)
{
	const char *name = "STACKGLASS_MAX_BYTES", *set = secure_getenv(name);
	uint64_t bytes = 0;
	if (set && *set && !parse_bytes(set, &bytes))
		reject(name, set, "a number of bytes, with K, M, G or T for powers of 1024, for example 1.5G");
	return bytes;
}

// Reads a number of references; 0 if the variable is not set.
static uint64_t number(const char *name)
{
	const char *set = secure_getenv(name);
	uint64_t n = 0;
	if (!set || !*set)
		return 0;
	for (const char *at = set; *at; at++)
		if (!is_digit(*at) || __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *at - '0', &n)) {
			reject(name, set, "a number of references, for example 1000000");
			return 0;
		}
	return n;
}

void sg_settings_read(struct sg_settings *s)
{
	name_output(s->out);
	s->extent = (struct sg_extent){most_bytes(), number("STACKGLASS_AFTER"), number("STACKGLASS_FOR")};
	s->region = secure_getenv("STACKGLASS_REGION");
	if (s->region && !*s->region)
		s->region = 0;
	bool off = chosen("STACKGLASS_START", "on", "off");
	s->only_regions = s->region || off;
	s->sliced = chosen("STACKGLASS_ORDER", "exact", "sliced");
	s->fork_file = chosen("STACKGLASS_FORK", "off", "file");
	// A build tool may treat any text on standard error as a failure.
	s->quiet = is_set("STACKGLASS_QUIET") || !(is_set("STACKGLASS_VERBOSE") || isatty(STDERR_FILENO));
}

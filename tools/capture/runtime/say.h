// Writes sentences to standard error, without stdio.
#ifndef STACKGLASS_SAY_H
#define STACKGLASS_SAY_H

#include <stddef.h>
#include <stdint.h>

#include "system.h"

// Remembers the file of standard error: the program may close it, and later use its number for one
// of its own files.
SG_API void sg_say_prepare(void);

struct sg_sentence {
	char text[1024];
	size_t length;
};

SG_API void sg_add(struct sg_sentence *s, const char *text);
SG_API void sg_add_number(struct sg_sentence *s, uint64_t n);       // 8,469,460
SG_API void sg_add_digits(struct sg_sentence *s, uint64_t n);       // 8469460
SG_API void sg_add_bytes(struct sg_sentence *s, uint64_t bytes);    // 1.2 MB
SG_API void sg_add_error(struct sg_sentence *s, int error);         // the description of an errno
SG_API void sg_say(struct sg_sentence *s);

#endif

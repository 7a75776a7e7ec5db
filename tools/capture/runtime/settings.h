// The settings in the environment of a traced program; `stackglass help cc` describes them.
#ifndef STACKGLASS_SETTINGS_H
#define STACKGLASS_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "file.h"
#include "system.h"

struct sg_settings {
	char out[PATH_MAX];
	struct sg_extent extent;
	const char *region; // record only in calipers with this tag; 0: everywhere
	bool only_regions;
	bool sliced;
	bool fork_file; // children write their own traces
	bool quiet; // print nothing at the end, unless something failed
};

SG_API void sg_settings_read(struct sg_settings *s);

#endif
